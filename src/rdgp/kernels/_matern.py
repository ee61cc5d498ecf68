"""Matérn and heat kernels on compact manifolds: weights of the levels of a spectrum."""

import math
from collections.abc import Collection, Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from rdgp.core import Parameter, Prior, positive_parameters


class Matern(eqx.Module):
    """The Matérn kernel of smoothness ν; ν = ∞ is the heat kernel.

    log Φ(λ) = -(ν + d/2) log(1 + κ² λ / (2 ν)), or -κ² λ / 2 for ν = ∞. Every number is learned unless in `fixed`;
    `prior` gives some of them a prior density, which training adds to its objective.

    >>> round(float(Matern(nu=2.5, lengthscale=0.3, fixed=("nu",)).nu), 3)
    2.5
    """

    _nu: Parameter | None
    _lengthscale: Parameter
    _variance: Parameter

    def __init__(
        self,
        nu: float = 1.5,
        lengthscale: float = 1.0,
        variance: float = 1.0,
        *,
        fixed: Collection[str] = (),
        prior: Mapping[str, Prior] | None = None,
    ) -> None:
        heat = isinstance(nu, float) and math.isinf(nu) and nu > 0
        numbers = {"nu": 1.0 if heat else nu, "lengthscale": lengthscale, "variance": variance}
        smoothness, self._lengthscale, self._variance = positive_parameters(numbers, fixed, prior)
        self._nu = None if heat else smoothness
        if any(p is not None and p.raw.ndim for p in (self._nu, self._lengthscale, self._variance)):
            raise ValueError("Matern takes one number each for nu, lengthscale and variance; got a list")

    @property
    def nu(self) -> Float[Array, ""]:
        """Smoothness ν."""
        return jnp.asarray(jnp.inf) if self._nu is None else self._nu.value

    @property
    def lengthscale(self) -> Float[Array, ""]:
        """Length scale κ."""
        return self._lengthscale.value

    @property
    def variance(self) -> Float[Array, ""]:
        """Variance σ²."""
        return self._variance.value

    def log_density(self, eigenvalues: Float[np.ndarray, "K"], dim: int) -> Float[Array, "K"]:
        """Return log Φ of each eigenvalue, up to a constant."""
        scaled = jnp.square(self.lengthscale) * jnp.asarray(eigenvalues)
        if self._nu is None:
            return -scaled / 2.0
        return -(self.nu + dim / 2.0) * jnp.log1p(scaled / (2.0 * self.nu))

    def level_scales(
        self, eigenvalues: Float[np.ndarray, "K"], multiplicities: Int[np.ndarray, "K"], dim: int
    ) -> Float[Array, "K"]:
        """Return the prior standard deviation of one coefficient of each level.

        p = softmax(log Φ + log N) shares the variance σ² among the levels, s = σ exp((log p - log N) / 2); in log
        space, because √p has no gradient once p underflows.
        """
        log_count = jnp.log(jnp.asarray(multiplicities, dtype=float))
        log_share = jax.nn.log_softmax(self.log_density(eigenvalues, dim) + log_count)
        return jnp.sqrt(self.variance) * jnp.exp((log_share - log_count) / 2.0)


def Heat(lengthscale: float = 1.0, variance: float = 1.0, *, fixed: Collection[str] = ()) -> Matern:  # noqa: N802 - reads as the name of a kernel
    """Return the heat (diffusion, squared exponential) kernel, the Matérn kernel of infinite smoothness."""
    return Matern(math.inf, lengthscale, variance, fixed=fixed)
