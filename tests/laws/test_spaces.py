"""The laws of a space."""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rdgp.spaces
from rdgp.spaces import Box, Product, Rotations, Space, Sphere
from tests.cases import SPACES, points, spaces, vectors

seeds = st.integers(0, 2**20)
lengths = st.floats(0.0, 10.0)


def close(a: jax.Array, b: jax.Array, tolerance: float = 1e-12) -> None:
    np.testing.assert_allclose(a, b, atol=tolerance, rtol=tolerance)


def test_every_exported_space_is_held_to_the_laws() -> None:
    exported = {getattr(rdgp.spaces, name) for name in rdgp.spaces.__all__}
    final = {cls for cls in exported if isinstance(cls, type) and issubclass(cls, Space) and cls is not Space}
    assert final == {type(space) for space in SPACES}


@spaces
@given(seed=seeds, length=lengths)
def test_exp_stays_on_the_space(space: Space, seed: int, length: float) -> None:
    x = points(space, seed)
    assert bool(jnp.all(space.contains(space.exp(x, length * vectors(space, x, seed + 1)), atol=1e-12)))


@spaces
@given(seed=seeds, fraction=st.floats(0.0, 0.999))
def test_log_inverts_exp_within_the_injectivity_radius(space: Space, seed: int, fraction: float) -> None:
    x = points(space, seed)
    v = vectors(space, x, seed + 1)
    radius = min(space.injectivity_radius, 10.0)
    v = fraction * radius * v / jnp.linalg.norm(v, axis=-1, keepdims=True)
    close(space.log(x, space.exp(x, v)), v, 1e-9)


@spaces
@given(seed=seeds)
def test_exp_inverts_log(space: Space, seed: int) -> None:
    x, y = points(space, seed), points(space, seed + 1)
    v = space.log(x, y)
    close(space.distance(space.exp(x, v), y), jnp.zeros(5), 1e-9)
    close(jnp.linalg.norm(v, axis=-1), space.distance(x, y), 1e-12)
    close(space.distance(x, y), space.distance(y, x))


@spaces
@given(seed=seeds)
def test_project_is_idempotent_and_self_adjoint(space: Space, seed: int) -> None:
    x = points(space, seed)
    u, w = jax.random.normal(jax.random.key(seed), (2, *x.shape))
    close(space.project(x, space.project(x, u)), space.project(x, u))
    close(jnp.sum(space.project(x, u) * w, -1), jnp.sum(u * space.project(x, w), -1))


@spaces
@given(seed=seeds)
def test_frames_are_orthonormal_and_span_the_tangent_space(space: Space, seed: int) -> None:
    x = points(space, seed)
    frame = space.frame(x)
    close(jnp.einsum("npi,npj->nij", frame, frame), jnp.broadcast_to(jnp.eye(space.dim), (5, space.dim, space.dim)))
    u = jax.random.normal(jax.random.key(seed), x.shape)
    close(jnp.einsum("npi,nqi,nq->np", frame, frame, u), space.project(x, u))


@spaces
@given(seed=seeds, length=st.floats(0.0, 7.0))
def test_transport_is_an_isometry_that_can_be_undone(space: Space, seed: int, length: float) -> None:
    x = points(space, seed)
    v = length * vectors(space, x, seed + 1)
    u, w = vectors(space, x, seed + 2), vectors(space, x, seed + 3)
    y = space.exp(x, v)
    carried = space.transport_along(x, v, u)
    close(space.project(y, carried), carried, 1e-11)
    close(jnp.sum(carried * space.transport_along(x, v, w), -1), jnp.sum(u * w, -1), 1e-11)
    if not isinstance(space, Box):
        back = -space.transport_along(x, v, v)
        close(space.transport_along(y, back, carried), u, 1e-10)
        close(space.exp(y, back), x, 1e-10)


@spaces
@given(seed=seeds)
def test_transport_is_the_derivative_along_a_geodesic(space: Space, seed: int) -> None:
    """The velocity of a geodesic is carried along itself."""
    x = points(space, seed)
    v = vectors(space, x, seed + 1)
    if isinstance(space, Box):
        v = 0.3 * space.log(x, points(space, seed + 2))
    _, velocity = jax.jvp(lambda t: space.exp(x, t * v), (1.0,), (1.0,))
    close(space.transport_along(x, v, v), velocity, 1e-11)


