"""Rows that only fill up arrays change nothing, in every way of inference."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdgp.core import split_trainable
from rdgp.inference import estimate
from rdgp.likelihoods import Bernoulli, Gaussian
from rdgp.models import Data, DeepGP
from rdgp.posteriors import Interdomain
from tests.equivalence.deep_models import KEY, NOISE, OUTPUTS, TEST, X, hodge, observations, sphere_points, with_means

pytestmark = pytest.mark.xdist_group("masked")  # one worker compiles what they share

COUNT = 8
FILLED = {"kernel": 13, "features": 20}  # rows in all, for 9 features of scalars and 16 of vectors


def data_of(model: DeepGP, kind: str, known: bool) -> Data:
    noise = jnp.asarray(np.random.default_rng(3).uniform(0.1, 1.0, COUNT)) if known else None
    return model.check_data(X[:COUNT], observations(kind)[:COUNT], noise)


def filled(data: Data, rows: int, seed: int = 7) -> Data:
    """Fill up with points, values and noise that mean nothing, one of them a copy of a point that counts."""
    missing, rng = rows - data.num_points, np.random.default_rng(seed)
    x = np.concatenate([data.x, sphere_points(seed, missing - 1), data.x[:1]])
    y = np.concatenate([data.y, 100.0 * rng.normal(size=(missing, data.y.shape[1]))])
    noise = None
    if data.noise is not None:
        noise = jnp.asarray(np.concatenate([data.noise, rng.uniform(1e-6, 1e6, missing)]))
    mask = np.arange(rows) < data.num_points
    return Data(jnp.asarray(x), jnp.asarray(y), noise, jnp.asarray(mask))


@eqx.filter_jit
def _numbers(model: DeepGP, data: Data, test: jax.Array) -> tuple[jax.Array, ...]:
    """Return bound, gradient, and the posterior given one draw of the hidden layers with a draw from it."""
    free, rest = split_trainable(model)
    bound, slope = jax.value_and_grad(lambda f: estimate(eqx.combine(f, rest), data, KEY, 2))(free)
    posterior = model.with_data(data).posterior(KEY)
    return bound, *jax.tree.leaves(slope), *posterior.moments(test), *posterior.joint(test)


@eqx.filter_jit
def _draws(model: DeepGP, data: Data, test: jax.Array, keys: jax.Array) -> jax.Array:
    posterior = model.with_data(data).posterior(KEY)
    return jax.lax.map(lambda key: posterior.draw(key=key)(test), keys, batch_size=200)


def deep(kind: str) -> DeepGP:
    return DeepGP((with_means(Interdomain(hodge(0.05), std=0.5), 3),), OUTPUTS[kind], Gaussian(NOISE))


@pytest.mark.parametrize("known", [False, True], ids=["uniform", "known noise"])
@pytest.mark.parametrize("way", FILLED)
@pytest.mark.parametrize("kind", ["scalar", "tangent"])
def test_integrated_outputs(kind: str, way: str, known: bool) -> None:
    model = deep(kind)
    data = data_of(model, kind, known)
    plain, masked = _numbers(model, data, TEST), _numbers(model, filled(data, FILLED[way]), TEST)
    assert model.with_data(filled(data, FILLED[way])).posterior(KEY).by_features == (way == "features")
    for ours, theirs in zip(masked, plain, strict=True):
        assert np.all(np.isfinite(ours))
        np.testing.assert_allclose(ours, theirs, atol=1e-8, rtol=1e-8)


@pytest.mark.parametrize("way", FILLED)
def test_draws_do_not_see_what_fills_up_and_have_the_posterior_moments(way: str) -> None:
    """2,000 draws at 3 points: six standard errors, false alarms below 1e-7."""
    model = deep("scalar")
    data, keys = data_of(model, "scalar", True), jax.random.split(jax.random.key(5, impl="rbg"), 2000)
    draws, others = (np.asarray(_draws(model, filled(data, FILLED[way], seed), TEST, keys)) for seed in (7, 8))
    mean, covariance = model.with_data(data).posterior(KEY).joint(TEST)
    variance = np.diagonal(covariance)
    assert np.all(np.abs(draws.mean(0) - mean) < 6 * np.sqrt(variance / 2000))
    error = np.sqrt((np.outer(variance, variance) + np.asarray(covariance) ** 2) / 2000)
    assert np.all(np.abs(np.cov(draws.T) - covariance) < 6 * error)
    assert np.max(np.abs(draws - others)) < 1e-8


@pytest.mark.parametrize("likelihood", [Gaussian(NOISE), Bernoulli()], ids=["gaussian", "bernoulli"])
@pytest.mark.parametrize("depth", [0, 1])
def test_explicit_outputs(depth: int, likelihood: Gaussian | Bernoulli) -> None:
    """Groups of points that share a draw differ, so the hidden layer is nearly deterministic."""
    hidden = (with_means(Interdomain(hodge(0.05), std=1e-9), 3),)[:depth]
    model = DeepGP(hidden, with_means(Interdomain(OUTPUTS["scalar"], std=0.4), 4), likelihood)
    y = jnp.asarray(np.asarray(observations("scalar")) > 0.0, float)
    data = model.check_data(X, y)
    plain, masked = (float(_bound(model, own)) for own in (data, filled(data, 20)))
    assert masked == pytest.approx(plain, rel=1e-7)
    assert float(_bound(model, data.rows(slice(0, 9)))) != pytest.approx(plain, rel=1e-3)


@eqx.filter_jit
def _bound(model: DeepGP, data: Data) -> jax.Array:
    return estimate(model, data, KEY, 2)
