"""Moments by harmonics equal those by the kernel and by variational posteriors."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdgp.core import compiled
from rdgp.fields import Field, HodgeField, ProjectedField, ScalarField, TangentFrame
from rdgp.kernels import Matern
from rdgp.likelihoods import Gaussian
from rdgp.models import DeepGP, _predictor
from rdgp.posteriors import Exact, HarmonicExpansion, Interdomain, Marginals, Noise, Posterior, expand
from rdgp.spaces import Sphere
from tests.cases import points

SPACE = Sphere(2)
HODGE = HodgeField(SPACE, divergence=Matern(variance=0.7), curl=Matern(lengthscale=0.5), num_levels=2)
X = jnp.asarray(np.concatenate([points(SPACE, 3), [[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]]]))


def moments(posterior: Marginals) -> tuple[jax.Array, jax.Array]:
    """Return moments in tangent frames other than the field's own."""
    columns = SPACE.frame(X) @ jnp.array([[0.6, -0.8], [0.8, 0.6]])
    return posterior.coordinate_moments(X, TangentFrame(columns, columns, (0,)))


def assert_expands(posterior: Posterior) -> None:
    for ours, theirs in zip(compiled(moments, expand(posterior)), compiled(moments, posterior), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-10)


@pytest.mark.parametrize("field", [HODGE, ProjectedField(SPACE, Matern(), num_levels=2)], ids=["hodge", "projected"])
def test_exact_posteriors_of_vector_fields(field: Field) -> None:
    x, y = points(SPACE, 1, 6), jnp.asarray(np.random.default_rng(2).normal(size=(6, 2)))
    assert_expands(compiled(Exact, field, Noise(jnp.asarray(0.1)), x, field.bundle.frame(x), y))


def test_variational_posterior_of_a_vector_field() -> None:
    assert_expands(Interdomain(HODGE, std=0.5))


def test_model_predicts_the_same_either_way(monkeypatch: pytest.MonkeyPatch) -> None:
    model = DeepGP((), ScalarField(SPACE, Matern(), num_levels=2), Gaussian(0.1))
    model = model.with_data(model.check_data(X, jnp.sin(3.0 * X[:, 0])))
    expected = model.predict(X, key=jax.random.key(4), samples=1)
    monkeypatch.setattr(_predictor, "worth_expanding", lambda *_: True)
    predictor = model.prepare(key=jax.random.key(4), samples=1)
    assert isinstance(predictor.marginals[0], HarmonicExpansion)
    found = predictor(X)
    np.testing.assert_allclose(found.means, expected.means, atol=1e-10)
    np.testing.assert_allclose(found.covariances, expected.covariances, atol=1e-10)
