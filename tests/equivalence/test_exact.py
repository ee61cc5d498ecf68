"""Exact Gaussian processes against other ways to the same numbers."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm

from rdgp.core import compiled
from rdgp.fields import Field, HodgeField, NumberFrame, ProjectedField, ScalarField, StackedField
from rdgp.kernels import Matern
from rdgp.likelihoods import Gaussian
from rdgp.models import ExactGP, Prediction
from rdgp.spaces import Euclidean, Rotations, Sphere
from tests.cases import FIELDS, draw_of, named_fields, points, representative_fields, vectors

NOISE = 0.05


def data(field: Field, n: int = 8) -> tuple[jax.Array, jax.Array]:
    x = points(field.space, 0, n)
    return x, draw_of(field, 1)(x)


@representative_fields
def test_posterior_is_that_of_joint_gaussian_conditioning(field: Field) -> None:
    """Condition the joint Gaussian of all values, in ambient components, with noise in the tangent spaces only."""
    x, y = data(field)
    test = points(field.space, 2)
    size = int(np.prod(field.bundle.value_shape))

    everywhere = jnp.asarray(np.concatenate([x, test]))  # one covariance for all compiles once
    n, total = len(x) * size, len(everywhere) * size
    whole = np.asarray(field.covariance(everywhere, everywhere)).reshape(total, total)
    inverse = np.linalg.pinv(whole[:n, :n] + NOISE * _identity(field, x), rcond=1e-10, hermitian=True)
    cross = whole[n:, :n]
    mean = (cross @ inverse @ np.asarray(y).ravel()).reshape(len(test), size)
    joint = whole[n:, n:] - cross @ inverse @ cross.T
    own = np.stack([joint[i * size : (i + 1) * size, i * size : (i + 1) * size] for i in range(len(test))])
    prediction = ExactGP(field, NOISE).condition(x, y).predict(test)
    np.testing.assert_allclose(prediction.mean.reshape(mean.shape), mean, atol=1e-8)
    np.testing.assert_allclose(prediction.covariance.reshape(own.shape), own, atol=1e-8)


def _identity(field: Field, x: jax.Array) -> np.ndarray:
    """Return the identity on values: projectors onto the tangent spaces for vector fields."""
    size = int(np.prod(field.bundle.value_shape))
    blocks = np.broadcast_to(np.eye(size), (len(x), size, size))
    if field.bundle.tangent:
        columns = np.asarray(field.bundle.frame(x).columns)
        blocks = columns @ np.swapaxes(columns, 1, 2)
    result = np.zeros((len(x) * size, len(x) * size))
    for i, block in enumerate(blocks):
        result[i * size : (i + 1) * size, i * size : (i + 1) * size] = block
    return result


@named_fields("scalar-sphere", "stacked-sphere", "hodge-sphere", "projected-product")
def test_posterior_is_that_of_bayesian_linear_regression_on_features(field: Field) -> None:
    x, y = data(field)
    test = points(field.space, 2)
    scales = np.asarray(field.scales())
    design = np.asarray(field.features(x)).reshape(-1, scales.size) * scales
    precision = np.eye(design.shape[1]) + design.T @ design / NOISE
    weights = np.linalg.solve(precision, design.T @ np.asarray(y).ravel()) / NOISE
    expected = (np.asarray(field.features(test)) * scales) @ weights
    np.testing.assert_allclose(ExactGP(field, NOISE).condition(x, y).predict(test).mean, expected, atol=1e-8)


@named_fields("scalar-sphere", "hodge-sphere", "stacked-sphere", "frame-sphere")
def test_log_evidence_is_the_density_of_the_data(field: Field) -> None:
    x, y = data(field)
    evidence = ExactGP(field, NOISE).log_marginal_likelihood(x, y)
    coordinates, gram = (np.asarray(part) for part in compiled(_in_coordinates, field, x, y))
    size = coordinates[..., 0].size
    covariance = gram.reshape(size, size) + NOISE * np.eye(size)
    copies = [
        multivariate_normal.logpdf(coordinates[..., r].ravel(), cov=covariance) for r in range(coordinates.shape[-1])
    ]
    np.testing.assert_allclose(evidence, sum(copies), rtol=1e-8)


def _in_coordinates(field: Field, x: jax.Array, y: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return observations [N, p, r] as independent copies, and the covariance of one of them."""
    frame = field.bundle.frame(x)
    return field.split(x, frame, frame.coordinates(y)), field.gram(x, x, frame, frame)


