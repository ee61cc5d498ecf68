"""The laws of a space."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rdgp.core import compiled
from rdgp.spaces import Isometry, Space
from rdgp.testing._laws import Laws, Sides, hold, hold_true, key_of, precision

_POINTS = 24
_LONGEST = 7.0  # twice around a circle and more
_LAWS = Laws()


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


def check_space(space: Space, *, seed: int = 0) -> None:
    """Run all laws of a space on it, at random places; raise an AssertionError that names the law it breaks.

    `seed` chooses the places.

    >>> from rdgp.spaces import Sphere
    >>> check_space(Sphere(2))
    """
    owner, places = str(space), compiled(_places, space, key_of(seed))
    _LAWS.hold(owner, space, places)
    _check_structure(owner, space, places)
    _check_derivatives(owner, space, places)


def _places(space: Space, key: Array) -> Places:
    keys = jax.random.split(key, 7)
    x, y = space.random(_POINTS, key=keys[0]), space.random(_POINTS, key=keys[1])
    u, w, direction = jax.random.normal(keys[2], (3, *x.shape))
    direction = _unit(space, x, space.project(x, direction))
    sizes = jnp.concatenate([jnp.array([0.0, 1e-6]), jax.random.uniform(keys[3], (_POINTS - 2,), maxval=_LONGEST)])
    v = sizes[:, None] * direction
    fractions = jnp.linspace(0.0, 0.999, _POINTS)[:, None] * min(space.injectivity_radius, _LONGEST)
    inside = 0.3 * space.log(x, y)
    walk, short = (inside, inside) if space.has_boundary else (v, fractions * direction)
    turn, same = space.random_isometry(key=keys[4]), jnp.asarray(space.identifications, x.dtype)
    return Places(x, y, u, w, v, walk, short, turn.matrix, turn.shift, same)


def _unit(space: Space, x: Array, v: Array) -> Array:
    return v / jnp.sqrt(space.inner(x, v, v))[:, None]


def _columns(space: Space, x: Array, name: str = "default") -> Float[Array, "d N D"]:
    return jnp.moveaxis(space.frame(x, name), -1, 0)


@_LAWS.law("random points lie on the space")
def _(space: Space, at: Places) -> Sides:
    return space.nearest(at.x), at.x


@_LAWS.law("nearest leads onto the space")
def _(space: Space, at: Places) -> Sides:
    z = space.nearest(at.x + 0.1 * at.u)
    return space.nearest(z), z


@_LAWS.law("exp stays on the space")
def _(space: Space, at: Places) -> Sides:
    there = space.exp(at.x, at.v)
    return space.nearest(there), there


@_LAWS.law("log inverts exp within the injectivity radius", 2e3)
def _(space: Space, at: Places) -> Sides:
    return space.log(at.x, space.exp(at.x, at.short)), at.short


@_LAWS.law("exp inverts log", 2e3)
def _(space: Space, at: Places) -> Sides:
    return space.distance(space.exp(at.x, space.log(at.x, at.y)), at.y), 0.0


@_LAWS.law("log is tangent", 2e3)
def _(space: Space, at: Places) -> Sides:
    log = space.log(at.x, at.y)
    return space.project(at.x, log), log


@_LAWS.law("log is as long as the distance", 2e3)
def _(space: Space, at: Places) -> Sides:
    log = space.log(at.x, at.y)
    return jnp.sqrt(space.inner(at.x, log, log)), space.distance(at.x, at.y)


def _opposite(space: Space, at: Places) -> Array:
    """Return the points nearest to the negatives, antipodes on spheres, where log has many values."""
    return space.nearest(-at.x)


@_LAWS.law("log to the opposite point is tangent", 2e3)
def _(space: Space, at: Places) -> Sides:
    log = space.log(at.x, _opposite(space, at))
    return space.project(at.x, log), log


@_LAWS.law("log to the opposite point is as long as the distance", 2e3)
def _(space: Space, at: Places) -> Sides:
    y = _opposite(space, at)
    log = space.log(at.x, y)
    return jnp.sqrt(space.inner(at.x, log, log)), space.distance(at.x, y)


@_LAWS.law("exp inverts log to the opposite point", 2e3)
def _(space: Space, at: Places) -> Sides:
    y = _opposite(space, at)
    return space.distance(space.exp(at.x, space.log(at.x, y)), y), 0.0


@_LAWS.law("the distance is symmetric")
def _(space: Space, at: Places) -> Sides:
    return space.distance(at.x, at.y), space.distance(at.y, at.x)


@_LAWS.law("the distance obeys the triangle inequality")
def _(space: Space, at: Places) -> Sides:
    z = space.exp(at.x, at.v)
    excess = space.distance(at.x, z) - space.distance(at.x, at.y) - space.distance(at.y, z)
    return jnp.maximum(excess, 0.0), 0.0


@_LAWS.law("project is idempotent")
def _(space: Space, at: Places) -> Sides:
    once = space.project(at.x, at.u)
    return space.project(at.x, once), once


@_LAWS.law("project is orthogonal: <Pu, w> = covector(w) · u for tangent w")
def _(space: Space, at: Places) -> Sides:
    w = space.project(at.x, at.w)
    return space.inner(at.x, space.project(at.x, at.u), w), jnp.sum(space.covector(at.x, w) * at.u, axis=-1)


@_LAWS.law("inner is symmetric")
def _(space: Space, at: Places) -> Sides:
    u, w = space.project(at.x, at.u), space.project(at.x, at.w)
    return space.inner(at.x, u, w), space.inner(at.x, w, u)


@_LAWS.law("the covector is the inner product as a linear function")
def _(space: Space, at: Places) -> Sides:
    u, w = space.project(at.x, at.u), space.project(at.x, at.w)
    return jnp.sum(space.covector(at.x, u) * w, axis=-1), space.inner(at.x, u, w)


@_LAWS.law("inner products with the gradient are derivatives along geodesics")
def _(space: Space, at: Places) -> Sides:
    def f(z: Array) -> Array:
        return jnp.sum(jnp.sin(z * at.w), axis=-1)

    gradient = space.gradient(at.x, jax.grad(lambda z: jnp.sum(f(z)))(at.x))
    zero, one = jnp.zeros((), at.x.dtype), jnp.ones((), at.x.dtype)
    slope = jax.jvp(lambda t: f(space.exp(at.x, t * at.walk)), (zero,), (one,))[1]
    return space.inner(at.x, gradient, at.walk), slope


@_LAWS.law("frames are orthonormal")
def _(space: Space, at: Places) -> Sides:
    grams = []
    for name in space.frame_names:
        columns = _columns(space, at.x, name)
        grams.append(jax.vmap(lambda a, c=columns: jax.vmap(lambda b: space.inner(at.x, a, b))(c))(columns))
    return jnp.stack(grams), jnp.eye(space.dim)[:, :, None] * jnp.ones(_POINTS)


@_LAWS.law("frames are tangent")
def _(space: Space, at: Places) -> Sides:
    columns = jnp.stack([_columns(space, at.x, name) for name in space.frame_names])
    return space.project(at.x, columns), columns


@_LAWS.law("frames span the tangent space")
def _(space: Space, at: Places) -> Sides:
    u = space.project(at.x, at.u)
    sums = []
    for name in space.frame_names:
        columns = _columns(space, at.x, name)
        parts = jax.vmap(lambda column: space.inner(at.x, column, u))(columns)  # [d, N]
        sums.append(jnp.sum(parts[..., None] * columns, axis=0))
    return jnp.stack(sums), jnp.broadcast_to(u, (len(sums), *u.shape))


@_LAWS.law("transport leads to tangent vectors", 2e3)
def _(space: Space, at: Places) -> Sides:
    carried = space.transport_along(at.x, at.walk, space.project(at.x, at.u))
    return space.project(space.exp(at.x, at.walk), carried), carried


@_LAWS.law("transport keeps inner products", 2e3)
def _(space: Space, at: Places) -> Sides:
    u, w = space.project(at.x, at.u), space.project(at.x, at.w)
    carried = [space.transport_along(at.x, at.walk, vector) for vector in (u, w)]
    return space.inner(space.exp(at.x, at.walk), *carried), space.inner(at.x, u, w)


@_LAWS.law("transport carries the velocity of a geodesic along itself", 2e3)
def _(space: Space, at: Places) -> Sides:
    one = jnp.ones((), at.x.dtype)
    velocity = jax.jvp(lambda t: space.exp(at.x, t * at.walk), (one,), (one,))[1]
    return space.transport_along(at.x, at.walk, at.walk), velocity


@_LAWS.law("transport back undoes transport", 2e3)
def _(space: Space, at: Places) -> Sides:
    there, back = space.exp(at.x, at.walk), -space.transport_along(at.x, at.walk, at.walk)
    u = space.project(at.x, at.u)
    return space.transport_along(there, back, space.transport_along(at.x, at.walk, u)), u


@_LAWS.law("the way back leads home", 2e3)
def _(space: Space, at: Places) -> Sides:
    there, back = space.exp(at.x, at.walk), -space.transport_along(at.x, at.walk, at.walk)
    return space.distance(space.exp(there, back), at.x), 0.0


@_LAWS.law("transport is parallel: what changes along the way is normal to the space", 2e3)
def _(space: Space, at: Places) -> Sides:
    """State it where the metric is that of the ambient space: elsewhere derivatives do not tell."""
    u = space.project(at.x, at.u)
    ambient = jnp.all(space.covector(at.x, u) == u)
    one = jnp.ones((), at.x.dtype)
    change = jax.jvp(lambda t: space.transport_along(at.x, t * at.walk, u), (one,), (one,))[1]
    return jnp.where(ambient, space.project(space.exp(at.x, at.walk), change), 0.0), 0.0


@_LAWS.law("isometries keep distances", 2e3)
def _(space: Space, at: Places) -> Sides:
    return space.distance(at.turn(at.x), at.turn(at.y)), space.distance(at.x, at.y)


@_LAWS.law("isometries keep geodesics", 2e3)
def _(space: Space, at: Places) -> Sides:
    moved = space.exp(at.turn(at.x), at.turn.push(at.walk))
    return space.distance(moved, at.turn(space.exp(at.x, at.walk))), 0.0


@_LAWS.law("isometries keep inner products", 2e3)
def _(space: Space, at: Places) -> Sides:
    u, w = space.project(at.x, at.u), space.project(at.x, at.w)
    return space.inner(at.turn(at.x), at.turn.push(u), at.turn.push(w)), space.inner(at.x, u, w)


@_LAWS.law("exp changes volumes by the log_volume_ratio", 2e3)
def _(space: Space, at: Places) -> Sides:
    y = space.exp(at.x, 0.9 * at.short)
    v = space.log(at.x, y)
    columns = _columns(space, at.x)
    moved = jax.vmap(lambda c: jax.jvp(lambda w: space.exp(at.x, w), (v,), (c,))[1])(columns)
    gram = jax.vmap(lambda a: jax.vmap(lambda b: space.inner(y, a, b))(moved))(moved)
    return space.log_volume_ratio(at.x, y), 0.5 * jnp.linalg.slogdet(jnp.moveaxis(gram, -1, 0))[1]


def _each_same(at: Places, vectors: Array) -> Float[Array, "R N D"]:
    return jnp.einsum("rab,nb->rna", at.same, vectors)


@_LAWS.law("identifications are orthogonal matrices, the identity first")
def _(space: Space, at: Places) -> Sides:
    squares = jnp.einsum("rab,rac->rbc", at.same, at.same)
    found = jnp.concatenate([at.same[:1], squares])
    return found, jnp.broadcast_to(jnp.eye(space.ambient_dim), found.shape)


@_LAWS.law("other vectors of a point have the same distances")
def _(space: Space, at: Places) -> Sides:
    found = space.distance(_each_same(at, at.x), at.y)
    return found, jnp.broadcast_to(space.distance(at.x, at.y), found.shape)


@_LAWS.law("other vectors of a point have the same exp", 2e3)
def _(space: Space, at: Places) -> Sides:
    there = space.exp(_each_same(at, at.x), _each_same(at, at.walk))
    return there, _each_same(at, space.exp(at.x, at.walk))


@_LAWS.law("other vectors of a point have the same log", 2e3)
def _(space: Space, at: Places) -> Sides:
    log = space.log(at.x, at.y)
    same = jnp.broadcast_to(log, (at.same.shape[0], *log.shape))
    found = [space.log(_each_same(at, at.x), at.y), space.log(at.x, _each_same(at, at.y))]
    return jnp.stack(found), jnp.stack([_each_same(at, log), same])


@_LAWS.law("other vectors of a point have the same inner products and projections")
def _(space: Space, at: Places) -> Sides:
    here, there = space.project(at.x, at.u), space.project(_each_same(at, at.x), _each_same(at, at.u))
    products = space.inner(_each_same(at, at.x), there, there)
    expected = jnp.broadcast_to(space.inner(at.x, here, here), products.shape)
    return jnp.append(there, products[..., None], axis=-1), jnp.append(_each_same(at, here), expected[..., None], -1)


@_LAWS.law("canonical is the same for all vectors of a point")
def _(space: Space, at: Places) -> Sides:
    found = space.canonical(_each_same(at, at.x))
    return found, jnp.broadcast_to(found[0], found.shape)


@_LAWS.law("canonical stays at the point")
def _(space: Space, at: Places) -> Sides:
    return space.distance(space.canonical(at.x), at.x), 0.0


def _check_structure(owner: str, space: Space, at: Places) -> None:
    """Hold what is not differentiated: factors, tests of points, units, readable coordinates."""
    x, parts = np.asarray(at.x), space.split(at.x)
    hold_true(owner, "the dimension is at most the ambient one", space.dim <= space.ambient_dim)
    hold(owner, "split cuts points into those of the factors", np.concatenate(parts, axis=-1), x, rounding=0)
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


def _check_derivatives(owner: str, space: Space, at: Places) -> None:
    """Hold values and two derivatives to be finite at awkward points, along vectors of awkward lengths."""
    units = np.eye(space.ambient_dim)
    step = 1e-7 if precision() == np.float64 else 1e-4
    awkward = np.concatenate([units, -units, units + step * units[::-1], -units + step * units[::-1]])
    x = np.concatenate([np.asarray(at.x[:4]), np.asarray(space.nearest(jnp.asarray(awkward, precision())))])
    sizes = np.array([0.0, 1e-12, 1e-3, 1.0, np.pi, _LONGEST])
    x = jnp.asarray(np.repeat(x, sizes.size, axis=0))
    generic = np.cos(np.arange(1.0, x.size + 1.0)).reshape(x.shape)
    v = np.tile(sizes, x.shape[0] // sizes.size)[:, None] * np.asarray(
        _unit(space, x, space.project(x, jnp.asarray(generic, x.dtype)))
    )
    inside = np.sqrt(np.asarray(space.inner(x, v, v))) < 0.9 * min(space.injectivity_radius, 10.0)
    results = compiled(_derivatives, space, x, jnp.asarray(v, x.dtype), x[inside], jnp.asarray(v[inside], x.dtype))
    for name, numbers in results.items():
        for leaf in jax.tree.leaves(numbers):
            hold_true(owner, f"{name} and two derivatives of it are finite", np.isfinite(leaf))
            hold_true(owner, f"derivatives of {name} keep their precision", leaf.dtype == x.dtype)


def _derivatives(space: Space, x: Array, v: Array, near: Array, short: Array) -> dict[str, tuple]:
    return {
        "exp": _two_derivatives(space.exp, x, v),
        "transport": _two_derivatives(space.transport_along, x, v, jnp.roll(v, 1, axis=0)),
        "frame": _two_derivatives(space.frame, x),
        "distance": _two_derivatives(space.distance, x, space.exp(x, v)),
        "log": _two_derivatives(space.log, near, space.exp(near, short)),
    }


def _two_derivatives(function: object, *arguments: Array) -> tuple:
    """Return value, gradient, and Hessian times a generic vector, which shows any bad entry of the Hessian."""

    def scalar(*args: Array) -> Array:
        return jnp.sum(jnp.sin(function(*args)))  # type: ignore[operator]

    generic = tuple(jnp.asarray(np.cos(np.arange(1.0, a.size + 1.0)).reshape(a.shape), a.dtype) for a in arguments)
    return function(*arguments), *jax.jvp(jax.grad(scalar, tuple(range(len(arguments)))), arguments, generic)  # type: ignore[operator]
