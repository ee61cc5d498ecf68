"""The laws of Gaussian fields: features, covariances, frames and draws are one prior."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rdgp.core import compiled, describe
from rdgp.fields import Field, Frame
from rdgp.spaces import Space
from rdgp.testing._laws import Laws, Sides, hold, hold_mean, hold_true, key_of, refuses
from rdgp.testing._processes import check_processes

_POINTS, _OTHERS, _MANY = 5, 4, 64
_DRAWS = 20_000
_LAWS = Laws()


class Places(NamedTuple):
    """Points and numbers at which a field is held to its laws."""

    x: Float[Array, "N D"]
    y: Float[Array, "L D"]
    origin: Float[Array, "N D"]  # from where frames are carried to x
    same: Float[Array, "R D D"]  # the identifications
    coordinates: Float[Array, "N q"]
    numbers: Float[Array, "_"]  # whitened weights
    roots: tuple[Float[Array, "r m m"], ...]  # Cholesky factors of the weights of each process


def check_field(field: Field, *, seed: int = 0) -> None:
    """Run all laws of a Gaussian field on it; raise an AssertionError that names the law that is broken.

    `seed` chooses the points. Covariances of draws are held to six standard errors of 20,000 draws.

    >>> from rdgp.fields import ScalarField
    >>> from rdgp.kernels import Matern
    >>> from rdgp.spaces import Circle
    >>> check_field(ScalarField(Circle(), Matern(), 3))
    """
    owner = f"{type(field).__name__} on {field.space}"
    at = compiled(_places, field, key_of(seed))
    _LAWS.hold(owner, field, at)
    check_processes(owner, field, at.x, at.y)
    if not field.has_features:
        refuses(owner, "there are no features without a discrete spectrum", lambda: field.features(at.x))
    _check_scale(owner, field)
    _check_draws(owner, field, at)


def _places(field: Field, key: Array) -> Places:
    space, keys = field.space, jax.random.split(key, 6)
    x, y, origin = (space.random(n, key=k) for n, k in zip((_POINTS, _OTHERS, _POINTS), keys[:3], strict=True))
    coordinates = jax.random.normal(keys[3], (_POINTS, field.bundle.rank))
    count = field.num_weights if field.has_features else 0
    numbers = jax.random.normal(keys[4], (count,))
    roots: tuple[Array, ...] = ()
    if field.has_features:
        sizes = [(process.copies, process.num_features) for process in field.processes]
        roots = tuple(jnp.tril(jax.random.normal(k, (r, m, m))) for k, (r, m) in zip(keys, sizes, strict=False))
    return Places(x, y, origin, jnp.asarray(space.identifications, x.dtype), coordinates, numbers, roots)


def _carried_frame(field: Field, at: Places) -> Frame:
    """Return a frame at x that is not the field's own."""
    way = field.space.log(at.origin, at.x)
    return field.bundle.frame(at.origin).transported(field.space, at.origin, way, at.x)


def _as_matrix(field: Field, covariance: Array) -> Float[Array, "n l"]:
    size = int(np.prod(field.bundle.value_shape))
    return covariance.reshape(covariance.shape[0] * size, -1)


def _gram_of_values(gram: Array, frame_x: Frame, frame_y: Frame) -> Float[Array, "n l"]:
    """Turn the covariance [N, q, L, q] of coordinates into that of values, as a matrix."""
    by_first = frame_x.values(jnp.transpose(gram, (2, 3, 0, 1)))  # [L, q, N, ...]
    flat = by_first.reshape(*by_first.shape[:2], -1)  # [L, q, n]
    values = frame_y.values(jnp.moveaxis(flat, -1, 0))  # [n, L, ...]
    return values.reshape(values.shape[0], -1)


@_LAWS.law("the covariance is symmetric")
def _(field: Field, at: Places) -> Sides:
    matrix = _as_matrix(field, field.covariance(at.x, at.x))
    return matrix, matrix.T


@_LAWS.law("the covariance is positive", 2e3)
def _(field: Field, at: Places) -> Sides:
    both = jnp.concatenate([at.x, at.y])
    return jnp.minimum(jnp.linalg.eigvalsh(_as_matrix(field, field.covariance(both, both))), 0.0), 0.0


