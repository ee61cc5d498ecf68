"""The laws of Gaussian fields."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rdgp.fields
from rdgp.core import compiled
from rdgp.fields import Field, FrameField, HodgeField, ProjectedField, ScalarField, StackedField, TangentField
from rdgp.fields._field import FieldDraw
from rdgp.kernels import EuclideanMatern, Matern
from rdgp.spaces import Box, Euclidean, Product, Rotations, Sphere
from tests.cases import FIELDS, draw_of, fields, isometry, named_fields, points, representative_fields

seeds = st.integers(0, 2**20)
NUM_DRAWS = 20_000
DEVIATIONS = 6.0  # of the sampling error; over all entries tested a false alarm has probability below 1e-4


def matrix(field: Field, x: jax.Array, y: jax.Array) -> np.ndarray:
    covariance = np.asarray(field.covariance(x, y))
    size = int(np.prod(field.value_shape()))
    return covariance.reshape(x.shape[0] * size, y.shape[0] * size)


def has_features(field: Field) -> bool:
    factors = field.space.factors if isinstance(field.space, Product) else (field.space,)
    return not any(isinstance(factor, Euclidean | Box) for factor in factors)


def test_every_exported_field_is_held_to_the_laws() -> None:
    exported = {getattr(rdgp.fields, name) for name in rdgp.fields.__all__}
    final = {c for c in exported if isinstance(c, type) and issubclass(c, Field) and c not in (Field, TangentField)}
    assert final == {type(make()) for make in FIELDS.values()}


@fields
@given(seed=seeds)
def test_covariance_is_symmetric_and_positive(field: Field, seed: int) -> None:
    x, y = points(field.space, seed), points(field.space, seed + 1)
    np.testing.assert_allclose(matrix(field, x, y), matrix(field, y, x).T, atol=1e-12)
    assert np.linalg.eigvalsh(matrix(field, x, x)).min() > -1e-10


@fields
def test_features_times_scales_make_the_covariance(field: Field) -> None:
    x, y = points(field.space, 0), points(field.space, 1)
    if not has_features(field):
        with pytest.raises(ValueError, match="no discrete spectrum"):
            field.features(x)
        return
    scales = np.asarray(field.scales())
    left, right = np.asarray(field.features(x)) * scales, np.asarray(field.features(y)) * scales
    np.testing.assert_allclose(np.tensordot(left, right, (-1, -1)), field.covariance(x, y), atol=1e-10)


@fields
def test_variance_is_what_the_kernels_say(field: Field) -> None:
    """Scalar: Var f; projected and frame: per direction; Hodge: E|g|² of each part."""
    own = np.asarray(compiled(Field.variance_along, field, points(field.space, 0), None))
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
    turn = isometry(field.space, seed)
    x, y = (points(field.space, seed + i) for i in (1, 2))
    turned = field.covariance(*(np.asarray(z) @ turn.matrix.T + turn.shift for z in (x, y)))
    expected = field.covariance(x, y)
    if isinstance(field, TangentField):
        expected = np.einsum("ap,npmq,bq->namb", turn.matrix, expected, turn.matrix)
    np.testing.assert_allclose(turned, expected, atol=1e-9)


@fields
def test_draws_are_functions_with_the_right_covariance(field: Field) -> None:
    x = points(field.space, 0)

    @jax.jit
    def draw_many(keys: jax.Array) -> jax.Array:
        return jax.lax.map(lambda key: field.sample(key=key)(x).ravel(), keys, batch_size=200)

    keys = jax.random.split(jax.random.key(1, impl="rbg"), NUM_DRAWS)  # compiles in half the time of the default
    draws = np.asarray(draw_many(keys))
    exact = matrix(field, x, x)
    variance = np.diagonal(exact)
    error = np.sqrt((np.outer(variance, variance) + exact**2) / NUM_DRAWS)
    assert np.all(np.abs(draws.T @ draws / NUM_DRAWS - exact) < DEVIATIONS * error + 1e-12)
    assert np.all(np.abs(draws.mean(axis=0)) < DEVIATIONS * np.sqrt(variance / NUM_DRAWS) + 1e-12)


@eqx.filter_jit
def _evaluate(field: Field, draw: FieldDraw, x: jax.Array) -> tuple[jax.Array | None, ...]:
    """Return a draw's values, their coordinates, and the basis of these."""
    values = draw(x)
    return values, field.coordinates(x, values), field.basis(x)


@fields
def test_a_draw_is_one_function_of_the_right_kind(field: Field) -> None:
    """The same wherever it is called, tangent where it should be, and the same after a tour through coordinates."""
    draw = draw_of(field, 0)
    x = points(field.space, 0)
    values, flat, basis = _evaluate(field, draw, x)
    if isinstance(field, TangentField):
        np.testing.assert_allclose(field.space.project(x, values), values, atol=1e-11)
    again = _evaluate(field, draw, jnp.asarray(np.asarray(x)[::-1]))[0]
    np.testing.assert_allclose(np.asarray(again)[::-1], values, atol=1e-12)
    flat = np.asarray(flat).reshape(x.shape[0], -1)
    back = flat if basis is None else np.einsum("npq,nq->np", basis, flat)
    np.testing.assert_allclose(back.reshape(values.shape), values, atol=1e-11)


@representative_fields
def test_a_draw_is_differentiable(field: Field) -> None:
    draw = draw_of(field, 0)
    x = points(field.space, 0)
    slope = jax.jit(jax.grad(lambda x: jnp.sum(draw(x))))(x)
    assert slope.shape == x.shape
    assert np.all(np.isfinite(slope))


@named_fields("scalar-euclidean", "stacked-sphere", "projected-sphere", "hodge-sphere")
def test_single_precision_stays_single(field: Field) -> None:
    x = points(field.space, 0, dtype=jnp.float32)
    assert jax.eval_shape(lambda x: field.sample(key=jax.random.key(0))(x), x).dtype == jnp.float32
    single = field.covariance(x, x)
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, field.covariance(*2 * (np.asarray(x, np.float64),)), atol=1e-5)


def test_one_part_may_be_left_out() -> None:
    """A field without divergence is that of both parts minus its gradient part."""
    kernel, other = Matern(1.5, 0.5), Matern(2.5, 0.8)
    x, y = points(Sphere(3), 0), points(Sphere(3), 1)
    both = HodgeField(Sphere(3), divergence=kernel, curl=other, levels=2).covariance(x, y)
    gradient, curl = HodgeField(Sphere(3), divergence=kernel, levels=2), HodgeField(Sphere(3), curl=other, levels=2)
    np.testing.assert_allclose(gradient.covariance(x, y) + curl.covariance(x, y), both, atol=1e-12)


@named_fields(*(name for name in FIELDS if "rotations" in name))
def test_fields_on_rotations_do_not_depend_on_the_sign_of_the_quaternion(field: Field) -> None:
    x, y = points(Rotations(), 0), points(Rotations(), 1)
    sign = -1.0 if isinstance(field, TangentField) else 1.0
    other = jnp.asarray(-np.asarray(x))
    np.testing.assert_allclose(field.covariance(other, y), sign * np.asarray(field.covariance(x, y)), atol=1e-12)
    np.testing.assert_allclose(field.features(other), sign * np.asarray(field.features(x)), atol=1e-11)
    draw = draw_of(field, 0)
    ours, theirs = (np.asarray(_evaluate(field, draw, z)[0]) for z in (other, x))
    np.testing.assert_allclose(ours, sign * theirs, atol=1e-11)


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
