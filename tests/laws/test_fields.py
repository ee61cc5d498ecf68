"""Every Gaussian field obeys the laws of fields."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import rdgp.fields
from rdgp.core import compiled
from rdgp.fields import CopiesField, Field, FrameField, HodgeField, Process, ProjectedField, ScalarField, StackedField
from rdgp.kernels import Heat, Matern
from rdgp.spaces import Circle, Euclidean, Product, Sphere
from rdgp.testing import check_field
from tests.cases import FIELDS, field_makers, fields, isometry, points, precisions, set_to

seeds = st.integers(0, 2**20)


def test_every_exported_field_is_held_to_the_laws() -> None:
    exported = {getattr(rdgp.fields, name) for name in rdgp.fields.__all__}
    final = {c for c in exported if isinstance(c, type) and issubclass(c, Field) and not c.__abstractmethods__}
    assert final - {CopiesField} == {type(make()) for make in FIELDS.values()}


@field_makers
@precisions
def test_laws(make: Callable[[], Field], precision: str) -> None:
    with set_to(precision):
        check_field(make())


def _scalar() -> ScalarField:
    return ScalarField(Circle(), Matern(), 3)


def _wrong(field: type[Field], **changed: object) -> type[Field]:
    return type("Wrong", (field,), changed)


BROKEN: dict[str, tuple[Callable[[], Field], str]] = {
    "scales": (
        lambda: _wrong(ScalarField, _scales=lambda self: 1.1 * ScalarField._scales(self))(Circle(), Matern(), 3),
        "features times scales make the covariance",
    ),
    "point_variance": (
        lambda: _wrong(ScalarField, point_variance=lambda self, x, frame: -ScalarField.point_variance(self, x, frame))(
            Circle(), Matern(), 3
        ),
        "point_variance is gram at equal points",
    ),
    "variance": (
        lambda: _wrong(HodgeField, variance=property(lambda self: 2.0 * HodgeField.variance.fget(self)))(
            Circle(), Matern(), None, 3
        ),
        "variance is the mean square",
    ),
    "assemble": (
        lambda: _wrong(ProjectedField, assemble=lambda self, x, v: jnp.concatenate([w[:, 0] for w in v], -1))(
            Sphere(2), Matern(), 3
        ),
        "evaluate is the features",
    ),
    "variance_trace": (
        lambda: _wrong(HodgeField, variance_trace=lambda self, x, f, r: 0.5 * HodgeField.variance_trace(self, x, f, r))(
            Circle(), Matern(), None, 3
        ),
        "variance_trace is the trace",
    ),
    "sample": (
        lambda: _wrong(ScalarField, sample=lambda self, *, key: lambda x: 1.1 * ScalarField.sample(self, key=key)(x))(
            Circle(), Matern(), 3
        ),
        "draws have the covariance",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_field_that_breaks_a_law_is_told_in_one_line(name: str) -> None:
    make, law = BROKEN[name]
    with pytest.raises(AssertionError, match=rf"Wrong on .* breaks a law: {law}.*: .*\d") as error:
        check_field(make())
    assert "\n" not in str(error.value)


@fields
@given(seed=seeds)
def test_covariance_is_invariant_under_isometries(field: Field, seed: int) -> None:
    if isinstance(field, FrameField):
        pytest.skip("a frame is not invariant")
    if isinstance(field.variance, jax.Array) and _lengthscale_is_a_list(field):
        pytest.skip("one lengthscale for each coordinate is not invariant under rotations")
    turn, x = isometry(field.space, seed), np.asarray(points(field.space, seed + 1, 10))
    turned, expected = (np.asarray(field.covariance(z, z)) for z in (x @ turn.matrix.T + turn.shift, x))
    if field.bundle.tangent:
        rows = np.concatenate([np.arange(field.space.ambient_dim)[field.space.slices[f]] for f in field.bundle.factors])
        matrix = turn.matrix[np.ix_(rows, rows)]
        expected = np.einsum("ap,npmq,bq->namb", matrix, expected, matrix)
    np.testing.assert_allclose(turned, expected, atol=1e-9)


def _lengthscale_is_a_list(field: Field) -> bool:
    kernels = getattr(getattr(field, "prior", None), "kernels", ())
    return any("lengthscale" in kernel.parameters and kernel.lengthscale.ndim for kernel in kernels)


@fields
def test_variance_is_what_the_kernels_say(field: Field) -> None:
    """Scalar: Var f; projected and frame: per direction; Hodge: E|g|² of each part."""
    x = points(field.space, 0, 10)
    frame = field.bundle.frame(x)
    own = np.einsum("npnq->npq", compiled(type(field).joint_gram, field, x, x, frame, frame))
    if isinstance(field, HodgeField):
        total = sum(np.prod([float(kernel.variance) for kernel in kernels]) for kernels in field.kernels)
        np.testing.assert_allclose(np.trace(own, axis1=1, axis2=2), total, rtol=1e-10)
        return
    prior = field.priors[0] if isinstance(field, ProjectedField) else field.prior
    variance = np.prod([float(kernel.variance) for kernel in prior.kernels])
    np.testing.assert_allclose(own, np.broadcast_to(variance * np.eye(own.shape[-1]), own.shape), atol=1e-10)


def test_one_part_may_be_left_out() -> None:
    """A field without divergence is that of both parts minus its gradient part."""
    kernel, other = Matern(1.5, 0.5), Matern(2.5, 0.8)
    x, y = points(Sphere(3), 0), points(Sphere(3), 1)
    both = HodgeField(Sphere(3), divergence=kernel, curl=other, num_levels=2).covariance(x, y)
    gradient = HodgeField(Sphere(3), divergence=kernel, num_levels=2)
    curl = HodgeField(Sphere(3), curl=other, num_levels=2)
    np.testing.assert_allclose(gradient.covariance(x, y) + curl.covariance(x, y), both, atol=1e-12)


def test_a_product_kernel_is_the_product_of_its_kernels() -> None:
    space = Product(Sphere(2), Euclidean(2))
    sphere, flat = Matern(1.5, 0.5, 2.0), Matern(2.5, [0.3, 1.0], 0.7)
    field = ScalarField(space, (sphere, flat), num_levels=4)
    x, y = points(space, 0), points(space, 1)
    (x_one, x_two), (y_one, y_two) = (np.split(np.asarray(z), [3], axis=1) for z in (x, y))
    one = np.asarray(ScalarField(Sphere(2), sphere, num_levels=4).covariance(x_one, y_one))
    two = np.asarray(ScalarField(Euclidean(2), flat).covariance(x_two, y_two))
    np.testing.assert_allclose(field.covariance(x, y), one * two, rtol=1e-12)


def test_stacked_outputs_are_independent_copies() -> None:
    kernel = Matern()
    stacked, scalar = StackedField(Sphere(2), kernel, 5, outputs=3), ScalarField(Sphere(2), kernel, 5)
    x, y = points(Sphere(2), 0), points(Sphere(2), 1)
    expected = np.einsum("nm,pq->npmq", scalar.covariance(x, y), np.eye(3))
    np.testing.assert_allclose(stacked.covariance(x, y), expected, atol=1e-14)


def test_a_tail_of_a_product_of_kernels_counts_the_highest_of_the_factors_levels() -> None:
    """A process by hand: of levels (2, 3) the last level holds all products with the third function of the circle."""
    kernels = Matern(1.5, 0.5, 2.0), Heat(0.4, 0.7)
    process: Process = ScalarField(Product(Sphere(2), Circle()), kernels, (2, 3)).processes[0]
    assert process.levels.num_levels == 3
    assert process.levels.level.tolist() == [max(a, b) for a in (0, 1, 1, 1) for b in (0, 1, 1, 2, 2)]
    x = points(Product(Sphere(2), Circle()), 0)
    last = eqx.filter_jit(process.tail_variance)(jnp.ones((1, 1)), x)
    circle = ScalarField(Circle(), kernels[1], 3).processes[0].scales()
    np.testing.assert_allclose(last[:, 0, 0], 2.0 * 2 * float(circle[-1]) ** 2, rtol=1e-12)
