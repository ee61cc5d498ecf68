"""The contract of a kernel: a spectral density with a variance, and a closed form on flat spaces where it has one."""

from abc import abstractmethod
from collections.abc import Collection, Mapping
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from rdgp.core import Numbers, Parameter, Parametric, Prior, positive_parameters
from rdgp.kernels._closed_form import ClosedFormKernel

K = TypeVar("K", bound="Kernel")


class Kernel(Parametric):
    """A stationary covariance kernel, given by how much variance it gives to each eigenvalue of the Laplacian.

    A kernel of your own calls `super().__init__` with its positive numbers by name, "variance" among them, and defines
    `log_density`. Every number is learned unless in `fixed`; `prior` gives some of them a prior density, which training
    adds to its objective.
    """

    parameters: dict[str, Parameter]

    def __init__(
        self,
        values: Mapping[str, Numbers],
        *,
        fixed: Collection[str] = (),
        prior: Mapping[str, Prior] | None = None,
    ) -> None:
        self.parameters = positive_parameters(values, fixed, prior)

    @property
    def variance(self) -> Float[Array, ""]:
        """Variance σ² of a value."""
        return self.parameters["variance"].value

    @property
    def lengthscale(self) -> Float[Array, "*d"]:
        """Length scale κ; on flat spaces possibly one for each coordinate."""
        return self.parameters["lengthscale"].value

    @abstractmethod
    def log_density(self, eigenvalues: Float[np.ndarray, "K"], dim: int) -> Float[Array, "K"]:
        """Return the log of the spectral density at eigenvalues of a space of dimension `dim`, up to a constant."""

    def level_scales(
        self, eigenvalues: Float[np.ndarray, "K"], multiplicities: Int[np.ndarray, "K"], dim: int
    ) -> Float[Array, "K"]:
        """Return the prior standard deviation of one coefficient of each level."""
        return share_variance(self.variance, self.log_density(eigenvalues, dim), multiplicities)

    def with_variance(self: K, variance: Numbers) -> K:
        """Return the kernel with another variance, unless it is fixed."""
        return self.with_values(variance=variance)

    def with_lengthscale(self: K, lengthscale: Numbers) -> K:
        """Return the kernel with another lengthscale, unless it is fixed or the kernel has none."""
        return self.with_values(lengthscale=lengthscale) if "lengthscale" in self.parameters else self

    def on_manifold(self) -> "Kernel":
        """Return the kernel as it is used on curved spaces, or raise: it must have one number of each kind."""
        several = [name for name, parameter in self.parameters.items() if parameter.raw.ndim]
        if several:
            raise ValueError(f"{type(self).__name__} takes one number as {several[0]} here, got a list; use one kernel")
        return self

    def on_flat(self, dim: int) -> "ClosedFormKernel":
        """Return the kernel's closed form on flat spaces of dimension `dim`, or raise if it has none."""
        raise ValueError(
            f"{type(self).__name__} has no closed form on flat spaces; define on_flat(dim), or use Matern there"
        )


def share_variance(
    variance: Float[Array, ""], log_density: Float[Array, "K"], multiplicities: Int[np.ndarray, "K"]
) -> Float[Array, "K"]:
    """Return the standard deviation of one coefficient of each level: the levels share the variance by their density.

    p = softmax(log Φ + log N), s = σ exp((log p - log N) / 2); in log space, because √p has no gradient once p
    underflows.
    """
    log_count = jnp.log(jnp.asarray(multiplicities, dtype=float))
    log_share = jax.nn.log_softmax(log_density + log_count)
    return jnp.sqrt(variance) * jnp.exp((log_share - log_count) / 2.0)
