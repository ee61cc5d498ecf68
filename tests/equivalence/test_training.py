"""Training: the same numbers again, resumed, saved, in single precision, in batches, and when it goes wrong."""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax._src import test_util

from rdgp.fields import HodgeField, ProjectedField, ScalarField
from rdgp.inference import FitResult, _fit, _loop, _recipe, elbo, fit
from rdgp.inference._noise import with_best_noise
from rdgp.io import load, save
from rdgp.kernels import Matern
from rdgp.likelihoods import Bernoulli, Gaussian, Likelihood, Poisson, StudentT, WrappedGaussian
from rdgp.models import Data, DeepGP, Prediction
from rdgp.posteriors import InducingPoints, Interdomain
from rdgp.spaces import Sphere

pytestmark = pytest.mark.xdist_group("training")  # one worker compiles what they share

SPHERE = Sphere(2)
KEY = jax.random.key(0)
STEPS = 50


def sphere_points(seed: int, n: int) -> np.ndarray:
    x = np.random.default_rng(seed).normal(size=(n, 3))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def target(x: np.ndarray) -> np.ndarray:
    return np.sin(3.0 * x[:, 0]) + x[:, 1] * x[:, 2]


X, TEST = sphere_points(0, 30), sphere_points(1, 20)
Y = target(X) + 0.1 * np.random.default_rng(2).normal(size=30)
Y_TEST = target(TEST) + 0.1 * np.random.default_rng(3).normal(size=20)
X, TEST, Y, Y_TEST = (jnp.asarray(part) for part in (X, TEST, Y, Y_TEST))


def scalar(num_levels: int = 3) -> ScalarField:
    return ScalarField(SPHERE, Matern(), num_levels)


def two_layers(num_levels: int = 3) -> DeepGP:
    hidden = Interdomain(HodgeField(SPHERE, Matern(variance=0.01), Matern(variance=0.01), 2), std=0.1)
    return DeepGP((hidden,), scalar(num_levels), Gaussian())


def trained(**options: object) -> FitResult:
    return fit(two_layers(), X, Y, key=KEY, steps=STEPS, progress=False, **options)


@pytest.fixture(scope="module")
def result() -> FitResult:
    return trained()


def nlpd(prediction: Prediction, y: jax.Array) -> float:
    return -float(np.mean(prediction.log_prob(y)))


def assert_same(a: object, b: object) -> None:
    for left, right in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_array_equal(left, right)


def test_training_raises_the_bound_and_reports_every_step(result: FitResult) -> None:
    assert result.status == "ok"
    assert result.history.shape == (STEPS,)
    assert np.mean(result.history[-10:]) > np.mean(result.history[:10])
    assert nlpd(result.model.predict(TEST, key=KEY), Y_TEST) < 1.0


def test_the_same_seed_gives_the_same_numbers_and_compiles_nothing(result: FitResult) -> None:
    with test_util.count_jit_compilation_cache_miss() as misses:
        again = trained()
    assert_same(again.model, result.model)
    np.testing.assert_array_equal(again.history, result.history)
    assert misses() == 0


def test_another_seed_gives_other_numbers(result: FitResult) -> None:
    other = fit(two_layers(), X, Y, key=jax.random.key(1), steps=STEPS, progress=False)
    assert np.any(other.history != result.history)