@spaces
@given(seed=seeds)
def test_isometries_keep_distances(space: Space, seed: int) -> None:
    turn = space.random_isometry(key=jax.random.key(seed))
    x, y = points(space, seed + 1), points(space, seed + 2)
    close(space.distance(turn(x), turn(y)), space.distance(x, y), 1e-7)
    v = space.log(x, y)
    close(space.exp(turn(x), turn.push(v)), turn(space.exp(x, v)), 1e-7)


@spaces
@given(seed=seeds)
def test_nearest_leaves_points_of_the_space_alone(space: Space, seed: int) -> None:
    x = points(space, seed)
    close(space.nearest(x), x)
    off = x + 0.1 * jax.random.normal(jax.random.key(seed), x.shape)
    assert bool(jnp.all(space.contains(space.nearest(off), atol=1e-12)))


def test_a_rotation_is_the_same_point_as_its_negative() -> None:
    space = Rotations()
    x, y = points(space, 0), points(space, 1)
    close(space.distance(x, y), space.distance(x, -y))
    close(space.log(x, y), space.log(x, -y))
    close(space.log(-x, y), -space.log(x, y))
    assert float(jnp.max(space.distance(x, y))) <= math.pi / 2


def _awkward(space: Space, dtype: type) -> jax.Array:
    """Return ordinary points, both poles, points on the equator, and points off the space by rounding."""
    x = points(space, 0, dtype=dtype)
    if isinstance(space, Sphere | Rotations):
        pole = jnp.eye(space.ambient_dim, dtype=dtype)[-1]
        near = space.nearest(pole.at[0].set(1e-7 if dtype == jnp.float64 else 1e-4))
        x = jnp.concatenate([x, jnp.stack([pole, -pole, near, -near, jnp.eye(space.ambient_dim, dtype=dtype)[0]])])
    return jnp.concatenate([x, x * (1 + 4 * jnp.finfo(dtype).eps)]) if not isinstance(space, Box) else x


def _derivatives_are_finite(function: Callable[..., jax.Array], *arguments: jax.Array) -> None:
    def scalar(*args: jax.Array) -> jax.Array:
        return jnp.sum(jnp.sin(function(*args)))

    @jax.jit
    def derivatives(*args: jax.Array) -> tuple:
        """Return value, gradient, and Hessian times a generic vector, which shows any bad entry of the Hessian."""
        generic = tuple(jnp.cos(jnp.arange(1.0, arg.size + 1.0, dtype=arg.dtype)).reshape(arg.shape) for arg in args)
        return function(*args), *jax.jvp(jax.grad(scalar, tuple(range(len(args)))), args, generic)

    for leaf in jax.tree.leaves(derivatives(*arguments)):
        assert leaf.dtype == arguments[0].dtype
        assert bool(jnp.all(jnp.isfinite(leaf)))


@spaces
@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_values_and_two_derivatives_are_finite_everywhere(space: Space, dtype: type) -> None:
    if isinstance(space, Product) and dtype == jnp.float32:
        return  # made of factors that are tested in both precisions
    x = _awkward(space, dtype)
    direction = vectors(space, space.nearest(x), 1)
    direction = direction / jnp.linalg.norm(direction, axis=-1, keepdims=True)
    sizes = jnp.array([0.0, 1e-12, 1e-3, 1.0, math.pi, 7.0], dtype)
    x, v = jnp.repeat(x, sizes.size, 0), jnp.tile(sizes, x.shape[0])[:, None] * jnp.repeat(direction, sizes.size, 0)
    _derivatives_are_finite(space._exp, x, v)
    _derivatives_are_finite(space._transport_along, x, v, jnp.roll(v, 1, axis=0))
    _derivatives_are_finite(space._frame, x)
    _derivatives_are_finite(space._distance, x, space._exp(x, v))
    inside = jnp.linalg.norm(v, axis=-1) < 0.9 * min(space.injectivity_radius, 10.0)
    if bool(jnp.any(inside)):
        _derivatives_are_finite(space._log, x[inside], space._exp(x, v)[inside])


def test_exp_and_log_reach_half_way_around_the_sphere_in_single_precision() -> None:
    space = Sphere(2)
    x = points(space, 0, 50, jnp.float32)
    v = vectors(space, x, 1)
    v = 3.0 * v / jnp.linalg.norm(v, axis=-1, keepdims=True)
    assert space.exp(x, v).dtype == jnp.float32
    close(space.log(x, space.exp(x, v)), v, 2e-5)
