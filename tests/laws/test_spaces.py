"""Every space obeys the laws of spaces."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rdgp.spaces
from rdgp.spaces import Rotations, Space, Sphere
from rdgp.testing import check_space
from tests.cases import SPACES, points, precisions, set_to, spaces, vectors

SEEDS = range(3)


def close(a: jax.Array, b: jax.Array, tolerance: float = 1e-12) -> None:
    np.testing.assert_allclose(a, b, atol=tolerance, rtol=tolerance)


def test_every_exported_space_is_held_to_the_laws() -> None:
    exported = {getattr(rdgp.spaces, name) for name in rdgp.spaces.__all__}
    final = {c for c in exported if isinstance(c, type) and issubclass(c, Space) and not c.__abstractmethods__}
    assert final == {type(space) for space in SPACES}


@spaces
@precisions
def test_laws(space: Space, precision: str) -> None:
    with set_to(precision):
        for seed in SEEDS:
            check_space(space, seed=seed)


_sphere = Sphere(2)
BROKEN = {
    "_exp": (lambda x, v: _sphere._exp(x, 1.01 * v), "log inverts exp"),
    "_log": (lambda x, y: -_sphere._log(x, y), "log inverts exp"),
    "_project": (lambda x, u: u - 0.9 * jnp.sum(x * u, -1, keepdims=True) * x, "log inverts exp"),
    "_transport_along": (lambda x, v, u: _sphere._transport_along(x, -v, u), "transport leads to tangent vectors"),
    "_distance": (lambda x, y: jnp.sqrt(jnp.sum((x - y) ** 2, -1) + 1e-30), "log is as long as the distance"),
    "_log_volume_ratio": (lambda x, y: -_sphere._log_volume_ratio(x, y), "exp changes volumes by"),
    "_frame": (lambda x: _sphere._frame(x) * jnp.array([1.0, 2.0]), "frames are orthonormal"),
    "_gradient": (lambda x, g: 2.0 * _sphere._project(x, g), "inner products with the gradient"),
    "_canonical": (lambda x: -x, "canonical stays at the point"),
    "_nearest": (lambda x: 1.1 * _sphere._nearest(x), "random points lie on the space"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_space_that_breaks_a_law_is_told_in_one_line(name: str) -> None:
    method, law = BROKEN[name]
    broken = type("Sphere", (Sphere,), {name: lambda self, *args: method(*args)})
    with pytest.raises(AssertionError, match=rf"Sphere\(2\) breaks a law: {law}.*: .*\d") as error:
        check_space(broken(2))
    assert "\n" not in str(error.value)


def test_a_rotation_is_the_same_point_as_its_negative() -> None:
    space = Rotations()
    x, y = points(space, 0), points(space, 1)
    close(space.distance(x, y), space.distance(x, -y))
    close(space.log(x, y), space.log(x, -y))
    close(space.log(-x, y), -space.log(x, y))
    assert float(jnp.max(space.distance(x, y))) <= math.pi / 2


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_log_to_the_antipode_is_a_shortest_vector(d: int, dtype: type) -> None:
    """Whatever the rounding of the norms: it is tangent, of length π, and leads there."""
    space, eps = Sphere(d), float(jnp.finfo(dtype).eps)
    x = jnp.asarray(np.asarray(points(space, 0, 200, dtype)) * (1.0 + eps * (np.arange(200)[:, None] % 5 - 2)), dtype)
    v = space.log(x, -x)
    assert v.dtype == dtype
    np.testing.assert_allclose(np.linalg.norm(v, axis=-1), math.pi, rtol=20 * eps)
    np.testing.assert_allclose(np.sum(np.asarray(v, float) * np.asarray(x, float), axis=-1), 0.0, atol=50 * eps)
    np.testing.assert_allclose(space.exp(x, v), -x, atol=50 * eps)


def test_exp_and_log_reach_half_way_around_the_sphere_in_single_precision() -> None:
    space = Sphere(2)
    x = points(space, 0, 50, jnp.float32)
    v = np.asarray(vectors(space, x, 1))
    v = 3.0 * v / np.linalg.norm(v, axis=-1, keepdims=True)
    assert space.exp(x, v).dtype == jnp.float32
    close(space.log(x, space.exp(x, v)), v, 2e-5)
