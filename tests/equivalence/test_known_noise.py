"""Known noise of each observation against dense Gaussian formulas, in every way of inference."""
# ruff: noqa: E501 - one case a line reads as a table

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal

from rdgp.fields import Field, FrameField, HodgeField, ProjectedField, ScalarField, StackedField
from rdgp.inference import elbo, estimate, fit
from rdgp.inference._initialize import with_optimal_output
from rdgp.kernels import Matern
from rdgp.likelihoods import Bernoulli, Gaussian, StudentT
from rdgp.models import DeepGP, ExactGP, noise_of
from rdgp.posteriors import Exact, Interdomain, log_evidence
from rdgp.spaces import Sphere

NOISE = 0.03
SPHERE = Sphere(2)
KEY = jax.random.key(0)
ROUGH, SMOOTH = Matern(1.5, 0.6, 1.7), Matern(2.5, 0.8, 0.9)
FIELDS: dict[str, Field] = {
    "scalar": ScalarField(SPHERE, ROUGH, 2),
    "stacked": StackedField(SPHERE, ROUGH, 2, outputs=2),
    "frame": FrameField(SPHERE, ROUGH, 2, frame="east_north"),
    "projected": ProjectedField(SPHERE, ROUGH, 2),
    "hodge": HodgeField(SPHERE, ROUGH, SMOOTH, 2),
}
NUM_POINTS = {"kernel": 6, "features": 24}  # 4 to 16 features


def sphere_points(seed: int, n: int) -> np.ndarray:
    x = np.random.default_rng(seed).normal(size=(n, 3))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


TEST = jnp.asarray(sphere_points(2, 3))


class Case(NamedTuple):
    """Observations of a field with known noise, and the noise as covariance matrices of the values."""

    field: Field
    x: jax.Array
    y: jax.Array
    noise: jax.Array
    matrices: np.ndarray


def case(name: str, kind: str, n: int) -> Case:
    field, rng, x = FIELDS[name], np.random.default_rng(5), sphere_points(0, n)
    shape = field.bundle.value_shape
    size = int(np.prod(shape))
    y = rng.normal(size=(n, *shape))
    projectors = np.eye(3) - x[:, :, None] * x[:, None, :] if field.bundle.tangent else np.tile(np.eye(size), (n, 1, 1))
    if field.bundle.tangent:
        y = np.einsum("nde,ne->nd", projectors, y)
    if kind == "variances":
        noise = rng.uniform(0.01, 2.0, n)
        matrices = noise[:, None, None] * projectors
    elif kind == "of outputs":
        noise = rng.uniform(0.01, 2.0, (n, size))
        matrices = noise[..., None] * np.eye(size)
    else:
        root = rng.normal(size=(n, size, size))
        noise = matrices = projectors @ root @ np.swapaxes(root, 1, 2) @ projectors
    return Case(field, jnp.asarray(x), jnp.asarray(y), jnp.asarray(noise), matrices)


CASES = [
    ("scalar", "variances"), ("stacked", "variances"), ("stacked", "of outputs"), ("stacked", "matrices"), ("frame", "variances"),
    ("frame", "matrices"), ("projected", "variances"), ("projected", "matrices"), ("hodge", "variances"), ("hodge", "matrices"),
]  # fmt: skip


class Dense(NamedTuple):
    """Evidence of the data, and the posterior of the values at test points, by matrices over all values."""

    evidence: float
    mean: np.ndarray
    covariance: np.ndarray


def dense(own: Case) -> Dense:
    """Condition the joint Gaussian of all coordinates in a frame of one's own."""
    n, everywhere = len(own.x), np.concatenate([own.x, TEST])
    size = int(np.prod(own.field.bundle.value_shape))
    total = len(everywhere) * size
    whole = np.asarray(own.field.covariance(everywhere, everywhere)).reshape(total, total)
    bases = [_basis(point, own.field) for point in everywhere]
    turn = _block_diagonal(bases[:n])
    signal = turn.T @ whole[: n * size, : n * size] @ turn
    noisy = signal + turn.T @ _block_diagonal(list(own.matrices)) @ turn + NOISE * np.eye(len(signal))
    y, cross = turn.T @ np.asarray(own.y).ravel(), whole[n * size :, : n * size] @ turn
    return Dense(
        float(multivariate_normal.logpdf(y, cov=noisy)),
        cross @ np.linalg.solve(noisy, y),
        whole[n * size :, n * size :] - cross @ np.linalg.solve(noisy, cross.T),
    )


