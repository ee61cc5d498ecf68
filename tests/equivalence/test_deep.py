"""Deep models against shallow ones, and their parts against each other.

Compilation dominates the time, so models share structures and shapes, and laws go through compiled functions.
"""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdgp import (
    Circle,
    Euclidean,
    EuclideanMatern,
    HodgeField,
    Matern,
    Product,
    ProjectedField,
    Rotations,
    ScalarField,
    Sphere,
    StackedField,
)
from rdgp.core import compiled
from rdgp.fields import Field
from rdgp.inference import Batch, elbo
from rdgp.inference._recipe import optimal_output
from rdgp.likelihoods import Gaussian, WrappedGaussian
from rdgp.models import DeepGP
from rdgp.models._layers import Path, walk
from rdgp.spaces import Space
from rdgp.variational import InducingLocations, Interdomain, Variational

NOISE = 0.05
SPHERE = Sphere(2)
KEY = jax.random.key(0)


def sphere_points(seed: int, n: int) -> np.ndarray:
    x = np.random.default_rng(seed).normal(size=(n, 3))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


X, TEST = jnp.asarray(sphere_points(0, 10)), jnp.asarray(sphere_points(2, 3))


def hodge(variance: float = 0.05, levels: int = 2) -> HodgeField:
    return HodgeField(SPHERE, Matern(1.5, 0.6, variance), Matern(1.5, 0.8, variance), levels)


OUTPUTS: dict[str, Field] = {
    "scalar": ScalarField(SPHERE, Matern(1.5, 0.6, 1.5), 3),
    "stacked": StackedField(SPHERE, Matern(1.5, 0.6, 1.5), 3, outputs=2),
    "tangent": hodge(1.5),
}


def observations(kind: str) -> jax.Array:
    y = np.random.default_rng(1).normal(size=(10, *OUTPUTS[kind].value_shape()))
    return jnp.asarray(y - np.sum(y * np.asarray(X), axis=1, keepdims=True) * np.asarray(X) if kind == "tangent" else y)


def with_means(q: Variational, seed: int, size: float = 1.0) -> Variational:
    """Return the family with random means of its inducing variables."""
    rng = np.random.default_rng(seed)
    raws = [jnp.asarray(size * rng.normal(size=block._mean.raw.shape)) for block in q.blocks]
    return eqx.tree_at(lambda family: [block._mean.raw for block in family.blocks], q, raws)


def conditioned(model: DeepGP, kind: str) -> DeepGP:
    return model.with_coordinates(X, compiled(DeepGP.coordinates, model, X, observations(kind)))


def best_output(kind: str) -> Variational:
    q = Interdomain(OUTPUTS[kind])
    model = DeepGP((), q, Gaussian(NOISE))
    coordinates = compiled(DeepGP.coordinates, model, X, observations(kind))
    return compiled(optimal_output, model, X, coordinates)


@cache
def two_layers(kind: str, explicit: bool, variance: float = 0.05) -> DeepGP:
    """Return a model with one hidden layer that moves the points by about √(2 variance)."""
    hidden = with_means(Interdomain(hodge(variance), deviation=0.5), 3)
    if explicit:
        return DeepGP((hidden,), best_output(kind), Gaussian(NOISE))
    return conditioned(DeepGP((hidden,), OUTPUTS[kind], Gaussian(NOISE)), kind)


def bound(model: DeepGP, x: jax.Array, y: jax.Array, samples: int = 2) -> float:
    coordinates = compiled(DeepGP.coordinates, model, x, y)
    return float(compiled(elbo, model, Batch(x, coordinates, None, x.shape[0]), KEY, samples))


@pytest.mark.parametrize(
    ("kind", "explicit"),
    [("scalar", False), ("scalar", True), ("tangent", False), ("tangent", True), ("stacked", True)],
)
def test_hidden_layers_of_no_variance_leave_a_shallow_model(kind: str, explicit: bool) -> None:
    """Points move by 1e-8, so laws and bounds (the divergence of the hidden layer apart) agree to 1e-6."""
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
    space, kernel = Euclidean(2), EuclideanMatern(1.5, 0.8, 0.5)
    field = ProjectedField(space, kernel) if kind == "projected" else StackedField(space, kernel, outputs=2)
    x = jnp.asarray(np.random.default_rng(0).normal(size=(4, 2)))
    q = with_means(InducingLocations(field, x[:3]), 0)
    model = DeepGP((q,), None, WrappedGaussian(space))
    draw = model.draw(key=KEY)
    np.testing.assert_allclose(draw(x), x + draw.hidden[0](x), atol=1e-12)


