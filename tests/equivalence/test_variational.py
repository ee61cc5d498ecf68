"""Variational families against exact Gaussian processes, dense formulas and each other.

Compilation dominates the time, so each family goes through one compiled function that returns all its numbers.
"""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdgp import (
    Circle,
    Euclidean,
    EuclideanMatern,
    FrameField,
    HodgeField,
    Matern,
    Product,
    ProjectedField,
    Rotations,
    ScalarField,
    Sphere,
    StackedField,
    Torus,
)
from rdgp.core import compiled, split_trainable
from rdgp.fields import Field
from rdgp.inference import Batch, elbo
from rdgp.inference._recipe import optimal_output, start_shallow
from rdgp.likelihoods import Gaussian
from rdgp.models import DeepGP
from rdgp.models._conditioned import Conditioned, log_evidence
from rdgp.models._evidence import evidence_by_features
from rdgp.spaces import Space
from rdgp.variational import InducingLocations, Interdomain, Variational, kmeans

NOISE = 0.05
SPHERE = Sphere(2)
ROUGH, SMOOTH = Matern(1.5, 0.6, 1.7), Matern(2.5, 0.8, 0.9)

FIELDS: dict[str, Callable[[int], Field]] = {
    "scalar": lambda levels: ScalarField(SPHERE, ROUGH, levels),
    "stacked": lambda levels: StackedField(SPHERE, ROUGH, levels, outputs=2),
    "projected": lambda levels: ProjectedField(SPHERE, ROUGH, levels),
    "frame": lambda levels: FrameField(SPHERE, ROUGH, levels),
    "hodge": lambda levels: HodgeField(SPHERE, divergence=ROUGH, curl=SMOOTH, levels=levels),
}


def sphere_points(seed: int, n: int) -> np.ndarray:
    x = np.random.default_rng(seed).normal(size=(n, 3))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


X, TEST = jnp.asarray(sphere_points(0, 8)), jnp.asarray(sphere_points(2, 4))


def observations(field: Field) -> jax.Array:
    y = np.random.default_rng(1).normal(size=(8, *field.value_shape()))
    along = (
        np.sum(y * np.asarray(X), axis=1, keepdims=True) * np.asarray(X)
        if "Stacked" not in str(type(field)) and y.ndim == 2
        else 0.0
    )
    return jnp.asarray(y - along)


class Facts(NamedTuple):
    """All numbers of a family and of the exact posterior, at the data X and at test points."""

    mean: np.ndarray
    covariance: np.ndarray
    joint_mean: np.ndarray
    joint_covariance: np.ndarray
    divergence: np.ndarray
    bound: np.ndarray
    weights: tuple[np.ndarray, ...]
    mixing: tuple[np.ndarray, ...] | None
    basis: np.ndarray | None
    coordinates: np.ndarray
    optimum: tuple[tuple[np.ndarray, np.ndarray], ...]
    evidence: np.ndarray
    exact_mean: np.ndarray
    exact_covariance: np.ndarray


@eqx.filter_jit
def _facts(q: Variational, x: jax.Array, y: jax.Array, test: jax.Array) -> Facts:
    model, field, noise = shallow(q), q.field, jnp.asarray(NOISE)
    coordinates = model.coordinates(x, y)
    exact = Conditioned(field, noise, x, field.basis(x), coordinates).moments(test, field.basis(test))
    return Facts(
        *q.moments(test),
        *q.joint(test),
        q.kl(),
        elbo(model, Batch(x, coordinates, None, x.shape[0]), jax.random.key(0), 1),
        tuple(conditional.weights for conditional in q.conditionals(x)),
        field.mixing(x, field.basis(x)),
        field.basis(test),
        coordinates,
        tuple((block.mean, block.factor) for block in optimal_output(model, x, coordinates).blocks),
        log_evidence(field, noise, x, field.basis(x), coordinates),
        *exact,
    )


def facts(q: Variational) -> Facts:
    return jax.tree.map(np.asarray, _facts(q, X, observations(q.field), TEST))


def shallow(q: Variational) -> DeepGP:
    return DeepGP((), q, Gaussian(NOISE))


