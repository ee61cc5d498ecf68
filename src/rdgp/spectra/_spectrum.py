"""The contract of a spectrum, and how a space finds its own."""

from abc import abstractmethod
from collections.abc import Callable, Sequence
from functools import singledispatch
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Shaped

from rdgp.core import small_product
from rdgp.spaces import Space

_TILE = 512  # points evaluated at once: rows of harmonics then stay in cache, and temporaries stay small


class ScalarSpectrum(eqx.Module):
    """Eigenfunctions of the Laplacian, level by level, orthonormal under the uniform probability measure.

    A level is a whole eigenspace. Override `kernel` if the space has an addition theorem; otherwise features are used.
    """

    @property
    @abstractmethod
    def eigenvalues(self) -> Float[np.ndarray, "K"]:
        """Eigenvalue of each level, increasing."""

    @property
    @abstractmethod
    def multiplicities(self) -> Int[np.ndarray, "K"]:
        """Number of eigenfunctions of each level."""

    @abstractmethod
    def features(self, x: Float[Array, "*N D"]) -> Float[Array, "*N M"]:
        """Evaluate the eigenfunctions, sorted by level."""

    def lowest_features(self, x: Float[Array, "*N D"], num_levels: int) -> Float[Array, "*N m"]:
        """Evaluate the eigenfunctions of the lowest levels; override it if that is cheaper than all of them."""
        return self.features(x)[..., self.level_of_feature < num_levels]

    @property
    def homogeneous(self) -> bool:
        """Whether the squares of the eigenfunctions of a level add up to a constant."""
        return False

    @property
    def degree(self) -> int | None:
        """The degree of the eigenfunctions as polynomials on S_2; None on other spaces."""
        return None

    @property
    def num_features(self) -> int:
        """Number of eigenfunctions M."""
        return int(self.multiplicities.sum())

    @property
    def level_of_feature(self) -> Int[np.ndarray, "M"]:
        """The level of each eigenfunction."""
        return np.repeat(np.arange(self.multiplicities.size), self.multiplicities)

    def synthesize(
        self, features: Float[Array, "*N M"], x: Float[Array, "*N D"], coefficients: Float[Array, "M q"]
    ) -> Float[Array, "*N q"]:
        """Return sums of the eigenfunctions, whose features at x are given, with q sets of coefficients."""
        return features @ coefficients

    @eqx.filter_jit
    def kernel(self, weights: Float[Array, "K"], x: Float[Array, "N D"], y: Float[Array, "L D"]) -> Float[Array, "N L"]:
        """Return sum_k w_k Z_k(x, y), with Z_k(x, y) = sum_j φ_kj(x) φ_kj(y)."""
        return (self.features(x) * self.per_feature(weights).astype(x.dtype)) @ self.features(y).T

    def diagonal(self, weights: Float[Array, "K"], x: Float[Array, "N D"]) -> Float[Array, "N"]:
        """Return sum_k w_k Z_k(x, x)."""
        if self.homogeneous:
            total = jnp.sum(weights * jnp.asarray(self.multiplicities, weights.dtype))
            return jnp.full(x.shape[0], total.astype(x.dtype))
        return jnp.square(self.features(x)) @ self.per_feature(weights).astype(x.dtype)

    def per_feature(self, values: Float[Array, "K"]) -> Float[Array, "M"]:
        """Repeat one number per level for each eigenfunction of the level."""
        return values[self.level_of_feature]


class HodgePart(NamedTuple):
    """One part of the Hodge decomposition, by sets of fields that share their eigenvalues.

    On a product the sets of one level may differ in the eigenvalues of the factors, which add up to that of the level.
    """

    name: str
    eigenvalues: Float[np.ndarray, "K"]
    multiplicities: Int[np.ndarray, "K"]
    by_factor: Float[np.ndarray, "K F"]  # eigenvalues of the factors
    level: Int[np.ndarray, "K"]

    @staticmethod
    def simple(name: str, eigenvalues: Float[np.ndarray, "K"], multiplicities: Int[np.ndarray, "K"]) -> "HodgePart":
        """Return the part of a space with one factor: each set is a level."""
        return HodgePart(name, eigenvalues, multiplicities, eigenvalues[:, None], np.arange(eigenvalues.size))

    @property
    def num_features(self) -> int:
        """Number of fields of the part."""
        return int(self.multiplicities.sum())

    def per_feature(self, values: Shaped[Array | np.ndarray, "K"]) -> Shaped[Array | np.ndarray, "_"]:
        """Repeat one number per set for each field of the set."""
        return values[np.repeat(np.arange(self.multiplicities.size), self.multiplicities)]


