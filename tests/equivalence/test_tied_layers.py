"""Hidden layers that share one posterior are one function applied twice; draws from the deep prior are functions."""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from rdgp.core import split_trainable, to_vector
from rdgp.inference import elbo, fit
from rdgp.likelihoods import Gaussian, WrappedGaussian
from rdgp.models import DeepDraw, DeepGP
from rdgp.posteriors import InducingPoints, Interdomain, Variational
from tests.equivalence.deep_models import (
    KEY,
    NOISE,
    OUTPUTS,
    SPHERE,
    TEST,
    X,
    bound,
    conditioned,
    draw_from,
    hodge,
    observations,
    with_means,
)
from tests.equivalence.files import round_trip, same

pytestmark = pytest.mark.xdist_group("tied")  # one worker compiles what they share


def layer(variance: float = 0.05) -> Interdomain:
    return with_means(Interdomain(hodge(variance), std=0.5), 3)


def tied(variance: float = 0.05, times: int = 2) -> DeepGP:
    return DeepGP((layer(variance),) * times, OUTPUTS["scalar"], Gaussian(NOISE))


@pytest.fixture(scope="module")
def twice() -> DeepGP:
    return tied()


@pytest.mark.parametrize("family", ["interdomain", "points"])
def test_a_tied_model_applies_one_function_twice(family: str) -> None:
    q: Variational = layer() if family == "interdomain" else with_means(InducingPoints(hodge(), X[:4]), 3)
    model = DeepGP((q, q), None, WrappedGaussian(SPHERE))
    assert (len(model.layers), model.order, len(model.hidden)) == (1, (0, 0), 2)
    draw = draw_from(model)
    once = SPHERE.exp(TEST, draw.hidden[0](TEST))
    np.testing.assert_allclose(draw(TEST), SPHERE.exp(once, draw.hidden[0](once)), atol=1e-10)
    untied = draw_from(DeepGP((q, with_means(Interdomain(hodge()), 3)), None, WrappedGaussian(SPHERE)))
    assert np.max(np.abs(untied.hidden[0](TEST) - untied.hidden[1](TEST))) > 1e-3


def test_training_predictions_and_densities_take_one_function_too(twice: DeepGP) -> None:
    state = twice.at(KEY, TEST)
    draws = twice._draws(lambda q, key: q.draw(key=key), KEY)
    assert draws[0] is draws[1]
    once = SPHERE.exp(TEST, draws[0](TEST))
    np.testing.assert_allclose(state.x, SPHERE.exp(once, draws[0](once)), atol=1e-10)
    assert twice.num_normals == twice.layers[0].num_normals


def test_one_divergence_is_subtracted() -> None:
    """Layers of no variance leave the shallow bound minus their divergence, once for each function."""
    shallow = bound(DeepGP((), OUTPUTS["scalar"], Gaussian(NOISE)), X, observations("scalar"))
    model = tied(1e-16, times=3)
    divergence = float(model.layers[0].kl())
    assert divergence > 1.0
    assert bound(model, X, observations("scalar")) == pytest.approx(shallow - divergence, abs=1e-5)


def test_the_gradient_is_that_of_the_values(twice: DeepGP) -> None:
    y, (free, rest) = observations("scalar"), split_trainable(twice)
    start = to_vector(free)
    direction = np.random.default_rng(0).normal(size=start.size)

    @jax.jit
    @jax.value_and_grad
    def value(step: jax.Array) -> jax.Array:
        moved = eqx.combine(ravel_pytree(free)[1](start + step * direction), rest)
        return elbo(moved, X, y, key=KEY, samples=3)

    (ahead, _), (_, slope), (behind, _) = value(1e-5), value(0.0), value(-1e-5)
    assert float(slope) == pytest.approx(float(ahead - behind) / 2e-5, rel=1e-6)


def test_fits_and_files_keep_layers_tied(twice: DeepGP, tmp_path: Path) -> None:
    fitted = fit(twice, X, observations("scalar"), key=KEY, steps=3, progress=False).model
    assert fitted.hidden[0] is fitted.hidden[1]
    assert np.any(to_vector(fitted.hidden[0].blocks[0]) != to_vector(twice.hidden[0].blocks[0]))
    loaded = round_trip(fitted, tmp_path)
    assert same(loaded, fitted)
    assert loaded.hidden[0] is loaded.hidden[1]


def test_two_posteriors_of_one_field_are_refused() -> None:
    field = hodge()
    with pytest.raises(ValueError, match="two hidden layers share one field but not their posterior") as caught:
        DeepGP((Interdomain(field), Interdomain(field)), OUTPUTS["scalar"])
    assert "\n" not in str(caught.value)
    assert len(DeepGP((Interdomain(hodge()), Interdomain(hodge())), OUTPUTS["scalar"]).layers) == 2


@eqx.filter_jit
def _prior_draws(model: DeepGP, x: jax.Array, keys: jax.Array) -> jax.Array:
    return jax.lax.map(lambda key: model.draw_prior(key=key)(x), keys, batch_size=250)


@pytest.mark.parametrize("kind", ["scalar", "tangent"])
@pytest.mark.parametrize("seen", [False, True], ids=["no data", "data"])
def test_prior_draws_of_a_shallow_model_have_the_covariance_of_the_field(kind: str, seen: bool) -> None:
    """4,000 draws of 3 or 9 numbers: six standard errors, false alarms below 1e-6."""
    model, count = DeepGP((), OUTPUTS[kind], Gaussian(NOISE)), 4000
    model = conditioned(model, kind) if seen else model
    draws = np.asarray(_prior_draws(model, TEST, jax.random.split(jax.random.key(2, impl="rbg"), count)))
    draws = draws.reshape(count, -1)
    expected = np.asarray(OUTPUTS[kind].covariance(TEST, TEST)).reshape(draws.shape[1], -1)
    variance = np.diagonal(expected)
    assert np.all(np.abs(draws.mean(0)) < 6 * np.sqrt(variance / count) + 1e-9)
    error = np.sqrt((np.outer(variance, variance) + expected**2) / count)
    assert np.all(np.abs(draws.T @ draws / count - expected) < 6 * error + 1e-9)


def test_prior_draws_of_a_deep_model_move_points_by_the_prior_not_by_the_posterior() -> None:
    """3,000 draws of displacements of a layer whose posterior is nearly a point: their mean square is the variance."""
    variance = 1e-4
    q = with_means(Interdomain(hodge(variance), std=1e-9), 3, 100.0)
    model, count = DeepGP((q,), None, WrappedGaussian(SPHERE)), 3000
    points = np.asarray(_prior_draws(model, TEST, jax.random.split(jax.random.key(4, impl="rbg"), count)))
    squares = np.sum((points - np.asarray(TEST)) ** 2, axis=-1)  # of chordal distances, within 1e-4 those along arcs
    assert squares.mean() == pytest.approx(2 * variance, rel=6 * np.sqrt(1.0 / (3 * count)) + 1e-3)


def test_prior_draws_of_a_deep_model_differ_and_are_functions(twice: DeepGP) -> None:
    draws: list[DeepDraw] = [twice.draw_prior(key=jax.random.key(seed)) for seed in (0, 1)]
    values = [np.asarray(draw(TEST)) for draw in draws]
    assert np.max(np.abs(values[0] - values[1])) > 1e-2
    again = np.asarray(draws[0](jnp.asarray(np.asarray(TEST)[::-1])))
    np.testing.assert_allclose(again[::-1], values[0], atol=1e-10)
    np.testing.assert_allclose(twice.draw_prior(key=jax.random.key(0))(TEST), values[0], atol=1e-10)
