"""Targets: the stored minimum is the minimum, at the stored point, wherever the target is turned."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdgp.bayesopt import targets
from rdgp.bayesopt.targets import Target
from rdgp.bayesopt.targets._robots import _LOWER, _TIP, _TOOL, _UPPER, _elbow, rotation_matrix
from rdgp.core import compiled
from rdgp.spaces import Box, Circle, Product, Rotations, Sphere, Torus
from tests.cases import points

STANDARD = (
    targets.ackley,
    targets.rosenbrock,
    targets.levy,
    targets.styblinski_tang,
    targets.product_of_sines,
)
CASES: list[Target] = [
    *(make(space) for make in STANDARD for space in (3, Rotations(), Torus(2))),
    targets.ackley(Product(Circle(), Box([0.0, -1.0], [1.0, 2.0]))),
    targets.irregular_sphere(),
    targets.irregular_sphere("printed"),
    targets.manipulability(),
    targets.registration(),
]
cases = pytest.mark.parametrize("target", CASES, ids=lambda target: f"{target.name}-{target.space}")
BATCH = 64  # points at a time: one shape to compile


def key(seed: int) -> jax.Array:
    """Return a key whose numbers compile in half the time of the default."""
    return jax.random.key(seed, impl="rbg")


def search(target: Target, rng: np.random.Generator) -> tuple[np.ndarray, float]:
    """Return values at random points, and the least that a shrinking random search around the best of them finds."""
    space = target.space
    x = np.asarray(points(space, 0, 16 * BATCH))
    values = np.concatenate([target(part) for part in np.split(x, 16)])
    starts = np.concatenate([x[np.argsort(values)[:7]], target.minimizer[None]])
    near = np.tile(starts[-1] + 0.1 * rng.normal(size=x.shape[1]), (BATCH, 1))
    starts[-1] = np.asarray(space.nearest(near))[0]
    least = np.concatenate([np.sort(values)[:7], [np.inf]])
    for radius in np.geomspace(0.3, 1e-4, 40):
        near = np.repeat(starts, BATCH // 8, axis=0)
        near = np.asarray(space.nearest(near + radius * rng.normal(size=near.shape)))
        found = np.asarray(target(near)).reshape(8, -1)
        pick = np.argmin(found, axis=1)
        better = found[np.arange(8), pick] < least
        least = np.where(better, found[np.arange(8), pick], least)
        starts = np.where(better[:, None], near.reshape(8, -1, x.shape[1])[np.arange(8), pick], starts)
    return values, float(least.min())


@cases
def test_the_minimum_is_taken_at_the_minimizer_and_nowhere_undercut(target: Target) -> None:
    here = target.rotated(key=key(4))
    scale = max(1.0, abs(here.minimum))
    assert not np.allclose(here.minimizer, target.minimizer)
    best = np.tile(here.minimizer, (BATCH, 1))
    assert np.all(here.space.contains(best))
    assert np.allclose(here(best), here.minimum, rtol=0.0, atol=2e-6 * scale)
    values, lowest = search(here, np.random.default_rng(1))
    assert np.all(np.isfinite(values))
    assert here.minimum - 1e-9 * scale <= lowest < here.minimum + 0.02 * np.std(values)


@cases
def test_turning_moves_the_function_and_keeps_its_values(target: Target) -> None:
    twice = target.rotated(key=key(4)).rotated(key=key(5))
    x = points(target.space, 2, BATCH)
    assert twice.isometry is not None
    assert np.allclose(twice(x), target(twice.isometry(x)), atol=1e-9)


@cases
def test_values_and_derivatives_are_finite_at_special_points(target: Target) -> None:
    base, unit = np.asarray(target.minimizer), np.eye(target.space.ambient_dim)
    special = target.space.nearest(np.concatenate([base[None], -base[None], unit, -unit]))
    values, slopes = compiled(derivatives, target, special)
    assert np.all(np.isfinite(values))
    assert np.all(np.isfinite(slopes))


def derivatives(target: Target, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    return jax.vmap(jax.value_and_grad(target))(x)


def test_rotations_forget_the_sign_of_a_quaternion() -> None:
    x = points(Rotations(), 1, BATCH)
    for target in CASES:
        if target.space == Rotations():
            assert np.allclose(target(x), target(-x))


def test_the_irregular_function_is_the_released_one() -> None:
    theta, lon = np.meshgrid(np.linspace(0.1, 3.0, 7), np.linspace(-3.0, 3.0, 7))
    x = np.stack([np.sin(theta) * np.cos(lon), np.sin(theta) * np.sin(lon), np.cos(theta)], axis=-1)
    c = np.sqrt(105.0 / (32.0 * np.pi))
    formula = c * np.sin(lon) ** 2 * np.cos(lon) * np.cos(2.0 * theta) * (x[..., 2] + 1.0) * (1.0 - theta)
    target = targets.irregular_sphere()
    assert np.allclose(target(x), formula)
    assert target.minimum == pytest.approx(-0.7867247865688579, abs=1e-15)
    assert float(target([0.0, 0.0, 1.0])) == 0.0
    other = np.deg2rad(125.264)  # the local minimum
    place = [np.sin(1.668) * np.cos(other), np.sin(1.668) * np.sin(other), np.cos(1.668)]
    assert float(target(place)) == pytest.approx(-0.2328, abs=1e-4)


def test_ackley_on_the_sphere_is_that_of_the_tangent_plane() -> None:
    x = points(Sphere(3), 3, BATCH)
    tail = np.asarray(x[:, 1:])
    u = np.arccos(x[:, :1]) * tail / np.linalg.norm(tail, axis=1, keepdims=True)
    ripples = np.exp(np.mean(np.cos(2.0 * np.pi * u), axis=1))
    formula = -20.0 * np.exp(-0.2 * np.sqrt(np.mean(u**2, axis=1))) - ripples + 20.0 + np.e
    assert np.allclose(targets.ackley(3)(x), formula)


def test_manipulability_is_the_determinant_of_the_jacobian() -> None:
    q = points(Rotations(), 1, BATCH)
    for value, hand in zip(np.asarray(targets.manipulability()(q))[:5], np.asarray(rotation_matrix(q)), strict=False):
        tip = np.array(_TIP)
        wrist = tip - hand @ _TOOL
        away = np.append(wrist[:2], 0.0) / np.hypot(*wrist[:2])
        out, up = np.asarray(_elbow(jnp.asarray(np.hypot(*wrist[:2])), jnp.asarray(wrist[2])))
        elbow = out * away + np.array([0.0, 0.0, up])
        assert np.linalg.norm(elbow) == pytest.approx(_UPPER)
        assert np.linalg.norm(wrist - elbow) == pytest.approx(_LOWER)
        aside, forearm = np.cross(away, [0.0, 0.0, 1.0]), (wrist - elbow) / _LOWER
        middle = np.cross(forearm, hand[:, 2])
        middle /= np.linalg.norm(middle)
        origin = np.zeros(3)
        joints = [([0.0, 0.0, 1.0], origin), (aside, origin), (aside, elbow)]
        joints += [(axis, wrist) for axis in (forearm, middle, hand[:, 2])]
        jacobian = np.stack([np.concatenate([np.cross(axis, tip - place), axis]) for axis, place in joints])
        assert abs(np.linalg.det(jacobian)) == pytest.approx(-float(value))


def test_noise_is_new_at_each_evaluation_and_the_same_in_each_run() -> None:
    target = targets.ackley(3)
    first, second = (target.noisy(0.05, key=jax.random.key(1)) for _ in range(2))
    x = points(Sphere(3), 5, BATCH)
    values = first(x)
    assert np.array_equal(values, second(x))
    assert not np.array_equal(values, first(x))
    assert float(np.std(np.asarray(values - target(x)))) == pytest.approx(
        0.05, rel=0.4
    )  # four of its own standard deviations


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match=r"must lie on Sphere\(2\)"):
        targets.ackley(2)([1.0, 1.0, 0.0])
    with pytest.raises(ValueError, match="at least two dimensions"):
        targets.rosenbrock(Circle())
    with pytest.raises(ValueError, match="standard deviation of the noise"):
        targets.ackley(2).noisy(-1.0, key=jax.random.key(0))