class HodgeSpectrum(eqx.Module):
    """Eigenfields of the Hodge Laplacian: gradient, curl (divergence-free) and harmonic parts.

    Fields are orthonormal in the mean over the space. The gradient part follows the scalar spectrum level by level:
    its fields are ∇φ / √λ for the scalar eigenfunctions φ after the constant one, in their order.
    """

    @property
    @abstractmethod
    def parts(self) -> tuple[HodgePart, ...]:
        """The parts kept, in the order of their features."""

    @abstractmethod
    def features(self, x: Float[Array, "*N D"]) -> Float[Array, "*N D M"]:
        """Evaluate the eigenfields, part after part, sorted by level within each."""

    def lowest_features(self, x: Float[Array, "*N D"], num_levels: int) -> Float[Array, "*N D m"]:
        """Evaluate the eigenfields of the lowest levels of each part; override it if that is cheaper than all."""
        level = np.concatenate([part.per_feature(part.level) for part in self.parts])
        return self.features(x)[..., level < num_levels]

    @property
    def isotropic_dim(self) -> int | None:
        """The dimension d where the fields of a level, at each point, add up to a multiple of the identity; or None."""
        return None

    @property
    def degree(self) -> int | None:
        """The degree of the eigenfields as polynomials on S_2, before projection; None on other spaces."""
        return None

    @property
    def num_features(self) -> int:
        """Number of eigenfields M of all parts."""
        return sum(part.num_features for part in self.parts)

    def per_feature(self, weights: Sequence[Float[Array, "_"]]) -> Float[Array, "M"]:
        """Repeat one number per set of each part for each field of the set."""
        return jnp.concatenate([part.per_feature(w) for w, part in zip(weights, self.parts, strict=True)])

    def basis(self, x: Float[Array, "*N D"]) -> Float[Array, "..."]:
        """Evaluate what `synthesize` needs of the points: the eigenfields, or anything cheaper."""
        return self.features(x)

    def synthesize(
        self, basis: Float[Array, "..."], x: Float[Array, "*N D"], coefficients: Float[Array, "M"]
    ) -> Float[Array, "*N D"]:
        """Return the sum of the eigenfields with given coefficients: features(x) @ coefficients."""
        return basis @ coefficients

    def variance_trace(self, x: Float[Array, "*N D"], factor: Float[Array, "M r"]) -> Float[Array, "*N"]:
        """Return the sum of |F(x) A_j|² over the columns of a matrix, F(x) the eigenfields at a point."""
        return jnp.sum(jnp.square(self.features(x) @ factor), axis=(-2, -1))

    @eqx.filter_jit
    def kernel(
        self,
        weights: tuple[Float[Array, "_"], ...],
        x: Float[Array, "N D"],
        y: Float[Array, "L D"],
        along_x: Float[Array, "N D p"],
        along_y: Float[Array, "L D q"],
    ) -> Float[Array, "N p L q"]:
        """Return sum_j w_j (V_j(x)·a) (V_j(y)·b) for covectors a at x and b at y, one weight per set of each part."""
        scale = self.per_feature(weights).astype(x.dtype)
        left = small_product(along_x, self.features(x) * scale)
        right = small_product(along_y, self.features(y))
        return jnp.tensordot(left, right, axes=(2, 2))

    def diagonal(
        self, weights: tuple[Float[Array, "_"], ...], x: Float[Array, "N D"], along: Float[Array, "N D p"]
    ) -> Float[Array, "N p p"]:
        """Return the covariance at each point alone: sum_j w_j (V_j(x)·a) (V_j(x)·b)."""
        if self.isotropic_dim is not None:
            pairs = zip(weights, self.parts, strict=True)
            totals = [jnp.sum(w * jnp.asarray(part.multiplicities, w.dtype)) for w, part in pairs]
            share = jnp.sum(jnp.stack(totals)) / self.isotropic_dim
            return share.astype(x.dtype) * small_product(along, along)
        rows = small_product(along, self.features(x))
        return jnp.einsum("npm,m,nqm->npq", rows, self.per_feature(weights).astype(x.dtype), rows)


