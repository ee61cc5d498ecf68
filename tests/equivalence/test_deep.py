"""Deep models against shallow ones, and their parts against each other.

Compilation dominates the time, so models share structures and shapes, and predictions go through compiled functions.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.flatten_util import ravel_pytree

from rdgp.core import compiled, split_trainable, to_vector
from rdgp.fields import Frame, ProjectedField, StackedField
from rdgp.inference import elbo
from rdgp.kernels import Matern
from rdgp.likelihoods import Gaussian, WrappedGaussian
from rdgp.models import DeepGP
from rdgp.posteriors import InducingPoints, Interdomain
from rdgp.spaces import Circle, Euclidean, Product, Rotations, Space, Sphere
from tests.cases import points
from tests.equivalence.deep_models import (
    KEY,
    NOISE,
    OUTPUTS,
    SPHERE,
    TEST,
    X,
    bound,
    conditioned,
    draw_from,
    hodge,
    observations,
    sphere_points,
    two_layers,
    with_means,
)

pytestmark = pytest.mark.xdist_group("deep")  # one worker compiles what they share


@pytest.mark.parametrize(
    ("kind", "explicit"),
    [("scalar", False), ("scalar", True), ("tangent", False), ("tangent", True), ("stacked", True)],
)
def test_hidden_layers_of_no_variance_leave_a_shallow_model(kind: str, explicit: bool) -> None:
    """Points move by 1e-8, so predictions and bounds (the divergence of the hidden layer apart) agree to 1e-6."""
    deep = two_layers(kind, explicit, 1e-16)
    shallow = DeepGP((), deep.output, Gaussian(NOISE))
    shallow = shallow if explicit else conditioned(shallow, kind)
    ours, theirs = (model.predict(TEST, key=KEY, samples=2) for model in (deep, shallow))
    np.testing.assert_allclose(ours.mean, theirs.mean, atol=1e-6)
    np.testing.assert_allclose(ours.covariance, theirs.covariance, atol=1e-6)
    y = observations(kind)
    divergence = float(compiled(Interdomain.kl, deep.hidden[0]))
    assert bound(deep, X, y) + divergence == pytest.approx(bound(shallow, X, y), abs=1e-5)


@pytest.mark.parametrize("kind", ["projected", "stacked"])
def test_a_layer_on_euclidean_space_adds_its_field(kind: str) -> None:
    space, kernel = Euclidean(2), Matern(1.5, 0.8, 0.5)
    field = ProjectedField(space, kernel) if kind == "projected" else StackedField(space, kernel, outputs=2)
    x = jnp.asarray(np.random.default_rng(0).normal(size=(4, 2)))
    q = with_means(InducingPoints(field, x[:3]), 0)
    model = DeepGP((q,), None, WrappedGaussian(space))
    draw = draw_from(model)
    np.testing.assert_allclose(draw(x), x + draw.hidden[0](x), atol=1e-12)


@pytest.mark.parametrize("space", [SPHERE, Rotations(), Product(SPHERE, Circle())], ids=str)
def test_frames_stay_orthonormal_and_tangent_and_come_back(space: Space) -> None:
    @jax.jit
    def there_and_back(x: jax.Array, v: jax.Array) -> tuple[jax.Array, ...]:
        bundle = ProjectedField(space, Matern(), 2).bundle
        start = bundle.frame(x)
        v = space.project(x, v)
        there, frame = bundle.move(x, v, start)
        second, columns = columns_after(there, space.project(there, 0.5 * jnp.flip(v, -1)), frame)
        home, returned = columns_after(there, -space.transport_along(x, v, v), frame)
        inner = jnp.einsum("ndi,ndj->nij", columns, columns)
        normal = columns - jax.vmap(lambda u: space.project(second, u), -1, -1)(columns)
        return start.columns, inner, normal, returned, home

    def columns_after(x: jax.Array, v: jax.Array, frame: Frame) -> tuple[jax.Array, jax.Array]:
        point, moved = ProjectedField(space, Matern(), 2).bundle.move(x, v, frame)
        return point, moved.columns

    x = points(space, 0)
    v = 1.5 * np.random.default_rng(1).normal(size=x.shape)
    start, inner, normal, returned, home = there_and_back(x, v)
    np.testing.assert_allclose(inner, np.broadcast_to(np.eye(space.dim), inner.shape), atol=1e-12)
    np.testing.assert_allclose(normal, 0.0, atol=1e-12)
    np.testing.assert_allclose(returned, start, atol=1e-12)
    np.testing.assert_allclose(home, x, atol=1e-12)


def test_a_model_and_data_turned_together_have_the_same_bound() -> None:
    """The hidden map is nearly deterministic (1e-7) and turned by least squares; frames are not turned with it."""
    turn = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))[0]
    hidden = with_means(Interdomain(hodge(0.05), std=1e-7), 3)
    model = DeepGP((hidden,), OUTPUTS["tangent"], Gaussian(NOISE))
    many = sphere_points(8, 30)
    psi, turned = (
        np.asarray(hidden.field.features(jnp.asarray(p)) * hidden.field.scales()) for p in (many, many @ turn.T)
    )
    moved = psi @ np.asarray(hidden.blocks[0]._mean.raw[0]) @ turn.T
    weights, *_ = np.linalg.lstsq(turned.reshape(-1, turned.shape[-1]), moved.reshape(-1), rcond=None)
    other = eqx.tree_at(lambda m: m.layers[0].blocks[0]._mean.raw, model, jnp.asarray(weights)[None])
    y = observations("tangent")
    assert bound(other, X @ turn.T, y @ turn.T) == pytest.approx(bound(model, X, y), abs=1e-4)
    assert bound(other, X, y) != pytest.approx(bound(model, X, y), abs=0.1)


def test_many_points_are_predicted_in_parts() -> None:
    model, x = two_layers("tangent", False), sphere_points(9, 3000)
    whole = model.predict(jnp.asarray(x), key=KEY, samples=2)
    means, covariances = np.asarray(whole.means), np.asarray(whole.covariances)
    for start in (0, 1024, 2048, 1000):
        part = model.predict(jnp.asarray(x[start : start + 1024]), key=KEY, samples=2)
        tolerance = 1e-12 if start % 1024 == 0 else 1e-10
        np.testing.assert_allclose(means[:, start : start + 1024], part.means, atol=tolerance)
        np.testing.assert_allclose(covariances[:, start : start + 1024], part.covariances, atol=tolerance)


def test_the_mixture_has_the_moments_of_its_members() -> None:
    model = two_layers("tangent", False)
    prediction = model.predict(TEST, key=KEY, samples=4)
    means, frame = np.asarray(prediction.means), np.asarray(SPHERE.frame(TEST))
    values = np.einsum("ndq,snq->snd", frame, means)
    np.testing.assert_allclose(prediction.mean, values.mean(0), atol=1e-12)
    inside = np.einsum("ndq,nqr,ner->nde", frame, np.asarray(prediction.covariances).mean(0), frame)
    centred = values - values.mean(0)
    total = inside + np.einsum("snd,sne->nde", centred, centred) / 4
    np.testing.assert_allclose(prediction.covariance, total, atol=1e-12)
    noisy = total + NOISE * frame @ np.swapaxes(frame, 1, 2)
    np.testing.assert_allclose(prediction.observed.covariance, noisy, atol=1e-12)


def test_a_constant_mean_is_added_once() -> None:
    """Data moved by a constant, and the constant as mean, move predictions and draws by it and leave the bound."""
    hidden, y = two_layers("stacked", True).hidden, observations("stacked")
    model = DeepGP(hidden, OUTPUTS["stacked"], Gaussian(NOISE), constant_mean=True)

    def moved_by(shift: np.ndarray) -> tuple[DeepGP, jax.Array]:
        values = np.asarray(y) + shift
        moved = eqx.tree_at(lambda m: m.mean.raw, model, jnp.asarray(shift))
        return moved.with_data(moved.check_data(X, values)), jnp.asarray(values)

    shift = np.array([3.0, -2.0])
    (plain, y), (moved, y_moved) = moved_by(0.0 * shift), moved_by(shift)
    ours, theirs = (m.predict(TEST, key=KEY, samples=2) for m in (moved, plain))
    np.testing.assert_allclose(ours.mean, theirs.mean + shift, atol=1e-10)
    np.testing.assert_allclose(ours.covariance, theirs.covariance, atol=1e-10)
    np.testing.assert_allclose(draw_from(moved)(TEST), draw_from(plain)(TEST) + shift, atol=1e-9)
    assert bound(moved, X, y_moved) == pytest.approx(bound(plain, X, y), abs=1e-8)


@pytest.mark.parametrize("space", [Sphere(2), Rotations()], ids=str)
def test_a_model_without_output_predicts_points_of_the_space(space: Space) -> None:
    layers = tuple(with_means(Interdomain(ProjectedField(space, Matern(1.5, 0.6, 0.1), 2)), seed) for seed in (0, 1))
    model, x = DeepGP(layers, None, WrappedGaussian(space)), points(space, 0, 4)
    prediction = model.predict(x, key=KEY, samples=5)
    assert prediction.points.shape == (5, 4, space.ambient_dim)
    assert np.all(space.contains(prediction.points))
    assert np.all(space.contains(prediction.mean))
    assert np.all(np.isfinite(prediction.log_prob(x)))
    assert np.all(space.contains(prediction.sample(key=KEY, n=3)))
    assert np.all(space.contains(draw_from(model)(x)))


def test_a_model_may_lead_from_one_space_to_another() -> None:
    """A layer of D scalar functions leads from S_2 to R^3, so the model's points lie there."""
    field = StackedField(SPHERE, Matern(1.5, 0.6, 0.5), 2, outputs=3)
    model = DeepGP((Interdomain(field),), None, WrappedGaussian(Euclidean(3)))
    prediction = model.predict(TEST, key=KEY, samples=3)
    np.testing.assert_allclose(prediction.mean, np.mean(prediction.points, axis=0), atol=1e-9)


def test_the_gradient_of_the_integrated_bound_is_that_of_its_values() -> None:
    """Draws are seeded, so the bound is a function; its gradient is written by hand, draw by draw."""
    model = two_layers("scalar", False)
    y = observations("scalar")
    free, rest = split_trainable(model)
    start = to_vector(free)
    direction = np.random.default_rng(0).normal(size=start.size)

    @jax.jit
    @jax.value_and_grad
    def value(step: jax.Array) -> jax.Array:
        moved = eqx.combine(ravel_pytree(free)[1](start + step * direction), rest)
        return elbo(moved, X, y, key=KEY, samples=3)

    (ahead, _), (_, slope), (behind, _) = value(1e-5), value(0.0), value(-1e-5)
    assert float(slope) == pytest.approx(float(ahead - behind) / 2e-5, rel=1e-6)
