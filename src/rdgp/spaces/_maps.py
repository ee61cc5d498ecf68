"""What spaces hand out: isometries, units of order one, and coordinates that people read."""

from typing import TYPE_CHECKING, NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from rdgp.core import register

if TYPE_CHECKING:
    from rdgp.spaces._space import Space


@register("rdgp:Isometry")
class Isometry(eqx.Module):
    """A distance-preserving map x -> A x + b of a space onto itself."""

    matrix: Float[Array, "D D"]
    shift: Float[Array, "D"]

    def __call__(self, x: Float[Array, "*#N D"]) -> Float[Array, "*#N D"]:
        """Map points."""
        return x @ self.matrix.T + self.shift

    def push(self, v: Float[Array, "*#N D"]) -> Float[Array, "*#N D"]:
        """Map tangent vectors at x to tangent vectors at the image of x."""
        return v @ self.matrix.T


class UnitScaling(NamedTuple):
    """A space in units of order one, and the affine map x = shift + scale * unit point between the two."""

    space: "Space"
    shift: Float[np.ndarray, "D"]
    scale: Float[np.ndarray, "D"]

    def to_unit(self, x: Float[np.ndarray, "*N D"]) -> Float[np.ndarray, "*N D"]:
        """Return points in units of order one."""
        return (x - self.shift) / self.scale

    def from_unit(self, x: Float[np.ndarray, "*N D"]) -> Float[np.ndarray, "*N D"]:
        """Return points in the units of the space."""
        return x * self.scale + self.shift


class Readable(NamedTuple):
    """Coordinates in which people read points: name and limits of each, and which are periodic angles in degrees.

    Limits are infinite where a coordinate has none.
    """

    names: tuple[str, ...]
    limits: tuple[tuple[float, float], ...]
    periodic: tuple[bool, ...]
