"""Data without noise, and constant data: finite numbers that make sense, and a warning where rounding matters."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdgp.core import Parameter
from rdgp.fields import HodgeField, ScalarField
from rdgp.inference import FitResult, PrecisionWarning, fit
from rdgp.kernels import Matern
from rdgp.likelihoods import Gaussian
from rdgp.models import DeepGP, ExactGP, Prediction
from rdgp.posteriors import Interdomain
from rdgp.spaces import Sphere

pytestmark = pytest.mark.xdist_group("noise-free")  # one worker compiles what they share

SPHERE = Sphere(2)
KEY = jax.random.key(0)
FLOOR = {"float64": 1e-12, "float32": 1e-6}  # relative to the variance of the data


def sphere_points(seed: int, n: int) -> np.ndarray:
    x = np.random.default_rng(seed).normal(size=(n, 3))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def polynomial(x: np.ndarray) -> np.ndarray:
    """Return values of degree two, in the span of the harmonics."""
    return x[:, 0] + 0.5 * x[:, 1] * x[:, 2]


X, TEST = sphere_points(0, 80), sphere_points(1, 40)
CENTER, SIZE = np.mean(polynomial(X)), np.std(polynomial(X))
Y, Y_TEST = ((polynomial(x) - CENTER) / SIZE for x in (X, TEST))
WARNINGS = {"float64": "the observations look free of noise", "float32": "too little for single precision"}


def model(depth: int, num_levels: int) -> DeepGP:
    hidden = Interdomain(HodgeField(SPHERE, Matern(variance=0.01), Matern(variance=0.01), 2), std=0.1)
    return DeepGP((hidden,) * depth, ScalarField(SPHERE, Matern(), num_levels), Gaussian())


def fitted(depth: int, num_levels: int, dtype: str, scale: float = 1.0) -> FitResult:
    x, y = jnp.asarray(X, dtype), jnp.asarray(scale * Y, dtype)
    with pytest.warns(PrecisionWarning, match=WARNINGS[dtype]):
        return fit(model(depth, num_levels), x, y, key=KEY, steps=60, progress=False)


def nlpd(prediction: Prediction, dtype: str, scale: float = 1.0) -> float:
    return -float(np.mean(prediction.log_prob(jnp.asarray(scale * Y_TEST, dtype))))


@pytest.mark.parametrize("dtype", FLOOR)
@pytest.mark.parametrize("num_levels", [5, 12], ids=["features", "kernel"])
@pytest.mark.parametrize("depth", [0, 1])
def test_held_out_data_are_predicted_well(depth: int, num_levels: int, dtype: str) -> None:
    result = fitted(depth, num_levels, dtype)
    assert result.status == "ok"
    assert np.all(np.isfinite(result.history))
    prediction = result.model.predict(jnp.asarray(TEST, dtype), key=KEY)
    assert nlpd(prediction, dtype) < -3.0
    error = np.sqrt(np.mean((np.asarray(prediction.mean, float) - Y_TEST) ** 2))
    assert error < 3.0 * np.sqrt(np.mean(prediction.observed.variance))
    assert error < 1e-3


@pytest.mark.parametrize("scale", [1.0, 1e-4])
@pytest.mark.parametrize("dtype", FLOOR)
def test_the_noise_of_a_shallow_model_ends_at_its_floor_relative_to_the_data(dtype: str, scale: float) -> None:
    result = fitted(0, 5, dtype, scale)
    share = float(result.model.noise_variance) / scale**2
    assert FLOOR[dtype] <= share * (1.0 + 1e-5) < 1.2 * FLOOR[dtype]
    assert nlpd(result.model.predict(jnp.asarray(TEST, dtype), key=KEY), dtype, scale) - np.log(scale) < -3.0


@pytest.mark.parametrize("dtype", FLOOR)
def test_exact_models_have_the_same_floor(dtype: str) -> None:
    gp = ExactGP(ScalarField(SPHERE, Matern(), 5)).fit(jnp.asarray(X, dtype), jnp.asarray(Y, dtype), progress=False)
    assert FLOOR[dtype] <= float(gp.noise_variance) * (1.0 + 1e-5) < 1.2 * FLOOR[dtype]
    assert nlpd(gp.predict(jnp.asarray(TEST, dtype)), dtype) < -3.0


def test_noise_that_is_held_or_known_has_no_floor() -> None:
    held = DeepGP((), ScalarField(SPHERE, Matern(), 5), Gaussian(1e-15, fixed=("noise_variance",)))
    with pytest.warns(PrecisionWarning, match="look free of noise"):
        assert float(fit(held, X, Y, key=KEY, steps=1, progress=False).model.noise_variance) == pytest.approx(1e-15)
    known = fit(model(0, 5), X, Y, key=KEY, steps=1, noise_variance=np.full(80, 1e-3), progress=False)
    assert known.status == "ok"  # without a warning


def lengthscales(tree: object) -> np.ndarray:
    """Return all lengthscales and smoothnesses of a model."""
    pairs = jax.tree_util.tree_flatten_with_path(tree, is_leaf=lambda node: isinstance(node, Parameter))[0]
    found = [node.value for path, node in pairs if getattr(path[-1], "key", "") in ("lengthscale", "nu")]
    return np.concatenate([np.ravel(value) for value in found])


@pytest.mark.parametrize("dtype", FLOOR)
@pytest.mark.parametrize("value", [3.0, -1e-6, 0.0])
def test_constant_data_leave_lengthscales_in_bounds(value: float, dtype: str) -> None:
    x, y = jnp.asarray(X, dtype), jnp.full(80, value, dtype)
    result = fit(model(1, 4), x, y, key=KEY, steps=40, progress=False)
    assert result.status == "ok"
    gp = ExactGP(ScalarField(SPHERE, Matern(), 4)).fit(x, y, progress=False)
    for own in (result.model, gp.field):
        assert np.all(lengthscales(own) < 1e4)
        assert np.all(lengthscales(own) > 1e-4)
    np.testing.assert_allclose(gp.predict(x).mean, value, atol=1e-3 * abs(value) + 1e-6)
