"""Moments by harmonics equal those by the kernel and by variational posteriors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdgp import DeepGP, Gaussian, HodgeField, Interdomain, Matern, ProjectedField, ScalarField, Sphere
from rdgp.fields import Field
from rdgp.models import _deep
from rdgp.models._conditioned import Conditioned
from rdgp.models._tabulated import tabulate

SPACE = Sphere(2)
HODGE = HodgeField(SPACE, divergence=Matern(variance=0.7), curl=Matern(lengthscale=0.5), levels=3)
X = jnp.concatenate([SPACE.random(5, key=jax.random.key(3)), jnp.array([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]])])


def _turned_frame() -> jax.Array:
    """Return tangent frames other than the field's own."""
    frame = SPACE.frame(X)
    return frame @ jnp.array([[0.6, -0.8], [0.8, 0.6]])


@pytest.mark.parametrize("field", [HODGE, ProjectedField(SPACE, Matern(), levels=3)], ids=["hodge", "projected"])
def test_conditioned_vector_fields(field: Field) -> None:
    x = SPACE.random(6, key=jax.random.key(1))
    y = jax.random.normal(jax.random.key(2), (6, 2, 1))
    law = Conditioned(field, jnp.asarray(0.1), x, field.basis(x), y)
    found = tabulate(field, law.moments, X.dtype).moments(X, _turned_frame())
    for ours, theirs in zip(found, law.moments(X, _turned_frame()), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-10)


def test_variational_vector_field() -> None:
    law = Interdomain(HODGE, deviation=0.5)
    found = tabulate(HODGE, law.coordinate_moments, X.dtype).moments(X, _turned_frame())
    for ours, theirs in zip(found, law.coordinate_moments(X, _turned_frame()), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-10)


def test_model_predicts_the_same_either_way(monkeypatch: pytest.MonkeyPatch) -> None:
    model = DeepGP((), ScalarField(SPACE, Matern(), levels=3), Gaussian(0.1))
    model = model.with_coordinates(X, jnp.sin(3.0 * X[:, :1, None]))
    expected = model.predict(X, key=jax.random.key(4), samples=1)
    monkeypatch.setattr(_deep, "worth_tabulating", lambda *_: True)
    found = model.predict(X, key=jax.random.key(4), samples=1)
    np.testing.assert_allclose(found.means, expected.means, atol=1e-10)
    np.testing.assert_allclose(found.covariances, expected.covariances, atol=1e-10)
