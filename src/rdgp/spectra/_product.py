"""Scalar spectra of products: eigenvalues add, eigenfunctions multiply."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import reduce

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from rdgp.core import check_count, outer_last_axis, register
from rdgp.spaces import Product
from rdgp.spectra._spectrum import ScalarSpectrum, ambient_spectra, scalar_spectrum

Index = tuple[int, ...]


def _same(a: float, b: float) -> bool:
    return abs(a - b) <= 1e-9 * max(1.0, abs(a))


def group_levels(items: Iterable[tuple[float, tuple]], num_levels: int) -> tuple[tuple[float, tuple], ...]:
    """Merge items of equal eigenvalue and keep the lowest levels: ((eigenvalue, items), ...)."""
    groups: list[tuple[float, list]] = []
    for value, item in sorted(items, key=lambda pair: pair[0]):
        if groups and _same(groups[-1][0], value):
            groups[-1][1].append(item)
        else:
            groups.append((value, [item]))
    return tuple((value, tuple(members)) for value, members in groups[:num_levels])


def lowest_sums(eigenvalues: Sequence[Float[np.ndarray, "_"]], num_levels: int) -> list[tuple[float, Index]]:
    """Return the index tuples of the lowest distinct sums of eigenvalues, one from each list."""
    partial: list[tuple[float, Index]] = [(0.0, ())]
    for values in eigenvalues:
        extended = [(total + float(v), (*index, i)) for total, index in partial for i, v in enumerate(values)]
        partial = [(value, index) for value, members in group_levels(extended, num_levels) for index in members]
    return partial


@register("rdgp:ProductSpectrum")
class ProductSpectrum(ScalarSpectrum):
    """Products of the factors' eigenfunctions; a level holds all products of one total eigenvalue."""

    space: Product
    factors: tuple[ScalarSpectrum, ...]
    groups: tuple[tuple[float, tuple[Index, ...]], ...] = eqx.field(static=True)

    def __init__(self, space: Product, factors: Sequence[ScalarSpectrum], num_levels: int) -> None:
        self.space = space
        self.factors = tuple(factors)
        sums = lowest_sums([factor.eigenvalues for factor in factors], num_levels)
        self.groups = group_levels(sums, num_levels)

    @property
    def eigenvalues(self) -> Float[np.ndarray, "K"]:
        """Distinct sums of the factors' eigenvalues."""
        return np.array([value for value, _ in self.groups])

    @property
    def multiplicities(self) -> Int[np.ndarray, "K"]:
        """Number of products in each level."""
        return np.array([sum(self._size(index) for index in members) for _, members in self.groups])

    @property
    def homogeneous(self) -> bool:
        """Whether all factors are."""
        return all(factor.homogeneous for factor in self.factors)

    def _size(self, index: Index) -> int:
        return int(np.prod([factor.multiplicities[i] for factor, i in zip(self.factors, index, strict=True)]))

    def features(self, x: Float[Array, "*N D"]) -> Float[Array, "*N M"]:
        """Evaluate the products, sorted by level."""
        return self.lowest_features(x, len(self.groups))

    @eqx.filter_jit
    def lowest_features(self, x: Float[Array, "*N D"], num_levels: int) -> Float[Array, "*N m"]:
        """Evaluate the products of the lowest levels, from the levels of the factors that meet there."""
        indices = [index for _, members in self.groups[:num_levels] for index in members]
        counts = (int(count) for count in np.max(indices, axis=0) + 1)
        triples = zip(self.factors, self.space.split(x), counts, strict=True)
        blocks = [lowest_blocks(factor, part, count) for factor, part, count in triples]
        products = [outer_last_axis([block[i] for block, i in zip(blocks, index, strict=True)]) for index in indices]
        return jnp.concatenate(products, axis=-1)

    @eqx.filter_jit
    def kernel(self, weights: Float[Array, "K"], x: Float[Array, "N D"], y: Float[Array, "L D"]) -> Float[Array, "N L"]:
        """Nest the factors' sums: sum_i Z_i(x_1, y_1) sum_j w_ij Z_j(x_2, y_2)."""
        level = {index: k for k, (_, members) in enumerate(self.groups) for index in members}
        pairs = list(zip(self.factors, self.space.split(x), self.space.split(y), strict=True))
        return _nested_kernel(pairs, level, weights)


def _nested_kernel(
    pairs: list[tuple[ScalarSpectrum, Array, Array]], level: dict[Index, int], weights: Float[Array, "K"]
) -> Float[Array, "N L"]:
    """Sum over the index tuples, the first index outermost; `level` says which weight each tuple takes."""
    (factor, x, y), *rest = pairs
    size = factor.eigenvalues.size
    if not rest:
        where = np.array([index[0] for index in level])
        last = jnp.zeros(size, weights.dtype).at[where].set(weights[np.array(list(level.values()))])
        return factor.kernel(last, x, y)
    by_first: dict[int, dict[Index, int]] = defaultdict(dict)
    for index, k in level.items():
        by_first[index[0]][index[1:]] = k
    one_hot = jnp.eye(size, dtype=weights.dtype)
    terms = [factor.kernel(one_hot[i], x, y) * _nested_kernel(rest, inner, weights) for i, inner in by_first.items()]
    return reduce(jnp.add, terms)


def lowest_blocks(spectrum: ScalarSpectrum, x: Float[Array, "*N D"], count: int) -> list[Float[Array, "*N _"]]:
    """Evaluate the eigenfunctions of each of the lowest levels."""
    return level_blocks(spectrum.lowest_features(x, count), spectrum.multiplicities[:count])


def level_blocks(features: Float[Array, "*s M"], multiplicities: Int[np.ndarray, "K"]) -> list[Float[Array, "*s _"]]:
    return jnp.split(features, np.cumsum(multiplicities)[:-1].tolist(), axis=-1)


@scalar_spectrum.register
def _(space: Product, num_levels: int) -> ProductSpectrum:
    check_count(num_levels, "num_levels")
    return ProductSpectrum(space, [scalar_spectrum(factor, num_levels) for factor in space.factors], num_levels)


@ambient_spectra.register
def _(space: Product, num_levels: int) -> tuple[ProductSpectrum, ...]:
    """Replace, for the coordinates of each factor, that factor's scalar spectrum by its ambient one."""
    check_count(num_levels, "num_levels")
    scalars = [scalar_spectrum(factor, num_levels) for factor in space.factors]
    own = [ambient_spectra(factor, num_levels)[0] for factor in space.factors]
    return tuple(ProductSpectrum(space, [*scalars[:f], own[f], *scalars[f + 1 :]], num_levels) for f in range(len(own)))
