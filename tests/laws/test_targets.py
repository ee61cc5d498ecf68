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

STANDARD = (
    targets.ackley,
    targets.rosenbrock,
    targets.levy,
    targets.styblinski_tang,
    targets.product_of_sines,
)
SPACES = (3, Rotations(), Torus(2))
CASES: list[Target] = [
    *(make(space) for make in STANDARD for space in SPACES),
    targets.ackley(Product(Rotations(), Box([0.0, -1.0], [1.0, 2.0]))),
    targets.irregular_sphere(),
    targets.irregular_sphere("printed"),
    targets.manipulability(),
    targets.registration(),
]
cases = pytest.mark.parametrize("target", CASES, ids=lambda target: f"{target.name}-{target.space}")


def turned(target: Target) -> Target:
    return target.rotated(key=jax.random.key(4))


def descend(target: Target, x: jax.Array) -> jax.Array:
    """Return the values after steps downhill, each start with its own length of step, halved where it fails."""
    value = jax.vmap(lambda point: target(target.space._nearest(point)))

    def step(state: tuple, _: None) -> tuple:
        x, y, length = state
        slope = jax.vmap(jax.grad(lambda point: target(target.space._nearest(point))))(x)
        slope = slope / jnp.maximum(jnp.linalg.norm(slope, axis=-1, keepdims=True), 1e-12)
        there = target.space._nearest(x - length[:, None] * slope)
        below = value(there)
        better = below < y
        x, y = jnp.where(better[:, None], there, x), jnp.where(better, below, y)
        return (x, y, jnp.where(better, 1.3 * length, 0.5 * length)), None

    start = (x, value(x), jnp.full(len(x), 0.05))
    return jax.lax.scan(step, start, None, 150)[0][1]


@cases
def test_the_minimum_is_taken_at_the_minimizer_and_nowhere_undercut(target: Target) -> None:
    here = turned(target)
    scale = max(1.0, abs(here.minimum))
    assert np.all(here.space.contains(here.minimizer))
    assert abs(float(here(here.minimizer)) - here.minimum) < 2e-6 * scale
    keys = jax.random.split(jax.random.key(0), 2)
    x = here.space.random(4000, key=keys[0])
    values = here(x)
    assert np.all(np.isfinite(values))
    assert float(values.min()) > here.minimum
    near = here.space.nearest(here.minimizer + 0.1 * jax.random.normal(keys[1], (20, x.shape[1])))
    lowest = compiled(descend, here, jnp.concatenate([x[jnp.argsort(values)[:20]], near]))
    assert float(lowest.min()) >= here.minimum - 1e-9 * scale
    assert float(lowest.min()) < here.minimum + 0.02 * float(jnp.std(values))


@cases
def test_turning_moves_the_function_and_keeps_its_values(target: Target) -> None:
    once, twice = turned(target), turned(turned(target))
    x = target.space.random(4000, key=jax.random.key(2))
    for here in (once, twice):
        assert here.isometry is not None
        assert np.allclose(here(x[:5]), target(here.isometry(x[:5])), atol=1e-9)
        assert float(here(here.minimizer)) == pytest.approx(here.minimum, abs=2e-6 * max(1.0, abs(here.minimum)))
    assert not np.allclose(once.minimizer, target.minimizer)
    assert float(target(x[0])) == pytest.approx(float(target(x)[0]))


@cases
def test_values_and_derivatives_are_finite_at_special_points(target: Target) -> None:
    base = target.minimizer
    special = target.space.nearest(jnp.concatenate([base[None], -base[None], jnp.eye(len(base)), -jnp.eye(len(base))]))
    special = jnp.pad(special, ((0, 4000 - len(special)), (0, 0)), mode="edge")
    assert np.all(np.isfinite(target(special)))
    assert np.all(np.isfinite(compiled(slopes, target, special[:20])))


def slopes(target: Target, x: jax.Array) -> jax.Array:
    return jax.vmap(jax.grad(target))(x)


def test_rotations_forget_the_sign_of_a_quaternion() -> None:
    x = Rotations().random(20, key=jax.random.key(1))
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
    decoy = np.deg2rad(125.264)
    place = [np.sin(1.668) * np.cos(decoy), np.sin(1.668) * np.sin(decoy), np.cos(1.668)]
    assert float(target(place)) == pytest.approx(-0.2328, abs=1e-4)


def test_ackley_on_the_sphere_is_that_of_the_tangent_plane() -> None:
    x = Sphere(3).random(20, key=jax.random.key(3))
    tail = np.asarray(x[:, 1:])
    u = np.arccos(x[:, :1]) * tail / np.linalg.norm(tail, axis=1, keepdims=True)
    waves = np.exp(np.mean(np.cos(2.0 * np.pi * u), axis=1))
    formula = -20.0 * np.exp(-0.2 * np.sqrt(np.mean(u**2, axis=1))) - waves + 20.0 + np.e
    assert np.allclose(targets.ackley(3)(x), formula)


def test_manipulability_is_the_determinant_of_the_jacobian() -> None:
    q = Rotations().random(5, key=jax.random.key(6))
    for value, hand in zip(targets.manipulability()(q), np.asarray(rotation_matrix(q)), strict=True):
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
    target = targets.ackley(2)
    first, second = (target.noisy(0.05, key=jax.random.key(1)) for _ in range(2))
    x = Sphere(2).random(300, key=jax.random.key(5))
    values = first(x)
    assert np.array_equal(values, second(x))
    assert not np.array_equal(values, first(x))
    assert float(jnp.std(values - target(x))) == pytest.approx(0.05, rel=0.2)  # five deviations of its own law


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match=r"must lie on Sphere\(2\)"):
        targets.ackley(2)([1.0, 1.0, 0.0])
    with pytest.raises(ValueError, match="at least two dimensions"):
        targets.rosenbrock(Circle())
    with pytest.raises(ValueError, match="'released' or 'printed', got 'other'"):
        targets.irregular_sphere("other")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="deviation of the noise"):
        targets.ackley(2).noisy(-1.0, key=jax.random.key(0))
