"""The space in which a study computes: walls two apart, so that distances mean the same in every coordinate."""

import itertools
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from rdgp.spaces import Box, Euclidean, Product, Rotations, Space, Sphere, Torus

_WIDTH = 2.0


class Inner(NamedTuple):
    """The space, and the affine map from the user's points to its points."""

    space: Space
    shift: Float[np.ndarray, "D"]
    scale: Float[np.ndarray, "D"]

    def inward(self, x: Float[np.ndarray, "*N D"]) -> Float[np.ndarray, "*N D"]:
        """Turn the user's points into points of the inner space."""
        return (x - self.shift) / self.scale

    def outward(self, x: Float[np.ndarray, "*N D"]) -> Float[np.ndarray, "*N D"]:
        """Turn points of the inner space into the user's points."""
        return x * self.scale + self.shift


def inner_space(space: Space) -> Inner:
    """Return the inner space of a space, or raise if it cannot be searched."""
    if isinstance(space, Product):
        parts = [inner_space(factor) for factor in space.factors]
        shift, scale = (np.concatenate([part[i] for part in parts]) for i in (1, 2))
        return Inner(Product(*(part.space for part in parts)), shift, scale)
    if isinstance(space, Box):
        low, high = np.asarray(space.lower), np.asarray(space.upper)
        return Inner(Box([0.0] * space.dim, [_WIDTH] * space.dim), low, (high - low) / _WIDTH)
    if isinstance(space, Sphere | Torus | Rotations):
        return Inner(space, np.zeros(space.ambient_dim), np.ones(space.ambient_dim))
    wanted = "Sphere(d), Circle(), Torus(n), Rotations(), Box(lower, upper) or a Product of them"
    hint = "; give its coordinates bounds with Box" if isinstance(space, Euclidean) else ""
    raise ValueError(f"a study needs {wanted}, got {space if isinstance(space, Space) else repr(space)}{hint}")


def has_walls(space: Space) -> bool:
    """Tell whether a space has a boundary."""
    return space.injectivity_radius == 0.0


def mirror_images(space: Space, x: Float[np.ndarray, "D"]) -> list[Float[np.ndarray, "D"]]:
    """Return all ambient vectors that stand for one point: q and -q for each factor of rotations."""
    if isinstance(space, Rotations):
        return [x, -x]
    if not isinstance(space, Product):
        return [x]
    pieces = [mirror_images(factor, x[part]) for factor, part in zip(space.factors, space.slices, strict=True)]
    return [np.concatenate(choice) for choice in itertools.product(*pieces)]
