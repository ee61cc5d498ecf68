"""The laws of a space."""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rdgp.spaces
from rdgp.spaces import Box, Isometry, Rotations, Space, Sphere
from tests.cases import SPACES, isometry, points, spaces, vectors

seeds = st.integers(0, 2**20)
lengths = st.floats(0.0, 10.0)


def close(a: jax.Array, b: jax.Array, tolerance: float = 1e-12) -> None:
    np.testing.assert_allclose(a, b, atol=tolerance, rtol=tolerance)


def test_every_exported_space_is_held_to_the_laws() -> None:
    exported = {getattr(rdgp.spaces, name) for name in rdgp.spaces.__all__}
    final = {cls for cls in exported if isinstance(cls, type) and issubclass(cls, Space) and cls is not Space}
    assert final == {type(space) for space in SPACES}


class Facts(NamedTuple):
    """All numbers that the laws compare; each space compiles them once."""

    contained: np.ndarray
    there: np.ndarray
    returned: np.ndarray
    log: np.ndarray
    log_error: np.ndarray
    distance: np.ndarray
    distance_back: np.ndarray
    projected: np.ndarray
    projected_twice: np.ndarray
    projected_other: np.ndarray
    frame: np.ndarray
    carried: np.ndarray
    carried_other: np.ndarray
    carried_projected: np.ndarray
    carried_velocity: np.ndarray
    velocity: np.ndarray
    carried_back: np.ndarray
    home: np.ndarray
    distance_turned: np.ndarray
    walk_turned: np.ndarray
    turned_walk: np.ndarray
    nearest: np.ndarray
    nearest_contained: np.ndarray


@partial(jax.jit, static_argnums=0)
def _facts(space: Space, x: jax.Array, y: jax.Array, v: jax.Array, u: jax.Array, w: jax.Array, turn: Isometry) -> Facts:
    """Return the numbers for points x, y, a velocity v, two ambient vectors u, w and an isometry."""
    there, log = space.exp(x, v), space.log(x, y)
    arrived = space.exp(x, log)
    along, other, velocity = (space.project(x, vector) for vector in (u, w, v))
    carried, carried_velocity = space.transport_along(x, v, along), space.transport_along(x, v, velocity)
    return Facts(
        contained=space.contains(there, atol=1e-12),
        there=there,
        returned=space.log(x, there),
        log=log,
        log_error=space.distance(arrived, y),
        distance=space.distance(x, y),
        distance_back=space.distance(y, x),
        projected=along,
        projected_twice=space.project(x, along),
        projected_other=other,
        frame=space.frame(x),
        carried=carried,
        carried_other=space.transport_along(x, v, other),
        carried_projected=space.project(there, carried),
        carried_velocity=carried_velocity,
        velocity=jax.jvp(lambda t: space.exp(x, t * v), (1.0,), (1.0,))[1],
        carried_back=space.transport_along(there, -carried_velocity, carried),
        home=space.exp(there, -carried_velocity),
        distance_turned=space.distance(turn(x), turn(y)),
        walk_turned=space.exp(turn(x), turn.push(log)),
        turned_walk=turn(arrived),
        nearest=space.nearest(x),
        nearest_contained=space.contains(space.nearest(x + 0.1 * u), atol=1e-12),
    )


class Given(NamedTuple):
    """Points, velocity and ambient vectors."""

    x: np.ndarray
    y: np.ndarray
    v: np.ndarray
    u: np.ndarray
    w: np.ndarray


def given_numbers(space: Space, seed: int) -> Given:
    x, y = points(space, seed), points(space, seed + 1)
    u, w = np.random.default_rng(seed + 3).normal(size=(2, *x.shape))
    return Given(*map(np.asarray, (x, y, vectors(space, x, seed + 2), u, w)))


def facts(space: Space, given: Given, turn: Isometry | None = None) -> Facts:
    size = space.ambient_dim
    still = Isometry(jnp.asarray(np.eye(size)), jnp.asarray(np.zeros(size)))
    return jax.tree.map(np.asarray, _facts(space, *given, still if turn is None else turn))


@partial(jax.jit, static_argnums=0)
def _contains_random(space: Space, key: jax.Array) -> jax.Array:
    return space.contains(space.random(5, key=key), atol=1e-12)


@spaces
def test_random_points_lie_on_the_space(space: Space) -> None:
    assert np.all(_contains_random(space, jax.random.key(0)))


@spaces
@given(seed=seeds, length=lengths)
def test_exp_stays_on_the_space(space: Space, seed: int, length: float) -> None:
    known = given_numbers(space, seed)
    assert np.all(facts(space, known._replace(v=length * known.v)).contained)


@spaces
@given(seed=seeds, fraction=st.floats(0.0, 0.999))
def test_log_inverts_exp_within_the_injectivity_radius(space: Space, seed: int, fraction: float) -> None:
    known = given_numbers(space, seed)
    radius = min(space.injectivity_radius, 10.0)
    v = fraction * radius * known.v / np.linalg.norm(known.v, axis=-1, keepdims=True)
    close(facts(space, known._replace(v=v)).returned, v, 1e-9)


@spaces
@given(seed=seeds)
def test_exp_inverts_log(space: Space, seed: int) -> None:
    result = facts(space, given_numbers(space, seed))
    close(result.log_error, np.zeros(5), 1e-9)
    close(np.linalg.norm(result.log, axis=-1), result.distance, 1e-12)
    close(result.distance, result.distance_back)


@spaces
@given(seed=seeds)
def test_project_is_idempotent_and_self_adjoint(space: Space, seed: int) -> None:
    known = given_numbers(space, seed)
    result = facts(space, known)
    close(result.projected_twice, result.projected)
    close(np.sum(result.projected * known.w, -1), np.sum(known.u * result.projected_other, -1))


