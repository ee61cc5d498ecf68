"""Residual layers x -> exp_x(g(x)), and the tangent frames they carry along."""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from rdgp.fields import Field, FieldDraw, StackedField, TangentField
from rdgp.spaces import Euclidean, Space


class Path(NamedTuple):
    """Where the hidden layers lead: points, and the frame of the starting points carried along in parallel.

    Tangent vectors at the starting points are compared with those at the end by their components in the two frames.
    """

    x: Float[Array, "N D"]
    frame: Float[Array, "N D d"] | None


def next_space(field: Field) -> Space:
    """Return the space a layer leads to: its own for a vector field, R^D for x -> x + h(x) with D scalar functions."""
    if isinstance(field, TangentField):
        return field.space
    if isinstance(field, StackedField) and field.outputs == field.space.ambient_dim:
        return Euclidean(field.outputs)
    raise ValueError(
        f"a hidden layer needs a vector field, or a StackedField with outputs={field.space.ambient_dim}; "
        f"got {type(field).__name__} on {field.space}"
    )


def walk(field: Field, path: Path, v: Float[Array, "N D"]) -> Path:
    """Move the points along the values of a layer's field, and carry the frame."""
    if not isinstance(field, TangentField):
        return Path(path.x + v, path.frame)
    space = field.space
    frame = path.frame
    if frame is not None:
        columns = jnp.swapaxes(frame, -1, -2)  # [N, d, D]
        columns = space._transport_along(path.x[:, None, :], v[:, None, :], columns)
        frame = jnp.swapaxes(columns, -1, -2)
    return Path(space._exp(path.x, v), frame)


def walk_draws(draws: Sequence[FieldDraw], fields: Sequence[Field], path: Path) -> Path:
    """Follow drawn functions, layer after layer."""
    for draw, field in zip(draws, fields, strict=True):
        path = walk(field, path, draw(path.x))
    return path