def _basis(point: np.ndarray, field: Field) -> np.ndarray:
    """Return columns that span the values at a point: the tangent plane, turned by an angle, or all."""
    if not field.bundle.tangent:
        return np.eye(int(np.prod(field.bundle.value_shape)))
    return np.linalg.svd(point[None])[2][1:].T


def _block_diagonal(blocks: list[np.ndarray]) -> np.ndarray:
    rows, columns = (np.cumsum([0, *(block.shape[axis] for block in blocks)]) for axis in (0, 1))
    result = np.zeros((rows[-1], columns[-1]))
    for i, block in enumerate(blocks):
        result[rows[i] : rows[i + 1], columns[i] : columns[i + 1]] = block
    return result


@eqx.filter_jit
def _numbers(model: DeepGP, x: jax.Array, y: jax.Array, noise: jax.Array, test: jax.Array) -> tuple[jax.Array, ...]:
    """Return evidence, bound, moments of the values at test points, and their joint covariance in ambient components."""
    data, field = model.check_data(x, y, noise), model.field
    frame, there = field.bundle.frame(x), field.bundle.frame(test)
    exact = Exact(field, noise_of(model.likelihood, data), x, frame, data.y)
    mean, covariance = exact.coordinate_moments(test, there)
    _, joint = exact.joint_moments(test, there)
    n, q = mean.shape
    units = jnp.broadcast_to(jnp.eye(q)[:, None, :], (q, n, q))
    columns = jnp.moveaxis(there.values(units).reshape(q, n, -1), 0, -1)
    evidence = log_evidence(field, noise_of(model.likelihood, data), x, frame, data.y)
    values = jnp.einsum("nap,nplq,lbq->nalb", columns, joint.reshape(n, q, n, q), columns)
    return evidence, estimate(model, data, KEY, 1), there.values(mean), there.covariance(covariance), values


@pytest.mark.parametrize("way", NUM_POINTS)
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_evidence_and_posterior_are_those_of_dense_formulas(name: str, kind: str, way: str) -> None:
    own = case(name, kind, NUM_POINTS[way])
    expected, model = dense(own), DeepGP((), own.field, Gaussian(NOISE))
    evidence, bound, mean, covariance, joint = (np.asarray(a) for a in _numbers(model, *own[1:4], TEST))
    assert evidence == pytest.approx(expected.evidence, rel=1e-8)
    assert bound == pytest.approx(expected.evidence, rel=1e-8)
    np.testing.assert_allclose(mean.ravel(), expected.mean, atol=1e-8)
    size = mean.size // len(TEST)
    np.testing.assert_allclose(joint.reshape(expected.covariance.shape), expected.covariance, atol=1e-8)
    blocks = [expected.covariance[i * size : (i + 1) * size, i * size : (i + 1) * size] for i in range(len(TEST))]
    np.testing.assert_allclose(covariance.reshape(len(TEST), size, size), blocks, atol=1e-8)


@pytest.mark.parametrize(("name", "kind"), [("scalar", "variances"), ("hodge", "variances"), ("hodge", "matrices")])
def test_an_explicit_output_at_its_optimum_is_the_exact_one(name: str, kind: str) -> None:
    own = case(name, kind, NUM_POINTS["features"])
    expected, model = dense(own), DeepGP((), Interdomain(own.field), Gaussian(NOISE))
    best = with_optimal_output(model, model.check_data(own.x, own.y, own.noise))
    bound = elbo(best, own.x, own.y, key=KEY, noise_variance=own.noise)
    assert float(bound) == pytest.approx(expected.evidence, rel=1e-8)
    prediction = best.predict(TEST, key=KEY, samples=1)
    np.testing.assert_allclose(np.asarray(prediction.mean).ravel(), expected.mean, atol=1e-8)


