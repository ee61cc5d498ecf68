"""Points and vectors at which a space is held to its laws."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rdgp.spaces import Isometry, Space

_POINTS = 24
LONGEST = 7.0  # twice around a circle and more


class Places(NamedTuple):
    """Points and vectors at which a space is held to its laws."""

    x: Float[Array, "N D"]
    y: Float[Array, "N D"]
    u: Float[Array, "N D"]  # ambient vectors
    w: Float[Array, "N D"]
    v: Float[Array, "N D"]  # tangent vectors at x, of any length
    walk: Float[Array, "N D"]  # tangent vectors at x that meet no boundary
    short: Float[Array, "N D"]  # tangent vectors at x within the injectivity radius
    matrix: Float[Array, "D D"]  # of an isometry
    shift: Float[Array, "D"]
    same: Float[Array, "R D D"]  # the identifications

    @property
    def turn(self) -> Isometry:
        """The isometry."""
        return Isometry(self.matrix, self.shift)


def places_on(space: Space, key: Array) -> Places:
    """Return random places on a space, vectors of length zero and far around it among them."""
    keys = jax.random.split(key, 7)
    x, y = space.random(_POINTS, key=keys[0]), space.random(_POINTS, key=keys[1])
    u, w, direction = jax.random.normal(keys[2], (3, *x.shape))
    direction = unit(space, x, space.project(x, direction))
    sizes = jnp.concatenate([jnp.array([0.0, 1e-6]), jax.random.uniform(keys[3], (_POINTS - 2,), maxval=LONGEST)])
    v = sizes[:, None] * direction
    fractions = jnp.linspace(0.0, 0.999, _POINTS)[:, None] * min(space.injectivity_radius, LONGEST)
    inside = 0.3 * space.log(x, y)
    walk, short = (inside, inside) if space.has_boundary else (v, fractions * direction)
    turn, same = space.random_isometry(key=keys[4]), jnp.asarray(space.identifications, x.dtype)
    return Places(x, y, u, w, v, walk, short, turn.matrix, turn.shift, same)


def unit(space: Space, x: Array, v: Array) -> Array:
    """Return tangent vectors scaled to length one."""
    return v / jnp.sqrt(space.inner(x, v, v))[:, None]
