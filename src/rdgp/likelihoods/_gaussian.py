"""Gaussian noise, isotropic in coordinates, so in the tangent space for tangent vectors."""

from collections.abc import Collection, Mapping
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import Parameter, Prior, register, standard_normal
from rdgp.likelihoods._likelihood import REAL_NUMBERS, Likelihood, Support, single_numbers, variances

_UNROLLED = 3  # up to this size elimination is written out: batches of small factorizations are slow on CPUs


@register("rdgp:Gaussian")
class Gaussian(Likelihood):
    """Observations y = f + ε with ε ~ N(0, σ² I) in coordinates; on tangent vectors that is the tangent Gaussian.

    The noise variance is learned unless in `fixed`; `prior` gives it a prior density, as for kernels. `floor` is the
    least variance, which is always added; training sets it to rounding error relative to the data.

    >>> round(float(Gaussian(noise_variance=0.25).noise_variance), 3)
    0.25
    """

    support: ClassVar[Support] = REAL_NUMBERS
    parameters: dict[str, Parameter]
    floor: Float[Array, ""]

    def __init__(
        self,
        noise_variance: float = 0.1,
        *,
        fixed: Collection[str] = (),
        prior: Mapping[str, Prior] | None = None,
    ) -> None:
        self.parameters = single_numbers({"noise_variance": noise_variance}, fixed, prior)
        self.floor = jnp.zeros((), float)

    @property
    def noise_variance(self) -> Float[Array, ""]:
        """Variance σ² of the noise in each coordinate."""
        return self.parameters["noise_variance"].value + self.floor.astype(self.parameters["noise_variance"].raw.dtype)

    @property
    def conjugate(self) -> bool:
        """True."""
        return True

    @property
    def by_trace(self) -> bool:
        """True: noise is isotropic."""
        return True

    def with_noise_floor(self, floor: float) -> "Gaussian":
        """Return the likelihood with a least noise variance, unless its own is fixed."""
        least = floor if self.parameters["noise_variance"].trainable else 0.0
        return eqx.tree_at(lambda own: own.floor, self, jnp.asarray(least, self.floor.dtype))

    def given(self, noise: Float[Array, "N ..."]) -> "KnownNoise":
        """Return the likelihood of observations with known noise, which adds to σ²."""
        return KnownNoise(self.parameters, noise, self.floor)

    def log_density(self, y: Float[Array, "*#N q"], f: Float[Array, "*#N q"]) -> Float[Array, "*#N q"]:
        """Return log N(y; f, σ²), coordinate by coordinate."""
        noise = self.noise_variance.astype(f.dtype)
        return -0.5 * (jnp.square(y - f) / noise + jnp.log(2.0 * jnp.pi * noise))

    def conditional_moments(self, f: Float[Array, "*N q"]) -> tuple[Float[Array, "*N q"], Float[Array, "*N q"]]:
        """Return f and σ²."""
        return f, jnp.full_like(f, self.noise_variance.astype(f.dtype))

    def expected_log_density(
        self, y: Float[Array, "N q"], mean: Float[Array, "*S N q"], covariance: Float[Array, "*S N q q"]
    ) -> Float[Array, "*S N"]:
        """Return log N(y; mean, σ² I) - tr covariance / (2 σ²)."""
        return self.expected_log_density_by_trace(y, mean, jnp.sum(variances(covariance), axis=-1))

    def expected_log_density_by_trace(
        self, y: Float[Array, "N q"], mean: Float[Array, "*S N q"], trace: Float[Array, "*S N"]
    ) -> Float[Array, "*S N"]:
        """Return log N(y; mean, σ² I) - trace / (2 σ²), trace the sum of the variances."""
        noise = self.noise_variance.astype(mean.dtype)
        squares = jnp.sum(jnp.square(y.astype(mean.dtype) - mean), axis=-1) + trace
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


@register("rdgp:KnownNoise")
class KnownNoise(Likelihood):
    """Gaussian noise of which the variance, or the covariance of the coordinates, is known for each observation.

    It adds to σ², which stands for what is not known.
    """

    support: ClassVar[Support] = REAL_NUMBERS
    parameters: dict[str, Parameter]
    known: Float[Array, "N ..."]
    floor: Float[Array, ""]

    def _total(self, size: int, dtype: jnp.dtype) -> Float[Array, "N q q"]:
        """Return the covariance of the noise of each observation."""
        eye, known = jnp.eye(size, dtype=dtype), self.known.astype(dtype)
        own = (self.parameters["noise_variance"].value + self.floor).astype(dtype)
        return (known if known.ndim == 3 else known[:, None, None] * eye) + own * eye

    def log_density(self, y: Float[Array, "*#N q"], f: Float[Array, "*#N q"]) -> Float[Array, "*#N q"]:
        """Return log N(y_i; f_i, variance_i) of each coordinate alone."""
        variance = variances(self._total(f.shape[-1], f.dtype))
        return -0.5 * (jnp.square(y - f) / variance + jnp.log(2.0 * jnp.pi * variance))

    def conditional_moments(self, f: Float[Array, "*N q"]) -> tuple[Float[Array, "*N q"], Float[Array, "*N q"]]:
        """Return f and the variances of the noise."""
        return f, jnp.broadcast_to(variances(self._total(f.shape[-1], f.dtype)), f.shape)

    def expected_log_density(
        self, y: Float[Array, "N q"], mean: Float[Array, "*S N q"], covariance: Float[Array, "*S N q q"]
    ) -> Float[Array, "*S N"]:
        """Return log N(y; mean, R) - tr R⁻¹ covariance / 2."""
        noise = self._total(mean.shape[-1], mean.dtype)
        spread = jnp.einsum("nij,...nij->...n", jnp.linalg.inv(noise), covariance)
        return log_normal(y, mean, jnp.broadcast_to(noise, covariance.shape)) - 0.5 * spread

    def log_predictive(
        self, y: Float[Array, "N q"], mean: Float[Array, "*S N q"], covariance: Float[Array, "*S N q q"]
    ) -> Float[Array, "*S N"]:
        """Return log N(y; mean, covariance + R)."""
        mean, covariance = self.observed_moments(mean, covariance)
        return log_normal(y, mean, covariance)

    def observed_moments(
        self, mean: Float[Array, "*S N q"], covariance: Float[Array, "*S N q q"]
    ) -> tuple[Float[Array, "*S N q"], Float[Array, "*S N q q"]]:
        """Return the mean, and the covariance + R."""
        return mean, covariance + self._total(mean.shape[-1], mean.dtype)

    def sample(self, f: Float[Array, "*S N q"], *, key: PRNGKeyArray) -> Float[Array, "*S N q"]:
        """Add noise."""
        root = jnp.linalg.cholesky(self._total(f.shape[-1], f.dtype))
        return f + jnp.einsum("nij,...nj->...ni", root, standard_normal(key, f.shape, f.dtype))


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
    factor = jnp.linalg.cholesky(jnp.broadcast_to(covariance, (*residual.shape, residual.shape[-1])))
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
