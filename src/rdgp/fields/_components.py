"""A kernel on a space: by its discrete spectrum, or in closed form."""

from abc import abstractmethod
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import register
from rdgp.kernels import ClosedFormKernel, Kernel, RandomFeatures, closed_form
from rdgp.spaces import Space
from rdgp.spectra import ScalarSpectrum, ambient_spectra, provides, scalar_spectrum

Levels = int | Sequence[int | None] | None  # one for each factor may be None, where there is no spectrum

_NUM_RANDOM = 1024  # random features of a draw
_MANY = 8192  # eigenfunctions above which a draw takes random features instead
_FAR_OFF = 10.0  # ratio of lengthscale and spread of the data beyond which a search may get lost ...
_START = 0.5  # ... and where it starts then


class Component(eqx.Module):
    """A kernel on a space, or on one factor of it."""

    kernel: eqx.AbstractVar[Kernel | ClosedFormKernel]
    space: eqx.AbstractVar[Space]

    @property
    @abstractmethod
    def spectrum(self) -> ScalarSpectrum:
        """The discrete spectrum, or an error if there is none."""

    @property
    @abstractmethod
    def has_features(self) -> bool:
        """Whether the space has a discrete spectrum."""

    @abstractmethod
    def level_scales(self) -> Float[Array, "K"]:
        """Return the prior standard deviation of a coefficient of each level."""

    @abstractmethod
    def with_lengthscale_of(self, x: Float[np.ndarray, "N D"]) -> "Component":
        """Return the component with a lengthscale that fits the spread of data, if it has units and is far off."""

    @abstractmethod
    def covariance(self, x: Float[Array, "N D"], y: Float[Array, "L D"]) -> Float[Array, "N L"]:
        """Return the kernel for all pairs of points."""

    @abstractmethod
    def variance(self, x: Float[Array, "N D"]) -> Float[Array, "N"]:
        """Return the variance at each point."""

    @abstractmethod
    def random_basis(self, key: PRNGKeyArray) -> tuple[RandomFeatures, int]:
        """Return functions whose sums with standard normal weights are draws, and how many they are."""


@register("rdgp:SpectralComponent")
class SpectralComponent(Component):
    """A kernel on a space with a discrete spectrum."""

    kernel: Kernel
    _spectrum: ScalarSpectrum
    space: Space

    @property
    def spectrum(self) -> ScalarSpectrum:
        """The eigenfunctions."""
        return self._spectrum

    @property
    def has_features(self) -> bool:
        """True."""
        return True

    def level_scales(self) -> Float[Array, "K"]:
        """Return the prior standard deviation of a coefficient of each level."""
        return self.kernel.level_scales(self.spectrum.eigenvalues, self.spectrum.multiplicities, self.space.dim)

    def covariance(self, x: Float[Array, "N D"], y: Float[Array, "L D"]) -> Float[Array, "N L"]:
        """Sum over the levels."""
        return self.spectrum.kernel(jnp.square(self.level_scales()), x, y)

    def variance(self, x: Float[Array, "N D"]) -> Float[Array, "N"]:
        """Sum over the levels."""
        return self.spectrum.diagonal(jnp.square(self.level_scales()), x)

    def random_basis(self, key: PRNGKeyArray) -> tuple[RandomFeatures, int]:
        """Take the eigenfunctions, or roots of the kernel around random centers where those are too many."""
        size = self.spectrum.num_features
        if size <= _MANY:
            return _Eigenfunctions(self.spectrum, self.spectrum.per_feature(self.level_scales())), size
        centers = self.space.random(_NUM_RANDOM, key=key)
        return _KernelRoots(self.spectrum, self.level_scales() / _NUM_RANDOM**0.5, centers), _NUM_RANDOM

    def with_lengthscale_of(self, x: Float[np.ndarray, "N D"]) -> "SpectralComponent":
        """Return the component itself: its space has no units."""
        return self