def test_an_explicit_output_of_copies_starts_from_mean_variances() -> None:
    """Noise that couples copies leaves no optimum of each on its own; the mean variance of a point is a start."""
    own = case("stacked", "matrices", NUM_POINTS["features"])
    model = DeepGP((), Interdomain(own.field), Gaussian(NOISE))
    mean = np.trace(own.matrices, axis1=1, axis2=2) / 2
    ours, theirs = (
        with_optimal_output(model, model.check_data(own.x, own.y, noise)).output.variational.blocks[0].mean
        for noise in (own.noise, jnp.asarray(mean))
    )
    np.testing.assert_allclose(ours, theirs, atol=1e-10)


def test_exact_models_take_known_noise() -> None:
    own = case("hodge", "matrices", 8)
    expected, gp = dense(own), ExactGP(own.field, NOISE)
    evidence = gp.log_marginal_likelihood(own.x, own.y, noise_variance=own.noise)
    assert float(evidence) == pytest.approx(expected.evidence, rel=1e-8)
    prediction = gp.condition(own.x, own.y, noise_variance=own.noise).predict(TEST)
    np.testing.assert_allclose(np.asarray(prediction.mean).ravel(), expected.mean, atol=1e-8)


def test_draws_given_known_noise_have_the_posterior_moments() -> None:
    """2,000 draws of 6 and 9 values, by kernel and by features: six standard errors, false alarms below 1e-6."""
    for name, n in (("stacked", 6), ("hodge", 24)):
        own = case(name, "matrices", n)
        gp = ExactGP(own.field, NOISE).condition(own.x, own.y, noise_variance=own.noise)
        keys = jax.random.split(jax.random.key(3, impl="rbg"), 2000)
        many = jax.jit(lambda keys, gp=gp: jax.lax.map(lambda key: gp.draw(key=key)(TEST), keys, batch_size=200))
        draws, expected = np.asarray(many(keys)).reshape(2000, -1), dense(own)
        variance = np.diagonal(expected.covariance)
        assert np.all(np.abs(draws.mean(0) - expected.mean) < 6 * np.sqrt(variance / 2000))
        error = np.sqrt((np.outer(variance, variance) + expected.covariance**2) / 2000)
        assert np.all(np.abs(np.cov(draws.T) - expected.covariance) < 6 * error)


def test_the_observed_distribution_has_the_noise_known_there() -> None:
    own, there = case("hodge", "matrices", 8), case("hodge", "matrices", 3)
    gp = ExactGP(own.field, NOISE).condition(own.x, own.y, noise_variance=own.noise)
    plane = np.eye(3) - np.asarray(there.x)[:, :, None] * np.asarray(there.x)[:, None, :]
    for latent in (gp.predict(there.x, noise_variance=there.noise), _deep_prediction(own, there)):
        expected = np.asarray(latent.covariance) + there.matrices + NOISE * plane
        np.testing.assert_allclose(latent.observed.covariance, expected, atol=1e-10)
    densities = gp.predict(there.x, noise_variance=there.noise).log_prob(there.y)
    observed = gp.predict(there.x, noise_variance=there.noise).observed
    np.testing.assert_allclose(densities, observed.log_prob(there.y), rtol=1e-10)
    for i, point in enumerate(np.asarray(there.x)):
        basis = _basis(point, own.field)
        mean, covariance = basis.T @ observed.mean[i], basis.T @ observed.covariance[i] @ basis
        expected = multivariate_normal.logpdf(basis.T @ there.y[i], mean, covariance)
        assert float(densities[i]) == pytest.approx(expected, rel=1e-8)


def _deep_prediction(own: Case, there: Case) -> object:
    model = DeepGP((), own.field, Gaussian(NOISE))
    model = model.with_data(model.check_data(own.x, own.y, own.noise))
    return model.predict(there.x, key=KEY, samples=2, noise_variance=there.noise)


