"""Frames: how values at points are written as coordinates.

Inference works with q coordinates at each point: a number is its own coordinate, a tangent vector has its components in
an orthonormal frame. Densities of tangent vectors are taken in coordinates, because the covariance of the ambient
vectors is singular.
"""

from abc import abstractmethod
from typing import Any

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from rdgp.core import register, small_product
from rdgp.spaces import Space


class Frame(eqx.Module):
    """The coordinates of values at N points, or at all points alike."""

    @property
    @abstractmethod
    def value_shape(self) -> tuple[int, ...]:
        """Shape of one value."""

    @property
    @abstractmethod
    def tangent(self) -> bool:
        """Whether values are tangent vectors."""

    @abstractmethod
    def values(self, coordinates: Float[Array, "*S N q"]) -> Float[Array, "..."]:
        """Turn coordinates into values."""

    @abstractmethod
    def coordinates(self, values: Float[Array, "..."]) -> Float[Array, "*S N q"]:
        """Turn values into coordinates."""

    @abstractmethod
    def covariance(self, covariance: Float[Array, "*S N q q"]) -> Float[Array, "..."]:
        """Turn the covariance of the coordinates into that of the values: [N] for scalars, else [N, P, P]."""

    @abstractmethod
    def coordinate_covariance(self, covariance: Float[Array, "N ..."]) -> Float[Array, "N q q"]:
        """Turn the covariance of values, [N] for scalars or [N, P, P], into that of the coordinates."""

    @abstractmethod
    def variances(self, covariance: Float[Array, "*S N q q"]) -> Float[Array, "..."]:
        """Return the variance of each component of the values."""

    @abstractmethod
    def components(self, other: Any, coordinates: Float[Array, "*S N q"]) -> Float[Array, "*S N q"]:
        """Turn coordinates in another frame at the same points into coordinates in this one."""

    @abstractmethod
    def transported(
        self, space: Space, x: Float[Array, "N D"], v: Float[Array, "N D"], y: Float[Array, "N D"]
    ) -> "Frame":
        """Carry the frame in parallel from x along the geodesic with velocity v, which ends at y."""


@register("rdgp:NumberFrame")
class NumberFrame(Frame):
    """Values are one number, or several; they are their own coordinates."""

    shape: tuple[int, ...] = eqx.field(static=True)

    @property
    def value_shape(self) -> tuple[int, ...]:
        """() or (P,)."""
        return self.shape

    @property
    def tangent(self) -> bool:
        """False."""
        return False

    def values(self, coordinates: Float[Array, "*S N q"]) -> Float[Array, "..."]:
        """Drop the axis of one coordinate."""
        return coordinates.reshape(*coordinates.shape[:-1], *self.shape)

    def coordinates(self, values: Float[Array, "..."]) -> Float[Array, "*S N q"]:
        """Add the axis of one coordinate."""
        return values if self.shape else values[..., None]

    def covariance(self, covariance: Float[Array, "*S N q q"]) -> Float[Array, "..."]:
        """Drop both axes of one coordinate."""
        return covariance if self.shape else covariance[..., 0, 0]

    def coordinate_covariance(self, covariance: Float[Array, "N ..."]) -> Float[Array, "N q q"]:
        """Add both axes of one coordinate."""
        return covariance if self.shape else covariance[..., None, None]

    def variances(self, covariance: Float[Array, "*S N q q"]) -> Float[Array, "..."]:
        """Return the diagonal."""
        return self.values(jnp.diagonal(covariance, axis1=-2, axis2=-1))

    def components(self, other: Any, coordinates: Float[Array, "*S N q"]) -> Float[Array, "*S N q"]:
        """Numbers are the same in any frame."""
        return coordinates

    def transported(
        self, space: Space, x: Float[Array, "N D"], v: Float[Array, "N D"], y: Float[Array, "N D"]
    ) -> "NumberFrame":
        """Numbers stay as they are."""
        return self


