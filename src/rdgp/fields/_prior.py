"""The scalar Gaussian prior from which scalar, stacked, projected and frame fields are made."""

from collections.abc import Sequence
from functools import reduce

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from rdgp.core import outer_last_axis, standard_normal
from rdgp.kernels import EuclideanMatern, Matern
from rdgp.spaces import Box, Euclidean, Product, Space
from rdgp.spectra import ScalarSpectrum, ambient_spectra, scalar_spectrum

Kernel = Matern | EuclideanMatern
_NUM_WAVES = 1024  # random Fourier features of a draw on Euclidean space


class _Spectral(eqx.Module):
    """A kernel on a compact space through its spectrum."""

    kernel: Matern
    spectrum: ScalarSpectrum
    dim: int = eqx.field(static=True)

    def level_scales(self) -> Float[Array, "K"]:
        return self.kernel.level_scales(self.spectrum.eigenvalues, self.spectrum.multiplicities, self.dim)

    def features(self, x: Float[Array, "*N D"]) -> Float[Array, "*N M"]:
        return self.spectrum.features(x)

    def scales(self) -> Float[Array, "M"]:
        return self.spectrum.per_feature(self.level_scales())

    def levels(self) -> Int[np.ndarray, "M"]:
        count = self.spectrum.multiplicities
        return np.repeat(np.arange(count.size), count)

    def covariance(self, x: Float[Array, "N D"], y: Float[Array, "L D"]) -> Float[Array, "N L"]:
        return self.spectrum.zonal(jnp.square(self.level_scales()), x, y)

    def random_basis(self, key: PRNGKeyArray) -> "_SpectralBasis":
        return _SpectralBasis(self.spectrum, self.scales())


class _Flat(eqx.Module):
    """A kernel on Euclidean space or a box, in closed form."""

    kernel: EuclideanMatern
    dim: int = eqx.field(static=True)

    def features(self, x: Float[Array, "*N D"]) -> Float[Array, "*N M"]:
        raise ValueError(
            "Euclidean spaces and boxes have no discrete spectrum, so no features; use covariance, sample or "
            "inducing locations"
        )

    def scales(self) -> Float[Array, "M"]:
        return self.features(jnp.zeros((1, self.dim)))

    def levels(self) -> Int[np.ndarray, "M"]:
        return np.asarray(self.features(jnp.zeros((1, self.dim))))

    def covariance(self, x: Float[Array, "N D"], y: Float[Array, "L D"]) -> Float[Array, "N L"]:
        return self.kernel.covariance(x, y)

    def random_basis(self, key: PRNGKeyArray) -> "_WaveBasis":
        key_frequency, key_phase = jax.random.split(key)
        frequencies = self.kernel.sample_frequencies(_NUM_WAVES, self.dim, key=key_frequency)
        phases = jax.random.uniform(key_phase, (_NUM_WAVES,), maxval=2 * np.pi)
        return _WaveBasis(frequencies, phases, jnp.sqrt(2.0 * self.kernel.variance / _NUM_WAVES))


class _SpectralBasis(eqx.Module):
    spectrum: ScalarSpectrum
    scales: Float[Array, "M"]

    def __call__(self, x: Float[Array, "*N D"]) -> Float[Array, "*N M"]:
        return self.spectrum.features(x) * self.scales.astype(x.dtype)


class _WaveBasis(eqx.Module):
    frequencies: Float[Array, "M D"]
    phases: Float[Array, "M"]
    scale: Float[Array, ""]

    def __call__(self, x: Float[Array, "*N D"]) -> Float[Array, "*N M"]:
        phase = x @ self.frequencies.astype(x.dtype).T + self.phases.astype(x.dtype)
        return self.scale.astype(x.dtype) * jnp.cos(phase)


class ScalarDraw(eqx.Module):
    """Functions drawn from a scalar prior: sums of (products of) basis functions with fixed weights."""

    space: Space
    bases: tuple[_SpectralBasis | _WaveBasis, ...]
    weights: Float[Array, "..."]

    @eqx.filter_jit
    def __call__(self, x: Float[Array, "*N D"]) -> Float[Array, "*N P"]:
        """Evaluate the P functions at points."""
        values = [basis(part) for basis, part in zip(self.bases, _split(self.space, x, self.bases), strict=True)]
        result = jnp.tensordot(values[0], self.weights.astype(x.dtype), axes=1)
        for value in values[1:]:
            extra = result.ndim - value.ndim
            result = jnp.sum(result * value.reshape(*value.shape, *(1,) * extra), axis=x.ndim - 1)
        return result


