"""The laws of Gaussian fields."""

from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rdgp.fields
from rdgp.fields import Field, FrameField, HodgeField, ProjectedField, ScalarField, StackedField, TangentField
from rdgp.kernels import EuclideanMatern, Matern
from rdgp.spaces import Box, Euclidean, Product, Sphere
from tests.cases import FIELDS, fields, isometry, named_fields, points, representative_fields

seeds = st.integers(0, 2**20)
NUM_DRAWS = 20_000
DEVIATIONS = 6.0  # of the sampling error; over all entries tested a false alarm has probability below 1e-4


def matrix(field: Field, covariance: np.ndarray) -> np.ndarray:
    size = covariance.shape[0] * int(np.prod(field.value_shape()))
    return covariance.reshape(size, size)


def has_features(field: Field) -> bool:
    factors = field.space.factors if isinstance(field.space, Product) else (field.space,)
    return not any(isinstance(factor, Euclidean | Box) for factor in factors)


class Facts(NamedTuple):
    """All numbers of a field and of a draw at ten points that the laws compare; each field compiles them once."""

    covariance: np.ndarray
    crossed: np.ndarray  # of the first four points and the other six
    variance: np.ndarray
    features: np.ndarray | None
    scales: np.ndarray | None
    values: np.ndarray
    projected: np.ndarray
    coordinates: np.ndarray
    basis: np.ndarray | None


@eqx.filter_jit
def _facts(field: Field, x: jax.Array, key: jax.Array) -> Facts:
    values = field.sample(key=key)(x)
    return Facts(
        covariance=field.covariance(x, x),
        crossed=field.covariance(x[:4], x[4:]),
        variance=field.variance_along(x, None),
        features=field.features(x) if has_features(field) else None,
        scales=field.scales() if has_features(field) else None,
        values=values,
        projected=field.space.project(x, values) if isinstance(field, TangentField) else values,
        coordinates=field.coordinates(x, values),
        basis=field.basis(x),
    )


def facts(field: Field, x: np.ndarray) -> Facts:
    return jax.tree.map(np.asarray, _facts(field, x, key_of(0)))


def key_of(seed: int) -> jax.Array:
    """Return a key whose numbers compile in half the time of the default."""
    return jax.random.key(seed, impl="rbg")


def ten_points(field: Field, seed: int) -> np.ndarray:
    return np.asarray(points(field.space, seed, 10))


def test_every_exported_field_is_held_to_the_laws() -> None:
    exported = {getattr(rdgp.fields, name) for name in rdgp.fields.__all__}
    final = {c for c in exported if isinstance(c, type) and issubclass(c, Field) and c not in (Field, TangentField)}
    assert final == {type(make()) for make in FIELDS.values()}


@fields
@given(seed=seeds)
def test_covariance_is_symmetric_and_positive(field: Field, seed: int) -> None:
    known = facts(field, ten_points(field, seed))
    covariance = matrix(field, known.covariance)
    np.testing.assert_allclose(covariance, covariance.T, atol=1e-12)
    crossed = known.crossed.reshape(-1, len(covariance) * 6 // 10)
    np.testing.assert_allclose(crossed, covariance[: len(crossed), len(crossed) :], atol=1e-12)
    assert np.linalg.eigvalsh(covariance).min() > -1e-10


@fields
def test_features_times_scales_make_the_covariance(field: Field) -> None:
    x = ten_points(field, 0)
    known = facts(field, x)
    if not has_features(field):
        with pytest.raises(ValueError, match="no discrete spectrum"):
            field.features(x)
        return
    scaled = known.features * known.scales
    np.testing.assert_allclose(np.tensordot(scaled, scaled, (-1, -1)), known.covariance, atol=1e-10)


@fields
def test_variance_is_what_the_kernels_say(field: Field) -> None:
    """Scalar: Var f; projected and frame: per direction; Hodge: E|g|² of each part."""
    own = facts(field, ten_points(field, 0)).variance
    if isinstance(field, HodgeField):
        total = sum(float(kernel.variance) for kernel in field.kernels)
        np.testing.assert_allclose(np.trace(own, axis1=1, axis2=2), total, rtol=1e-10)
        return
    prior = field.priors[0] if isinstance(field, ProjectedField) else field.prior
    variance = np.prod([float(component.kernel.variance) for component in prior.components])
    np.testing.assert_allclose(own, np.broadcast_to(variance * np.eye(own.shape[-1]), own.shape), atol=1e-10)


@fields
@given(seed=seeds)
def test_covariance_is_invariant_under_isometries(field: Field, seed: int) -> None:
    if isinstance(field, FrameField):
        pytest.skip("a frame is not invariant")
    if isinstance(field, ScalarField) and isinstance(field.space, Euclidean):
        pytest.skip("one lengthscale for each coordinate is not invariant under rotations")
    turn, x = isometry(field.space, seed), ten_points(field, seed + 1)
    turned, expected = (facts(field, z).covariance for z in (x @ turn.matrix.T + turn.shift, x))
    if isinstance(field, TangentField):
        expected = np.einsum("ap,npmq,bq->namb", turn.matrix, expected, turn.matrix)
    np.testing.assert_allclose(turned, expected, atol=1e-9)


@fields
def test_draws_are_functions_with_the_right_covariance(field: Field) -> None:
    x = ten_points(field, 0)
    five = jnp.asarray(x[:5])

    @partial(jax.jit, compiler_options={"xla_backend_optimization_level": 1})  # it runs longer than it compiles
    def draw_many(keys: jax.Array) -> jax.Array:
        return jax.lax.map(lambda key: field.sample(key=key)(five).ravel(), keys, batch_size=200)

    draws = np.asarray(draw_many(jax.random.split(key_of(1), NUM_DRAWS)))
    exact = matrix(field, facts(field, x).covariance)[: draws.shape[1], : draws.shape[1]]
    variance = np.diagonal(exact)
    error = np.sqrt((np.outer(variance, variance) + exact**2) / NUM_DRAWS)
    assert np.all(np.abs(draws.T @ draws / NUM_DRAWS - exact) < DEVIATIONS * error + 1e-12)
    assert np.all(np.abs(draws.mean(axis=0)) < DEVIATIONS * np.sqrt(variance / NUM_DRAWS) + 1e-12)


@fields
def test_a_draw_is_one_function_of_the_right_kind(field: Field) -> None:
    """The same wherever it is called, tangent where it should be, and the same after a tour through coordinates."""
    x = ten_points(field, 0)
    known = facts(field, x)
    np.testing.assert_allclose(known.projected, known.values, atol=1e-11)
    np.testing.assert_allclose(facts(field, x[::-1]).values[::-1], known.values, atol=1e-12)
    flat = known.coordinates.reshape(len(x), -1)
    back = flat if known.basis is None else np.einsum("npq,nq->np", known.basis, flat)
    np.testing.assert_allclose(back.reshape(known.values.shape), known.values, atol=1e-11)


@representative_fields
def test_a_draw_is_differentiable(field: Field) -> None:
    x = ten_points(field, 0)
    slope = jax.jit(jax.grad(lambda x: jnp.sum(field.sample(key=key_of(0))(x))))(x)
    assert slope.shape == x.shape
    assert np.all(np.isfinite(slope))


@named_fields("scalar-euclidean", "stacked-sphere", "projected-sphere", "hodge-sphere")
def test_single_precision_stays_single(field: Field) -> None:
    x = ten_points(field, 0).astype(np.float32)
    assert jax.eval_shape(lambda x: field.sample(key=key_of(0))(x), x).dtype == jnp.float32
    single = field.covariance(x, x)
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, facts(field, x.astype(float)).covariance, atol=1e-5)