@named_fields("scalar-sphere", "hodge-sphere", "frame-euclidean", "stacked-sphere")
def test_draws_have_the_posterior_moments(field: Field) -> None:
    """2,000 draws at 5 points; six standard errors keep the false-alarm rate below 1e-6."""
    gp = ExactGP(field, NOISE).condition(*data(field))
    test = points(field.space, 2)
    keys = jax.random.split(jax.random.key(3, impl="rbg"), 2000)
    draw_many = jax.jit(lambda keys: jax.lax.map(lambda key: gp.draw(key=key)(test), keys, batch_size=100))
    draws = np.asarray(draw_many(keys))
    prediction = gp.predict(test)
    std = np.sqrt(prediction.variance)
    assert np.all(np.abs(draws.mean(0) - prediction.mean) < 6 * std / np.sqrt(2000) + 1e-9)
    assert np.all(np.abs(draws.var(0) / prediction.variance - 1) < 6 * np.sqrt(2 / 2000))


def test_joint_posterior_has_the_marginals_of_the_prediction() -> None:
    field = FIELDS["hodge-sphere"]()
    gp = ExactGP(field, NOISE).condition(*data(field))
    test = points(field.space, 2)
    mean, covariance = gp.joint(test)
    prediction = gp.predict(test)
    np.testing.assert_allclose(mean.reshape(5, 2), prediction.means[0], atol=1e-10)
    blocks = np.stack([covariance[2 * i : 2 * i + 2, 2 * i : 2 * i + 2] for i in range(5)])
    np.testing.assert_allclose(blocks, prediction.covariances[0], atol=1e-10)


def test_fit_agrees_with_scikit_learn_on_euclidean_space() -> None:
    gaussian_process = pytest.importorskip("sklearn.gaussian_process")
    kernels = gaussian_process.kernels
    x = points(Euclidean(2), 0, 60)
    left, right = np.asarray(x).T
    y = jnp.asarray(np.sin(2 * left) + 0.3 * right + 0.1 * np.random.default_rng(1).normal(size=60))
    ours = ExactGP(ScalarField(Euclidean(2), Matern(2.5, [1.0, 1.0])), 0.1).fit(x, y)
    kernel = kernels.ConstantKernel() * kernels.Matern([1.0, 1.0], nu=2.5) + kernels.WhiteKernel(0.1)
    theirs = gaussian_process.GaussianProcessRegressor(kernel, alpha=0.0).fit(np.asarray(x), np.asarray(y))
    np.testing.assert_allclose(ours.log_marginal_likelihood(x, y), theirs.log_marginal_likelihood_value_, rtol=1e-4)
    test = points(Euclidean(2), 2)
    np.testing.assert_allclose(ours.predict(test).mean, theirs.predict(np.asarray(test)), atol=1e-3)


@pytest.mark.parametrize(("n", "expected"), [(100, -74.57), (400, -476.92)])
def test_fit_reaches_the_known_optimum(data_folder: Path, n: int, expected: float) -> None:
    """The best evidence over nu, kappa, sigma² and noise with 49 harmonics is known for these data."""
    file = np.load(data_folder / "synthetic" / f"synth_N{n}_seed0.npz")
    x, y = jnp.asarray(file["train_x"]), jnp.asarray(file["train_y"])
    gp = ExactGP(ScalarField(Sphere(2), Matern(), num_levels=7), 0.01).fit(x, y)
    assert float(-gp.log_marginal_likelihood(x, y)) == pytest.approx(expected, abs=0.05)


def test_a_vector_field_is_recovered_from_noisy_vectors() -> None:
    field = HodgeField(Sphere(2), divergence=Matern(2.5, 0.7, 0.3), curl=Matern(2.5, 0.7, 1.0), num_levels=5)
    truth = draw_of(field, 0)
    x, test = points(Sphere(2), 0, 100), points(Sphere(2), 1, 100)
    y = jnp.asarray(np.asarray(truth(x)) + 0.05 * np.asarray(vectors(Sphere(2), x, 2)))
    start = HodgeField(Sphere(2), divergence=Matern(), curl=Matern(), num_levels=5)
    gp = ExactGP(start, 0.1).fit(x, y)
    prediction = gp.predict(test)
    values = np.asarray(truth(test))
    error = np.sum(np.square(np.asarray(prediction.mean) - values), -1)
    assert np.mean(error) < 0.1 * np.mean(np.sum(np.square(values), -1))
    expected = np.trace(prediction.covariance, axis1=1, axis2=2)
    assert 0.5 < np.mean(error) / np.mean(expected) < 2.0
    assert float(gp.noise_variance) == pytest.approx(0.0025, rel=0.5)


def test_rotations_may_be_given_by_either_quaternion() -> None:
    gp = ExactGP(ScalarField(Rotations(), Matern(1.5, 0.4), num_levels=3), NOISE)
    x, test = points(Rotations(), 0, 12), points(Rotations(), 1)
    y = jnp.asarray(np.asarray(x)[:, 0] ** 2)
    flipped = jnp.asarray(np.asarray(x) * np.where(np.arange(12) % 2 == 0, 1.0, -1.0)[:, None])
    np.testing.assert_allclose(
        gp.condition(x, y).predict(test).mean,
        gp.condition(flipped, y).predict(jnp.asarray(-np.asarray(test))).mean,
        atol=1e-9,
    )


