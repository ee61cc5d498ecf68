"""Coordinates around a base point, in which functions of R^d become functions on a space."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rdgp.spaces import Box, Product, Rotations, Space, Sphere, Torus

FARTHEST = 0.6  # of the way from the base to where the chart ends: where a minimum may lie at most


def as_space(space: Space | int) -> Space:
    """Return a space, the sphere S_d for a number d."""
    return space if isinstance(space, Space) else Sphere(space)


def base_point(space: Space) -> Float[np.ndarray, "D"]:
    """Return where coordinates are zero: e1, the identity rotation, angles zero, the middle of a box."""
    if isinstance(space, Product):
        return np.concatenate([base_point(factor) for factor in space.factors])
    if isinstance(space, Torus):
        return np.tile([1.0, 0.0], space.n)
    if isinstance(space, Box):
        return (np.array(space.lower) + np.array(space.upper)) / 2.0
    if isinstance(space, Sphere | Rotations):
        return np.eye(space.ambient_dim)[0]
    raise ValueError(f"targets live on spheres, tori, rotations, boxes and products of them, got {space}")


def coordinates(space: Space, x: Float[Array, "*N D"], base: Float[Array, "D"]) -> Float[Array, "*N d"]:
    """Return the components of the logarithm at the base point in the frame of the space."""
    base = base.astype(x.dtype)
    return space._log(jnp.broadcast_to(base, x.shape), x) @ space._frame(base)


def point_at(space: Space, base: Float[np.ndarray, "D"], u: Float[np.ndarray, "d"]) -> Float[Array, "D"]:
    """Return the point of coordinates u."""
    start = jnp.asarray(base, float)
    return space.exp(start, space.frame(start) @ jnp.asarray(u, float))


def reach(space: Space, u: Float[np.ndarray, "d"]) -> float:
    """Return how far u lies on the way from the base to where the chart ends, which is at 1."""
    if isinstance(space, Product):
        cuts = np.cumsum([factor.dim for factor in space.factors])[:-1]
        return max(reach(factor, part) for factor, part in zip(space.factors, np.split(u, cuts), strict=True))
    if isinstance(space, Torus):
        return float(np.max(np.abs(u)) / np.pi)
    if isinstance(space, Box):
        return float(np.max(np.abs(u) / (np.array(space.upper) - np.array(space.lower)) * 2.0))
    return float(np.linalg.norm(u) / space.injectivity_radius)


def stretch_for(space: Space, u: Float[np.ndarray, "d"]) -> float:
    """Return the factor by which coordinates are stretched so that the minimum at u lies well inside the chart."""
    return max(1.0, reach(space, u) / FARTHEST)