@pytest.mark.parametrize("space", [SPHERE, Rotations(), Product(SPHERE, Circle())], ids=str)
def test_frames_stay_orthonormal_and_tangent_and_come_back(space: Space) -> None:
    @jax.jit
    def there_and_back(x: jax.Array, v: jax.Array) -> tuple[jax.Array, ...]:
        field = ProjectedField(space, Matern(), 2)
        start = space._frame(x)
        v = space._project(x, v)
        path = walk(field, Path(x, start), v)
        second = walk(field, path, space._project(path.x, 0.5 * jnp.flip(v, -1)))
        back = space._transport_along(x, v, v)
        returned = walk(field, path, -back)
        inner = jnp.einsum("ndi,ndj->nij", second.frame, second.frame)
        normal = second.frame - jax.vmap(lambda u: space._project(second.x, u), -1, -1)(second.frame)
        return start, inner, normal, returned.frame, returned.x

    x = space.random(5, key=KEY)
    v = 1.5 * jax.random.normal(jax.random.key(1), x.shape)
    start, inner, normal, returned, home = there_and_back(x, v)
    np.testing.assert_allclose(inner, np.broadcast_to(np.eye(space.dim), inner.shape), atol=1e-12)
    np.testing.assert_allclose(normal, 0.0, atol=1e-12)
    np.testing.assert_allclose(returned, start, atol=1e-12)
    np.testing.assert_allclose(home, x, atol=1e-12)


def test_a_model_and_data_turned_together_have_the_same_bound() -> None:
    """The hidden map is nearly deterministic (1e-7) and turned by least squares; frames are not turned with it."""
    turn = np.linalg.qr(np.random.default_rng(5).normal(size=(3, 3)))[0]
    hidden = with_means(Interdomain(hodge(0.05), deviation=1e-7), 3)
    model = DeepGP((hidden,), OUTPUTS["tangent"], Gaussian(NOISE))
    many = sphere_points(8, 30)
    psi, turned = (
        np.asarray(hidden.field.features(jnp.asarray(p)) * hidden.field.scales()) for p in (many, many @ turn.T)
    )
    moved = psi @ np.asarray(hidden.blocks[0]._mean.raw[0]) @ turn.T
    weights, *_ = np.linalg.lstsq(turned.reshape(-1, turned.shape[-1]), moved.reshape(-1), rcond=None)
    other = eqx.tree_at(lambda m: m.hidden[0].blocks[0]._mean.raw, model, jnp.asarray(weights)[None])
    y = observations("tangent")
    assert bound(other, X @ turn.T, y @ turn.T) == pytest.approx(bound(model, X, y), abs=1e-4)
    assert bound(other, X, y) != pytest.approx(bound(model, X, y), abs=0.1)


def test_sequential_and_pathwise_moments_agree() -> None:
    """2 layers, 3 points, 4,000 draws each way: 9 means and 9 variances of coordinates, false alarms below 1e-6.

    Six standard errors of the difference; those of variances from the fourth moments of the draws.
    """
    layers = tuple(with_means(Interdomain(hodge(0.1), deviation=1.0), seed) for seed in (3, 4))
    model, count = DeepGP(layers, None, WrappedGaussian(SPHERE)), 4000

    @eqx.filter_jit
    def both(model: DeepGP, x: jax.Array, keys: jax.Array) -> tuple[jax.Array, jax.Array]:
        def sequential(key: jax.Array) -> jax.Array:
            path = Path(x, None)
            for layer, own in zip(model.hidden, jax.random.split(key), strict=True):
                path = walk(layer.field, path, layer.sample_independently(path.x, own))
            return path.x

        pathwise = jax.lax.map(lambda key: model.lead(key, x).x, keys[0], batch_size=200)
        return jax.lax.map(sequential, keys[1], batch_size=200), pathwise

    ours, theirs = (np.asarray(part) for part in both(model, TEST, jax.random.split(KEY, (2, count))))
    compare_moments(ours, theirs)
    assert np.all(ours.std(0).max(-1) > 0.05)


