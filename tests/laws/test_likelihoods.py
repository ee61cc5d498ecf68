"""Every likelihood obeys the laws of likelihoods; extremes, SciPy, refusals."""

import math
from collections.abc import Callable
from itertools import pairwise

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from scipy.integrate import quad
from scipy.special import log_ndtr

import rdgp.likelihoods
from rdgp.likelihoods import Bernoulli, Gaussian, KnownNoise, Likelihood, Poisson, StudentT, WrappedGaussian
from rdgp.spaces import Box, Circle, Product, Sphere
from rdgp.testing import check_likelihood
from tests.cases import precisions, set_to

pytestmark = pytest.mark.xdist_group("likelihoods")  # one worker compiles what they share

LIKELIHOODS: dict[str, Callable[[], Likelihood]] = {
    "gaussian": lambda: Gaussian(0.3),
    "student": lambda: StudentT(0.2, 9.0),
    "bernoulli": Bernoulli,
    "poisson": Poisson,
}
ROWS = 2000  # one shape for most tests, because compiling takes longer than they do


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
    std, peak = math.sqrt(variance), math.log(y + 0.5) if isinstance(likelihood, Poisson) else y
    inner = [peak + k * w for k in (-3.0, 0.0, 3.0) for w in (0.03, 0.5)] + [mean - std, mean + std]
    low, high = mean - 10.0 * std, mean + 10.0 * std
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


def test_every_exported_likelihood_is_held_to_the_laws() -> None:
    exported = {getattr(rdgp.likelihoods, name) for name in rdgp.likelihoods.__all__}
    final = {c for c in exported if isinstance(c, type) and issubclass(c, Likelihood) and c is not Likelihood}
    assert final - {KnownNoise} == {type(make()) for make in LIKELIHOODS.values()}  # which is checked through given


@precisions
@pytest.mark.parametrize("name", LIKELIHOODS)
def test_laws(name: str, precision: str) -> None:
    with set_to(precision):
        for seed in range(4):
            check_likelihood(LIKELIHOODS[name](), seed=seed)


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_densities_match_their_formulas(name: str) -> None:
    likelihood, rng = LIKELIHOODS[name](), np.random.default_rng(0)
    f = rng.normal(size=(20, 2))
    y = observations(likelihood, f, rng)
    np.testing.assert_allclose(
        likelihood.log_density(jnp.asarray(y), jnp.asarray(f)), log_density(likelihood, y, f), rtol=1e-10
    )


class Skewed(Gaussian):
    def log_density(self, y: jax.Array, f: jax.Array) -> jax.Array:
        return super().log_density(y, f + 0.01)


class Loud(Gaussian):
    def sample(self, f: jax.Array, *, key: jax.Array) -> jax.Array:
        return 2.0 * super().sample(f, key=key) - f


class Unnormalized(Poisson):
    def log_density(self, y: jax.Array, f: jax.Array) -> jax.Array:
        return super().log_density(y, f) + 0.01


class Biased(StudentT):
    def expected_log_density(self, y: jax.Array, mean: jax.Array, covariance: jax.Array) -> jax.Array:
        return super().expected_log_density(y, mean, 1.1 * covariance)


class Sure(Bernoulli):
    def log_predictive(self, y: jax.Array, mean: jax.Array, covariance: jax.Array) -> jax.Array:
        return super().log_predictive(y, mean, 0.5 * covariance)


class Deaf(Gaussian):
    def given(self, noise: jax.Array) -> Likelihood:
        return super().given(2.0 * noise)


@pytest.mark.parametrize(
    ("broken", "law"),
    [
        (Skewed(0.3), "conditional_moments has the mean"),
        (Loud(0.3), "observed_moments has the covariance of samples"),
        (Unnormalized(), "log_density normalizes"),
        (Biased(0.2, 9.0), "expected_log_density is the integral"),
        (Sure(), "log_predictive is the log"),
        (Deaf(0.3), "known noise adds to the covariance"),
    ],
    ids=repr,
)
def test_a_likelihood_that_breaks_a_law_is_told_in_one_line(broken: Likelihood, law: str) -> None:
    with pytest.raises(AssertionError, match=rf"{type(broken).__name__}.* breaks a law: {law}.*: .*\d") as error:
        check_likelihood(broken)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("scale", "freedom"), [(0.01, 3.0), (0.1, 30.0), (1.0, 1.0)])
@pytest.mark.parametrize("y", [0.4, 9.0])
def test_student_densities_narrower_than_the_latent_distribution(scale: float, freedom: float, y: float) -> None:
    likelihood = StudentT(scale, freedom)
    exact = integrate(likelihood, y, 0.0, 1.0)
    np.testing.assert_allclose(of_one(likelihood, y, 0.0, 1.0), exact, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(("y", "mean", "variance"), [(1000.0, 2.0, 4.0), (0.0, 5.0, 1.0), (30.0, 0.0, 1e-3)])
def test_counts_far_from_the_latent_distribution(y: float, mean: float, variance: float) -> None:
    exact = integrate(Poisson(), y, mean, variance)
    np.testing.assert_allclose(of_one(Poisson(), y, mean, variance), exact, rtol=1e-7)


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


def test_infinite_variance_of_heavy_tails_spares_the_covariances() -> None:
    moments = eqx.filter_jit(StudentT(0.1, 1.5).observed_moments)(np.zeros((1, 2)), np.full((1, 2, 2), 0.3))
    np.testing.assert_array_equal(moments[1], [[[np.inf, 0.3], [0.3, np.inf]]])


def test_impossible_observations_and_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match=r"zeros and ones for a Bernoulli likelihood, got 1 other values of 3, .* 0.5"):
        Bernoulli().check([0.0, 0.5, 1.0])
    with pytest.raises(ValueError, match="whole numbers of at least zero for a Poisson likelihood, got 2 other"):
        Poisson().check([[1.0], [-1.0], [2.5]])
    for likelihood in (make() for make in LIKELIHOODS.values()):
        with pytest.raises(ValueError, match="y must be finite"):
            likelihood.check([0.0, math.nan])
        assert likelihood.check([0, 1]).dtype == float
    with pytest.raises(ValueError, match="noise_variance must be a positive finite number, got -1"):
        Gaussian(-1.0)
    with pytest.raises(ValueError, match=r"has a boundary, so no wrapped Gaussian"):
        WrappedGaussian(Product(Circle(), Box([0.0], [1.0])))
    with pytest.raises(ValueError, match="y must lie on"):
        WrappedGaussian(Sphere(2)).check([[1.0, 0.0, 1.0]])