def design(known: Facts) -> list[list[np.ndarray]]:
    """Return the matrix from inducing variables to coordinates at the data, for each copy of each process."""
    blocks = []
    for i, weights in enumerate(known.weights):
        n, p, m = weights.shape
        copies = known.coordinates.size // (n * p) if known.mixing is None else known.mixing[i].shape[-1]
        unit = np.broadcast_to(np.eye(p * copies).reshape(p * copies, p, copies), (n, p * copies, p, copies))
        mix = unit if known.mixing is None else known.mixing[i]
        blocks.append([np.einsum("nqp,npm->nqm", mix[..., r], weights).reshape(-1, m) for r in range(copies)])
    return blocks


Moments = list[tuple[np.ndarray, np.ndarray]]


def optimum(known: Facts) -> Moments:
    """Return mean and factor of the best q: the exact mean, and the inverse of each diagonal block of the precision."""
    blocks = design(known)
    whole = np.concatenate([part for block in blocks for part in block], axis=1)
    precision = np.eye(whole.shape[1]) + whole.T @ whole / NOISE
    mean = np.linalg.solve(precision, whole.T @ known.coordinates.reshape(-1) / NOISE)
    new, start = [], 0
    for block in blocks:
        covariances = [np.linalg.inv(np.eye(part.shape[1]) + part.T @ part / NOISE) for part in block]
        size = len(block) * block[0].shape[1]
        new.append((mean[start : start + size].reshape(len(block), -1), np.linalg.cholesky(np.stack(covariances))))
        start += size
    return new


def with_moments(q: Variational, moments: Moments) -> Variational:
    raws = []
    for mean, factor in moments:
        diagonal = np.log(np.diagonal(factor, axis1=1, axis2=2))
        raws += [jnp.asarray(mean), jnp.asarray(np.tril(factor, -1) + diagonal[..., None] * np.eye(mean.shape[1]))]
    return eqx.tree_at(lambda f: [raw for b in f.blocks for raw in (b._mean.raw, b._raw.raw)], q, raws)


def random_moments(q: Variational, seed: int = 0) -> Moments:
    rng, moments = np.random.default_rng(seed), []
    for block in q.blocks:
        size = block._mean.raw.shape
        lower = np.tril(rng.normal(size=(*size, size[1])), -1) / size[1]
        moments.append((rng.normal(size=size), lower + rng.uniform(0.2, 1.5, size)[..., None] * np.eye(size[1])))
    return moments


def perturbed(q: Variational, seed: int = 0) -> Variational:
    """Return the family with a random mean, factor and tail."""
    q = with_moments(q, random_moments(q, seed))
    if not getattr(q, "tails", ()):
        return q
    rng = np.random.default_rng(seed)
    raws = [jnp.asarray(0.5 * rng.normal(size=t.raw.shape)) for t in q.tails if t.trainable]
    return eqx.tree_at(lambda f: [t.raw for t in f.tails if t.trainable], q, raws) if raws else q


FAMILIES: dict[str, Callable[[str], Variational]] = {
    "interdomain": lambda name: Interdomain(FIELDS[name](2)),
    "tail": lambda name: Interdomain(FIELDS[name](4), tail=2),
    "locations": lambda name: InducingLocations(FIELDS[name](4), X),
}
CASES = [
    *(("interdomain", name) for name in ("scalar", "hodge")),
    *(("tail", name) for name in ("scalar", "projected", "hodge")),
    *(("locations", name) for name in FIELDS),
]
cases = pytest.mark.parametrize(("family", "name"), CASES)


@cases
def test_the_best_posterior_is_the_exact_one(family: str, name: str) -> None:
    """Locations lie at the data; their jitter of 1e-8 is divided by the noise, hence the tolerance.

    The coordinates of a projected field are dependent in the exact posterior, independent in the family: there the mean
    is exact, the variance too small and the bound not tight. A tail keeps its prior.
    """
    q = FAMILIES[family](name)
    known = facts(q)
    best = facts(with_moments(q, optimum(known)))
    assert best.bound > known.bound
    if family == "tail":
        assert best.bound < best.evidence
        return
    exact_mean = known.exact_mean if known.basis is None else np.einsum("ndq,nq->nd", known.basis, known.exact_mean)
    np.testing.assert_allclose(best.mean, exact_mean.reshape(best.mean.shape), atol=1e-5)
    own = blocks_of(best, len(TEST))
    if name == "projected":
        assert np.all(np.trace(own - known.exact_covariance, axis1=1, axis2=2) < 1e-5)
        assert best.bound < best.evidence
    else:
        np.testing.assert_allclose(own, known.exact_covariance, atol=1e-5)
        assert best.bound == pytest.approx(best.evidence, abs=1e-6 if family == "interdomain" else 1e-4)


