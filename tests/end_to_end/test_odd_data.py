"""Odd data give a sensible fit, never NaN: huge, tiny, shifted, constant, contradictory, or a single point."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdgp.fields import Field, HodgeField, ScalarField
from rdgp.inference import fit
from rdgp.kernels import Matern
from rdgp.models import DeepGP, ExactGP, Prediction
from rdgp.posteriors import Interdomain
from rdgp.spaces import Sphere

pytestmark = pytest.mark.xdist_group("odd data")  # one worker compiles what they share

SPHERE = Sphere(2)
KEY = jax.random.key(0)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 3))
X = X / np.linalg.norm(X, axis=1, keepdims=True)
VALUES = {
    "scalar": X[:, 0] + 0.05 * RNG.normal(size=12),
    "tangent": np.cross(X, [0.0, 0.6, 0.8]) + 0.05 * np.cross(X, RNG.normal(size=(12, 3))),
}
TWICE = np.concatenate([X[:6], X[:6]])
OPPOSITE = np.repeat([1.0, -1.0], 6)


def output(kind: str) -> Field:
    return ScalarField(SPHERE, Matern(), 2) if kind == "scalar" else hodge(1.0)


def hodge(variance: float) -> HodgeField:
    return HodgeField(SPHERE, Matern(variance=variance), Matern(variance=variance), 1)


def deep(kind: str, constant_mean: bool = False) -> DeepGP:
    return DeepGP((Interdomain(hodge(0.01), std=0.1),), output(kind), constant_mean=constant_mean)


def prediction_of(model: DeepGP | ExactGP, x: np.ndarray, y: np.ndarray, dtype: str = "float64") -> Prediction:
    """Fit, check that nothing is odd about the prediction at the data, and return it."""
    x, y = jnp.asarray(x, dtype), jnp.asarray(y, dtype)
    if isinstance(model, DeepGP):
        fitted = fit(model, x, y, key=KEY, steps=20, progress=False)
        assert fitted.status == "ok"
        assert np.all(np.isfinite(fitted.history))
        prediction = fitted.model.predict(x, key=KEY, samples=3)
    else:
        prediction = model.fit(x, y, progress=False).predict(x)
    assert prediction.mean.dtype == dtype
    for numbers in (prediction.mean, prediction.observed.variance, prediction.log_prob(y), prediction.sample(key=KEY)):
        assert np.all(np.isfinite(numbers))
    assert np.all(prediction.variance >= 0.0)
    return prediction


def error(prediction: Prediction, y: np.ndarray) -> float:
    """Return the error relative to the data, both by root mean squares."""
    return float(np.sqrt(np.mean((np.asarray(prediction.mean, float) - y) ** 2) / np.mean(y**2)))


@pytest.mark.parametrize("size", [1e12, 1e-12])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("kind", ["scalar", "tangent"])
@pytest.mark.parametrize("way", ["deep", "exact"])
def test_observations_of_any_size(way: str, kind: str, dtype: str, size: float) -> None:
    y = size * VALUES[kind]
    prediction = prediction_of(deep(kind) if way == "deep" else ExactGP(output(kind)), X, y, dtype)
    assert error(prediction, y) < 0.2
    assert np.sqrt(np.mean(prediction.observed.variance)) < size


@pytest.mark.parametrize("way", ["deep", "exact"])
def test_a_large_offset(way: str) -> None:
    """The constant function is one of the features, so it takes up the offset; the signal drowns in rounding."""
    y = 1e6 + VALUES["scalar"]
    prediction = prediction_of(deep("scalar") if way == "deep" else ExactGP(output("scalar")), X, y)
    assert np.max(np.abs(prediction.mean - y)) < 10.0


@pytest.mark.parametrize("size", [1.0, 1e-12])
def test_a_constant_mean_starts_at_that_of_the_data_and_moves_by_their_size(size: float) -> None:
    y = size * (1e6 + VALUES["scalar"])
    prediction = prediction_of(deep("scalar", constant_mean=True), X, y)
    assert np.sqrt(np.mean((prediction.mean - y) ** 2)) < 0.2 * size


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("value", [3.0, 0.0, -1e-6, 1e6])
@pytest.mark.parametrize("way", ["deep", "exact"])
def test_constant_y(way: str, value: float, dtype: str) -> None:
    prediction = prediction_of(
        deep("scalar") if way == "deep" else ExactGP(output("scalar")), X, np.full(12, value), dtype
    )
    assert np.max(np.abs(prediction.mean - value)) <= 0.2 * abs(value) + 1e-6


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("way", ["deep", "exact"])
def test_duplicated_points_with_different_y(way: str, dtype: str) -> None:
    prediction = prediction_of(deep("scalar") if way == "deep" else ExactGP(output("scalar")), TWICE, OPPOSITE, dtype)
    assert np.max(np.abs(prediction.mean)) < 0.6
    assert float(prediction.likelihood.noise_variance) > 0.5


@pytest.mark.parametrize("value", [2.0, 0.0])
@pytest.mark.parametrize("way", ["deep", "exact"])
def test_one_point(way: str, value: float) -> None:
    prediction = prediction_of(deep("scalar") if way == "deep" else ExactGP(output("scalar")), X[:1], np.array([value]))
    assert abs(float(prediction.mean[0]) - value) <= 0.1 * value + 1e-6


def test_integers_lists_and_numpy_arrays_are_welcome() -> None:
    y = np.round(100.0 * VALUES["scalar"]).astype(int)
    fitted = fit(deep("scalar"), X.tolist(), y, key=KEY, steps=20, progress=False)
    assert fitted.status == "ok"
    prediction = fitted.model.predict(X.tolist(), key=KEY, samples=3)
    assert error(prediction, y) < 0.2
    floats = prediction_of(deep("scalar"), X, y.astype(float))
    np.testing.assert_allclose(prediction.mean, floats.mean, rtol=1e-9)
    np.testing.assert_allclose(prediction.log_prob(y), floats.log_prob(y.astype(float)), rtol=1e-9)
