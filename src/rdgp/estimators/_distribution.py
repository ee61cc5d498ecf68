"""Predictive distributions in other units and other coordinates."""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import Parameter, compiled, format_value, register
from rdgp.fields import NumberFrame, TangentFrame
from rdgp.likelihoods import REAL_NUMBERS, Likelihood, Support
from rdgp.models import Prediction


@register("rdgp:Rescaled")
class Rescaled(Likelihood):
    """The likelihood of y where another one describes (y - offset) / scale, coordinate by coordinate."""

    support: ClassVar[Support] = REAL_NUMBERS
    parameters: dict[str, Parameter]  # none: those of the noise are in `inner`
    inner: Likelihood
    offset: Float[Array, "q"]
    scale: Float[Array, "q"]

    def __init__(self, inner: Likelihood, offset: Float[Array, "q"], scale: Float[Array, "q"]) -> None:
        self.parameters = {}
        self.inner, self.offset, self.scale = inner, offset, scale

    def log_density(self, y: Float[Array, "*#N q"], f: Float[Array, "*#N q"]) -> Float[Array, "*#N q"]:
        """Return log p(y | f), coordinate by coordinate."""
        return self.inner.log_density(self._standard(y), self._standard(f)) - jnp.log(self.scale)

    def conditional_moments(self, f: Float[Array, "*N q"]) -> tuple[Float[Array, "*N q"], Float[Array, "*N q"]]:
        """Return mean and variance of y given f, coordinate by coordinate."""
        mean, variance = self.inner.conditional_moments(self._standard(f))
        return mean * self.scale + self.offset, variance * jnp.square(self.scale)

    def given(self, noise: Float[Array, "N ..."]) -> "Rescaled":
        """Return the likelihood of observations whose noise is known, a variance or a covariance matrix for each."""
        eye = jnp.eye(self.scale.size, dtype=noise.dtype)
        covariances = noise if noise.ndim == 3 else noise[:, None, None] * eye
        return Rescaled(self.inner.given(covariances / self._squares()), self.offset, self.scale)

    def expected_log_density(
        self, y: Float[Array, "N q"], mean: Float[Array, "*S N q"], covariance: Float[Array, "*S N q q"]
    ) -> Float[Array, "*S N"]:
        """Return E log p(y | f) under f ~ N(mean, covariance)."""
        inner = self.inner.expected_log_density(self._standard(y), *self._standard_moments(mean, covariance))
        return inner - jnp.sum(jnp.log(self.scale))

    def log_predictive(
        self, y: Float[Array, "N q"], mean: Float[Array, "*S N q"], covariance: Float[Array, "*S N q q"]
    ) -> Float[Array, "*S N"]:
        """Return log E p(y | f) under f ~ N(mean, covariance)."""
        inner = self.inner.log_predictive(self._standard(y), *self._standard_moments(mean, covariance))
        return inner - jnp.sum(jnp.log(self.scale))

    def observed_moments(
        self, mean: Float[Array, "*S N q"], covariance: Float[Array, "*S N q q"]
    ) -> tuple[Float[Array, "*S N q"], Float[Array, "*S N q q"]]:
        """Return mean and covariance of y under f ~ N(mean, covariance)."""
        mean, covariance = self.inner.observed_moments(*self._standard_moments(mean, covariance))
        return mean * self.scale + self.offset, covariance * self._squares()

    def sample(self, f: Float[Array, "*S N q"], *, key: PRNGKeyArray) -> Float[Array, "*S N q"]:
        """Draw an observation of each latent value."""
        return self.inner.sample(self._standard(f), key=key) * self.scale + self.offset

    def __repr__(self) -> str:
        return f"Rescaled({self.inner}, offset={format_value(self.offset)}, scale={format_value(self.scale)})"

    def _standard(self, values: Float[Array, "*S q"]) -> Float[Array, "*S q"]:
        return (values - self.offset) / self.scale

    def _standard_moments(
        self, mean: Float[Array, "*S N q"], covariance: Float[Array, "*S N q q"]
    ) -> tuple[Float[Array, "*S N q"], Float[Array, "*S N q q"]]:
        return self._standard(mean), covariance / self._squares()

    def _squares(self) -> Float[Array, "q q"]:
        return self.scale[:, None] * self.scale[None, :]


