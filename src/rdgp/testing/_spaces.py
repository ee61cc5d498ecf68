"""The laws of a space."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from rdgp.core import compiled
from rdgp.spaces import Space
from rdgp.testing._derivatives import check_derivatives
from rdgp.testing._laws import Laws, Sides, key_of
from rdgp.testing._places import Places, places_on
from rdgp.testing._structure import check_structure

_LAWS = Laws()


def check_space(space: Space, *, seed: int = 0) -> None:
    """Run all laws of a space on it, at random places; raise an AssertionError that names the law it breaks.

    `seed` chooses the places.

    >>> from rdgp.spaces import Sphere
    >>> check_space(Sphere(2))
    """
    owner, places = str(space), compiled(places_on, space, key_of(seed))
    _LAWS.hold(owner, space, places)
    check_structure(owner, space, places)
    check_derivatives(owner, space, places)


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
    return jnp.stack(grams), jnp.eye(space.dim)[:, :, None] * jnp.ones(at.x.shape[0])


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