@_LAWS.law("covariances of some points are blocks of that of all")
def _(field: Field, at: Places) -> Sides:
    both = jnp.concatenate([at.x, at.y])
    matrix = _as_matrix(field, field.covariance(both, both))
    crossed = _as_matrix(field, field.covariance(at.x, at.y))
    return crossed, matrix[: crossed.shape[0], crossed.shape[0] :]


@_LAWS.law("features times scales make the covariance")
def _(field: Field, at: Places) -> Sides:
    if not field.has_features:
        return None
    scales = field.scales().astype(at.x.dtype)
    left, right = ((field.features(z) * scales).reshape(-1, scales.size) for z in (at.x, at.y))
    return _as_matrix(field, field.covariance(at.x, at.y)), left @ right.T


@_LAWS.law("joint_gram in any frame is the covariance of values")
def _(field: Field, at: Places) -> Sides:
    frames = _carried_frame(field, at), field.bundle.frame(at.y)
    found = _gram_of_values(field.joint_gram(at.x, at.y, *frames), *frames)
    return found, _as_matrix(field, field.covariance(at.x, at.y))


@_LAWS.law("joint_design in any frame is features times scales")
def _(field: Field, at: Places) -> Sides:
    if not field.has_features:
        return None
    frame = _carried_frame(field, at)
    columns = jnp.moveaxis(field.joint_design(at.x, frame), -1, 0)
    found = jnp.moveaxis(frame.values(columns), 0, -1)
    return found, field.features(at.x) * field.scales().astype(at.x.dtype)


@_LAWS.law("design times its transpose is gram")
def _(field: Field, at: Places) -> Sides:
    if not field.has_features:
        return None
    frames = _carried_frame(field, at), field.bundle.frame(at.y)
    left, right = field.design(at.x, frames[0]), field.design(at.y, frames[1])
    return field.gram(at.x, at.y, *frames), jnp.einsum("npm,lqm->nplq", left, right)


@_LAWS.law("point_variance is gram at equal points")
def _(field: Field, at: Places) -> Sides:
    frame = _carried_frame(field, at)
    return field.point_variance(at.x, frame), jnp.einsum("npnq->npq", field.gram(at.x, at.x, frame, frame))


@_LAWS.law("join undoes split")
def _(field: Field, at: Places) -> Sides:
    frame = _carried_frame(field, at)
    parts = field.split(at.x, frame, at.coordinates)
    return field.join(at.x, frame, parts, field.point_variance(at.x, frame))[0], at.coordinates


@_LAWS.law("join of point_variance is joint_gram at equal points")
def _(field: Field, at: Places) -> Sides:
    frame = _carried_frame(field, at)
    parts = field.split(at.x, frame, at.coordinates)
    found = field.join(at.x, frame, parts, field.point_variance(at.x, frame))[1]
    return found, jnp.einsum("npnq->npq", field.joint_gram(at.x, at.x, frame, frame))


@_LAWS.law("evaluate is the features with scaled weights")
def _(field: Field, at: Places) -> Sides:
    if not field.has_features:
        return None
    found = field.evaluate(field.basis(at.x), at.x, field.arrange(at.numbers))
    return found, field.features(at.x) @ (field.scales() * at.numbers).astype(at.x.dtype)


@_LAWS.law("variance_trace is the trace of the covariance of values", 1e3)
def _(field: Field, at: Places) -> Sides:
    if not field.has_features:
        return None
    frame = _carried_frame(field, at)
    ends = np.cumsum([process.copies * process.num_features for process in field.processes])[:-1]
    pieces = jnp.split(field.joint_design(at.x, frame), ends, axis=-1)
    expected = jnp.zeros(_POINTS, at.x.dtype)
    for piece, root in zip(pieces, at.roots, strict=True):
        rows = piece.reshape(*piece.shape[:2], *root.shape[:2])  # [N, q, r, m]
        expected = expected + jnp.sum(jnp.square(jnp.einsum("nqrm,rmk->nqrk", rows, root)), axis=(1, 2, 3))
    return field.variance_trace(at.x, frame, at.roots), expected


def _draw(field: Field, x: Array) -> Array:
    return field.sample(key=key_of(3))(x)