def blocks_of(known: Facts, n: int) -> np.ndarray:
    """Return the covariance of the coordinates at each point, from the joint one."""
    size = known.joint_mean.size // n
    return np.stack([known.joint_covariance[i * size : (i + 1) * size, i * size : (i + 1) * size] for i in range(n)])


@pytest.mark.parametrize(("family", "name"), [case for case in CASES if case[1] != "projected"])
def test_optimal_output_is_the_optimum(family: str, name: str) -> None:
    known = facts(FAMILIES[family](name))
    for (mean, factor), (expected_mean, expected_factor) in zip(known.optimum, optimum(known), strict=True):
        np.testing.assert_allclose(mean, expected_mean, atol=1e-6)
        np.testing.assert_allclose(factor, expected_factor, atol=1e-6)


@pytest.mark.parametrize("name", ["hodge"])
def test_locations_that_span_the_features_equal_interdomain(name: str) -> None:
    """8 locations and 4 or 16 features: K_zz has their rank, so both families hold the exact posterior."""
    field = FIELDS[name](2)
    spectral, local = Interdomain(field), InducingLocations(field, jnp.asarray(sphere_points(7, 8)))
    ours, theirs = (facts(with_moments(q, optimum(facts(q)))) for q in (spectral, local))
    assert ours.bound == pytest.approx(ours.evidence, abs=1e-6)
    assert theirs.bound == pytest.approx(ours.bound, abs=1e-3)
    np.testing.assert_allclose(ours.joint_mean, theirs.joint_mean, atol=1e-4)
    np.testing.assert_allclose(ours.joint_covariance, theirs.joint_covariance, atol=1e-4)


def test_the_bound_of_a_projected_field_is_stationary_at_the_best_posterior() -> None:
    q = Interdomain(FIELDS["projected"](2))
    model, y = shallow(with_moments(q, optimum(facts(q)))), observations(q.field)
    free, rest = split_trainable(model.output.blocks)

    @eqx.filter_jit
    @eqx.filter_grad
    def gradient(free: object) -> jax.Array:
        moved = eqx.tree_at(lambda m: m.output.blocks, model, eqx.combine(free, rest))
        return elbo(moved, Batch(X, model.coordinates(X, y), None, 8), jax.random.key(0), 1)

    for leaf in jax.tree.leaves(gradient(free)):
        np.testing.assert_allclose(leaf, 0.0, atol=1e-8)


@cases
def test_the_bound_is_below_the_evidence(family: str, name: str) -> None:
    q = FAMILIES[family](name)
    for seed in range(3):
        known = facts(perturbed(q, seed))
        assert known.bound < known.evidence


@pytest.mark.parametrize(("n", "expected"), [(100, -74.57), (400, -476.92), (1600, -2203.07)])
def test_the_collapsed_bound_reaches_the_known_optimum(data_folder: Path, n: int, expected: float) -> None:
    file = np.load(data_folder / "synthetic" / f"synth_N{n}_seed0.npz")
    x, y = jnp.asarray(file["train_x"]), jnp.asarray(file["train_y"][:, None, None])
    model = DeepGP((), Interdomain(ScalarField(SPHERE, Matern(), levels=7)), Gaussian())
    model = start_shallow(model, x, y)
    bound = compiled(elbo, model, Batch(x, y, None, n), jax.random.key(0), 1)
    assert float(-bound) == pytest.approx(expected, abs=0.05)


def dense_kl(mean: np.ndarray, covariance: np.ndarray) -> float:
    return 0.5 * (np.trace(covariance) + mean @ mean - mean.size - np.linalg.slogdet(covariance)[1])


@cases
def test_divergence_is_that_of_dense_gaussians(family: str, name: str) -> None:
    q = FAMILIES[family](name)
    moments, moved = random_moments(q), perturbed(q)
    expected = sum(dense_kl(m, c @ c.T) for mean, factor in moments for m, c in zip(mean, factor, strict=True))
    if family == "tail":
        copies = 3 if name == "projected" else 1
        for tail in moved.tails:
            degrees = np.array([2, 3]) + (1 if name == "hodge" else 0)
            for row in np.exp(np.asarray(tail.raw)):
                variances = np.repeat(row, 2 * degrees + 1)
                expected += copies * dense_kl(np.zeros(variances.size), np.diag(variances))
    assert facts(moved).divergence == pytest.approx(expected, rel=1e-10)
    assert facts(q).divergence == pytest.approx(0.0, abs=1e-12)