@register("rdgp:ClosedFormComponent")
class ClosedFormComponent(Component):
    """A kernel in closed form."""

    kernel: ClosedFormKernel
    space: Space

    @property
    def has_features(self) -> bool:
        """False."""
        return False

    @property
    def spectrum(self) -> ScalarSpectrum:
        """Raise: there is none."""
        raise ValueError(
            f"{self.space} has no discrete spectrum, so no features; use covariance, sample or inducing points"
        )

    def level_scales(self) -> Float[Array, "K"]:
        """Raise: there are no levels."""
        return self.kernel.variance + self.spectrum.eigenvalues

    def covariance(self, x: Float[Array, "N D"], y: Float[Array, "L D"]) -> Float[Array, "N L"]:
        """Evaluate the kernel."""
        return self.kernel.covariance(x, y)

    def variance(self, x: Float[Array, "N D"]) -> Float[Array, "N"]:
        """Return the variance of the kernel."""
        return jnp.full(x.shape[0], self.kernel.variance.astype(x.dtype))

    def random_basis(self, key: PRNGKeyArray) -> tuple[RandomFeatures, int]:
        """Draw random features."""
        features = self.kernel.random_features(_NUM_RANDOM, self.space.dim, key=key)
        point = jax.ShapeDtypeStruct((1, self.space.ambient_dim), jnp.result_type(float))
        return features, jax.eval_shape(features, point).shape[-1]

    def with_lengthscale_of(self, x: Float[np.ndarray, "N D"]) -> "ClosedFormComponent":
        """Return the component with lengthscales of about the standard deviation of the data where its own are far off.

        A search from there would get lost: time in seconds has other lengthscales than time in years.
        """
        own, spread = np.asarray(self.kernel.lengthscale, float), np.std(np.asarray(x, float), axis=0)
        spread = spread if own.ndim else np.sqrt(np.mean(np.square(spread)))
        ratio = own / np.where(spread > 0.0, spread, own)
        wrong = np.abs(np.log(ratio)) > np.log(_FAR_OFF)
        if not np.any(wrong):
            return self
        kernel = self.kernel.with_lengthscale(np.where(wrong, _START * spread, own))
        return ClosedFormComponent(kernel=kernel, space=self.space)


def component_on(space: Space, kernel: Kernel, num_levels: Levels, ambient: int | None) -> Component:
    """Return a kernel on a space: by the discrete spectrum if the space has one, else in closed form."""
    if not provides(scalar_spectrum, space):
        return ClosedFormComponent(kernel=closed_form(space, kernel), space=space)
    if not isinstance(num_levels, int | np.integer):
        raise ValueError(f"num_levels must be a number for {space}, got {num_levels}; 7 keeps seven eigenvalues")
    count = int(num_levels)
    spectrum = scalar_spectrum(space, count) if ambient is None else ambient_spectra(space, count)[ambient]
    return SpectralComponent(kernel=kernel.on_manifold(), _spectrum=spectrum, space=space)


@register("rdgp:Eigenfunctions")
class _Eigenfunctions(RandomFeatures):
    """Eigenfunctions times the standard deviations of their coefficients."""

    spectrum: ScalarSpectrum
    scales: Float[Array, "M"]

    def __call__(self, x: Float[Array, "*N D"]) -> Float[Array, "*N M"]:
        return self.spectrum.features(x) * self.scales.astype(x.dtype)


@register("rdgp:KernelRoots")
class _KernelRoots(RandomFeatures):
    """The root h of a kernel around random centers u: E[h(x, u) h(y, u)] = k(x, y) for uniform u.

    It has the levels' standard deviations where the kernel has variances, and costs no more when many are kept.
    """

    spectrum: ScalarSpectrum
    scales: Float[Array, "K"]
    centers: Float[Array, "M D"]

    def __call__(self, x: Float[Array, "*N D"]) -> Float[Array, "*N M"]:
        flat = self.spectrum.kernel(self.scales, x.reshape(-1, x.shape[-1]), self.centers.astype(x.dtype))
        return flat.reshape(*x.shape[:-1], -1)
