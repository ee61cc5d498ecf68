"""Hodge spectra of products: vector fields of the factors combine."""

from collections import defaultdict
from functools import reduce
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rdgp.core import check_count, orthogonal_complement, outer_last_axis, register, small_product
from rdgp.spaces import Product
from rdgp.spectra._product import Index, group_levels, level_blocks, lowest_blocks, lowest_sums
from rdgp.spectra._spectrum import (
    HodgePart,
    HodgeSpectrum,
    ScalarSpectrum,
    check_parts,
    hodge_parts,
    hodge_spectrum,
    scalar_spectrum,
)


@register("rdgp:ProductHodgeTerm")
class _Term(NamedTuple):
    """A multiple of (a field on one factor) times (scalar functions on the others), by level within each."""

    factor: int
    part: str
    levels: Index
    coefficient: float


Piece = tuple[_Term, ...]  # fields of a piece are sums of its terms, function by function


@register("rdgp:ProductHodgeSet")
class _Set(NamedTuple):
    """All pieces of one level that share the eigenvalues of the factors."""

    level: int
    eigenvalue: float
    by_factor: tuple[float, ...]
    pieces: tuple[Piece, ...]


@register("rdgp:ProductHodgeSpectrum")
class ProductHodgeSpectrum(HodgeSpectrum):
    """Eigenfields of the Hodge Laplacian of a product.

    Scalar products Φ with eigenvalues λ_f > 0 on the factors f of a set A give |A| fields ∇_f Φ / √λ_f; along the
    vector (√λ_f) they combine to the gradient of Φ, across it to mixed curl fields. Curl and harmonic fields of one
    factor times scalars of the others are curl fields too, harmonic fields times the constant are harmonic.
    """

    space: Product
    scalars: tuple[ScalarSpectrum, ...]
    fields: tuple[HodgeSpectrum, ...]
    sets: tuple[tuple[str, tuple[_Set, ...]], ...] = eqx.field(static=True)

    def __init__(self, space: Product, num_levels: int, names: tuple[str, ...]) -> None:
        self.space = space
        self.scalars = tuple(scalar_spectrum(factor, num_levels + 1) for factor in space.factors)
        self.fields = tuple(hodge_spectrum(factor, num_levels, hodge_parts(factor)) for factor in space.factors)
        pieces = {"gradient": self._gradients, "curl": self._curls, "harmonic": self._harmonics}
        self.sets = tuple((name, self._grouped(pieces[name](num_levels), num_levels)) for name in names)

    def _grouped(self, pieces: list[tuple[float, Piece]], num_levels: int) -> tuple[_Set, ...]:
        """Return the pieces of the lowest levels, in sets of equal eigenvalues of the factors, in the order given."""
        sets = []
        for level, (value, members) in enumerate(group_levels(pieces, num_levels)):
            own: dict[tuple[float, ...], list[Piece]] = defaultdict(list)
            for piece in members:
                own[self._by_factor(piece)].append(piece)
            sets += [_Set(level, value, key, tuple(same)) for key, same in own.items()]
        return tuple(sets)

    def _by_factor(self, piece: Piece) -> tuple[float, ...]:
        """Return the eigenvalue of each factor; a term says it by its levels within the factors."""
        term = piece[0]
        values = {part.name: part.eigenvalues for part in self.fields[term.factor].parts}
        return tuple(
            float(values[term.part][i] if g == term.factor else self.scalars[g].eigenvalues[i])
            for g, i in enumerate(term.levels)
        )

    def _sums(self, num_levels: int) -> list[tuple[float, Index]]:
        return lowest_sums([scalar.eigenvalues for scalar in self.scalars], num_levels)

    def _gradients(self, num_levels: int) -> list[tuple[float, Piece]]:
        return [
            (value, self._combine(index, np.sqrt(self._active(index)[1] / value)))
            for value, index in self._sums(num_levels + 1)
            if value > 0.0
        ]

    def _curls(self, num_levels: int) -> list[tuple[float, Piece]]:
        pieces = []
        for value, index in self._sums(num_levels + 1):
            active, eigenvalues = self._active(index)
            if len(active) > 1:
                across = orthogonal_complement(np.sqrt(eigenvalues))
                pieces += [(value, self._combine(index, column)) for column in across.T]
        for f, name, values in self._own_parts():
            lists = [values if g == f else scalar.eigenvalues for g, scalar in enumerate(self.scalars)]
            pieces += [
                (value, (_Term(f, name, index, 1.0),))
                for value, index in lowest_sums(lists, num_levels + 1)
                if value > 0.0
            ]
        return pieces

    def _harmonics(self, num_levels: int) -> list[tuple[float, Piece]]:
        zero = (0,) * len(self.scalars)
        return [(0.0, (_Term(f, name, zero, 1.0),)) for f, name, _ in self._own_parts() if name == "harmonic"]

    def _active(self, index: Index) -> tuple[list[int], Float[np.ndarray, "_"]]:
        """Return the factors whose function is not constant, and its eigenvalue there."""
        values = [float(scalar.eigenvalues[i]) for scalar, i in zip(self.scalars, index, strict=True)]
        active = [f for f, value in enumerate(values) if value > 0.0]
        return active, np.array([values[f] for f in active])

    def _combine(self, index: Index, coefficients: Float[np.ndarray, "_"]) -> Piece:
        active, _ = self._active(index)
        lowered = [tuple(i - (g == f) for g, i in enumerate(index)) for f in active]  # gradients start at level one
        return tuple(
            _Term(f, "gradient", low, float(c)) for f, low, c in zip(active, lowered, coefficients, strict=True)
        )

    def _own_parts(self) -> list[tuple[int, str, Float[np.ndarray, "_"]]]:
        """Return the curl and harmonic parts of the factors' own fields."""
        return [
            (f, part.name, part.eigenvalues)
            for f, field in enumerate(self.fields)
            for part in field.parts
            if part.name != "gradient"
        ]

    @property
    def parts(self) -> tuple[HodgePart, ...]:
        """Distinct sums of the eigenvalues that meet in each part."""
        return tuple(
            HodgePart(
                name,
                np.array([own.eigenvalue for own in sets]),
                np.array([sum(self._size(piece) for piece in own.pieces) for own in sets]),
                np.array([own.by_factor for own in sets]),
                np.array([own.level for own in sets]),
            )
            for name, sets in self.sets
        )

    def diagonal(
        self, weights: tuple[Float[Array, "_"], ...], x: Float[Array, "N D"], along: Float[Array, "N D p"]
    ) -> Float[Array, "N p p"]:
        """Return a constant for each factor, times the identity of its tangent space."""
        if not self._isotropic:
            return super().diagonal(weights, x, along)
        shares = sum(
            (self._shares(sets) * w[:, None]).sum(axis=0) for w, (_, sets) in zip(weights, self.sets, strict=True)
        )
        blocks = zip(shares, self.space.slices, strict=True)
        terms = [share.astype(x.dtype) * small_product(along[:, own], along[:, own]) for share, own in blocks]
        return reduce(jnp.add, terms)

    @property
    def _isotropic(self) -> bool:
        fields = all(field.isotropic_dim is not None for field in self.fields)
        return fields and all(scalar.homogeneous for scalar in self.scalars)

    def _shares(self, sets: tuple[_Set, ...]) -> Float[np.ndarray, "K F"]:
        """Return, for each set and factor, the squares of all its fields over the dimension of the factor."""
        shares = np.zeros((len(sets), len(self.fields)))
        for row, own in zip(shares, sets, strict=True):
            for piece in own.pieces:
                for term in piece:
                    row[term.factor] += term.coefficient**2 * self._size(piece) / self.space.factors[term.factor].dim
        return shares

    def _size(self, piece: Piece) -> int:
        term = piece[0]
        counts = {part.name: part.multiplicities for part in self.fields[term.factor].parts}
        sizes = [
            counts[term.part][i] if g == term.factor else self.scalars[g].multiplicities[i]
            for g, i in enumerate(term.levels)
        ]
        return int(np.prod(sizes))

    def features(self, x: Float[Array, "*N D"]) -> Float[Array, "*N D M"]:
        """Evaluate the eigenfields, part after part."""
        return self.lowest_features(x, 1 + max(own.level for _, sets in self.sets for own in sets))

    @eqx.filter_jit
    def lowest_features(self, x: Float[Array, "*N D"], num_levels: int) -> Float[Array, "*N D m"]:
        """Evaluate those of the lowest levels, from the levels of the factors that meet there."""
        points = self.space.split(x)
        pieces = [piece for _, sets in self.sets for own in sets if own.level < num_levels for piece in own.pieces]
        terms = [term for piece in pieces for term in piece]
        scalars, fields = [], []
        for f, (scalar, field, p) in enumerate(zip(self.scalars, self.fields, points, strict=True)):
            beside = 1 + max((term.levels[f] for term in terms if term.factor != f), default=0)
            within = 1 + max((term.levels[f] for term in terms if term.factor == f), default=0)
            scalars.append([block[..., None, :] for block in lowest_blocks(scalar, p, beside)])
            fields.append(_blocks_by_part(field, p, within))

        def evaluate(piece: Piece) -> Float[Array, "*N D _"]:
            rows = []
            for f, part in enumerate(points):
                term = next((t for t in piece if t.factor == f), None)
                if term is None:
                    rows.append(jnp.zeros((*part.shape, self._size(piece)), x.dtype))
                    continue
                blocks = [fields[f][term.part][i] if g == f else scalars[g][i] for g, i in enumerate(term.levels)]
                rows.append(term.coefficient * outer_last_axis(blocks))
            return jnp.concatenate(rows, axis=-2)

        return jnp.concatenate([evaluate(piece) for piece in pieces], axis=-1)


def _blocks_by_part(
    spectrum: HodgeSpectrum, x: Float[Array, "*N D"], count: int
) -> dict[str, list[Float[Array, "*N D _"]]]:
    """Evaluate the eigenfields of each of the lowest levels of each part."""
    sizes = {part.name: part.multiplicities[part.level < count] for part in spectrum.parts}
    ends = np.cumsum([own.sum() for own in sizes.values()])[:-1].tolist()
    arrays = jnp.split(spectrum.lowest_features(x, count), ends, axis=-1)
    return {name: level_blocks(array, own) for (name, own), array in zip(sizes.items(), arrays, strict=True)}


@hodge_parts.register
def _(space: Product) -> tuple[str, ...]:
    harmonic = any("harmonic" in hodge_parts(factor) for factor in space.factors)
    return ("gradient", "curl", "harmonic") if harmonic else ("gradient", "curl")


@hodge_spectrum.register
def _(space: Product, num_levels: int, parts: tuple[str, ...]) -> ProductHodgeSpectrum:
    check_parts(space, parts)
    return ProductHodgeSpectrum(space, check_count(num_levels, "num_levels"), parts)