@cases
def test_joint_law_has_the_marginal_moments(family: str, name: str) -> None:
    known = facts(perturbed(FAMILIES[family](name)))
    n, size = len(TEST), known.joint_mean.size // len(TEST)
    basis = np.broadcast_to(np.eye(size), (n, size, size)) if known.basis is None else known.basis
    own = basis @ blocks_of(known, n) @ np.swapaxes(basis, 1, 2)
    mean = np.einsum("npq,nq->np", basis, known.joint_mean.reshape(n, size))
    np.testing.assert_allclose(mean, known.mean.reshape(mean.shape), atol=1e-10)
    np.testing.assert_allclose(own, known.covariance.reshape(own.shape), atol=1e-10)
    assert np.linalg.eigvalsh(known.joint_covariance).min() > -1e-9


@pytest.mark.parametrize("name", ["scalar", "hodge"])
def test_fixed_tail_is_the_plain_family_with_the_prior_there(name: str) -> None:
    field = FIELDS[name](4)
    q, plain = Interdomain(field, tail=2, tail_variances="fixed"), Interdomain(field)
    moments = []
    for latent, (small_mean, small_factor), large in zip(field.latents, random_moments(q), plain.blocks, strict=True):
        head, shape = np.flatnonzero(latent.levels() < latent.levels().max() - 1), large._mean.raw.shape
        assert head.size == small_mean.shape[1] < shape[1]
        mean, factor = np.zeros(shape), np.tile(np.eye(shape[1]), (shape[0], 1, 1))
        mean[:, head] = small_mean
        factor[np.ix_(range(shape[0]), head, head)] = small_factor
        moments.append((mean, factor))
    ours, theirs = facts(perturbed(q)), facts(with_moments(plain, moments))
    for number in ("mean", "covariance", "joint_mean", "joint_covariance", "divergence", "bound"):
        np.testing.assert_allclose(getattr(ours, number), getattr(theirs, number), atol=1e-9, err_msg=number)


@pytest.mark.parametrize("name", ["scalar", "hodge"])
def test_variance_of_a_learned_tail_follows_the_spectrum(name: str) -> None:
    """With the head at zero what remains is σ² sum p_k D'_k, times the projector over d for each Hodge part."""
    q = perturbed(FAMILIES["tail"](name))
    q = with_moments(q, [(0.0 * mean, 1e-9 * np.eye(mean.shape[1])[None]) for mean, _ in random_moments(q)])
    parts = [(1.5, 0.6, 1.7)] if name == "scalar" else [(1.5, 0.6, 1.7), (2.5, 0.8, 0.9)]
    k = np.arange(4) if name == "scalar" else np.arange(1, 5)
    expected = 0.0
    for (nu, kappa, variance), variances in zip(parts, np.exp(np.asarray(q.tails[0].raw)), strict=True):
        spectrum = (2 * nu / kappa**2 + k * (k + 1)) ** -(nu + 1.0) * (2 * k + 1)
        expected += variance * (spectrum / spectrum.sum())[-2:] @ variances
    shape = 1.0 if name == "scalar" else (np.eye(3) - np.asarray(TEST)[:, :, None] * np.asarray(TEST)[:, None, :]) / 2
    np.testing.assert_allclose(facts(q).covariance, expected * shape, atol=1e-9)


@pytest.mark.parametrize("space", [Product(SPHERE, Circle()), Torus(2), Rotations()], ids=str)
def test_every_part_of_a_hodge_field_has_its_own_tail(space: Space) -> None:
    names = {"harmonic": ROUGH} if space != Rotations() else {}
    field = HodgeField(space, ROUGH, SMOOTH, 3, **names)
    q = Interdomain(field, tail=1)
    assert q.tails[0].raw.shape == (len(field.kernels), 1)
    levels = field.latents[0].levels()
    parts = [part.level_of_feature() for part in field.spectrum.parts]
    starts = np.cumsum([0, *(part.size for part in parts)])
    for (a, b), part in zip(pairwise(starts), parts, strict=True):
        assert np.all(np.diff(levels[a:b]) >= 0)
        np.testing.assert_array_equal(levels[a:b], part)


@eqx.filter_jit
def _many_draws(q: Variational, x: jax.Array, keys: jax.Array) -> jax.Array:
    return jax.lax.map(lambda key: q.field.coordinates(x, q.draw(key=key)(x)), keys, batch_size=200)


