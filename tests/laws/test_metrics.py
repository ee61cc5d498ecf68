"""The laws of scores."""

import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from rdgp.fields import NumberFrame, TangentFrame
from rdgp.likelihoods import Gaussian
from rdgp.metrics import calibration_curve, coverage, crps, energy_score, mse, nlpd, pit, region_coverage
from rdgp.models import Prediction

pytestmark = pytest.mark.xdist_group("metrics")  # one worker compiles what they share

NOISE = 0.2
POINTS = 4000  # the same for all tests, because compiling takes longer than they do
seeds = st.integers(0, 2**20)


def predict(means: np.ndarray, covariances: np.ndarray, basis: np.ndarray | None, dtype: type = float) -> Prediction:
    means, covariances = jnp.asarray(means, dtype), jnp.asarray(covariances, dtype)
    basis = basis if basis is None else jnp.asarray(basis, dtype)
    frame = NumberFrame(()) if basis is None else TangentFrame(basis, basis, (0,))
    return Prediction(means, covariances, Gaussian(NOISE), frame)


def mixtures(seed: int, members: int, tangent: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Return means, covariances and basis: scalars, or vectors in random planes of R^3."""
    rng, q = np.random.default_rng(seed), 2 if tangent else 1
    root = 0.6 * rng.normal(size=(members, POINTS, q, q))
    basis = np.linalg.qr(rng.normal(size=(POINTS, 3, 2)))[0] if tangent else None
    return rng.normal(size=(members, POINTS, q)), root @ np.swapaxes(root, -1, -2), basis


def observe(means: np.ndarray, covariances: np.ndarray, basis: np.ndarray | None, seed: int) -> np.ndarray:
    """Draw observations from the predictive distribution of y."""
    rng, (members, n, q) = np.random.default_rng(seed), means.shape
    chosen = rng.integers(0, members, n), np.arange(n)
    root = np.linalg.cholesky(covariances[chosen] + NOISE * np.eye(q))
    y = means[chosen] + np.einsum("npq,nq->np", root, rng.normal(size=(n, q)))
    return y[:, 0] if basis is None else np.einsum("npq,nq->np", basis, y)


@given(mean=st.floats(-2.0, 2.0), variance=st.floats(0.0, 3.0), y=st.floats(-4.0, 4.0))
def test_one_gaussian_matches_closed_forms(mean: float, variance: float, y: float) -> None:
    prediction = predict(np.full((1, POINTS, 1), mean), np.full((1, POINTS, 1, 1), variance), None)
    std, values = math.sqrt(variance + NOISE), np.full(POINTS, y)
    z, normal = (y - mean) / std, scipy.stats.norm
    closed = std * (z * (2 * normal.cdf(z) - 1) + 2 * normal.pdf(z) - 1 / math.sqrt(math.pi))
    np.testing.assert_allclose(crps(prediction, values), closed, rtol=1e-10)
    np.testing.assert_allclose(nlpd(prediction, values), -normal.logpdf(y, mean, std), rtol=1e-10)
    np.testing.assert_allclose(mse(prediction, values), (y - mean) ** 2, rtol=1e-10, atol=1e-300)


@given(seed=seeds)
def test_crps_of_a_mixture_is_the_integral_of_squared_differences(seed: int) -> None:
    means, covariances, _ = mixtures(seed, 3, False)
    means[:], covariances[:] = means[:, :1], covariances[:, :1]
    y = np.random.default_rng(seed).normal()
    grid, step = np.linspace(-20.0, 20.0, 40001, retstep=True)
    stds = np.sqrt(covariances[:, 0, 0] + NOISE)
    cdf = np.mean(scipy.special.ndtr((grid - means[:, 0]) / stds), axis=0)
    integral = np.sum((cdf - (grid >= y)) ** 2) * step
    np.testing.assert_allclose(crps(predict(means, covariances, None), np.full(POINTS, y)), integral, atol=1e-3)


def test_energy_score_of_scalars_is_crps() -> None:
    """Hold the estimate to six standard errors, bounded by those of the widest distribution: a false alarm in 10^8."""
    mixture = mixtures(0, 3, False)
    y = observe(*mixture, 1)
    prediction = predict(*mixture)
    estimate = energy_score(prediction, y, key=jax.random.key(2))
    error = float(np.sqrt(np.max(mixture[1]) + np.max(np.var(mixture[0], axis=0)) + NOISE)) / math.sqrt(200 * POINTS)
    assert abs(estimate - float(crps(prediction, y))) < 6 * error


def test_scores_of_whole_vectors_do_not_depend_on_the_frame() -> None:
    means, covariances, basis = mixtures(0, 3, True)
    y = observe(means, covariances, basis, 1)
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    prediction = predict(means, covariances, basis)
    turned = predict(means @ turn.T, turn @ covariances @ turn.T, basis @ turn.T)
    for score in (mse, nlpd, region_coverage):
        np.testing.assert_allclose(score(turned, y), score(prediction, y), rtol=1e-10)
    mean = np.einsum("npq,nq->np", basis, np.mean(means, axis=0))
    np.testing.assert_allclose(mse(prediction, y), np.mean(np.sum((y - mean) ** 2, axis=-1)) / 2, rtol=1e-10)


@pytest.mark.parametrize("probability", [0.5, 0.9])
def test_calibrated_distributions_cover_their_probability(probability: float) -> None:
    """Hold each share to six binomial standard deviations, a false alarm in 10^8."""
    bound = 6 * math.sqrt(probability * (1 - probability) / POINTS)
    for tangent in (False, True):
        mixture = mixtures(2, 3, tangent)
        share = coverage(predict(*mixture), observe(*mixture, 5), probability)
        assert share.shape == ((2,) if tangent else ())
        assert np.all(np.abs(share - probability) < bound)
    means, covariances, basis = mixtures(3, 3, True)
    one = np.repeat(means[:1], 3, axis=0), np.repeat(covariances[:1], 3, axis=0), basis
    assert abs(region_coverage(predict(*one), observe(*one, 6), probability) - probability) < bound


@pytest.mark.parametrize("tangent", [False, True])
def test_calibrated_distributions_have_uniform_transforms(tangent: bool) -> None:
    """Hold the largest distance to the uniform distribution to a Kolmogorov bound with a false alarm in 10^8."""
    mixture = mixtures(6, 3, tangent)
    y = observe(*mixture, 9)
    values = np.asarray(pit(predict(*mixture), y))
    assert values.shape == ((POINTS, 2) if tangent else (POINTS,))
    ranks = (np.arange(POINTS) + 0.5) / POINTS
    distance = np.abs(np.sort(values.reshape(POINTS, -1), axis=0) - ranks[:, None]).max()
    assert distance < math.sqrt(math.log(2e8) / (2 * POINTS)) + 1 / POINTS


@pytest.mark.parametrize("tangent", [False, True])
def test_the_calibration_curve_is_the_coverage_of_every_probability(tangent: bool) -> None:
    mixture = mixtures(7, 3, tangent)
    prediction, y, probabilities = predict(*mixture), observe(*mixture, 10), [0.5, 0.9]
    curve = calibration_curve(prediction, y, probabilities)
    assert curve.shape == ((2, 2) if tangent else (2,))
    for probability, share in zip(probabilities, curve, strict=True):
        np.testing.assert_allclose(share, coverage(prediction, y, probability), atol=1e-9)
    with pytest.raises(ValueError, match="probability must lie between 0 and 1, got 90"):
        calibration_curve(prediction, y, [0.5, 90.0])
    with pytest.raises(ValueError, match="probabilities must be a list"):
        calibration_curve(prediction, y, 0.5)


def test_overconfident_distributions_cover_less() -> None:
    means, covariances, basis = mixtures(4, 3, True)
    y = observe(means, covariances, basis, 7)
    wide, narrow = predict(means, covariances, basis), predict(0.0 * means, 0.0 * covariances, basis)
    assert region_coverage(narrow, y) < region_coverage(wide, y) - 0.1
    assert np.all(np.asarray(coverage(narrow, y)) < np.asarray(coverage(wide, y)) - 0.1)
    assert nlpd(narrow, y) > nlpd(wide, y)


def test_single_precision_is_kept() -> None:
    mixture = mixtures(5, 3, True)
    y = observe(*mixture, 8)
    single = predict(*mixture, jnp.float32)
    assert crps(single, y).dtype == jnp.float32
    np.testing.assert_allclose(crps(single, y), crps(predict(*mixture), y), rtol=1e-4)


@pytest.mark.parametrize("score", [nlpd, mse, crps, coverage, pit, region_coverage])
def test_wrong_observations_are_refused(score: Callable[..., object]) -> None:
    prediction = predict(np.zeros((1, 4, 1)), np.ones((1, 4, 1, 1)), None)
    with pytest.raises(ValueError, match=r"y must have shape \(4,\) like the mean of the prediction, got \(4, 1\)"):
        score(prediction, np.zeros((4, 1)))
    with pytest.raises(ValueError, match="y must be finite"):
        score(prediction, [0.0, 1.0, math.nan, 2.0])
    with pytest.raises(ValueError, match="at least one observation"):
        score(predict(np.zeros((1, 0, 1)), np.ones((1, 0, 1, 1)), None), np.zeros(0))


def test_wrong_probabilities_are_refused() -> None:
    prediction = predict(np.zeros((1, 4, 1)), np.ones((1, 4, 1, 1)), None)
    for score in (coverage, region_coverage):
        with pytest.raises(ValueError, match="probability must lie between 0 and 1, got 90"):
            score(prediction, np.zeros(4), 90.0)