def test_resumed_training_equals_uninterrupted_training(result: FitResult, tmp_path: Path) -> None:
    path = tmp_path / "fit.rdgp"
    first = trained(checkpoint=path, callback=lambda step, _: step >= 25)
    assert (first.status, first.history.size) == ("stopped", 25)
    second = trained(checkpoint=path)
    assert second.status == "ok"
    assert_same(second.model, result.model)
    np.testing.assert_array_equal(second.history, result.history)
    third = trained(checkpoint=path)
    assert_same(third.model, result.model)
    with pytest.raises(ValueError, match="belongs to a fit with") as caught:
        fit(two_layers(), X, Y, key=KEY, steps=STEPS + 1, progress=False, checkpoint=path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("change", ["key", "data", "levels"])
def test_a_checkpoint_of_another_fit_is_refused(tmp_path: Path, change: str) -> None:
    path = tmp_path / "fit.rdgp"
    trained(checkpoint=path, callback=lambda step, _: step >= 25)
    key, y = jax.random.key(5) if change == "key" else KEY, 2.0 * Y if change == "data" else Y
    model = two_layers(4 if change == "levels" else 3)
    with pytest.raises(ValueError, match="use another file"):
        fit(model, X, y, key=key, steps=STEPS, progress=False, checkpoint=path)


def test_saved_equals_loaded(result: FitResult, tmp_path: Path) -> None:
    save(result.model, tmp_path / "model.rdgp")
    model = load(tmp_path / "model.rdgp")
    assert_same(model, result.model)
    ours, theirs = (m.predict(TEST, key=KEY) for m in (model, result.model))
    np.testing.assert_array_equal(ours.means, theirs.means)
    np.testing.assert_array_equal(ours.covariances, theirs.covariances)
    np.testing.assert_array_equal(model.draw(key=KEY)(TEST), result.model.draw(key=KEY)(TEST))


def test_prediction_at_no_points_is_refused(result: FitResult) -> None:
    with pytest.raises(ValueError, match="at least one point, got none"):
        result.model.predict(X[:0], key=KEY)


def test_a_fitted_model_may_be_fitted_again(result: FitResult) -> None:
    again = fit(result.model, X, Y, key=KEY, steps=STEPS, progress=False)
    assert again.status == "ok"
    assert np.mean(again.history) > np.mean(result.history)


@pytest.fixture(scope="module")
def single() -> FitResult:
    x, y = X.astype(jnp.float32), Y.astype(jnp.float32)
    return fit(two_layers(), x, y, key=KEY, steps=STEPS, progress=False)


def test_single_precision_is_close_to_double(single: FitResult, result: FitResult) -> None:
    ours = single.model.predict(TEST.astype(jnp.float32), key=KEY)
    assert single.status == "ok"
    assert ours.mean.dtype == ours.covariance.dtype == jnp.float32
    double = nlpd(result.model.predict(TEST, key=KEY), Y_TEST)
    assert nlpd(ours, Y_TEST.astype(jnp.float32)) == pytest.approx(double, abs=0.02)


def test_all_numbers_of_a_model_fitted_in_single_precision_are_single(single: FitResult) -> None:
    leaves = [leaf for leaf in jax.tree.leaves(single.model) if eqx.is_inexact_array(leaf)]
    assert {leaf.dtype for leaf in leaves} == {jnp.dtype(jnp.float32)}


def test_batches_make_the_output_explicit() -> None:
    fitted = fit(two_layers(), X, Y, key=KEY, steps=STEPS, batch_size=8, progress=False)
    assert fitted.status == "ok"
    assert isinstance(fitted.model.output.variational, Interdomain)
    assert np.all(np.isfinite(fitted.history))
    assert nlpd(fitted.model.predict(TEST, key=KEY), Y_TEST) < 1.0


def test_batches_keep_nothing_of_the_size_of_the_data_but_the_data(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[object] = []

    def no_training(model: DeepGP, data: object, *rest: object) -> FitResult:
        held.append(data)
        return FitResult(model, np.zeros(0), "ok", 0.0)

    monkeypatch.setattr(_fit, "_train", no_training)
    fit(two_layers(), X, Y, key=KEY, batch_size=8, recipe="paper")
    assert sum(leaf.size for leaf in jax.tree.leaves(held)) <= X.size + Y.size + 10


LIKELIHOODS: dict[str, tuple[Likelihood, jax.Array]] = {
    "bernoulli": (Bernoulli(), (Y > 0.0).astype(float)),
    "poisson": (Poisson(), jnp.round(jnp.exp(1.0 + Y))),
    "student": (StudentT(), Y.at[3].set(8.0)),
}


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_other_likelihoods_raise_their_bound(name: str) -> None:
    likelihood, y = LIKELIHOODS[name]
    fitted = fit(DeepGP((), scalar(2), likelihood), X, y, key=KEY, steps=STEPS, progress=False)
    assert fitted.status == "ok"
    assert isinstance(fitted.model.output.variational, Interdomain)
    assert fitted.history[-1] > fitted.history[0] + 1.0
    prediction = fitted.model.predict(TEST, key=KEY, samples=2)
    assert np.all(np.isfinite(prediction.mean))
    assert np.all(np.isfinite(prediction.log_prob(y[:20])))


def test_trained_inducing_points_move_and_stay_on_the_space() -> None:
    q = InducingPoints(scalar(2), X[:5], trainable=True)
    fitted = fit(DeepGP((), q, Gaussian()), X, Y, key=KEY, steps=STEPS, progress=False, recipe="paper")
    assert np.all(SPHERE.contains(fitted.model.output.variational.z))
    assert np.max(np.abs(fitted.model.output.variational.z - X[:5])) > 1e-3


def test_a_manifold_valued_model_learns_a_map() -> None:
    turn = np.linalg.qr(np.array([[1.0, 0.3, 0.0], [-0.3, 1.0, 0.2], [0.0, -0.2, 1.0]]))[0]
    turn = turn * np.sign(np.diagonal(turn))
    y = X @ turn.T
    hidden = Interdomain(ProjectedField(SPHERE, Matern(variance=0.1), 2), std=0.1)
    model = DeepGP((hidden,), None, WrappedGaussian(SPHERE))
    fitted = fit(model, X, y, key=KEY, steps=STEPS, progress=False)
    assert fitted.history[-1] > fitted.history[0] + 5.0
    none, ours = SPHERE.distance(X, y), SPHERE.distance(fitted.model.predict(X, key=KEY).mean, y)
    assert np.mean(ours) < 0.7 * np.mean(none)


def test_the_paper_recipe_serves_manifold_valued_models() -> None:
    hidden = Interdomain(ProjectedField(SPHERE, Matern(variance=0.1), 1))
    model = DeepGP((hidden,), None, WrappedGaussian(SPHERE))
    assert fit(model, X, X, key=KEY, steps=5, progress=False, recipe="paper").status == "ok"


def absurd(steps: int) -> FitResult:
    model = DeepGP((), Interdomain(scalar(2)), Gaussian())
    return fit(model, X, Y, key=KEY, steps=steps, progress=False, recipe="paper", optimizer=optax.adam(1e6))


@pytest.fixture(scope="module")
def broken() -> FitResult:
    return absurd(STEPS)


def test_an_absurd_rate_ends_early_with_finite_parameters(broken: FitResult) -> None:
    assert broken.status in ("nan", "diverged")
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(broken.model) if eqx.is_inexact_array(leaf))


def test_the_parameters_kept_are_good_ones(broken: FitResult) -> None:
    assert np.isfinite(elbo(broken.model, X, Y, key=KEY, samples=1))


def test_a_diverged_fit_returns_its_best_parameters() -> None:
    away = optax.adam(-0.3)  # uphill
    model = DeepGP((), Interdomain(scalar(2)), Gaussian())
    result = fit(model, X, Y, key=KEY, steps=400, progress=False, recipe="paper", optimizer=away)
    assert result.status == "diverged"
    bound = float(elbo(result.model, X, Y, key=KEY, samples=1))
    assert bound > np.median(result.history[25:])
    assert not np.isclose(result.model.noise_variance, 1.0)  # where training started
    assert result.history[-1] < result.history[0]


def test_a_short_fit_without_a_finite_step_does_not_report_ok() -> None:
    short = absurd(10)
    assert not np.isfinite(short.history[-1])
    assert short.status == "nan"


def test_a_callback_stops_training_and_sees_the_bound() -> None:
    seen: list[tuple[int, float]] = []
    fitted = trained(callback=lambda step, value: seen.append((step, value)) or step >= 25)
    assert fitted.status == "stopped"
    assert seen == [(25, fitted.history[-1])]


def test_a_quick_fit_trains_on_distinct_subsamples_and_keeps_all_points(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_recipe, "ENOUGH", 20)
    model = DeepGP((), scalar(6), Gaussian())  # 36 features, more than half of the points
    assert _recipe.affordable_subsample(model, model.check_data(X, Y)) == 20
    part = _loop._batch(Data(X, jnp.arange(30.0)[:, None]), 20, KEY, distinct=True)
    assert np.unique(part.y).size == 20
    result = fit(model, X, Y, key=KEY, steps=3, recipe="quick", progress=False)
    assert result.status == "ok"
    assert result.model.data is not None
    assert result.model.data.x.shape == X.shape


def test_a_quick_fit_ends_with_the_noise_of_all_points() -> None:
    rough = jnp.sign(jnp.sin(9.0 * X[:, 0]) * X[:, 1])  # 16 features cannot follow it
    model, key = DeepGP((), scalar(4), Gaussian(1e-6)), jax.random.key(0)
    data = model.check_data(X, rough)
    found = with_best_noise(model, data, key)

    def evidence(change: float) -> float:
        model = DeepGP((), scalar(4), Gaussian(float(found.noise_variance) * np.exp(change)))
        return float(elbo(model, X, rough, key=KEY, samples=1))

    assert float(found.noise_variance) > 0.01
    assert evidence(0.0) > max(evidence(-0.3), evidence(0.3))
    held = DeepGP((), scalar(4), Gaussian(1e-6, fixed=("noise_variance",)))
    assert with_best_noise(held, data, key) is held
