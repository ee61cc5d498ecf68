"""Predictive laws in other units and other coordinates."""

from typing import ClassVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

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


def first(law: Prediction, count: int) -> Prediction:
    """Return the law at the first points."""
    basis = None if law.basis is None else jnp.asarray(np.asarray(law.basis)[:count])
    means, covariances = np.asarray(law.means)[:, :count], np.asarray(law.covariances)[:, :count]
    return Prediction(jnp.asarray(means), jnp.asarray(covariances), law.likelihood, basis, law.scalar)