def rescale(prediction: Prediction, offset: Float[np.ndarray, "q"], scale: Float[np.ndarray, "q"]) -> Prediction:
    """Return the predictive distribution of offset + scale * value."""
    if prediction.likelihood is None:
        raise ValueError("only a prediction with its likelihood can be rescaled, not the distribution of observations")
    dtype = prediction.means.dtype
    shift, factor = jnp.asarray(offset, dtype), jnp.asarray(scale, dtype)
    squares = factor[:, None] * factor[None, :]
    likelihood = Rescaled(prediction.likelihood, shift, factor)
    return Prediction(prediction.means * factor + shift, prediction.covariances * squares, likelihood, prediction.frame)


def in_frame(prediction: Prediction, frame: TangentFrame) -> Prediction:
    """Return the predictive distribution of the components of tangent vectors in a frame at the same points."""
    if not isinstance(prediction.frame, TangentFrame):
        raise ValueError("only predictions of tangent vectors have components in a frame")
    turn = frame.components_of(prediction.frame)
    means = jnp.einsum("npq,snq->snp", turn, prediction.means)
    covariances = jnp.einsum("nij,snjk,nlk->snil", turn, prediction.covariances, turn)
    return Prediction(means, covariances, prediction.likelihood, NumberFrame((turn.shape[1],)))


def with_known_noise(prediction: Prediction, noise: Float[Array, "N ..."] | None) -> Prediction:
    """Return the prediction whose observations have known noise, in its coordinates, besides the learned one."""
    if noise is None or prediction.likelihood is None:
        return prediction
    likelihood = prediction.likelihood.given(noise.astype(prediction.means.dtype))
    return Prediction(prediction.means, prediction.covariances, likelihood, prediction.frame)


def join_predictions(parts: list[Prediction], count: int) -> Prediction:
    """Return predictions of numbers at several lists of points as one, at the first points only."""
    means = np.concatenate([np.asarray(part.means) for part in parts], axis=1)[:, :count]
    covariances = np.concatenate([np.asarray(part.covariances) for part in parts], axis=1)[:, :count]
    return Prediction(jnp.asarray(means), jnp.asarray(covariances), parts[0].likelihood, parts[0].frame)


class Summary(NamedTuple):
    """Moments of latent values at points, and their quantiles.

    `total_std` is the root of the trace of the covariance, `frobenius` the mean over hidden draws of the Frobenius norm
    of the covariance of the output layer, in squared units.
    """

    mean: Float[np.ndarray, "N P"]
    std: Float[np.ndarray, "N P"]
    total_std: Float[np.ndarray, "N"]
    frobenius: Float[np.ndarray, "N"]
    quantiles: Float[np.ndarray, "Q N P"]


def summarize(
    prediction: Prediction, quantiles: Sequence[float], offset: Float[np.ndarray, "P"], scale: Float[np.ndarray, "P"]
) -> Summary:
    """Return the summary of offset + scale * value."""
    squares = jnp.asarray(scale[:, None] * scale[None, :] / scale.max() ** 2, prediction.means.dtype)
    mean, std, frobenius = (np.asarray(part, np.float64) for part in compiled(_moments, prediction, squares))
    found = [np.asarray(prediction.quantile(p), np.float64).reshape(mean.shape) for p in quantiles]
    return Summary(
        mean * scale + offset,
        std * scale,
        np.linalg.norm(std * scale, axis=1),
        frobenius * scale.max() ** 2,
        np.stack(found) * scale + offset if found else np.zeros((0, *mean.shape)),
    )


def _moments(
    prediction: Prediction, squares: Float[Array, "P P"]
) -> tuple[Float[Array, "N P"], Float[Array, "N P"], Float[Array, "N"]]:
    n = prediction.means.shape[1]
    std = jnp.sqrt(jnp.maximum(prediction.variance, 0.0)).reshape(n, -1)
    norms = jnp.sqrt(jnp.sum(jnp.square(prediction.covariances * squares), axis=(-2, -1)))
    return prediction.mean.reshape(n, -1), std, jnp.mean(norms, axis=0)


def join_summaries(parts: list[Summary], count: int) -> Summary:
    """Return summaries at several lists of points as one, at the first points only."""
    mean, std, total_std, frobenius = (np.concatenate(part)[:count] for part in list(zip(*parts, strict=True))[:-1])
    quantiles = np.concatenate([part.quantiles for part in parts], axis=1)[:, :count]
    return Summary(mean, std, total_std, frobenius, quantiles)