@pytest.mark.parametrize(("family", "name"), [("tail", "hodge"), ("locations", "hodge")])
def test_draws_have_the_joint_moments(family: str, name: str) -> None:
    """2,000 draws at 4 points, 8 means and 36 covariances: six standard errors, false alarms below 1e-6."""
    q, count = perturbed(FAMILIES[family](name)), 2000
    draws = np.asarray(_many_draws(q, TEST, jax.random.split(jax.random.key(3), count))).reshape(count, -1)
    known = facts(q)
    covariance, variance = known.joint_covariance, np.diagonal(known.joint_covariance)
    assert np.all(np.abs(draws.mean(0) - known.joint_mean) < 6 * np.sqrt(variance / count))
    error = np.sqrt((np.outer(variance, variance) + covariance**2) / count)
    assert np.all(np.abs(np.cov(draws.T) - covariance) < 6 * error)


def test_values_drawn_point_by_point_have_the_marginal_moments() -> None:
    """8,000 draws at 4 points, 8 means and 12 covariances: six standard errors, false alarms below 1e-7."""
    q, count = perturbed(FAMILIES["locations"]("hodge")), 8000
    known = facts(q)
    draws = compiled(Variational.sample_independently, q, jnp.tile(TEST, (count, 1)), jax.random.key(0))
    draws = np.einsum("ndq,snd->snq", known.basis, np.asarray(draws).reshape(count, 4, 3))
    own, means = blocks_of(known, 4), known.joint_mean.reshape(4, 2)
    for i in range(4):
        variance = np.diagonal(own[i])
        assert np.all(np.abs(draws[:, i].mean(0) - means[i]) < 6 * np.sqrt(variance / count))
        error = np.sqrt((np.outer(variance, variance) + own[i] ** 2) / count)
        assert np.all(np.abs(np.cov(draws[:, i].T) - own[i]) < 6 * error)


@pytest.mark.parametrize("family", ["tail", "locations"])
def test_draws_are_the_same_wherever_called_and_differentiable(family: str) -> None:
    q = perturbed(FAMILIES[family]("scalar"))
    draw = compiled(lambda q, key: q.draw(key=key), q, jax.random.key(0))
    np.testing.assert_allclose(draw(TEST)[1:3], draw(TEST[1:3]), atol=1e-12)
    gradient = np.asarray(jax.grad(lambda x: jnp.sum(jnp.square(draw(x))))(TEST))
    there, back = (turned(TEST, angle) for angle in (1e-6, -1e-6))
    change = np.sum(np.square(draw(there))) - np.sum(np.square(draw(back)))
    assert change == pytest.approx(np.sum(gradient * np.asarray(there - back)), rel=1e-5)


def turned(x: jax.Array, angle: float) -> jax.Array:
    """Turn points about the third axis."""
    c, s = np.cos(angle), np.sin(angle)
    return jnp.asarray(np.asarray(x) @ np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]))


@eqx.filter_jit
def _sound(free: DeepGP, rest: DeepGP, x: jax.Array, y: jax.Array) -> tuple[object, ...]:
    model = eqx.combine(free, rest)
    batch = Batch(x, model.coordinates(x, y), None, x.shape[0])
    value, gradient = eqx.filter_value_and_grad(lambda f: elbo(eqx.combine(f, rest), batch, jax.random.key(0), 1))(free)
    return value, gradient, model.output.moments(x), model.output.draw(key=jax.random.key(1))(x)


@pytest.mark.parametrize(("name", "dtype"), [("hodge", "float32")])
def test_more_locations_than_harmonics_are_sound(name: str, dtype: str) -> None:
    """K_zz has the rank of the features, 4 or 16, with 30 locations of which two coincide."""
    field, z = FIELDS[name](2), sphere_points(5, 30)
    z[1] = z[0]
    model = shallow(InducingLocations(field, jnp.asarray(z), trainable=True))
    model = jax.tree.map(lambda leaf: leaf.astype(dtype) if eqx.is_inexact_array(leaf) else leaf, model)
    free, rest = split_trainable(model)
    value, gradient, (mean, covariance), draw = _sound(free, rest, X.astype(dtype), observations(field).astype(dtype))
    numbers = [value, mean, covariance, draw, *jax.tree.leaves(gradient)]
    assert all(np.all(np.isfinite(number)) for number in numbers)
    assert {str(number.dtype) for number in numbers[1:]} == {dtype}
    lowest = np.min(covariance if name == "scalar" else np.linalg.eigvalsh(covariance))
    assert lowest > (-1e-9 if dtype == "float64" else -1e-4)


