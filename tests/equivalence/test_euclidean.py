"""The Euclidean deep Gaussian process and the paper's baseline, against sparse regression in plain linear algebra."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdgp.core import compiled
from rdgp.models import DeepDraw, DeepGP, euclidean_deep_gp
from rdgp.posteriors import InducingPoints
from rdgp.spaces import east_north_frame
from tests.equivalence.deep_models import KEY, SPHERE, TEST, X, bound, draw_from, observations, with_means

pytestmark = pytest.mark.xdist_group("euclidean")  # one worker compiles what they share

NOISE = 0.1  # of the models built below
STEP = 1e-8  # by which hidden layers of no variance move points


def baseline(output: str, layers: int = 2, on_sphere: bool = True) -> DeepGP:
    """Return the model with random means and a dense random covariance of the output's inducing variables."""
    model = euclidean_deep_gp(3, layers, 4, x=X, input_space=SPHERE if on_sphere else None, output=output)
    q = with_means(model.output.variational, 3)
    noise = 0.3 * np.random.default_rng(4).normal(size=q.blocks[0]._raw.raw.shape)
    q = eqx.tree_at(lambda family: family.blocks[0]._raw.raw, q, jnp.asarray(noise))
    return eqx.tree_at(lambda m: m.output.variational, model, q)


def without_variance(model: DeepGP) -> DeepGP:
    """Set the variance of the hidden kernel, hence displacements, to nearly nothing."""

    def variance(m: DeepGP) -> jax.Array:
        return m.layers[0].field.prior.components[0].kernel.parameters["variance"].raw

    return eqx.tree_at(variance, model, jnp.full_like(variance(model), 2.0 * np.log(STEP)))


def matern(a: np.ndarray, b: np.ndarray, nu: float) -> np.ndarray:
    r = np.sqrt(2.0 * nu) * np.linalg.norm(a[:, None] - b[None], axis=-1)
    return (1.0 + r + (r**2 / 3.0 if nu == 2.5 else 0.0)) * np.exp(-r)


def sparse_moments(q: InducingPoints, x: np.ndarray, nu: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Return mean and variance [N, r] of each copy and the divergence, for q(u) = N(L m, L C Cᵀ Lᵀ), L Lᵀ = K_zz."""
    z, block = np.asarray(q.z), q.blocks[0]
    mean, raw = np.asarray(block._mean.raw), np.asarray(block._raw.raw)
    factor = np.tril(raw, -1) + np.exp(np.diagonal(raw, axis1=1, axis2=2))[..., None] * np.eye(len(z))
    half = np.linalg.solve(np.linalg.cholesky(matern(z, z, nu)), matern(z, x, nu))
    spread = np.sum(np.einsum("mn,rmk->rnk", half, factor) ** 2, axis=-1)
    variance = 1.0 - np.sum(half**2, axis=0) + spread
    logs = np.log(np.abs(np.diagonal(factor, axis1=1, axis2=2)))
    divergence = 0.5 * (np.sum(factor**2) + np.sum(mean**2) - mean.size) - np.sum(logs)
    return (mean @ half).T, variance.T, float(divergence)


def sparse_bound(q: InducingPoints, y: np.ndarray, nu: float) -> float:
    mean, variance, divergence = sparse_moments(q, np.asarray(X), nu)
    terms = ((y - mean) ** 2 + variance) / NOISE + np.log(2.0 * np.pi * NOISE)
    return -0.5 * float(np.sum(terms)) - divergence


@pytest.mark.parametrize(("output", "nu"), [("scalar", 1.5), ("tangent", 2.5)])
def test_hidden_layers_of_no_variance_leave_sparse_regression_in_the_ambient_space(output: str, nu: float) -> None:
    """On the sphere the hidden layer is x + h(x), so the output sees x in R³; tangent outputs are east and north."""
    model, y = without_variance(baseline(output)), np.asarray(observations(output))
    mean, variance, _ = sparse_moments(model.output.variational, np.asarray(TEST), nu)
    prediction = model.predict(TEST, key=KEY, samples=2)
    components = y[:, None]
    if output == "scalar":
        np.testing.assert_allclose(prediction.mean, mean[:, 0], atol=1e-6)
        np.testing.assert_allclose(prediction.variance, variance[:, 0], atol=1e-6)
    else:
        frame = np.asarray(east_north_frame(TEST))
        np.testing.assert_allclose(prediction.mean, np.einsum("ndq,nq->nd", frame, mean), atol=1e-6)
        expected = np.einsum("ndq,nq,neq->nde", frame, variance, frame)
        np.testing.assert_allclose(prediction.covariance, expected, atol=1e-6)
        components = np.einsum("ndq,nd->nq", np.asarray(east_north_frame(X)), y)
    divergence = float(compiled(InducingPoints.kl, model.hidden[0]))
    expected = sparse_bound(model.output.variational, components, nu)
    assert bound(model, X, observations(output)) + divergence == pytest.approx(expected, abs=1e-5)


def step_by_step(draw: DeepDraw, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the value of a draw, and where adding one layer's function after the other leads."""
    point = x
    for hidden in draw.hidden:
        point = point + hidden(point)
    return draw(x), draw.output(point)


@pytest.mark.parametrize(("output", "on_sphere"), [("tangent", True), ("scalar", False)])
def test_every_layer_adds_its_function(output: str, on_sphere: bool) -> None:
    value, expected = compiled(step_by_step, draw_from(baseline(output, 3, on_sphere)), TEST)
    if output == "tangent":
        expected = np.einsum("ndq,nq->nd", np.asarray(east_north_frame(TEST)), np.asarray(expected))
    np.testing.assert_allclose(value, expected, atol=1e-10)
