"""Moments by harmonics equal those by the kernel and by variational posteriors."""

from collections.abc import Callable
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdgp import DeepGP, Gaussian, HodgeField, Interdomain, Matern, ProjectedField, ScalarField, Sphere
from rdgp.core import compiled
from rdgp.fields import Field
from rdgp.models import _deep
from rdgp.models._conditioned import Conditioned
from rdgp.models._tabulated import tabulate
from tests.cases import points

SPACE = Sphere(2)
HODGE = HodgeField(SPACE, divergence=Matern(variance=0.7), curl=Matern(lengthscale=0.5), levels=2)
X = jnp.asarray(np.concatenate([points(SPACE, 3), [[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]]]))
Moments = tuple[jax.Array, jax.Array]


def both_ways(field: Field, law: Conditioned | Interdomain, moments: Callable[..., Moments]) -> tuple[Moments, Moments]:
    """Return moments tabulated and direct, in tangent frames other than the field's own."""
    frame = SPACE.frame(X) @ jnp.array([[0.6, -0.8], [0.8, 0.6]])
    direct = partial(moments, law)
    return tabulate(field, direct, X.dtype).moments(X, frame), direct(X, frame)


def assert_equal(both: tuple[Moments, Moments]) -> None:
    for ours, theirs in zip(*both, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-10)


def conditioned(field: Field, x: jax.Array, y: jax.Array) -> tuple[Moments, Moments]:
    return both_ways(field, Conditioned(field, jnp.asarray(0.1), x, field.basis(x), y), Conditioned.moments)


@pytest.mark.parametrize("field", [HODGE, ProjectedField(SPACE, Matern(), levels=2)], ids=["hodge", "projected"])
def test_conditioned_vector_fields(field: Field) -> None:
    y = jnp.asarray(np.random.default_rng(2).normal(size=(6, 2, 1)))
    assert_equal(compiled(conditioned, field, points(SPACE, 1, 6), y))


def test_variational_vector_field() -> None:
    law = Interdomain(HODGE, deviation=0.5)
    assert_equal(compiled(both_ways, HODGE, law, Interdomain.coordinate_moments))


def test_model_predicts_the_same_either_way(monkeypatch: pytest.MonkeyPatch) -> None:
    model = DeepGP((), ScalarField(SPACE, Matern(), levels=2), Gaussian(0.1))
    model = model.with_coordinates(X, jnp.sin(3.0 * X[:, :1, None]))
    expected = model.predict(X, key=jax.random.key(4), samples=1)
    monkeypatch.setattr(_deep, "worth_tabulating", lambda *_: True)
    found = model.predict(X, key=jax.random.key(4), samples=1)
    np.testing.assert_allclose(found.means, expected.means, atol=1e-10)
    np.testing.assert_allclose(found.covariances, expected.covariances, atol=1e-10)
