"""Matérn and squared exponential kernels on Euclidean space, in closed form."""

import math
from collections.abc import Collection, Mapping
from functools import reduce

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import Numbers, Parameter, Prior, positive_parameters, standard_normal

_SMOOTHNESS = (0.5, 1.5, 2.5, math.inf)


class EuclideanMatern(eqx.Module):
    """The Matérn kernel on R^d with ν = 1/2, 3/2, 5/2 or ∞ (squared exponential).

    A list of lengthscales, one for each coordinate, makes it an ARD kernel.
    """

    nu: float = eqx.field(static=True)
    _lengthscale: Parameter
    _variance: Parameter

    def __init__(
        self,
        nu: float = 1.5,
        lengthscale: Numbers = 1.0,
        variance: float = 1.0,
        *,
        fixed: Collection[str] = (),
        prior: Mapping[str, Prior] | None = None,
    ) -> None:
        if nu not in _SMOOTHNESS:
            raise ValueError(f"nu must be 0.5, 1.5, 2.5 or inf on Euclidean space, got {nu}")
        self.nu = float(nu)
        numbers = {"lengthscale": lengthscale, "variance": variance}
        self._lengthscale, self._variance = positive_parameters(numbers, fixed, prior)

    @property
    def lengthscale(self) -> Float[Array, "*d"]:
        """Length scale, one for all coordinates or one for each."""
        return self._lengthscale.value

    @property
    def variance(self) -> Float[Array, ""]:
        """Variance σ²."""
        return self._variance.value

    def covariance(self, x: Float[Array, "N d"], y: Float[Array, "L d"]) -> Float[Array, "N L"]:
        """Return k(x, y) for all pairs."""
        scale = self.lengthscale.astype(x.dtype)
        x, y = x / scale, y / scale
        # One coordinate at a time: exact zeros on the diagonal, and no [N, L, d] array.
        squared = reduce(jnp.add, [jnp.square(x[:, i, None] - y[None, :, i]) for i in range(x.shape[1])])
        return self.variance.astype(x.dtype) * self._correlation(squared)

    def _correlation(self, squared: Float[Array, "N L"]) -> Float[Array, "N L"]:
        if math.isinf(self.nu):
            return jnp.exp(-squared / 2.0)
        apart = squared > 0.0
        r = jnp.where(apart, jnp.sqrt(2.0 * self.nu * jnp.where(apart, squared, 1.0)), 0.0)
        polynomial = {0.5: jnp.ones_like(r), 1.5: 1.0 + r, 2.5: 1.0 + r + r * r / 3.0}
        return polynomial[self.nu] * jnp.exp(-r)

    def sample_frequencies(self, n: int, dim: int, *, key: PRNGKeyArray) -> Float[Array, "n d"]:
        """Draw frequencies from the normalised spectral density, a multivariate t distribution."""
        key_normal, key_spread = jax.random.split(key)
        normal = standard_normal(key_normal, (n, dim)) / self.lengthscale
        if math.isinf(self.nu):
            return normal
        freedom = round(2.0 * self.nu)
        chi_squared = jnp.sum(jnp.square(standard_normal(key_spread, (n, freedom))), axis=1, keepdims=True)
        return normal * jnp.sqrt(freedom / chi_squared)