def compare_moments(a: np.ndarray, b: np.ndarray) -> None:
    """Raise unless means and variances of two samples agree within six standard errors."""
    for power in (1, 2):
        left, right = ((part - (part.mean(0) if power == 2 else 0.0)) ** power for part in (a, b))
        error = np.sqrt(left.var(0) / len(a) + right.var(0) / len(b))
        assert np.all(np.abs(left.mean(0) - right.mean(0)) < 6 * error)


@pytest.mark.parametrize(("kind", "explicit"), [("tangent", False), ("tangent", True)])
def test_draws_have_the_moments_of_the_prediction(kind: str, explicit: bool) -> None:
    """1,500 draws against a mixture of 1,500 members, from which values are drawn; false alarms below 1e-6."""
    model, count = two_layers(kind, explicit), 1500

    @eqx.filter_jit
    def both(model: DeepGP, keys: jax.Array) -> tuple[jax.Array, ...]:
        drawn = jax.lax.map(lambda key: model.draw(key=key)(TEST), keys[0], batch_size=100)
        return drawn, *jax.lax.map(lambda key: model._member(key, TEST), keys[1], batch_size=100)

    drawn, means, covariances = (np.asarray(part) for part in both(model, jax.random.split(KEY, (2, count))))
    if kind == "tangent":
        drawn = np.einsum("ndq,snd->snq", np.asarray(SPHERE.frame(TEST)), drawn)
    normal = np.random.default_rng(0).normal(size=means.shape)
    values = means + np.einsum("snpq,snq->snp", np.linalg.cholesky(covariances), normal)
    compare_moments(drawn.reshape(count, -1), values.reshape(count, -1))
    assert np.all(means.std(0) > 0.02)  # the hidden layer matters


@pytest.mark.parametrize(("kind", "explicit"), [("tangent", False), ("stacked", True)])
def test_a_draw_is_the_same_wherever_called_and_differentiable(kind: str, explicit: bool) -> None:
    model = two_layers(kind, explicit)
    draw = compiled(lambda model, key: model.draw(key=key), model, KEY)
    values = draw(X)
    np.testing.assert_allclose(values[2:5], draw(X[2:5]), atol=1e-10)
    if kind == "tangent":
        np.testing.assert_allclose(np.sum(values * X, axis=1), 0.0, atol=1e-12)
    gradient = np.asarray(jax.grad(lambda x: jnp.sum(jnp.square(draw(x))))(X))
    there, back = turned_points(1e-6), turned_points(-1e-6)
    change = np.sum(np.square(draw(there))) - np.sum(np.square(draw(back)))
    assert change == pytest.approx(np.sum(gradient * np.asarray(there - back)), rel=1e-4)


def turned_points(angle: float) -> jax.Array:
    c, s = np.cos(angle), np.sin(angle)
    return jnp.asarray(np.asarray(X) @ np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]))


def test_a_draw_and_a_member_of_the_prediction_share_the_hidden_layers() -> None:
    """The values of a draw lie on the path that its hidden functions lead to."""
    model = two_layers("scalar", True)
    draw = model.draw(key=KEY)
    path = compiled(DeepGP.lead, model, jax.random.split(KEY)[0], TEST)
    np.testing.assert_allclose(draw(TEST), draw.output(path.x), atol=1e-10)


def test_many_points_are_predicted_in_parts() -> None:
    model, x = two_layers("tangent", False), jnp.asarray(sphere_points(9, 3000))
    whole = model.predict(x, key=KEY, samples=2)
    for start in (0, 1024, 2048):
        part = model.predict(x[start : start + 1024], key=KEY, samples=2)
        np.testing.assert_allclose(whole.means[:, start : start + 1024], part.means, atol=1e-12)
        np.testing.assert_allclose(whole.covariances[:, start : start + 1024], part.covariances, atol=1e-12)
    shifted = model.predict(x[1000:2024], key=KEY, samples=2)
    np.testing.assert_allclose(whole.means[:, 1000:2024], shifted.means, atol=1e-10)


