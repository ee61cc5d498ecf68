"""The scalar Gaussian prior from which scalar, stacked, projected and frame fields are made."""

from collections.abc import Callable, Sequence
from functools import reduce

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from rdgp.core import Numbers, outer_last_axis, register, standard_normal
from rdgp.fields._components import Component, Levels, component_on
from rdgp.kernels import ClosedFormKernel, Kernel, RandomFeatures
from rdgp.spaces import Space
from rdgp.spectra import ScalarSpectrum


@register("rdgp:ScalarDraw")
class ScalarDraw(eqx.Module):
    """Functions drawn from a scalar prior: sums of (products of) basis functions with fixed weights."""

    space: Space
    bases: tuple[RandomFeatures, ...]
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


@register("rdgp:ScalarPrior")
class ScalarPrior(eqx.Module):
    """A zero-mean scalar Gaussian process: one kernel, or a product of one kernel for each factor of the space."""

    space: Space
    components: tuple[Component, ...]

    @property
    def has_features(self) -> bool:
        """Whether every component has features."""
        return all(component.has_features for component in self.components)

    @property
    def spectra(self) -> tuple[ScalarSpectrum, ...]:
        """The spectra of the components, or an error if some have none."""
        return tuple(component.spectrum for component in self.components)

    def features(self, x: Float[Array, "*N D"]) -> Float[Array, "*N M"]:
        """Evaluate the orthonormal features."""
        pairs = zip(self.spectra, _split(self.space, x, self.components), strict=True)
        return outer_last_axis([spectrum.features(part) for spectrum, part in pairs])

    def lowest_features(self, x: Float[Array, "*N D"], num_levels: int) -> Float[Array, "*N m"]:
        """Evaluate the features of the lowest levels."""
        pairs = zip(self.spectra, _split(self.space, x, self.components), strict=True)
        return outer_last_axis([spectrum.lowest_features(part, num_levels) for spectrum, part in pairs])

    def synthesize(
        self, features: Float[Array, "N M"], x: Float[Array, "N D"], coefficients: Float[Array, "M q"]
    ) -> Float[Array, "N q"]:
        """Return sums of the features, which are given at x."""
        single = len(self.components) == 1
        return self.spectra[0].synthesize(features, x, coefficients) if single else features @ coefficients

    def level_scales(self) -> tuple[Float[Array, "_"], ...]:
        """Return the prior standard deviation of a coefficient of each level of each component."""
        return tuple(component.level_scales() for component in self.components)

    def scales(self) -> Float[Array, "M"]:
        """Return the prior standard deviation of each feature's coefficient."""
        pairs = zip(self.spectra, self.level_scales(), strict=True)
        return outer_last_axis([spectrum.per_feature(scales) for spectrum, scales in pairs])

    @property
    def level_of_feature(self) -> Int[np.ndarray, "M"]:
        """The level of each feature; with one kernel for each factor, the highest of its factors' levels."""
        own = [spectrum.level_of_feature for spectrum in self.spectra]
        return reduce(lambda a, b: np.maximum(a[:, None], b[None, :]).ravel(), own)

    @property
    def degree(self) -> int | None:
        """The degree of the features as polynomials on S_2; None elsewhere."""
        return self.spectra[0].degree if self.has_features and len(self.components) == 1 else None

    def covariance(self, x: Float[Array, "N D"], y: Float[Array, "L D"]) -> Float[Array, "N L"]:
        """Return the kernel for all pairs of points."""
        parts = (_split(self.space, points, self.components) for points in (x, y))
        return reduce(jnp.multiply, [c.covariance(a, b) for c, a, b in zip(self.components, *parts, strict=True)])

    def variance(self, x: Float[Array, "N D"]) -> Float[Array, "N"]:
        """Return the variance at each point."""
        parts = zip(self.components, _split(self.space, x, self.components), strict=True)
        return reduce(jnp.multiply, [component.variance(part) for component, part in parts])

    def tail_covariance(
        self, factors: Float[Array, "t"], x: Float[Array, "N D"], y: Float[Array, "L D"]
    ) -> Float[Array, "N L"]:
        """Return the covariance of the last t levels alone, their variances times given factors."""
        points = list(zip(*(_split(self.space, z, self.components) for z in (x, y)), strict=True))

        def of(component: int, weights: Float[Array, "K"]) -> Float[Array, "N L"]:
            return self.spectra[component].kernel(weights, *points[component])

        return self._tail(factors, of)

    def tail_variance(self, factors: Float[Array, "t"], x: Float[Array, "N D"]) -> Float[Array, "N"]:
        """Return the variance of the last t levels alone at each point, their variances times given factors."""
        points = _split(self.space, x, self.components)

        def of(component: int, weights: Float[Array, "K"]) -> Float[Array, "N"]:
            return self.spectra[component].diagonal(weights, points[component])

        return self._tail(factors, of)

    def _tail(
        self, factors: Float[Array, "t"], of: Callable[[int, Float[Array, "K"]], Float[Array, "..."]]
    ) -> Float[Array, "..."]:
        """Sum the tail; level k of a product of kernels is what products up to level k have beyond those below it."""
        variances = [jnp.square(scales) for scales in self.level_scales()]
        last = int(self.level_of_feature.max())
        first = last + 1 - factors.shape[0]
        if len(variances) == 1:
            return of(0, jnp.zeros_like(variances[0]).at[first:].set(variances[0][first:] * factors))

        def up_to(level: int) -> Float[Array, "..."]:
            kept = [jnp.where(np.arange(v.size) <= level, v, 0.0) for v in variances]
            return reduce(jnp.multiply, [of(i, weights) for i, weights in enumerate(kept)])

        below = up_to(first - 1)
        total = jnp.zeros_like(below)
        for t, level in enumerate(range(first, last + 1)):
            here = up_to(level)
            total, below = total + factors[t].astype(here.dtype) * (here - below), here
        return total

    def draw(self, num: int, *, key: PRNGKeyArray) -> ScalarDraw:
        """Draw independent functions."""
        key_weights, *keys = jax.random.split(key, 1 + len(self.components))
        bases, sizes = zip(
            *(component.random_basis(own) for component, own in zip(self.components, keys, strict=True)), strict=True
        )
        return ScalarDraw(self.space, bases, standard_normal(key_weights, (*sizes, num)))

    def with_variance(self, variance: Numbers) -> "ScalarPrior":
        """Return the prior with another variance; of a product of kernels the first one carries it."""
        rest = reduce(jnp.multiply, [c.kernel.variance for c in self.components[1:]], jnp.ones(()))
        new = self.components[0].kernel.with_variance(jnp.asarray(variance) / rest)
        return eqx.tree_at(lambda prior: prior.components[0].kernel, self, new)

    def with_lengthscales_of(self, x: Float[np.ndarray, "N D"]) -> "ScalarPrior":
        """Return the prior with lengthscales that fit the spread of data, where they have units and are far off."""
        parts = [x[:, own] for own in self.space.slices] if len(self.components) > 1 else [x]
        pairs = zip(self.components, parts, strict=True)
        return ScalarPrior(self.space, tuple(component.with_lengthscale_of(part) for component, part in pairs))

    @property
    def variance_parameter(self) -> Float[Array, ""]:
        """The variance: a product of those of the components' kernels."""
        return reduce(jnp.multiply, [component.kernel.variance for component in self.components])

    @property
    def kernels(self) -> tuple[Kernel | ClosedFormKernel, ...]:
        """The kernels of the components."""
        return tuple(component.kernel for component in self.components)

    def __repr__(self) -> str:
        return repr(self.kernels[0] if len(self.kernels) == 1 else self.kernels)