@spaces
@given(seed=seeds)
def test_frames_are_orthonormal_and_span_the_tangent_space(space: Space, seed: int) -> None:
    known = given_numbers(space, seed)
    result = facts(space, known)
    inner = np.einsum("npi,npj->nij", result.frame, result.frame)
    close(inner, np.broadcast_to(np.eye(space.dim), inner.shape))
    close(np.einsum("npi,nqi,nq->np", result.frame, result.frame, known.u), result.projected)


@spaces
@given(seed=seeds, length=st.floats(0.0, 7.0))
def test_transport_is_an_isometry_that_can_be_undone(space: Space, seed: int, length: float) -> None:
    known = given_numbers(space, seed)
    result = facts(space, known._replace(v=length * known.v))
    close(result.carried_projected, result.carried, 1e-11)
    inner = np.sum(result.projected * result.projected_other, -1)
    close(np.sum(result.carried * result.carried_other, -1), inner, 1e-11)
    if not isinstance(space, Box):
        close(result.carried_back, result.projected, 1e-10)
        close(result.home, known.x, 1e-10)


@spaces
@given(seed=seeds)
def test_transport_is_the_derivative_along_a_geodesic(space: Space, seed: int) -> None:
    """The velocity of a geodesic is carried along itself."""
    known = given_numbers(space, seed)
    if isinstance(space, Box):
        known = known._replace(v=0.3 * (known.y - known.x))
    result = facts(space, known)
    close(result.carried_velocity, result.velocity, 1e-11)


@spaces
@given(seed=seeds)
def test_isometries_keep_distances(space: Space, seed: int) -> None:
    result = facts(space, given_numbers(space, seed), isometry(space, seed))
    close(result.distance_turned, result.distance, 1e-7)
    close(result.walk_turned, result.turned_walk, 1e-7)


@spaces
@given(seed=seeds)
def test_nearest_leaves_points_of_the_space_alone(space: Space, seed: int) -> None:
    known = given_numbers(space, seed)
    result = facts(space, known)
    close(result.nearest, known.x)
    assert np.all(result.nearest_contained)


def test_a_rotation_is_the_same_point_as_its_negative() -> None:
    space = Rotations()
    x, y = points(space, 0), points(space, 1)
    close(space.distance(x, y), space.distance(x, -y))
    close(space.log(x, y), space.log(x, -y))
    close(space.log(-x, y), -space.log(x, y))
    assert float(jnp.max(space.distance(x, y))) <= math.pi / 2


def _awkward(space: Space, dtype: type) -> np.ndarray:
    """Return ordinary points, both poles, points on the equator, and points off the space by rounding."""
    x = np.asarray(points(space, 0, dtype=dtype))
    if isinstance(space, Sphere | Rotations):
        pole, first = np.eye(space.ambient_dim, dtype=dtype)[[-1, 0]]
        near = pole + (1e-7 if dtype == jnp.float64 else 1e-4) * first
        near = near / np.linalg.norm(near)
        x = np.concatenate([x, np.stack([pole, -pole, near, -near, first])])
    return np.concatenate([x, x * (1 + 4 * jnp.finfo(dtype).eps)]).astype(dtype) if not isinstance(space, Box) else x


def _derivatives(function: Callable[..., jax.Array], *arguments: jax.Array) -> tuple:
    """Return value, gradient, and Hessian times a generic vector, which shows any bad entry of the Hessian."""

    def scalar(*args: jax.Array) -> jax.Array:
        return jnp.sum(jnp.sin(function(*args)))

    generic = tuple(np.cos(np.arange(1.0, a.size + 1.0)).reshape(a.shape).astype(a.dtype) for a in arguments)
    gradient = jax.grad(scalar, tuple(range(len(arguments))))
    return function(*arguments), *jax.jvp(gradient, arguments, generic)


@partial(jax.jit, static_argnums=0)
def _all_derivatives(space: Space, x: jax.Array, v: jax.Array, within: tuple[jax.Array, jax.Array] | None) -> list:
    results = [
        _derivatives(space._exp, x, v),
        _derivatives(space._transport_along, x, v, jnp.roll(v, 1, axis=0)),
        _derivatives(space._frame, x),
        _derivatives(space._distance, x, space._exp(x, v)),
    ]
    return results if within is None else [*results, _derivatives(space._log, within[0], space._exp(*within))]


@spaces
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_values_and_two_derivatives_are_finite_everywhere(space: Space, dtype: type) -> None:
    x = _awkward(space, dtype)
    direction = np.asarray(vectors(space, x, 1))
    direction = direction / np.linalg.norm(direction, axis=-1, keepdims=True)
    sizes = np.array([0.0, 1e-12, 1e-3, 1.0, math.pi, 7.0], dtype)
    x, v = np.repeat(x, sizes.size, 0), np.tile(sizes, x.shape[0])[:, None] * np.repeat(direction, sizes.size, 0)
    inside = np.linalg.norm(v, axis=-1) < 0.9 * min(space.injectivity_radius, 10.0)
    within = (x[inside], v[inside]) if np.any(inside) else None
    for leaf in jax.tree.leaves(_all_derivatives(space, x, v, within)):
        assert leaf.dtype == dtype
        assert np.all(np.isfinite(leaf))


def test_exp_and_log_reach_half_way_around_the_sphere_in_single_precision() -> None:
    space = Sphere(2)
    x = points(space, 0, 50, jnp.float32)
    v = np.asarray(vectors(space, x, 1))
    v = 3.0 * v / np.linalg.norm(v, axis=-1, keepdims=True)
    assert space.exp(x, v).dtype == jnp.float32
    close(space.log(x, space.exp(x, v)), v, 2e-5)