def test_the_mixture_has_the_moments_of_its_members() -> None:
    model = two_layers("tangent", False)
    law = model.predict(TEST, key=KEY, samples=4)
    means, frame = np.asarray(law.means), np.asarray(SPHERE.frame(TEST))
    values = np.einsum("ndq,snq->snd", frame, means)
    np.testing.assert_allclose(law.mean, values.mean(0), atol=1e-12)
    inside = np.einsum("ndq,nqr,ner->nde", frame, np.asarray(law.covariances).mean(0), frame)
    centred = values - values.mean(0)
    np.testing.assert_allclose(law.covariance, inside + np.einsum("snd,sne->nde", centred, centred) / 4, atol=1e-12)
    noisy = inside + np.einsum("snd,sne->nde", centred, centred) / 4 + NOISE * frame @ np.swapaxes(frame, 1, 2)
    np.testing.assert_allclose(law.observed.covariance, noisy, atol=1e-12)


def test_a_constant_mean_is_added_once() -> None:
    """Data moved by a constant, and the constant as mean, move predictions and draws by it and leave the bound."""
    hidden = two_layers("stacked", False).hidden
    plain = two_layers("stacked", False)
    shift, y = jnp.array([3.0, -2.0]), observations("stacked")
    model = DeepGP(hidden, OUTPUTS["stacked"], Gaussian(NOISE), constant_mean=True)
    model = eqx.tree_at(lambda m: m.mean.raw, model, shift)
    moved = model.with_coordinates(X, (y + shift)[:, None, :])
    ours, theirs = (m.predict(TEST, key=KEY, samples=2) for m in (moved, plain))
    np.testing.assert_allclose(ours.mean, theirs.mean + shift, atol=1e-10)
    np.testing.assert_allclose(ours.covariance, theirs.covariance, atol=1e-10)
    np.testing.assert_allclose(moved.draw(key=KEY)(TEST), plain.draw(key=KEY)(TEST) + shift, atol=1e-9)
    assert bound(model, X, y + shift) == pytest.approx(bound(plain, X, y), abs=1e-8)


@pytest.mark.parametrize("space", [SPHERE, Rotations()], ids=str)
def test_a_model_without_output_predicts_points_of_the_space(space: Space) -> None:
    layers = tuple(with_means(Interdomain(ProjectedField(space, Matern(1.5, 0.6, 0.1), 2)), seed) for seed in (0, 1))
    model, x = DeepGP(layers, None, WrappedGaussian(space)), space.random(4, key=KEY)
    law = model.predict(x, key=KEY, samples=5)
    assert law.points.shape == (5, 4, space.ambient_dim)
    assert np.all(space.contains(law.points))
    assert np.all(space.contains(law.mean))
    assert np.all(np.isfinite(law.log_prob(x)))
    assert np.all(space.contains(law.sample(key=KEY, n=3)))
    assert np.all(space.contains(model.draw(key=KEY)(x)))


def test_a_model_may_lead_from_one_space_to_another() -> None:
    """A layer of D scalar functions leads from S_2 to R^3, so the model's points lie there."""
    field = StackedField(SPHERE, Matern(1.5, 0.6, 0.5), 2, outputs=3)
    model = DeepGP((Interdomain(field),), None, WrappedGaussian(Euclidean(3)))
    law = model.predict(TEST, key=KEY, samples=3)
    np.testing.assert_allclose(law.mean, np.mean(law.points, axis=0), atol=1e-9)


@pytest.mark.parametrize(
    "family",
    [
        "interdomain",
        "locations",
    ],
)
def test_the_two_draws_of_a_pair_differ(family: str) -> None:
    q = Interdomain(hodge()) if family == "interdomain" else InducingLocations(hodge(), X[:4])
    model = DeepGP((q,), OUTPUTS["scalar"], Gaussian(NOISE))
    one = DeepGP((q,), OUTPUTS["scalar"], Gaussian(NOISE))
    y = observations("scalar")
    assert bound(model, X, y, samples=2) != pytest.approx(bound(one, X, y, samples=1), rel=1e-9)
