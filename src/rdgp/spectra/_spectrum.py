"""The contract of a spectrum, and how a space finds its own."""

from abc import abstractmethod
from collections.abc import Callable
from functools import singledispatch
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from rdgp.spaces import Space

_TILE = 512  # points evaluated at once: rows of harmonics then stay in cache, and temporaries stay small


class ScalarSpectrum(eqx.Module):
    """Eigenfunctions of the Laplacian, level by level, orthonormal under the uniform probability measure."""

    @property
    @abstractmethod
    def eigenvalues(self) -> Float[np.ndarray, "K"]:
        """Eigenvalue of each level, increasing."""

    @property
    @abstractmethod
    def multiplicities(self) -> Int[np.ndarray, "K"]:
        """Number of eigenfunctions of each level."""

    @property
    def num_features(self) -> int:
        """Number of eigenfunctions M."""
        return int(self.multiplicities.sum())

    @abstractmethod
    def features(self, x: Float[Array, "*N D"]) -> Float[Array, "*N M"]:
        """Evaluate the eigenfunctions, sorted by level."""

    def combine(
        self, features: Float[Array, "*N M"], x: Float[Array, "*N D"], coefficients: Float[Array, "M q"]
    ) -> Float[Array, "*N q"]:
        """Return sums of the eigenfunctions, whose features at x are given, with q sets of coefficients."""
        return features @ coefficients

    @eqx.filter_jit
    def zonal(self, weights: Float[Array, "K"], x: Float[Array, "N D"], y: Float[Array, "L D"]) -> Float[Array, "N L"]:
        """Return sum_k w_k Z_k(x, y), with Z_k(x, y) = sum_j φ_kj(x) φ_kj(y)."""
        return (self.features(x) * self.per_feature(weights).astype(x.dtype)) @ self.features(y).T

    def per_feature(self, values: Float[Array, "K"]) -> Float[Array, "M"]:
        """Repeat one number per level for each eigenfunction of the level."""
        return values[np.repeat(np.arange(self.multiplicities.size), self.multiplicities)]


class HodgePart(NamedTuple):
    """One part of the Hodge decomposition: its name, and eigenvalue and multiplicity of each level."""

    name: str
    eigenvalues: Float[np.ndarray, "K"]
    multiplicities: Int[np.ndarray, "K"]

    def level_of_feature(self) -> Int[np.ndarray, "_"]:
        """Return the level of each field, to index numbers per level with."""
        return np.repeat(np.arange(self.multiplicities.size), self.multiplicities)


class HodgeSpectrum(eqx.Module):
    """Eigenfields of the Hodge Laplacian: gradient, curl (divergence-free) and harmonic parts.

    Fields are orthonormal in the mean over the space. The gradient part follows the scalar spectrum level by level:
    its fields are ∇φ / √λ for the scalar eigenfunctions φ after the constant one, in their order.
    """

    @property
    @abstractmethod
    def parts(self) -> tuple[HodgePart, ...]:
        """The parts kept, in the order of their features."""

    @property
    def num_features(self) -> int:
        """Number of eigenfields M of all parts."""
        return int(sum(part.multiplicities.sum() for part in self.parts))

    @abstractmethod
    def features(self, x: Float[Array, "*N D"]) -> Float[Array, "*N D M"]:
        """Evaluate the eigenfields, part after part, sorted by level within each."""

    def carriers(self, x: Float[Array, "*N D"]) -> Float[Array, "..."]:
        """Evaluate what `combine` needs of the points: the eigenfields, or anything cheaper."""
        return self.features(x)

    def combine(
        self, carriers: Float[Array, "..."], x: Float[Array, "*N D"], coefficients: Float[Array, "M"]
    ) -> Float[Array, "*N D"]:
        """Return the sum of the eigenfields with given coefficients: features(x) @ coefficients."""
        return carriers @ coefficients

    def squares(self, x: Float[Array, "*N D"], factor: Float[Array, "M r"]) -> Float[Array, "*N"]:
        """Return the sum of |F(x) A_j|² over the columns of a matrix, F(x) the eigenfields at a point."""
        return jnp.sum(jnp.square(self.features(x) @ factor), axis=(-2, -1))

    @eqx.filter_jit
    def zonal(
        self,
        weights: tuple[Float[Array, "_"], ...],
        x: Float[Array, "N D"],
        y: Float[Array, "L D"],
        along_x: Float[Array, "N D p"],
        along_y: Float[Array, "L D q"],
    ) -> Float[Array, "N p L q"]:
        """Return sum_j w_j <V_j(x), a> <V_j(y), b> for tangent vectors a at x and b at y, one weight per level."""
        pairs = zip(weights, self.parts, strict=True)
        scale = jnp.concatenate([w[part.level_of_feature()] for w, part in pairs]).astype(x.dtype)
        left = jnp.einsum("ndm,ndp->npm", self.features(x) * scale, along_x)
        right = jnp.einsum("ldm,ldq->lqm", self.features(y), along_y)
        return jnp.tensordot(left, right, axes=(2, 2))


@singledispatch
def scalar_spectrum(space: Space, levels: int) -> ScalarSpectrum:
    """Return the lowest `levels` levels of a space's scalar spectrum, the constant function included."""
    raise ValueError(f"{space} has no discrete spectrum; use a Euclidean kernel on it, or a compact space")


@singledispatch
def ambient_spectra(space: Space, levels: int) -> tuple[ScalarSpectrum, ...]:
    """Return the spectra of ambient coordinates: functions whose vectors, once projected, are fields of the space.

    One spectrum for each factor of a product, one for any other space.
    """
    return (scalar_spectrum(space, levels),)


@singledispatch
def hodge_spectrum(space: Space, levels: int, parts: tuple[str, ...]) -> HodgeSpectrum:
    """Return the lowest `levels` levels of each asked part ("gradient", "curl", "harmonic") of the Hodge spectrum."""
    raise ValueError(f"{space} has no Hodge spectrum; use ProjectedField or FrameField on it")


@singledispatch
def hodge_parts(space: Space) -> tuple[str, ...]:
    """Return which parts of the Hodge decomposition a space has."""
    raise ValueError(f"{space} has no Hodge spectrum; use ProjectedField or FrameField on it")


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
