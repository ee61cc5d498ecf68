"""Kernels in closed form, on spaces that have no discrete spectrum."""

from abc import abstractmethod
from functools import reduce
from typing import TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import Numbers, Parameter, Parametric, register

C = TypeVar("C", bound="ClosedFormKernel")


class RandomFeatures(eqx.Module):
    """Functions whose products, summed, approximate a kernel."""

    @abstractmethod
    def __call__(self, x: Float[Array, "*N D"]) -> Float[Array, "*N M"]:
        """Evaluate them."""


class ClosedFormKernel(Parametric):
    """A kernel on one space, as a formula, with random features for its draws."""

    parameters: eqx.AbstractVar[dict[str, Parameter]]

    @property
    def variance(self) -> Float[Array, ""]:
        """Variance σ² of a value."""
        return self.parameters["variance"].value

    @property
    def lengthscale(self) -> Float[Array, "*d"]:
        """Length scale, one for all coordinates or one for each."""
        return self.parameters["lengthscale"].value

    @abstractmethod
    def covariance(self, x: Float[Array, "N D"], y: Float[Array, "L D"]) -> Float[Array, "N L"]:
        """Return k(x, y) for all pairs."""

    @abstractmethod
    def random_features(self, n: int, dim: int, *, key: PRNGKeyArray) -> RandomFeatures:
        """Draw n random features on a space of dimension `dim`."""

    def with_variance(self: C, variance: Numbers) -> C:
        """Return the kernel with another variance, unless it is fixed."""
        return self.with_values(variance=variance)

    def with_lengthscale(self: C, lengthscale: Numbers) -> C:
        """Return the kernel with another lengthscale, unless it is fixed."""
        return self.with_values(lengthscale=lengthscale)


class FlatKernel(ClosedFormKernel):
    """A stationary kernel on flat space: a correlation as a function of the squared distance over the lengthscale."""

    @abstractmethod
    def correlation(self, squared: Float[Array, "N L"]) -> Float[Array, "N L"]:
        """Return the correlation at squared distances, in units of the lengthscale."""

    @abstractmethod
    def unit_frequencies(self, n: int, dim: int, key: PRNGKeyArray) -> Float[Array, "n d"]:
        """Draw frequencies from the spectral density of lengthscale one."""

    def covariance(self, x: Float[Array, "N d"], y: Float[Array, "L d"]) -> Float[Array, "N L"]:
        """Return k(x, y) for all pairs."""
        scale = self.lengthscale.astype(x.dtype)
        x, y = x / scale, y / scale
        # One coordinate at a time: exact zeros on the diagonal, and no [N, L, d] array.
        squared = reduce(jnp.add, [jnp.square(x[:, i, None] - y[None, :, i]) for i in range(x.shape[1])])
        return self.variance.astype(x.dtype) * self.correlation(squared)

    def random_features(self, n: int, dim: int, *, key: PRNGKeyArray) -> "RandomFourierFeatures":
        """Draw cosines of random frequency and phase."""
        key_frequency, key_phase = jax.random.split(key)
        frequencies = self.unit_frequencies(n, dim, key_frequency) / self.lengthscale
        return random_fourier_features(frequencies, self.variance, key_phase)


@register("rdgp:RandomFourierFeatures")
class RandomFourierFeatures(RandomFeatures):
    """Cosines of random frequency and phase."""

    frequencies: Float[Array, "M D"]
    phases: Float[Array, "M"]
    scale: Float[Array, ""]

    def __call__(self, x: Float[Array, "*N D"]) -> Float[Array, "*N M"]:
        """Evaluate them."""
        phase = x @ self.frequencies.astype(x.dtype).T + self.phases.astype(x.dtype)
        return self.scale.astype(x.dtype) * jnp.cos(phase)


def random_fourier_features(
    frequencies: Float[Array, "M D"], variance: Float[Array, ""], key: PRNGKeyArray
) -> RandomFourierFeatures:
    """Return cosines of given frequencies and random phases, of a given total variance."""
    n = frequencies.shape[0]
    phases = jax.random.uniform(key, (n,), maxval=2 * np.pi)
    return RandomFourierFeatures(frequencies, phases, jnp.sqrt(2.0 * variance / n))