def test_training_tells_good_observations_from_bad_ones() -> None:
    """Half of the observations are spoilt; only with their noise does the model follow the others."""
    rng, x = np.random.default_rng(0), sphere_points(0, 40)
    spoilt = np.arange(40) % 2 == 0
    truth = 2.0 * x[:, 0]
    y = truth + np.where(spoilt, 3.0, 0.05) * rng.normal(size=40)
    noise = np.where(spoilt, 9.0, 0.0)
    field, test = ScalarField(SPHERE, Matern(), 3), sphere_points(1, 30)

    def error(mean: jax.Array) -> float:
        return float(np.sqrt(np.mean((np.asarray(mean) - 2.0 * test[:, 0]) ** 2)))

    def deep(noise: np.ndarray | None, **options: object) -> DeepGP:
        model = DeepGP((), field, Gaussian())
        return fit(model, x, y, key=KEY, noise_variance=noise, steps=40, progress=False, **options).model

    told, untold = (error(deep(known).predict(test, key=KEY).mean) for known in (noise, None))
    assert told < 0.1 < 0.4 < untold
    assert error(ExactGP(field).fit(x, y, noise_variance=noise, progress=False).predict(test).mean) < 0.1
    batches = deep(noise, batch_size=20)
    assert error(batches.predict(test, key=KEY).mean) < 0.2
    assert float(batches.noise_variance) < 1.0  # what is known is not learned again


X, Y = jnp.asarray(sphere_points(0, 5)), jnp.ones(5)
SCALAR, STACKED, TANGENT = (DeepGP((), FIELDS[name], Gaussian()) for name in ("scalar", "stacked", "hodge"))
REFUSED = {
    "of a scalar in a matrix": (lambda: SCALAR.check_data(X, Y, np.ones((5, 1, 1))), "noise_variance must have shape (5,) for 5 points, got (5, 1, 1)"),
    "of too few points": (lambda: SCALAR.check_data(X, Y, np.ones(4)), "must have shape (5,) for 5 points, got (4,)"),
    "one number": (lambda: SCALAR.check_data(X, Y, 0.1), "must have shape (5,) for 5 points, got ()"),
    "of too many outputs": (lambda: STACKED.check_data(X, jnp.ones((5, 2)), np.ones((5, 3))), "(5,) or (5, 2, 2) or (5, 2) for 5 points, got (5, 3)"),
    "of components of vectors": (lambda: TANGENT.check_data(X, X, np.ones((5, 3))), "must have shape (5,) or (5, 3, 3) for 5 points, got (5, 3)"),
    "in coordinates": (lambda: TANGENT.check_data(X, X, np.ones((5, 2, 2))), "must have shape (5,) or (5, 3, 3)"),
    "negative": (lambda: SCALAR.check_data(X, Y, -np.ones(5)), "noise_variance must not be negative; pass variances"),
    "negative of an output": (lambda: STACKED.check_data(X, jnp.ones((5, 2)), np.full((5, 2), -0.1)), "must not be negative"),
    "negative in a matrix": (lambda: STACKED.check_data(X, jnp.ones((5, 2)), np.tile(-np.eye(2), (5, 1, 1))), "must not be negative"),
    "not finite": (lambda: SCALAR.check_data(X, Y, np.full(5, np.nan)), "noise_variance must be finite, got 5 NaN"),
    "of an exact model": (lambda: ExactGP(FIELDS["scalar"]).condition(X, Y, noise_variance=np.ones(4)), "must have shape (5,)"),
    "of a prediction": (lambda: ExactGP(FIELDS["scalar"]).condition(X, Y).predict(X, noise_variance=np.ones(4)), "must have shape (5,)"),
    "for Bernoulli": (lambda: fit(DeepGP((), FIELDS["scalar"], Bernoulli()), X, Y, key=KEY, noise_variance=np.ones(5)), "a Bernoulli likelihood takes no known noise variance; use Gaussian()"),
    "for Student": (lambda: elbo(DeepGP((), Interdomain(FIELDS["scalar"]), StudentT()), X, Y, key=KEY, noise_variance=np.ones(5)), "a StudentT likelihood takes no known noise variance"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_wrong_noise_is_explained_in_one_line(name: str) -> None:
    call, message = REFUSED[name]
    assert_refused(call, message)


def assert_refused(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is checked below, as plain text
        call()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
