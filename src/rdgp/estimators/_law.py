"""Predictive laws in other units and other coordinates."""

from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import compiled
from rdgp.likelihoods import Likelihood
from rdgp.likelihoods._likelihood import REAL_NUMBERS, Support
from rdgp.models import Prediction


class Rescaled(Likelihood):
    """The likelihood of y where another one describes (y - offset) / scale, coordinate by coordinate."""

    support: ClassVar[Support] = REAL_NUMBERS
    inner: Likelihood
    offset: Float[Array, "q"]
    scale: Float[Array, "q"]

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

    def _standard(self, values: Float[Array, "*S q"]) -> Float[Array, "*S q"]:
        return (values - self.offset) / self.scale

    def _standard_moments(
        self, mean: Float[Array, "*S N q"], covariance: Float[Array, "*S N q q"]
    ) -> tuple[Float[Array, "*S N q"], Float[Array, "*S N q q"]]:
        return self._standard(mean), covariance / self._squares()

    def _squares(self) -> Float[Array, "q q"]:
        return self.scale[:, None] * self.scale[None, :]


def rescale(law: Prediction, offset: Float[np.ndarray, "q"], scale: Float[np.ndarray, "q"]) -> Prediction:
    """Return the law of offset + scale * value."""
    if law.likelihood is None:
        raise ValueError("only a prediction with its likelihood can be rescaled, not the law of observations")
    dtype = law.means.dtype
    shift, factor = jnp.asarray(offset, dtype), jnp.asarray(scale, dtype)
    squares = factor[:, None] * factor[None, :]
    likelihood = Rescaled(law.likelihood, shift, factor)
    return Prediction(law.means * factor + shift, law.covariances * squares, likelihood, law.basis, law.scalar)


def in_frame(law: Prediction, frame: Float[Array, "N D q"]) -> Prediction:
    """Return the law of the components of tangent vectors along the columns of orthonormal frames."""
    if law.basis is None:
        raise ValueError("only predictions of tangent vectors have components in a frame")
    turn = jnp.einsum("ndp,ndq->npq", frame, law.basis)
    means = jnp.einsum("npq,snq->snp", turn, law.means)
    covariances = jnp.einsum("nij,snjk,nlk->snil", turn, law.covariances, turn)
    return Prediction(means, covariances, law.likelihood, None, False)


def join_laws(laws: list[Prediction], count: int) -> Prediction:
    """Return laws at several lists of points as one, at the first points only."""
    means = np.concatenate([np.asarray(law.means) for law in laws], axis=1)[:, :count]
    covariances = np.concatenate([np.asarray(law.covariances) for law in laws], axis=1)[:, :count]
    return Prediction(jnp.asarray(means), jnp.asarray(covariances), laws[0].likelihood, None, laws[0].scalar)


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
    law: Prediction, quantiles: Sequence[float], offset: Float[np.ndarray, "P"], scale: Float[np.ndarray, "P"]
) -> Summary:
    """Return the summary of offset + scale * value."""
    squares = jnp.asarray(scale[:, None] * scale[None, :] / scale.max() ** 2, law.means.dtype)
    mean, std, frobenius = (np.asarray(part, np.float64) for part in compiled(_moments, law, squares))
    found = [np.asarray(law.quantile(p), np.float64).reshape(mean.shape) for p in quantiles]
    return Summary(
        mean * scale + offset,
        std * scale,
        np.linalg.norm(std * scale, axis=1),
        frobenius * scale.max() ** 2,
        np.stack(found) * scale + offset if found else np.zeros((0, *mean.shape)),
    )


def _moments(
    law: Prediction, squares: Float[Array, "P P"]
) -> tuple[Float[Array, "N P"], Float[Array, "N P"], Float[Array, "N"]]:
    n = law.means.shape[1]
    std = jnp.sqrt(jnp.maximum(law.variance, 0.0)).reshape(n, -1)
    norms = jnp.sqrt(jnp.sum(jnp.square(law.covariances * squares), axis=(-2, -1)))
    return law.mean.reshape(n, -1), std, jnp.mean(norms, axis=0)


def join_summaries(parts: list[Summary], count: int) -> Summary:
    """Return summaries at several lists of points as one, at the first points only."""
    mean, std, total_std, frobenius = (np.concatenate(part)[:count] for part in list(zip(*parts, strict=True))[:-1])
    quantiles = np.concatenate([part.quantiles for part in parts], axis=1)[:, :count]
    return Summary(mean, std, total_std, frobenius, quantiles)