@register("rdgp:TangentFrame")
class TangentFrame(Frame):
    """Values are vectors tangent to some factors of a space; columns are an orthonormal frame, rows their covectors."""

    columns: Float[Array, "N V q"]
    rows: Float[Array, "N V q"]
    factors: tuple[int, ...] = eqx.field(static=True)

    @property
    def value_shape(self) -> tuple[int, ...]:
        """(V,), the ambient dimension of the factors."""
        return (self.columns.shape[-2],)

    @property
    def tangent(self) -> bool:
        """True."""
        return True

    def values(self, coordinates: Float[Array, "*S N q"]) -> Float[Array, "..."]:
        """Combine the columns."""
        return jnp.einsum("npq,...nq->...np", self.columns, coordinates)

    def coordinates(self, values: Float[Array, "..."]) -> Float[Array, "*S N q"]:
        """Return the components; what is normal to the space is dropped."""
        return jnp.einsum("npq,...np->...nq", self.rows, values)

    def covariance(self, covariance: Float[Array, "*S N q q"]) -> Float[Array, "..."]:
        """Return the covariance of the ambient vectors."""
        return self.columns @ covariance @ jnp.swapaxes(self.columns, -1, -2)

    def coordinate_covariance(self, covariance: Float[Array, "N P P"]) -> Float[Array, "N q q"]:
        """Return the covariance of the components; what is normal to the space is dropped."""
        return jnp.swapaxes(self.rows, -1, -2) @ covariance @ self.rows

    def variances(self, covariance: Float[Array, "*S N q q"]) -> Float[Array, "..."]:
        """Return the variance of each ambient component."""
        return jnp.einsum("npi,...nij,npj->...np", self.columns, covariance, self.columns)

    def components(self, other: Any, coordinates: Float[Array, "*S N q"]) -> Float[Array, "*S N q"]:
        """Rotate the coordinates."""
        return jnp.einsum("npq,...nq->...np", self.components_of(other), coordinates)

    def components_of(self, other: "TangentFrame") -> Float[Array, "N q r"]:
        """Return the components of another frame's columns at the same points."""
        return small_product(self.rows, other.columns)

    def transported(
        self, space: Space, x: Float[Array, "N D"], v: Float[Array, "N D"], y: Float[Array, "N D"]
    ) -> "TangentFrame":
        """Carry the columns."""
        whole = jnp.swapaxes(embed(space, self.factors, self.columns, axis=-2), -1, -2)  # [N, q, D]
        carried = space.transport_along(x[:, None, :], v[:, None, :], whole)
        return tangent_frame(space, self.factors, y, jnp.swapaxes(carried, -1, -2))


def tangent_frame(
    space: Space, factors: tuple[int, ...], x: Float[Array, "N D"], columns: Float[Array, "N D q"]
) -> TangentFrame:
    """Return orthonormal tangent vectors at x, given in all ambient coordinates, as a frame of some factors."""
    covectors = space.covector(x[:, None, :], jnp.swapaxes(columns, -1, -2))
    rows = jnp.swapaxes(covectors, -1, -2)
    return TangentFrame(
        restrict(space, factors, columns, axis=-2), restrict(space, factors, rows, axis=-2), tuple(factors)
    )


def restrict(
    space: Space, factors: tuple[int, ...], ambient: Float[Array, "..."], axis: int = -1
) -> Float[Array, "..."]:
    """Keep the ambient coordinates of some factors."""
    if len(factors) == len(space.factors):
        return ambient
    whole = jnp.moveaxis(ambient, axis, -1)
    kept = jnp.concatenate([whole[..., space.slices[factor]] for factor in factors], axis=-1)
    return jnp.moveaxis(kept, -1, axis)


def embed(space: Space, factors: tuple[int, ...], values: Float[Array, "..."], axis: int = -1) -> Float[Array, "..."]:
    """Fill up with zeros to all ambient coordinates."""
    if len(factors) == len(space.factors):
        return values
    moved, start, blocks = jnp.moveaxis(values, axis, -1), 0, {}
    for factor in factors:
        size = space.factors[factor].ambient_dim
        blocks[factor] = moved[..., start : start + size]
        start += size
    zeros = [jnp.zeros((*moved.shape[:-1], other.ambient_dim), values.dtype) for other in space.factors]
    whole = jnp.concatenate([blocks.get(factor, zero) for factor, zero in enumerate(zeros)], axis=-1)
    return jnp.moveaxis(whole, -1, axis)