class ScalarPrior(eqx.Module):
    """A zero-mean scalar Gaussian process: a product of one kernel, or of one kernel for each factor of the space."""

    space: Space
    components: tuple[_Spectral | _Flat, ...]

    def features(self, x: Float[Array, "*N D"]) -> Float[Array, "*N M"]:
        """Evaluate the orthonormal features."""
        parts = _split(self.space, x, self.components)
        return outer_last_axis([c.features(part) for c, part in zip(self.components, parts, strict=True)])

    def design(self, x: Float[Array, "N D"]) -> Float[Array, "N 1 M"]:
        """Evaluate features times scales, with an axis of one number at a point."""
        return (self.features(x) * self.scales().astype(x.dtype))[:, None, :]

    def combine(
        self, features: Float[Array, "N M"], x: Float[Array, "N D"], coefficients: Float[Array, "M q"]
    ) -> Float[Array, "N q"]:
        """Return sums of the features, which are given at x."""
        if len(self.components) == 1 and isinstance(self.components[0], _Spectral):
            return self.components[0].spectrum.combine(features, x, coefficients)
        return features @ coefficients

    def scales(self) -> Float[Array, "M"]:
        """Return the prior standard deviation of each feature's coefficient."""
        return outer_last_axis([component.scales() for component in self.components])

    @property
    def spectral(self) -> bool:
        """Whether every factor has a spectrum."""
        return all(isinstance(component, _Spectral) for component in self.components)

    def levels(self) -> Int[np.ndarray, "M"]:
        """Return the level of each feature; with one kernel for each factor, the highest of its factors' levels."""
        own = [component.levels() for component in self.components]
        return reduce(lambda a, b: np.maximum(a[:, None], b[None, :]).ravel(), own)

    def covariance(self, x: Float[Array, "N D"], y: Float[Array, "L D"]) -> Float[Array, "N L"]:
        """Return the kernel for all pairs of points."""
        parts = (_split(self.space, points, self.components) for points in (x, y))
        return reduce(jnp.multiply, [c.covariance(a, b) for c, a, b in zip(self.components, *parts, strict=True)])

    def draw(self, num: int, *, key: PRNGKeyArray) -> ScalarDraw:
        """Draw independent functions."""
        key_weights, *keys = jax.random.split(key, 1 + len(self.components))
        bases = tuple(c.random_basis(k) for c, k in zip(self.components, keys, strict=True))
        sizes = [basis.scales.size if isinstance(basis, _SpectralBasis) else _NUM_WAVES for basis in bases]
        return ScalarDraw(self.space, bases, standard_normal(key_weights, (*sizes, num)))


def _split(space: Space, x: Float[Array, "*N D"], components: tuple) -> tuple[Float[Array, "*N _"], ...]:
    """Cut points into the factors' points where every factor has its own component."""
    return space.split(x) if isinstance(space, Product) and len(components) > 1 else (x,)


def scalar_prior(
    space: Space, kernel: Kernel | Sequence[Kernel], levels: int | Sequence[int] | None, ambient: int | None = None
) -> ScalarPrior:
    """Build the prior of a scalar function or, given the number of a factor, of its ambient coordinates.

    Ambient coordinates are functions whose vectors, once projected, are vector fields; outside products the only
    factor is 0.
    """
    if isinstance(kernel, Matern | EuclideanMatern):
        return ScalarPrior(space, (_component(space, kernel, levels, ambient),))
    kernels = tuple(kernel)
    if not isinstance(space, Product) or len(kernels) != len(space.factors):
        raise ValueError(f"a tuple of kernels needs a Product with one factor each, got {len(kernels)} for {space}")
    counts = (levels,) * len(kernels) if levels is None or isinstance(levels, int) else tuple(levels)
    if len(counts) != len(kernels):
        raise ValueError(f"levels must be one number or one for each factor, got {len(counts)} for {space}")
    components = [
        _component(factor, own, count, 0 if f == ambient else None)
        for f, (factor, own, count) in enumerate(zip(space.factors, kernels, counts, strict=True))
    ]
    return ScalarPrior(space, tuple(components))


def _component(space: Space, kernel: Kernel, levels: object, ambient: int | None) -> _Spectral | _Flat:
    if isinstance(space, Euclidean | Box):
        if not isinstance(kernel, EuclideanMatern):
            raise ValueError(f"{space} needs a EuclideanMatern kernel, got {type(kernel).__name__}")
        if kernel.lengthscale.ndim > 1 or kernel.lengthscale.size not in (1, space.dim):
            raise ValueError(f"{space} needs one lengthscale or {space.dim}, got {kernel.lengthscale.size}")
        return _Flat(kernel, space.dim)
    if not isinstance(kernel, Matern):
        raise ValueError(f"{space} needs a Matern or Heat kernel, got {type(kernel).__name__}")
    if not isinstance(levels, int | np.integer):
        raise ValueError(f"levels must be a number for {space}, got {levels}; levels=7 keeps seven eigenvalues")
    if ambient is None:
        return _Spectral(kernel, scalar_spectrum(space, int(levels)), space.dim)
    return _Spectral(kernel, ambient_spectra(space, int(levels))[ambient], space.dim)
