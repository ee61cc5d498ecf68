"""Prior densities of positive parameters."""

from abc import abstractmethod

import equinox as eqx
import jax.numpy as jnp
from jax.scipy.special import gammaln
from jaxtyping import Array, Float

from rdgp.core._registry import register


class Prior(eqx.Module):
    """A density that training adds to its objective."""

    @abstractmethod
    def log_density(self, value: Float[Array, "..."]) -> Float[Array, "..."]:
        """Return the log density of a positive number."""


@register("rdgp:Gamma")
class Gamma(Prior):
    """The gamma distribution with given shape and rate.

    >>> round(float(Gamma(2.0, 0.15).log_density(jnp.asarray(1.0))), 3)
    -3.944
    """

    shape: float = eqx.field(static=True)
    rate: float = eqx.field(static=True)

    def __check_init__(self) -> None:
        _check_positive(self.shape, self.rate)

    def log_density(self, value: Float[Array, "..."]) -> Float[Array, "..."]:
        """Return a log b - log Γ(a) + (a - 1) log v - b v."""
        constant = self.shape * jnp.log(self.rate) - gammaln(self.shape)
        return constant + (self.shape - 1.0) * jnp.log(value) - self.rate * value


@register("rdgp:LogNormal")
class LogNormal(Prior):
    """The distribution of a number whose logarithm is normal about log(median), with standard deviation `std`."""

    median: float = eqx.field(static=True)
    std: float = eqx.field(static=True)

    def __check_init__(self) -> None:
        _check_positive(self.median, self.std)

    def log_density(self, value: Float[Array, "..."]) -> Float[Array, "..."]:
        """Return log N(log v; log median, std²) - log v."""
        z = (jnp.log(value) - jnp.log(self.median)) / self.std
        return -0.5 * jnp.square(z) - jnp.log(self.std * jnp.sqrt(2.0 * jnp.pi)) - jnp.log(value)


def _check_positive(*numbers: float) -> None:
    if not all(isinstance(number, int | float) and number > 0 for number in numbers):
        raise ValueError(f"a prior takes two positive numbers, got {numbers}; try Gamma(2.0, 0.15)")
