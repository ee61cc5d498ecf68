"""Laws of a space that are not differentiated: factors, tests of points, units, readable coordinates."""

import jax.numpy as jnp
import numpy as np

from rdgp.spaces import Space
from rdgp.testing._laws import hold, hold_true, precision
from rdgp.testing._places import Places


def check_structure(owner: str, space: Space, at: Places) -> None:
    """Hold what is not differentiated: factors, tests of points, units, readable coordinates."""
    x, parts = np.asarray(at.x), space.split(at.x)
    hold_true(owner, "the dimension is at most the ambient one", space.dim <= space.ambient_dim)
    hold(owner, "split cuts points into those of the factors", np.concatenate(parts, axis=-1), x, rounding=0.0)
    for factor, part in zip(space.factors, parts, strict=True):
        hold_true(owner, "the parts of a point lie on the factors", factor.contains(part))
    hold_true(owner, "contains tells points of the space", space.contains(x))
    off = space.nearest(2.0 * x + 1.0)
    away = np.linalg.norm(2.0 * x + 1.0 - off, axis=-1)
    hold_true(owner, "contains tells points off the space", np.asarray(space.contains(2.0 * x + 1.0)) == (away < 1e-6))
    scaling = space.unit_scaled()
    unit = scaling.to_unit(x.astype(float))
    hold_true(owner, "unit points lie on the space in units of order one", scaling.space.contains(unit))
    hold(owner, "unit points lead back", scaling.from_unit(unit).astype(x.dtype), x)
    names, limits, periodic = space.readable
    hold_true(owner, "readable names, limits and periods agree", len(names) == len(limits) == len(periodic))
    read = np.asarray(space.read(x))
    hold_true(owner, "read has one number for each readable name", read.shape == (len(x), len(names)))
    same = np.einsum("rab,nb->rna", space.identifications, x)
    again = np.stack([space.read(vectors) for vectors in same]).astype(x.dtype)
    hold(owner, "other vectors of a point read the same", again, np.broadcast_to(read, again.shape))
    back = jnp.asarray(space.from_readable(read), x.dtype)
    hold(owner, "what is read leads back", space.distance(back, at.x), 0.0, rounding=2e3)
    _check_base_point(owner, space)


def _check_base_point(owner: str, space: Space) -> None:
    base = jnp.asarray(space.base_point(), precision())
    hold_true(owner, "the base point lies on the space", space.contains(base))
    u = np.cos(np.arange(1.0, space.dim + 1.0))
    fraction = space.cut_fraction(u)
    u = u * (0.9 / fraction if fraction > 0.0 else 1.0)
    v = space.frame(base) @ jnp.asarray(u, base.dtype)
    hold(owner, "log inverts exp before cut_fraction is one", space.log(base, space.exp(base, v)), v, rounding=2e3)
