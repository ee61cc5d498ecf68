"""Moments by harmonics equal those by features, by the kernel and by variational posteriors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdgp import DeepGP, Gaussian, HodgeField, Interdomain, Matern, ProjectedField, ScalarField, Sphere, StackedField
from rdgp.models import _deep

SPACE = Sphere(2)
FIELDS = {
    "hodge": HodgeField(SPACE, divergence=Matern(variance=0.7), curl=Matern(lengthscale=0.5), levels=3),
    "projected": ProjectedField(SPACE, Matern(), levels=3),
    "scalar": ScalarField(SPACE, Matern(), levels=4),
    "stacked": StackedField(SPACE, Matern(), levels=4, outputs=2),
}


def _model(name: str, explicit: bool) -> DeepGP:
    field = FIELDS[name]
    hidden = Interdomain(HodgeField(SPACE, Matern(variance=0.05), Matern(variance=0.05), levels=2))
    if explicit:
        return DeepGP((hidden,), Interdomain(field, deviation=0.5), Gaussian(0.1))
    model = DeepGP((hidden,), field, Gaussian(0.1))
    x = SPACE.random(12, key=jax.random.key(1))
    return model.with_coordinates(x, model.coordinates(x, field.sample(key=jax.random.key(2))(x)))


@pytest.mark.parametrize(("name", "explicit"), [("hodge", False), ("hodge", True), ("projected", False)])
def test_tangent_laws_agree(name: str, explicit: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    _check(_model(name, explicit), monkeypatch)


@pytest.mark.parametrize("name", ["scalar", "stacked"])
def test_scalar_laws_agree(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _check(_model(name, False), monkeypatch)


def _check(model: DeepGP, monkeypatch: pytest.MonkeyPatch) -> None:
    x = jnp.concatenate([SPACE.random(5, key=jax.random.key(3)), jnp.array([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]])])
    expected = model.predict(x, key=jax.random.key(4), samples=2)
    monkeypatch.setattr(_deep, "worth_tabulating", lambda *_: True)
    found = model.predict(x, key=jax.random.key(4), samples=2)
    np.testing.assert_allclose(found.means, expected.means, atol=1e-10)
    np.testing.assert_allclose(found.covariances, expected.covariances, atol=1e-10)
