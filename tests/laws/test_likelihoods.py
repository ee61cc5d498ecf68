"""The laws of likelihoods."""

import math
from collections.abc import Callable
from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import log_ndtr

import rdgp.likelihoods
from rdgp.likelihoods import Bernoulli, Gaussian, Likelihood, Poisson, StudentT, WrappedGaussian
from rdgp.spaces import Box, Circle, Product, Sphere

pytestmark = pytest.mark.xdist_group("likelihoods")  # one worker compiles what they share

LIKELIHOODS = [Gaussian(0.3), StudentT(0.2, 9.0), Bernoulli(), Poisson()]
ROWS = 2000  # one shape for most tests, because compiling takes longer than they do
likelihoods = pytest.mark.parametrize("likelihood", LIKELIHOODS, ids=lambda likelihood: type(likelihood).__name__)
seeds = st.integers(0, 2**20)


@eqx.filter_jit
def both(likelihood: Likelihood, y: jax.Array, mean: jax.Array, covariance: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return expected log density and log predictive density."""
    return likelihood.expected_log_density(y, mean, covariance), likelihood.log_predictive(y, mean, covariance)


def of_one(likelihood: Likelihood, y: float, mean: float, variance: float) -> tuple[float, float]:
    """Return both for one coordinate."""
    shape = (ROWS, 2)
    expected, predictive = both(
        likelihood, np.full(shape, y), np.full(shape, mean), np.broadcast_to(variance * np.eye(2), (*shape, 2))
    )
    return float(np.asarray(expected)[0]) / 2.0, float(np.asarray(predictive)[0]) / 2.0


def log_density(likelihood: Likelihood, y: np.ndarray, f: np.ndarray) -> np.ndarray:
    """Return log p(y | f) of each coordinate, by NumPy and SciPy."""
    if isinstance(likelihood, Gaussian):
        noise = float(likelihood.noise_variance)
        return -0.5 * ((y - f) ** 2 / noise + math.log(2.0 * math.pi * noise))
    if isinstance(likelihood, StudentT):
        s, nu = float(likelihood.scale), float(likelihood.freedom)
        constant = math.lgamma((nu + 1) / 2) - math.lgamma(nu / 2) - 0.5 * math.log(nu * math.pi) - math.log(s)
        return constant - 0.5 * (nu + 1) * np.log1p(((y - f) / s) ** 2 / nu)
    if isinstance(likelihood, Bernoulli):
        return log_ndtr((2.0 * y - 1.0) * f)
    return y * f - np.exp(f) - scipy.special.gammaln(y + 1.0)


def integrate(likelihood: Likelihood, y: float, mean: float, variance: float) -> tuple[float, float]:
    """Return expected log density and log predictive density of one coordinate by adaptive integration over f."""
    deviation, peak = math.sqrt(variance), math.log(y + 0.5) if isinstance(likelihood, Poisson) else y
    inner = [peak + k * w for k in (-3.0, 0.0, 3.0) for w in (0.03, 0.5)] + [mean - deviation, mean + deviation]
    low, high = mean - 10.0 * deviation, mean + 10.0 * deviation
    ends = sorted({low, high, *(end for end in inner if low < end < high)})

    def expect(g: Callable[[float], float]) -> float:
        def weighted(f: float) -> float:
            normal = math.exp(-0.5 * (f - mean) ** 2 / variance) / math.sqrt(2.0 * math.pi * variance)
            return g(float(log_density(likelihood, y, f))) * normal

        return sum(quad(weighted, a, b, epsabs=0.0, epsrel=1e-9)[0] for a, b in pairwise(ends))

    return expect(lambda value: value), math.log(expect(math.exp))


def observations(likelihood: Likelihood, f: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw possible observations, not typical ones."""
    if isinstance(likelihood, Bernoulli):
        return rng.integers(0, 2, f.shape).astype(float)
    return 1.0 * rng.poisson(np.exp(f)) if isinstance(likelihood, Poisson) else f + rng.normal(size=f.shape)


def moments(rng: np.random.Generator, n: int, q: int) -> tuple[np.ndarray, np.ndarray]:
    root = 0.5 * rng.normal(size=(n, q, q))
    return 0.7 * rng.normal(size=(n, q)), root @ np.swapaxes(root, -1, -2)


def draws(rng: np.random.Generator, mean: np.ndarray, covariance: np.ndarray, n: int) -> np.ndarray:
    return mean + np.einsum("npq,snq->snp", np.linalg.cholesky(covariance), rng.normal(size=(n, *mean.shape)))


def test_every_exported_likelihood_is_held_to_the_laws() -> None:
    exported = {getattr(rdgp.likelihoods, name) for name in rdgp.likelihoods.__all__}
    final = {c for c in exported if isinstance(c, type) and issubclass(c, Likelihood) and c is not Likelihood}
    assert final == {type(likelihood) for likelihood in LIKELIHOODS}


@likelihoods
@given(mean=st.floats(-2.0, 2.0), log_variance=st.floats(-7.0, 1.0), seed=seeds)
def test_expectations_match_adaptive_integration(
    likelihood: Likelihood, mean: float, log_variance: float, seed: int
) -> None:
    variance = math.exp(log_variance)
    y = float(observations(likelihood, np.array(mean), np.random.default_rng(seed)))
    exact = integrate(likelihood, y, mean, variance)
    np.testing.assert_allclose(of_one(likelihood, y, mean, variance), exact, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("scale", "freedom"), [(0.01, 3.0), (0.1, 30.0), (1.0, 1.0)])
@pytest.mark.parametrize("y", [0.4, 9.0])
def test_student_densities_narrower_than_the_latent_law(scale: float, freedom: float, y: float) -> None:
    likelihood = StudentT(scale, freedom)
    exact = integrate(likelihood, y, 0.0, 1.0)
    np.testing.assert_allclose(of_one(likelihood, y, 0.0, 1.0), exact, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("y", "mean", "variance"), [(1000.0, 2.0, 4.0), (0.0, 5.0, 1.0), (30.0, 0.0, 1e-3)])
def test_counts_far_from_the_latent_law(y: float, mean: float, variance: float) -> None:
    exact = integrate(Poisson(), y, mean, variance)
    np.testing.assert_allclose(of_one(Poisson(), y, mean, variance), exact, rtol=1e-7)


@likelihoods
def test_expected_log_density_matches_monte_carlo(likelihood: Likelihood) -> None:
    """Hold three points to six standard errors, a false alarm in 10^8."""
    rng = np.random.default_rng(0)
    mean, covariance = moments(rng, ROWS, 2)
    y = observations(likelihood, mean, rng)
    values = np.sum(log_density(likelihood, y[:3], draws(rng, mean[:3], covariance[:3], 20000)), axis=-1)
    error = np.std(values, axis=0) / math.sqrt(len(values))
    expected = np.asarray(both(likelihood, y, mean, covariance)[0])[:3]
    assert np.all(np.abs(expected - np.mean(values, axis=0)) < 6 * error)


@likelihoods
@given(seed=seeds)
def test_expected_log_density_is_below_log_predictive(likelihood: Likelihood, seed: int) -> None:
    rng = np.random.default_rng(seed)
    mean, covariance = moments(rng, ROWS, 2)
    expected, predictive = both(likelihood, observations(likelihood, mean, rng), mean, covariance)
    assert np.all(np.asarray(expected) <= np.asarray(predictive) + 1e-6)


@likelihoods
@pytest.mark.parametrize(("mean", "variance"), [(0.3, 0.01), (-1.0, 2.0)])
def test_predictive_density_integrates_to_one(likelihood: Likelihood, mean: float, variance: float) -> None:
    u, step = np.linspace(-12.0, 12.0, ROWS, retstep=True)  # y = mean + sinh u reaches far into the tails
    y, weight = mean + np.sinh(u), np.cosh(u) * step
    if isinstance(likelihood, Bernoulli | Poisson):
        y = np.arange(float(ROWS))
        weight = y < 2.0 if isinstance(likelihood, Bernoulli) else np.ones(ROWS)
        y = np.where(weight, y, 0.0)
    twice = np.stack([y, y], axis=1)
    covariance = np.broadcast_to(variance * np.eye(2), (ROWS, 2, 2))
    log_twice = np.asarray(both(likelihood, twice, np.full((ROWS, 2), mean), covariance)[1])
    np.testing.assert_allclose(np.sum(weight * np.exp(log_twice / 2.0)), 1.0, atol=1e-6)


@pytest.mark.parametrize("q", [1, 2, 3, 5])
def test_gaussian_matches_scipy(q: int) -> None:
    rng = np.random.default_rng(q)
    mean, covariance = moments(rng, ROWS, q)
    y, noise = mean + rng.normal(size=mean.shape), 0.3 * np.eye(q)
    expected, predictive = map(np.asarray, both(Gaussian(0.3), y, mean, covariance))
    for n in range(4):
        law = scipy.stats.multivariate_normal(mean[n], covariance[n] + noise)
        np.testing.assert_allclose(predictive[n], law.logpdf(y[n]), rtol=1e-10)
        closed = scipy.stats.multivariate_normal(mean[n], noise).logpdf(y[n]) - np.trace(covariance[n]) / 0.6
        np.testing.assert_allclose(expected[n], closed, rtol=1e-10)


@eqx.filter_jit
def _sample_and_moments(likelihood: Likelihood, key: jax.Array, f: jax.Array, *moments: jax.Array) -> tuple:
    return likelihood.sample(f, key=key), *likelihood.observed_moments(*moments)


@likelihoods
def test_observed_moments_are_those_of_samples(likelihood: Likelihood) -> None:
    """Hold means and covariances at two points to six standard errors, a false alarm in 10^7."""
    rng = np.random.default_rng(5)
    mean, covariance = moments(rng, 2, 2)
    f = draws(rng, mean, covariance, 30000)
    arrays = _sample_and_moments(likelihood, jax.random.key(7), f, mean, covariance)
    y, expected, expected_covariance = map(np.asarray, arrays)
    products = np.einsum("snp,snq->snpq", y - expected, y - expected)
    if isinstance(likelihood, Bernoulli):  # says nothing of two coordinates together
        products = products * np.eye(2)
    for values, moment in ((y, expected), (products, expected_covariance)):
        error = np.std(values, axis=0) / math.sqrt(len(values))
        assert np.all(np.abs(np.mean(values, axis=0) - moment) <= 6 * error)
    likelihood.check(y)


@likelihoods
def test_single_precision_is_kept_and_gradients_are_finite_without_spread(likelihood: Likelihood) -> None:
    rng = np.random.default_rng(3)
    mean, covariance = moments(rng, ROWS, 2)
    y = observations(likelihood, mean[: ROWS // 2], rng)
    exact = both(likelihood, np.tile(y, (2, 1)), mean, covariance)

    @eqx.filter_jit
    @eqx.filter_value_and_grad(has_aux=True)
    def total(given: tuple, y: jax.Array) -> tuple[jax.Array, jax.Array]:
        values = jnp.stack(both(given[0], y, *given[1:]))
        return jnp.sum(values), values

    y, mean, covariance = (array.astype(np.float32) for array in (y, mean, covariance))
    for spread in (covariance, np.zeros_like(covariance)):
        given = likelihood, *map(jnp.asarray, (mean.reshape(2, -1, 2), spread.reshape(2, -1, 2, 2)))
        (_, values), gradients = total(given, y)
        assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(gradients))
        assert values.dtype == jnp.float32
        if spread is covariance:
            np.testing.assert_allclose(np.reshape(values, (2, -1)), exact, rtol=1e-4, atol=1e-4)
    outputs = eqx.filter_eval_shape(_sample_and_moments, likelihood, jax.random.key(0), mean, mean, covariance)
    assert all(output.dtype == jnp.float32 for output in outputs)


def test_infinite_variance_of_heavy_tails_spares_the_covariances() -> None:
    moments = eqx.filter_jit(StudentT(0.1, 1.5).observed_moments)(np.zeros((1, 2)), np.full((1, 2, 2), 0.3))
    np.testing.assert_array_equal(moments[1], [[[np.inf, 0.3], [0.3, np.inf]]])


def test_impossible_observations_and_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match=r"zeros and ones for a Bernoulli likelihood, got 1 other values of 3, .* 0.5"):
        Bernoulli().check([0.0, 0.5, 1.0])
    with pytest.raises(ValueError, match="whole numbers of at least zero for a Poisson likelihood, got 2 other"):
        Poisson().check([[1.0], [-1.0], [2.5]])
    for likelihood in LIKELIHOODS:
        with pytest.raises(ValueError, match="y must be finite"):
            likelihood.check([0.0, math.nan])
        assert likelihood.check([0, 1]).dtype == float
    with pytest.raises(ValueError, match="noise_variance must be a positive finite number, got -1"):
        Gaussian(-1.0)
    with pytest.raises(ValueError, match=r"Box\(.*\) has no wrapped Gaussian"):
        WrappedGaussian(Product(Circle(), Box([0.0], [1.0])))
    with pytest.raises(ValueError, match="y must lie on"):
        WrappedGaussian(Sphere(2)).check([[1.0, 0.0, 1.0]])
