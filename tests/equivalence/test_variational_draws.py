"""Draws and samples of variational families against their moments."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdgp.core import compiled, split_trainable
from rdgp.fields import FunctionDraw
from rdgp.inference import estimate
from rdgp.models import DeepGP
from rdgp.posteriors import InducingPoints, Variational
from tests.equivalence.families import (
    FAMILIES,
    FIELDS,
    TEST,
    X,
    blocks_of,
    facts,
    grouped,
    observations,
    perturbed,
    shallow,
    sphere_points,
)


@eqx.filter_jit
def _many_draws(q: Variational, x: jax.Array, keys: jax.Array) -> jax.Array:
    frame = q.field.bundle.frame(x)
    return jax.lax.map(lambda key: frame.coordinates(q.draw(key=key)(x)), keys, batch_size=200)


@grouped([("tail", "hodge"), ("points", "hodge")])
def test_draws_have_the_joint_moments(family: str, name: str) -> None:
    """2,000 draws at 4 points, 8 means and 36 covariances: six standard errors, false alarms below 1e-6."""
    q, count = perturbed(FAMILIES[family](name)), 2000
    draws = np.asarray(_many_draws(q, TEST, jax.random.split(jax.random.key(3, impl="rbg"), count))).reshape(count, -1)
    known = facts(q)
    covariance, variance = known.joint_covariance, np.diagonal(known.joint_covariance)
    assert np.all(np.abs(draws.mean(0) - known.joint_mean) < 6 * np.sqrt(variance / count))
    error = np.sqrt((np.outer(variance, variance) + covariance**2) / count)
    assert np.all(np.abs(np.cov(draws.T) - covariance) < 6 * error)


@pytest.mark.xdist_group("points-hodge")
def test_values_drawn_point_by_point_have_the_marginal_moments() -> None:
    """8,000 draws at 4 points, 8 means and 12 covariances: six standard errors, false alarms below 1e-7."""
    q, count = perturbed(FAMILIES["points"]("hodge")), 8000
    known = facts(q)
    draws = compiled(Variational.sample_independently, q, jnp.asarray(np.tile(TEST, (count, 1))), jax.random.key(0))
    draws = np.einsum("ndq,snd->snq", known.frame, np.asarray(draws).reshape(count, 4, 3))
    own, means = blocks_of(known, 4), known.joint_mean.reshape(4, 2)
    for i in range(4):
        variance = np.diagonal(own[i])
        assert np.all(np.abs(draws[:, i].mean(0) - means[i]) < 6 * np.sqrt(variance / count))
        error = np.sqrt((np.outer(variance, variance) + own[i] ** 2) / count)
        assert np.all(np.abs(np.cov(draws[:, i].T) - own[i]) < 6 * error)


@pytest.mark.parametrize("family", ["tail", "points"])
def test_draws_are_the_same_wherever_called_and_differentiable(family: str) -> None:
    q = perturbed(FAMILIES[family]("scalar"))
    draw = compiled(_draw, q, jax.random.key(0))
    reverse = jnp.asarray(np.asarray(TEST)[::-1])
    np.testing.assert_allclose(np.asarray(draw(TEST))[::-1], draw(reverse), atol=1e-12)
    gradient = np.asarray(jax.jit(jax.grad(lambda x: jnp.sum(jnp.square(draw(x)))))(TEST))
    there, back = (turned(TEST, angle) for angle in (1e-6, -1e-6))
    change = np.sum(np.square(draw(there))) - np.sum(np.square(draw(back)))
    assert change == pytest.approx(np.sum(gradient * (np.asarray(there) - np.asarray(back))), rel=1e-5)


def _draw(q: Variational, key: jax.Array) -> FunctionDraw:
    return q.draw(key=key)


def turned(x: jax.Array, angle: float) -> jax.Array:
    """Turn points about the third axis."""
    c, s = np.cos(angle), np.sin(angle)
    return jnp.asarray(np.asarray(x) @ np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]))


@eqx.filter_jit
def _sound(free: DeepGP, rest: DeepGP, x: jax.Array, y: jax.Array) -> tuple[object, ...]:
    model = eqx.combine(free, rest)
    data, q = model.check_data(x, y), model.output.variational
    bound = eqx.filter_value_and_grad(lambda f: estimate(eqx.combine(f, rest), data, jax.random.key(0), 1))
    value, gradient = bound(free)
    return value, gradient, q.moments(x), q.draw(key=jax.random.key(1))(x)


@pytest.mark.parametrize(("name", "dtype"), [("hodge", "float32")])
def test_more_inducing_points_than_harmonics_are_sound(name: str, dtype: str) -> None:
    """K_zz has the rank of the features, 4 or 16, with 30 points of which two coincide."""
    field, z = FIELDS[name](2), sphere_points(5, 30)
    z[1] = z[0]
    model = shallow(InducingPoints(field, jnp.asarray(z), trainable=True))
    model = jax.tree.map(lambda leaf: leaf.astype(dtype) if eqx.is_inexact_array(leaf) else leaf, model)
    free, rest = split_trainable(model)
    value, gradient, (mean, covariance), draw = _sound(free, rest, X.astype(dtype), observations(field).astype(dtype))
    numbers = [value, mean, covariance, draw, *jax.tree.leaves(gradient)]
    assert all(np.all(np.isfinite(number)) for number in numbers)
    assert {str(number.dtype) for number in numbers[1:]} == {dtype}
    lowest = np.min(covariance if name == "scalar" else np.linalg.eigvalsh(covariance))
    assert lowest > (-1e-9 if dtype == "float64" else -1e-4)