def _split(space: Space, x: Float[Array, "*N D"], components: tuple) -> tuple[Float[Array, "*N _"], ...]:
    """Cut points into the factors' points where every factor has its own component."""
    return space.split(x) if len(components) > 1 else (x,)


def scalar_prior(
    space: Space, kernel: Kernel | Sequence[Kernel], num_levels: Levels, ambient: int | None = None
) -> ScalarPrior:
    """Build the prior of a scalar function or, given the number of a factor, of its ambient coordinates.

    Ambient coordinates are functions whose vectors, once projected, are vector fields; outside products the only
    factor is 0.
    """
    if isinstance(kernel, Kernel):
        return ScalarPrior(space, (component_on(space, kernel, num_levels, ambient),))
    kernels = tuple(kernel) if isinstance(kernel, Sequence) else ()
    if not kernels or not all(isinstance(own, Kernel) for own in kernels):
        raise ValueError(f"{space} needs a kernel such as Matern(), or one for each factor, got {kernel!r}")
    if len(kernels) != len(space.factors) or len(kernels) < 2:
        raise ValueError(f"a tuple of kernels needs a Product with one factor each, got {len(kernels)} for {space}")
    counts = (num_levels,) * len(kernels) if num_levels is None or isinstance(num_levels, int) else tuple(num_levels)
    if len(counts) != len(kernels):
        raise ValueError(f"num_levels must be one number or one for each factor, got {len(counts)} for {space}")
    components = [
        component_on(factor, own, count, 0 if f == ambient else None)
        for f, (factor, own, count) in enumerate(zip(space.factors, kernels, counts, strict=True))
    ]
    return ScalarPrior(space, tuple(components))
