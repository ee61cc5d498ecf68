"""Matérn and heat kernels on every space."""

import math
from collections.abc import Collection, Mapping

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import Numbers, Parameter, Prior, is_concrete, register, standard_normal
from rdgp.kernels._closed_form import FlatKernel
from rdgp.kernels._kernel import Kernel

_CLOSED = (0.5, 1.5, 2.5, math.inf)  # smoothness with a closed form on flat spaces


@register("rdgp:Matern")
class Matern(Kernel):
    """The Matérn kernel of smoothness ν; ν = ∞ is the heat kernel.

    log Φ(λ) = -(ν + d/2) log(1 + κ² λ / (2 ν)), or -κ² λ / 2 for ν = ∞. Every number is learned unless in `fixed`;
    `prior` gives some of them a prior density, which training adds to its objective. On flat spaces ν must be 1/2, 3/2,
    5/2 or ∞ and stays as it is, and a list of lengthscales, one for each coordinate, makes it an ARD kernel.

    >>> round(float(Matern(nu=2.5, lengthscale=0.3, fixed=("nu",)).nu), 3)
    2.5
    """

    parameters: dict[str, Parameter]

    def __init__(
        self,
        nu: float = 1.5,
        lengthscale: Numbers = 1.0,
        variance: float = 1.0,
        *,
        fixed: Collection[str] = (),
        prior: Mapping[str, Prior] | None = None,
    ) -> None:
        heat = isinstance(nu, float) and math.isinf(nu) and nu > 0
        super().__init__(
            {"nu": 1.0 if heat else nu, "lengthscale": lengthscale, "variance": variance}, fixed=fixed, prior=prior
        )
        if heat:
            self.parameters = {name: self.parameters[name] for name in ("lengthscale", "variance")}
        if any(parameter.raw.ndim for name, parameter in self.parameters.items() if name != "lengthscale"):
            raise ValueError("Matern takes one number each for nu and variance; got a list")

    @property
    def nu(self) -> Float[Array, ""]:
        """Smoothness ν."""
        return self.parameters["nu"].value if "nu" in self.parameters else jnp.asarray(jnp.inf)

    def log_density(self, eigenvalues: Float[np.ndarray, "K"], dim: int) -> Float[Array, "K"]:
        """Return log Φ of each eigenvalue, up to a constant."""
        scaled = jnp.square(self.lengthscale) * jnp.asarray(eigenvalues)
        if "nu" not in self.parameters:
            return -scaled / 2.0
        return -(self.nu + dim / 2.0) * jnp.log1p(scaled / (2.0 * self.nu))

    def on_flat(self, dim: int) -> FlatKernel:
        """Return the closed form, with ν held."""
        if not is_concrete(self.nu):
            raise ValueError("a field on a flat space needs a kernel whose nu is a known number; build it outside jit")
        smoothness = float(self.nu)
        closed = next((known for known in _CLOSED if math.isclose(known, smoothness, rel_tol=1e-5)), None)
        if closed is None:
            raise ValueError(f"nu must be 0.5, 1.5, 2.5 or inf on flat spaces, got {smoothness:g}")
        size = self.parameters["lengthscale"].raw.size
        if self.parameters["lengthscale"].raw.ndim > 1 or size not in (1, dim):
            raise ValueError(f"a flat space of dimension {dim} needs one lengthscale or {dim}, got {size}")
        held = {name: self.parameters[name] for name in ("lengthscale", "variance")}
        return _FlatMatern(nu=closed, parameters=held)

    def __repr__(self) -> str:
        return super().__repr__() if "nu" in self.parameters else super().__repr__().replace("Matern", "Heat", 1)


def Heat(  # noqa: N802 - reads as the name of a kernel
    lengthscale: Numbers = 1.0,
    variance: float = 1.0,
    *,
    fixed: Collection[str] = (),
    prior: Mapping[str, Prior] | None = None,
) -> Matern:
    """Return the heat (diffusion, squared exponential) kernel, the Matérn kernel of infinite smoothness."""
    return Matern(math.inf, lengthscale, variance, fixed=fixed, prior=prior)


@register("rdgp:FlatMatern")
class _FlatMatern(FlatKernel):
    """The Matérn kernel on flat space with ν = 1/2, 3/2, 5/2 or ∞ (squared exponential)."""

    nu: float = eqx.field(static=True)
    parameters: dict[str, Parameter]

    def correlation(self, squared: Float[Array, "N L"]) -> Float[Array, "N L"]:
        """Return a polynomial times an exponential of the distance, or of its square."""
        if math.isinf(self.nu):
            return jnp.exp(-squared / 2.0)
        apart = squared > 0.0
        r = jnp.where(apart, jnp.sqrt(2.0 * self.nu * jnp.where(apart, squared, 1.0)), 0.0)
        polynomial = {0.5: jnp.ones_like(r), 1.5: 1.0 + r, 2.5: 1.0 + r + r * r / 3.0}
        return polynomial[self.nu] * jnp.exp(-r)

    def unit_frequencies(self, n: int, dim: int, key: PRNGKeyArray) -> Float[Array, "n d"]:
        """Draw from a multivariate t distribution."""
        key_normal, key_scale = jax.random.split(key)
        normal = standard_normal(key_normal, (n, dim))
        if math.isinf(self.nu):
            return normal
        freedom = round(2.0 * self.nu)
        chi_squared = jnp.sum(jnp.square(standard_normal(key_scale, (n, freedom))), axis=1, keepdims=True)
        return normal * jnp.sqrt(freedom / chi_squared)

    def __repr__(self) -> str:
        return super().__repr__().replace("_FlatMatern(", f"Matern(nu={self.nu:g}, ", 1)
