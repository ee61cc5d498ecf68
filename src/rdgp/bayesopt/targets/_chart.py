"""Coordinates around a base point, in which functions of R^d become functions on a space."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rdgp.fields import TangentBundle, TangentFrame
from rdgp.spaces import Space, Sphere

FARTHEST = 0.6  # of the way from the base to where the chart ends: where a minimum may lie at most


def as_space(space: Space | int) -> Space:
    """Return a space, the sphere S_d for a number d, or raise unless it is bounded."""
    chosen = space if isinstance(space, Space) else Sphere(space)
    if not chosen.bounded:
        raise ValueError(f"targets live on bounded spaces, got {chosen}; give its coordinates bounds with Box")
    return chosen


def _frame(space: Space, base: Float[Array, "D"]) -> TangentFrame:
    return TangentBundle(space).frame(base[None])


def coordinates(space: Space, x: Float[Array, "*N D"], base: Float[Array, "D"]) -> Float[Array, "*N d"]:
    """Return the components of the logarithm at the base point in the frame of the space."""
    base = base.astype(x.dtype)
    v = space.log(jnp.broadcast_to(base, x.shape), x)
    return _frame(space, base).coordinates(v[..., None, :])[..., 0, :]


def point_at(space: Space, base: Float[np.ndarray, "D"], u: Float[np.ndarray, "d"]) -> Float[Array, "D"]:
    """Return the point of coordinates u."""
    start = jnp.asarray(base, float)
    return space.exp(start, _frame(space, start).values(jnp.asarray(u, float)[None])[0])


def stretch_for(space: Space, u: Float[np.ndarray, "d"]) -> float:
    """Return the factor by which coordinates are stretched so that the minimum at u lies well inside the chart."""
    return max(1.0, space.cut_fraction(u) / FARTHEST)
