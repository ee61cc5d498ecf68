"""Gaussian noise, isotropic in coordinates, so in the tangent space for tangent vectors."""

from typing import ClassVar

import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import Parameter, Prior, standard_normal
from rdgp.likelihoods._likelihood import REAL_NUMBERS, Likelihood, Support, positive_number, variances

_UNROLLED = 3  # up to this size elimination is written out: batches of small factorizations are slow on CPUs


class Gaussian(Likelihood):
    """Observations y = f + ε with ε ~ N(0, σ² I) in coordinates; on tangent vectors that is the tangent Gaussian.

    >>> round(float(Gaussian(noise_variance=0.25).noise_variance), 3)
    0.25
    """

    support: ClassVar[Support] = REAL_NUMBERS
    _noise_variance: Parameter

    def __init__(self, noise_variance: float = 0.1, *, prior: Prior | None = None) -> None:
        self._noise_variance = positive_number(noise_variance, "noise_variance", prior)

    @property
    def noise_variance(self) -> Float[Array, ""]:
        """Variance σ² of the noise in each coordinate."""
        return self._noise_variance.value

    def expected_log_density(
        self, y: Float[Array, "N q"], mean: Float[Array, "*S N q"], covariance: Float[Array, "*S N q q"]
    ) -> Float[Array, "*S N"]:
        """Return log N(y; mean, σ² I) - tr covariance / (2 σ²)."""
        return self.expected_log_density_by_spread(y, mean, jnp.sum(variances(covariance), axis=-1))

    def expected_log_density_by_spread(
        self, y: Float[Array, "N q"], mean: Float[Array, "*S N q"], spread: Float[Array, "*S N"]
    ) -> Float[Array, "*S N"]:
        """Return log N(y; mean, σ² I) - spread / (2 σ²), spread the sum of the variances."""
        noise = self.noise_variance.astype(mean.dtype)
        squares = jnp.sum(jnp.square(y.astype(mean.dtype) - mean), axis=-1) + spread
        return -0.5 * (squares / noise + mean.shape[-1] * jnp.log(2.0 * jnp.pi * noise))

    def log_predictive(
        self, y: Float[Array, "N q"], mean: Float[Array, "*S N q"], covariance: Float[Array, "*S N q q"]
    ) -> Float[Array, "*S N"]:
        """Return log N(y; mean, covariance + σ² I)."""
        mean, covariance = self.observed_moments(mean, covariance)
        return log_normal(y, mean, covariance)

    def observed_moments(
        self, mean: Float[Array, "*S N q"], covariance: Float[Array, "*S N q q"]
    ) -> tuple[Float[Array, "*S N q"], Float[Array, "*S N q q"]]:
        """Return the mean, and the covariance + σ² I."""
        eye = jnp.eye(mean.shape[-1], dtype=mean.dtype)
        return mean, covariance + self.noise_variance.astype(mean.dtype) * eye

    def sample(self, f: Float[Array, "*S N q"], *, key: PRNGKeyArray) -> Float[Array, "*S N q"]:
        """Add noise."""
        return f + jnp.sqrt(self.noise_variance).astype(f.dtype) * standard_normal(key, f.shape, f.dtype)


def log_normal(
    y: Float[Array, "N q"], mean: Float[Array, "*S N q"], covariance: Float[Array, "*S N q q"]
) -> Float[Array, "*S N"]:
    """Return log N(y; mean, covariance)."""
    residual = y.astype(mean.dtype) - mean
    if residual.shape[-1] <= _UNROLLED:
        return _log_normal_unrolled(residual, covariance)
    return _log_normal(residual, covariance)


def _log_normal(residual: Float[Array, "*S q"], covariance: Float[Array, "*S q q"]) -> Float[Array, "*S"]:
    """Return log N(residual; 0, covariance) by a Cholesky factor."""
    factor = jnp.linalg.cholesky(covariance)
    whitened = solve_triangular(factor, residual[..., None], lower=True)[..., 0]
    log_pivots = 2.0 * jnp.log(variances(factor))
    return -0.5 * jnp.sum(jnp.square(whitened) + log_pivots + jnp.log(2.0 * jnp.pi), axis=-1)


def _log_normal_unrolled(residual: Float[Array, "*S q"], covariance: Float[Array, "*S q q"]) -> Float[Array, "*S"]:
    """Return log N(residual; 0, covariance), one coordinate after the other given those before."""
    pivot, first = covariance[..., 0, 0], residual[..., 0]
    log_density = -0.5 * (jnp.square(first) / pivot + jnp.log(2.0 * jnp.pi * pivot))
    if residual.shape[-1] == 1:
        return log_density
    slope = covariance[..., 1:, 0] / pivot[..., None]
    given = covariance[..., 1:, 1:] - slope[..., :, None] * covariance[..., None, 0, 1:]
    return log_density + _log_normal_unrolled(residual[..., 1:] - slope * first[..., None], given)
