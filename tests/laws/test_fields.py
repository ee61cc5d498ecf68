"""The laws of Gaussian fields."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rdgp.fields
from rdgp.fields import Field, FrameField, HodgeField, ProjectedField, ScalarField, StackedField, TangentField
from rdgp.kernels import EuclideanMatern, Matern
from rdgp.spaces import Box, Euclidean, Product, Rotations, Sphere
from tests.cases import FIELDS, fields, points, representative_fields

seeds = st.integers(0, 2**20)
NUM_DRAWS = 20_000
DEVIATIONS = 6.0  # of the sampling error; over all entries tested a false alarm has probability below 1e-4


def matrix(field: Field, x: jax.Array, y: jax.Array) -> jax.Array:
    covariance = field.covariance(x, y)
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
    assert float(jnp.linalg.eigvalsh(matrix(field, x, x)).min()) > -1e-10


@fields
def test_features_times_scales_make_the_covariance(field: Field) -> None:
    x, y = points(field.space, 0), points(field.space, 1)
    if not has_features(field):
        with pytest.raises(ValueError, match="no discrete spectrum"):
            field.features(x)
        return
    left, right = field.features(x) * field.scales(), field.features(y) * field.scales()
    np.testing.assert_allclose(jnp.tensordot(left, right, (-1, -1)), field.covariance(x, y), atol=1e-10)


@fields
def test_variance_is_what_the_kernels_say(field: Field) -> None:
    """Scalar: Var f; projected and frame: per direction; Hodge: E|g|² of each part."""
    x = points(field.space, 0)
    if isinstance(field, HodgeField):
        total = sum(kernel.variance for kernel in field.kernels)
        trace = jnp.trace(field.variance_along(x, None), axis1=1, axis2=2)
        np.testing.assert_allclose(trace, total, rtol=1e-10)
        return
    prior = field.priors[0] if isinstance(field, ProjectedField) else field.prior
    variance = np.prod([component.kernel.variance for component in prior.components])
    own = field.variance_along(x, None)
    np.testing.assert_allclose(own, np.broadcast_to(variance * np.eye(own.shape[-1]), own.shape), atol=1e-10)


@fields
@given(seed=seeds)
def test_covariance_is_invariant_under_isometries(field: Field, seed: int) -> None:
    if isinstance(field, FrameField):
        pytest.skip("a frame is not invariant")
    if isinstance(field, ScalarField) and isinstance(field.space, Euclidean):
        pytest.skip("one lengthscale for each coordinate is not invariant under rotations")
    turn = field.space.random_isometry(key=jax.random.key(seed))
    x, y = points(field.space, seed + 1), points(field.space, seed + 2)
    turned = field.covariance(field.space.nearest(turn(x)), field.space.nearest(turn(y)))
    expected = field.covariance(x, y)
    if isinstance(field, TangentField):
        expected = jnp.einsum("ap,npmq,bq->namb", turn.matrix, expected, turn.matrix)
    np.testing.assert_allclose(turned, expected, atol=1e-9)


@fields
def test_draws_are_functions_with_the_right_covariance(field: Field) -> None:
    x = points(field.space, 0)[:3]

    @jax.jit
    def draw_many(keys: jax.Array) -> jax.Array:
        return jax.lax.map(lambda key: field.sample(key=key)(x).ravel(), keys, batch_size=200)

    draws = np.asarray(draw_many(jax.random.split(jax.random.key(1), NUM_DRAWS)))
    exact = np.asarray(matrix(field, x, x))
    variance = np.diagonal(exact)
    error = np.sqrt((np.outer(variance, variance) + exact**2) / NUM_DRAWS)
    assert np.all(np.abs(draws.T @ draws / NUM_DRAWS - exact) < DEVIATIONS * error + 1e-12)
    assert np.all(np.abs(draws.mean(axis=0)) < DEVIATIONS * np.sqrt(variance / NUM_DRAWS) + 1e-12)


@fields
def test_a_draw_is_one_function_of_the_right_kind(field: Field) -> None:
    """The same wherever it is called, tangent where it should be, and the same after a tour through coordinates."""
    draw = field.sample(key=jax.random.key(0))
    x = points(field.space, 0)
    values = draw(x)
    np.testing.assert_allclose(draw(x[::-1])[::-1], values, atol=1e-12)
    if isinstance(field, TangentField):
        np.testing.assert_allclose(field.space.project(x, values), values, atol=1e-11)
    flat = field.coordinates(x, values).reshape(x.shape[0], -1)
    basis = field.basis(x)
    back = flat if basis is None else jnp.einsum("npq,nq->np", basis, flat)
    np.testing.assert_allclose(back.reshape(values.shape), values, atol=1e-11)


@representative_fields
def test_a_draw_is_differentiable(field: Field) -> None:
    draw = field.sample(key=jax.random.key(0))
    x = points(field.space, 0)
    slope = jax.jacrev(lambda x: jnp.sum(draw(x)))(x)
    assert slope.shape == x.shape
    assert bool(jnp.all(jnp.isfinite(slope)))


@pytest.mark.parametrize("name", ["scalar-euclidean", "stacked-sphere", "projected-sphere", "hodge-sphere4"])
def test_single_precision_stays_single(name: str) -> None:
    field = FIELDS[name]()
    x = points(field.space, 0, dtype=jnp.float32)
    assert field.sample(key=jax.random.key(0))(x).dtype == jnp.float32
    assert field.covariance(x, x).dtype == jnp.float32
    np.testing.assert_allclose(field.covariance(x, x), field.covariance(*2 * (x.astype(jnp.float64),)), atol=1e-5)


def test_one_part_may_be_left_out() -> None:
    """A field without divergence is that of both parts minus its gradient part."""
    kernel, other = Matern(1.5, 0.5), Matern(2.5, 0.8)
    x, y = points(Sphere(3), 0), points(Sphere(3), 1)
    both = HodgeField(Sphere(3), divergence=kernel, curl=other, levels=4).covariance(x, y)
    gradient, curl = HodgeField(Sphere(3), divergence=kernel, levels=4), HodgeField(Sphere(3), curl=other, levels=4)
    np.testing.assert_allclose(gradient.covariance(x, y) + curl.covariance(x, y), both, atol=1e-12)


@pytest.mark.parametrize("name", [name for name in FIELDS if "rotations" in name])
def test_fields_on_rotations_do_not_depend_on_the_sign_of_the_quaternion(name: str) -> None:
    field = FIELDS[name]()
    x, y = points(Rotations(), 0), points(Rotations(), 1)
    sign = -1.0 if isinstance(field, TangentField) else 1.0
    np.testing.assert_allclose(field.covariance(-x, y), sign * field.covariance(x, y), atol=1e-12)
    np.testing.assert_allclose(field.features(-x), sign * field.features(x), atol=1e-11)
    draw = field.sample(key=jax.random.key(0))
    np.testing.assert_allclose(draw(-x), sign * draw(x), atol=1e-11)


def test_a_product_kernel_is_the_product_of_its_kernels() -> None:
    space = Product(Sphere(2), Euclidean(2))
    sphere, flat = Matern(1.5, 0.5, 2.0), EuclideanMatern(2.5, [0.3, 1.0], 0.7)
    field = ScalarField(space, (sphere, flat), levels=6)
    x, y = points(space, 0), points(space, 1)
    one = ScalarField(Sphere(2), sphere, levels=6).covariance(x[:, :3], y[:, :3])
    two = ScalarField(Euclidean(2), flat).covariance(x[:, 3:], y[:, 3:])
    np.testing.assert_allclose(field.covariance(x, y), one * two, rtol=1e-12)


def test_stacked_outputs_are_independent_copies() -> None:
    kernel = Matern()
    stacked, scalar = StackedField(Sphere(2), kernel, 5, outputs=3), ScalarField(Sphere(2), kernel, 5)
    x, y = points(Sphere(2), 0), points(Sphere(2), 1)
    expected = np.einsum("nm,pq->npmq", scalar.covariance(x, y), np.eye(3))
    np.testing.assert_allclose(stacked.covariance(x, y), expected, atol=1e-14)