def test_single_precision_prediction_is_close() -> None:
    gp = ExactGP(ProjectedField(Sphere(2), Matern(1.5, 0.6), num_levels=4), NOISE)
    x, y = data(gp.field)
    test = points(Sphere(2), 2)
    double = gp.condition(x, y).predict(test)
    single = gp.condition(*(jnp.asarray(part, jnp.float32) for part in (x, y))).predict(jnp.asarray(test, jnp.float32))
    assert single.mean.dtype == jnp.float32
    np.testing.assert_allclose(single.mean, double.mean, atol=1e-4)
    np.testing.assert_allclose(single.covariance, double.covariance, atol=1e-4)


def test_many_test_points_are_predicted_in_batches() -> None:
    gp = ExactGP(FIELDS["scalar-sphere"](), NOISE).condition(*data(FIELDS["scalar-sphere"]()))
    test = points(Sphere(2), 2, 2100)
    few = gp.predict(jnp.asarray(np.asarray(test)[2000:2005])).mean
    np.testing.assert_allclose(np.asarray(gp.predict(test).mean)[2000:2005], few, atol=1e-12)


def test_stacked_outputs_are_predicted_as_one_by_one() -> None:
    stacked = StackedField(Sphere(2), Matern(), 5, outputs=2)
    x, y = data(stacked)
    test = points(Sphere(2), 2)
    both = ExactGP(stacked, NOISE).condition(x, y).predict(test)
    means, variances = np.asarray(both.mean).T, np.asarray(both.variance).T
    for mean, variance, own in zip(means, variances, np.asarray(y).T, strict=True):
        one = ExactGP(ScalarField(Sphere(2), Matern(), 5), NOISE).condition(x, jnp.asarray(own)).predict(test)
        np.testing.assert_allclose(mean, one.mean, atol=1e-10)
        np.testing.assert_allclose(variance, one.variance, atol=1e-10)


def mixture() -> Prediction:
    means = jnp.array([[[0.0], [1.0]], [[2.0], [1.0]]])
    covariances = jnp.array([[[[1.0]], [[0.5]]], [[[0.3]], [[0.5]]]])
    return Prediction(means, covariances, Gaussian(0.2), NumberFrame(()))


def test_moments_density_and_quantiles_of_a_mixture() -> None:
    prediction = mixture()
    np.testing.assert_allclose(prediction.mean, [1.0, 1.0])
    np.testing.assert_allclose(prediction.variance, [0.65 + 1.0, 0.5])
    np.testing.assert_allclose(prediction.observed.variance, [1.85, 0.7])
    y = jnp.array([0.3, 0.3])
    density = [
        np.log((norm.pdf(0.3, 0.0, np.sqrt(1.2)) + norm.pdf(0.3, 2.0, np.sqrt(0.5))) / 2),
        norm.logpdf(0.3, 1.0, np.sqrt(0.7)),
    ]
    np.testing.assert_allclose(prediction.log_prob(y), density)
    median = prediction.quantile(0.9)
    share = (norm.cdf(median[0], 0.0, 1.0) + norm.cdf(median[0], 2.0, np.sqrt(0.3))) / 2
    np.testing.assert_allclose(share, 0.9, atol=1e-9)
    draws = prediction.sample(key=jax.random.key(0), n=40_000)
    np.testing.assert_allclose(draws.mean(0), prediction.mean, atol=0.05)
    np.testing.assert_allclose(draws.var(0), prediction.variance, atol=0.06)


def test_density_of_tangent_vectors_is_taken_in_the_tangent_space() -> None:
    field = FIELDS["hodge-sphere"]()
    gp = ExactGP(field, NOISE).condition(*data(field))
    test = points(Sphere(2), 2)
    prediction, y = gp.predict(test), vectors(Sphere(2), test, 7)
    frame = np.asarray(Sphere(2).frame(test))
    known = zip(
        frame,
        *map(np.asarray, (y, prediction.mean, prediction.observed.covariance, prediction.log_prob(y))),
        strict=True,
    )
    for own, value, mean, covariance, density in known:
        expected = multivariate_normal.logpdf(own.T @ value, own.T @ mean, own.T @ covariance @ own)
        np.testing.assert_allclose(density, expected, rtol=1e-8)
    assert prediction.sample(key=jax.random.key(0), n=3).shape == (3, 5, 3)
    np.testing.assert_allclose(prediction.quantile(0.5), prediction.mean, atol=1e-9)