@pytest.mark.parametrize("noise", [1e-20, 1e-26])
def test_evidence_of_data_without_noise_does_not_cancel(noise: float) -> None:
    """Data in the span of the features, so the evidence grows as the noise falls, but never by rounding errors."""
    rng = np.random.default_rng(0)
    psi = rng.normal(size=(40, 9))
    y = psi @ rng.normal(size=(9, 1))
    left, singular, _ = np.linalg.svd(psi, full_matrices=False)
    fit = np.sum((left.T @ y)[:, 0] ** 2 / (singular**2 + noise))
    log_det = np.sum(np.log(singular**2 + noise)) + 31 * np.log(noise)
    expected = -0.5 * (fit + log_det + 40 * np.log(2 * np.pi))
    value = compiled(evidence_by_features, jnp.asarray(psi), jnp.asarray(y), jnp.asarray(noise))
    assert float(value) == pytest.approx(expected, rel=1e-2)


def test_fixed_locations_are_not_trained_and_trained_ones_stay_on_the_space() -> None:
    fixed, trained = (InducingLocations(FIELDS["scalar"](3), X, trainable=flag) for flag in (False, True))
    assert len(jax.tree.leaves(split_trainable(trained)[0])) == len(jax.tree.leaves(split_trainable(fixed)[0])) + 1
    moved = eqx.tree_at(lambda q: q._z.raw, trained, 1.3 * X + 0.1)
    assert np.all(SPHERE.contains(moved.on_space().z))


def test_euclidean_fields_have_no_interdomain_family() -> None:
    with pytest.raises(ValueError, match="spectrum"):
        Interdomain(ScalarField(Euclidean(2), EuclideanMatern()))


SPACES = [SPHERE, Torus(2), Rotations(), Product(Rotations(), Euclidean(1))]


def distances(space: Space, a: jax.Array, b: jax.Array) -> np.ndarray:
    return np.asarray(compiled(type(space)._distance, space, a[:, None, :], b[None, :, :]))


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_kmeans_returns_distinct_points_of_the_space(space: Space) -> None:
    x = space.random(60, key=jax.random.key(0))
    x = jnp.concatenate([x, x[:20]])
    centers = kmeans(space, x, 7, key=jax.random.key(1))
    assert centers.shape == (7, space.ambient_dim)
    assert np.all(space.contains(centers))
    assert np.min(distances(space, centers, centers) + np.eye(7)) > 1e-3
    np.testing.assert_array_equal(centers, kmeans(space, x, 7, key=jax.random.key(1)))
    ours, chance = (np.mean(distances(space, x, some).min(1) ** 2) for some in (centers, x[:7]))
    assert ours < chance


def test_both_quaternions_of_a_rotation_are_one_point() -> None:
    x = np.random.default_rng(0).normal(size=(6, 4))
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    both = jnp.asarray(np.concatenate([x, -x, [[0.0, 1.0, 0.0, 0.0], [-0.0, -1.0, 0.0, 0.0]]]))
    assert kmeans(Rotations(), both, 14, key=jax.random.key(0)).shape == (7, 4)
    few = np.asarray(kmeans(Rotations(), both, 5, key=jax.random.key(0)))
    assert np.max(np.abs(few @ few.T) - np.eye(5)) < 1 - 1e-6


def test_kmeans_of_fewer_distinct_points_returns_them() -> None:
    np.testing.assert_allclose(kmeans(SPHERE, jnp.concatenate([X, X, X]), 20, key=jax.random.key(0)), X)


@pytest.mark.parametrize("space", [SPHERE, Torus(2)], ids=str)
def test_kmeans_of_opposite_points_stays_on_the_space(space: Space) -> None:
    """The mean of opposite points is zero, which is no direction."""
    x = space.random(1, key=jax.random.key(0))
    centers = kmeans(space, jnp.concatenate([x, -x]), 1, key=jax.random.key(0))
    assert centers.shape == x.shape
    assert np.all(space.contains(centers))


def test_kmeans_keeps_single_precision() -> None:
    assert kmeans(SPHERE, X.astype("float32"), 4, key=jax.random.key(0)).dtype == jnp.float32