@singledispatch
def scalar_spectrum(space: Space, num_levels: int) -> ScalarSpectrum:
    """Return the lowest `num_levels` levels of a space's scalar spectrum, the constant function included."""
    raise ValueError(f"{space} has no discrete spectrum; register one with scalar_spectrum, or use a compact space")


@singledispatch
def ambient_spectra(space: Space, num_levels: int) -> tuple[ScalarSpectrum, ...]:
    """Return the spectra of ambient coordinates: functions whose vectors, once projected, are fields of the space.

    One spectrum for each factor of a product, one for any other space. Where a point has one vector these are the
    scalar spectra; elsewhere a field must satisfy V(Ax) = A V(x) for the identifications A, and functions do not.
    """
    if len(space.identifications) > 1:
        raise ValueError(
            f"{space} has several vectors for a point, so ambient coordinates need functions of their own; "
            "register them with ambient_spectra"
        )
    return (scalar_spectrum(space, num_levels),)


@singledispatch
def hodge_spectrum(space: Space, num_levels: int, parts: tuple[str, ...]) -> HodgeSpectrum:
    """Return the lowest `num_levels` levels of each part in `parts`: "gradient", "curl" and "harmonic"."""
    raise ValueError(f"{space} has no Hodge spectrum; use ProjectedField or FrameField on it")


@singledispatch
def hodge_parts(space: Space) -> tuple[str, ...]:
    """Return which parts of the Hodge decomposition a space has."""
    raise ValueError(f"{space} has no Hodge spectrum; use ProjectedField or FrameField on it")


def provides(capability: Callable[..., object], space: Space) -> bool:
    """Tell whether a space, and every factor of it, provides a capability: `provides(scalar_spectrum, Sphere(2))`."""
    dispatch = capability.dispatch  # type: ignore[attr-defined]
    registered = dispatch(type(space)) is not dispatch(object)
    return registered and all(provides(capability, factor) for factor in space.factors if factor is not space)


def check_parts(space: Space, parts: tuple[str, ...]) -> None:
    """Raise unless some parts are asked for and the space has them all."""
    available = hodge_parts(space)
    missing = [part for part in parts if part not in available]
    if missing or not parts:
        got = " and ".join(missing) or "none"
        raise ValueError(f"{space} has {' and '.join(available)} fields, got {got}; pass None for what it lacks")


def by_tiles(
    rows: Callable[[Float[Array, "_ D"]], Float[Array, "*shape _"]], x: Float[Array, "*N D"]
) -> Float[Array, "..."]:
    """Evaluate a function that returns [..., points] in tiles of points, and put the points first."""

    def evaluate(tile: Float[Array, "_ D"]) -> Float[Array, "..."]:
        return jnp.moveaxis(rows(tile), -1, 0)

    batch, flat = x.shape[:-1], x.reshape(-1, x.shape[-1])
    n = flat.shape[0]
    num_tiles = max(-(-n // _TILE), 1)
    tile = -(-n // num_tiles)  # of nearly equal size, so that there is little or nothing to pad
    if num_tiles == 1:
        result = evaluate(flat)
    else:
        padded = jnp.pad(flat, ((0, num_tiles * tile - n), (0, 0))).reshape(num_tiles, tile, -1)
        tiles = jax.lax.map(evaluate, padded)
        result = tiles.reshape(num_tiles * tile, *tiles.shape[2:])[:n]
    return result.reshape(*batch, *result.shape[1:])
