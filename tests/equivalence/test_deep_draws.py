"""Draws of deep models against their moments and each other."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdgp.core import compiled
from rdgp.likelihoods import Gaussian, WrappedGaussian
from rdgp.models import DeepGP, propagate
from rdgp.posteriors import IndependentDraw, InducingPoints, Interdomain
from tests.equivalence.deep_models import (
    KEY,
    NOISE,
    OUTPUTS,
    SPHERE,
    TEST,
    X,
    bound,
    draw_from,
    hodge,
    observations,
    two_layers,
    with_means,
)

pytestmark = pytest.mark.xdist_group("deep")  # one worker compiles what they share


def test_sequential_and_pathwise_moments_agree() -> None:
    """2 layers, 3 points, 4,000 draws each way: 9 means and 9 variances of coordinates, false alarms below 1e-6.

    Six standard errors of the difference; those of variances from the fourth moments of the draws.
    """
    layers = tuple(with_means(Interdomain(hodge(0.1), std=1.0), seed) for seed in (3, 4))
    model, count = DeepGP(layers, None, WrappedGaussian(SPHERE)), 4000

    @eqx.filter_jit
    def both(model: DeepGP, x: jax.Array, keys: jax.Array) -> tuple[jax.Array, jax.Array]:
        def sequential(key: jax.Array) -> jax.Array:
            pairs = zip(model.hidden, jax.random.split(key), strict=True)
            draws = [IndependentDraw(layer, own) for layer, own in pairs]
            return propagate([layer.field for layer in model.hidden], model.start(x), draws).x

        pathwise = jax.lax.map(lambda key: model.at(key, x).x, keys[0], batch_size=200)
        return jax.lax.map(sequential, keys[1], batch_size=200), pathwise

    ours, theirs = (np.asarray(part) for part in both(model, TEST, jax.random.split(KEY, (2, count))))
    compare_moments(ours, theirs)
    assert np.all(ours.std(0).max(-1) > 0.05)


def compare_moments(a: np.ndarray, b: np.ndarray) -> None:
    """Raise unless means and variances of two samples agree within six standard errors."""
    for power in (1, 2):
        left, right = ((part - (part.mean(0) if power == 2 else 0.0)) ** power for part in (a, b))
        error = np.sqrt(left.var(0) / len(a) + right.var(0) / len(b))
        assert np.all(np.abs(left.mean(0) - right.mean(0)) < 6 * error)


@pytest.mark.parametrize(("kind", "explicit"), [("tangent", False), ("tangent", True)])
def test_draws_have_the_moments_of_the_prediction(kind: str, explicit: bool) -> None:
    """1,500 draws against a mixture of 1,500 members, from which values are drawn; false alarms below 1e-6."""
    model, count = two_layers(kind, explicit), 1500

    @eqx.filter_jit
    def both(model: DeepGP, keys: jax.Array) -> tuple[jax.Array, ...]:
        def member(key: jax.Array) -> tuple[jax.Array, jax.Array]:
            state = model.at(key, TEST)
            return model.posterior(key).coordinate_moments(state.x, state.frame)

        drawn = jax.lax.map(lambda key: model.draw(key=key)(TEST), keys[0], batch_size=100)
        return drawn, *jax.lax.map(member, keys[1], batch_size=100)

    drawn, means, covariances = (np.asarray(part) for part in both(model, jax.random.split(KEY, (2, count))))
    if kind == "tangent":
        drawn = np.einsum("ndq,snd->snq", np.asarray(SPHERE.frame(TEST)), drawn)
    normal = np.random.default_rng(0).normal(size=means.shape)
    values = means + np.einsum("snpq,snq->snp", np.linalg.cholesky(covariances), normal)
    compare_moments(drawn.reshape(count, -1), values.reshape(count, -1))
    assert np.all(means.std(0) > 0.02)  # the hidden layer matters


@pytest.mark.parametrize(("kind", "explicit"), [("tangent", False), ("stacked", True)])
def test_a_draw_is_the_same_wherever_called_and_differentiable(kind: str, explicit: bool) -> None:
    model = two_layers(kind, explicit)
    draw = draw_from(model)
    values = np.asarray(draw(X))
    np.testing.assert_allclose(values[::-1], draw(jnp.asarray(np.asarray(X)[::-1])), atol=1e-10)
    if kind == "tangent":
        np.testing.assert_allclose(np.sum(values * np.asarray(X), axis=1), 0.0, atol=1e-12)
    gradient = np.asarray(jax.jit(jax.grad(lambda x: jnp.sum(jnp.square(draw(x)))))(X))
    there, back = turned_points(1e-6), turned_points(-1e-6)
    change = np.sum(np.square(draw(there))) - np.sum(np.square(draw(back)))
    assert change == pytest.approx(np.sum(gradient * (np.asarray(there) - np.asarray(back))), rel=1e-4)


def turned_points(angle: float) -> jax.Array:
    c, s = np.cos(angle), np.sin(angle)
    return jnp.asarray(np.asarray(X) @ np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]))


def test_a_draw_and_a_member_of_the_prediction_share_the_hidden_layers() -> None:
    """The values of a draw are those of its output where its hidden functions lead."""
    model = two_layers("scalar", True)
    draw = draw_from(model)
    state = compiled(DeepGP.at, model, jax.random.split(KEY)[0], TEST)
    np.testing.assert_allclose(draw(TEST), draw.output(state.x), atol=1e-10)


@pytest.mark.parametrize("family", ["interdomain", "points"])
def test_the_two_draws_of_a_pair_differ(family: str) -> None:
    q = Interdomain(hodge()) if family == "interdomain" else InducingPoints(hodge(), X[:4])
    model = DeepGP((q,), OUTPUTS["scalar"], Gaussian(NOISE))
    y = observations("scalar")
    assert bound(model, X, y, samples=2) != pytest.approx(bound(model, X, y, samples=1), rel=1e-9)