def test_one_part_may_be_left_out() -> None:
    """A field without divergence is that of both parts minus its gradient part."""
    kernel, other = Matern(1.5, 0.5), Matern(2.5, 0.8)
    x, y = points(Sphere(3), 0), points(Sphere(3), 1)
    both = HodgeField(Sphere(3), divergence=kernel, curl=other, levels=2).covariance(x, y)
    gradient, curl = HodgeField(Sphere(3), divergence=kernel, levels=2), HodgeField(Sphere(3), curl=other, levels=2)
    np.testing.assert_allclose(gradient.covariance(x, y) + curl.covariance(x, y), both, atol=1e-12)


@named_fields(*(name for name in FIELDS if "rotations" in name))
def test_fields_on_rotations_do_not_depend_on_the_sign_of_the_quaternion(field: Field) -> None:
    x = ten_points(field, 0)
    sign = -1.0 if isinstance(field, TangentField) else 1.0
    ours, theirs = facts(field, np.concatenate([-x[:5], x[5:]])), facts(field, x)
    left, right = (matrix(field, known.covariance) for known in (ours, theirs))
    half = len(left) // 2
    np.testing.assert_allclose(left[:half, half:], sign * right[:half, half:], atol=1e-12)
    np.testing.assert_allclose(ours.features[:5], sign * theirs.features[:5], atol=1e-11)
    np.testing.assert_allclose(ours.values[:5], sign * theirs.values[:5], atol=1e-11)


def test_a_product_kernel_is_the_product_of_its_kernels() -> None:
    space = Product(Sphere(2), Euclidean(2))
    sphere, flat = Matern(1.5, 0.5, 2.0), EuclideanMatern(2.5, [0.3, 1.0], 0.7)
    field = ScalarField(space, (sphere, flat), levels=4)
    x, y = points(space, 0), points(space, 1)
    (x_one, x_two), (y_one, y_two) = (np.split(np.asarray(z), [3], axis=1) for z in (x, y))
    one = np.asarray(ScalarField(Sphere(2), sphere, levels=4).covariance(x_one, y_one))
    two = np.asarray(ScalarField(Euclidean(2), flat).covariance(x_two, y_two))
    np.testing.assert_allclose(field.covariance(x, y), one * two, rtol=1e-12)


def test_stacked_outputs_are_independent_copies() -> None:
    kernel = Matern()
    stacked, scalar = StackedField(Sphere(2), kernel, 5, outputs=3), ScalarField(Sphere(2), kernel, 5)
    x, y = points(Sphere(2), 0), points(Sphere(2), 1)
    expected = np.einsum("nm,pq->npmq", scalar.covariance(x, y), np.eye(3))
    np.testing.assert_allclose(stacked.covariance(x, y), expected, atol=1e-14)