@_LAWS.law("values lie in the bundle: coordinates in any frame lead back to them")
def _(field: Field, at: Places) -> Sides:
    frame, values = _carried_frame(field, at), _draw(field, at.x)
    return frame.values(frame.coordinates(values)), values


@_LAWS.law("a draw is one function, the same wherever it is evaluated")
def _(field: Field, at: Places) -> Sides:
    whole = _draw(field, jnp.concatenate([at.x, at.y]))
    return jnp.concatenate([_draw(field, at.x), _draw(field, at.y)]), whole


@_LAWS.law("a draw has finite derivatives", 0.0)
def _(field: Field, at: Places) -> Sides:
    slopes = jax.grad(lambda x: jnp.sum(jnp.sin(_draw(field, x))))(at.x)
    return jnp.isfinite(slopes).astype(slopes.dtype), jnp.ones_like(slopes)


def _moved(field: Field, at: Places, values: Array) -> Array:
    """Return, for each identification, values [N, *value_shape, ...] as they are at the other vectors of x."""
    if not field.bundle.tangent:
        return jnp.broadcast_to(values, (at.same.shape[0], *values.shape))
    rows = _value_rows(field)
    return jnp.einsum("rab,nb...->rna...", at.same[:, rows[:, None], rows[None, :]], values)


def _value_rows(field: Any) -> np.ndarray:
    """Return which ambient coordinates a tangent value has."""
    space: Space = field.space
    return np.concatenate([np.arange(space.ambient_dim)[space.slices[factor]] for factor in field.bundle.factors])


@_LAWS.law("features satisfy V(Ax) = A V(x), functions f(Ax) = f(x), for all identifications A")
def _(field: Field, at: Places) -> Sides:
    if not field.has_features:
        return None
    found = jax.vmap(lambda matrix: field.features(at.x @ matrix.T))(at.same)
    return found, _moved(field, at, field.features(at.x))


@_LAWS.law("covariances are the same at other vectors of a point")
def _(field: Field, at: Places) -> Sides:
    found = jax.vmap(lambda matrix: field.covariance(at.x @ matrix.T, at.y))(at.same)
    return found, _moved(field, at, field.covariance(at.x, at.y))


@_LAWS.law("draws are the same at other vectors of a point")
def _(field: Field, at: Places) -> Sides:
    return jax.vmap(lambda matrix: _draw(field, at.x @ matrix.T))(at.same), _moved(field, at, _draw(field, at.x))


def _mean_squares(field: Field, key: Array) -> Float[Array, "N"]:
    """Return the mean square of a coordinate at random points."""
    x = field.space.random(_MANY, key=key)
    frame = field.bundle.frame(x)
    parts = field.split(x, frame, jnp.zeros((_MANY, field.bundle.rank), x.dtype))
    covariance = field.join(x, frame, parts, field.point_variance(x, frame))[1]
    return jnp.trace(covariance, axis1=1, axis2=2) / field.bundle.rank


def _check_scale(owner: str, field: Field) -> None:
    law = "variance is the mean square of a coordinate over the space"
    hold_mean(owner, law, np.asarray(compiled(_mean_squares, field, key_of(1))), field.variance)
    numbers = [row for row in describe(field) if row.name.split(".")[-1] == "variance"]
    if all(row.trainable for row in numbers):
        x = np.asarray(field.space.random(_MANY, key=key_of(2)))
        scaled = field.with_scale_of(x, 2.3)
        hold(owner, "with_scale_of gives coordinates a mean square", scaled.variance, 2.3)


@eqx.filter_jit
def _draws(field: Field, x: Array, keys: Array) -> Array:
    return jax.lax.map(lambda key: field.sample(key=key)(x).ravel(), keys, batch_size=200)


def _check_draws(owner: str, field: Field, at: Places) -> None:
    x = at.x[:3]
    draws = np.asarray(_draws(field, x, jax.random.split(key_of(4), _DRAWS)), float)
    exact = np.asarray(_as_matrix(field, field.covariance(x, x)), float)
    hold_true(owner, "draws are finite", np.isfinite(draws))
    hold_mean(owner, "draws have mean zero", draws, np.zeros(len(exact)))
    hold_mean(owner, "draws have the covariance of the field", draws[:, :, None] * draws[:, None, :], exact)
