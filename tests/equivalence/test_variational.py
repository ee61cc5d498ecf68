"""Variational families against exact Gaussian processes, dense formulas and each other."""

from itertools import pairwise
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdgp.core import compiled, split_trainable
from rdgp.fields import HodgeField, ScalarField
from rdgp.inference import elbo, start_shallow
from rdgp.kernels import Matern
from rdgp.likelihoods import Gaussian
from rdgp.models import DeepGP
from rdgp.posteriors import InducingPoints, Interdomain
from rdgp.posteriors._evidence import evidence_by_features
from rdgp.spaces import Circle, Euclidean, Product, Rotations, Space, Torus
from tests.equivalence.families import (
    CASES,
    FAMILIES,
    FIELDS,
    ROUGH,
    SMOOTH,
    SPHERE,
    TEST,
    X,
    blocks_of,
    cases,
    facts,
    grouped,
    observations,
    optimum,
    perturbed,
    random_moments,
    shallow,
    sphere_points,
    with_moments,
)


@cases
def test_the_best_posterior_is_the_exact_one(family: str, name: str) -> None:
    """Inducing points lie at the data; their jitter of 1e-8 is divided by the noise, hence the tolerance.

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
    exact_mean = np.einsum("ndq,nq->nd", known.frame, known.exact_mean)
    np.testing.assert_allclose(best.mean, exact_mean.reshape(best.mean.shape), atol=1e-5)
    own = blocks_of(best, len(TEST))
    if name == "projected":
        assert np.all(np.trace(own - known.exact_covariance, axis1=1, axis2=2) < 1e-5)
        assert best.bound < best.evidence
    else:
        np.testing.assert_allclose(own, known.exact_covariance, atol=1e-5)
        assert best.bound == pytest.approx(best.evidence, abs=1e-6 if family == "interdomain" else 1e-4)


@grouped([case for case in CASES if case[1] != "projected"])
def test_the_optimal_output_is_the_optimum(family: str, name: str) -> None:
    known = facts(FAMILIES[family](name))
    for (mean, factor), (expected_mean, expected_factor) in zip(known.optimum, optimum(known), strict=True):
        np.testing.assert_allclose(mean, expected_mean, atol=1e-6)
        np.testing.assert_allclose(factor, expected_factor, atol=1e-6)


@pytest.mark.parametrize("name", ["hodge"])
def test_inducing_points_that_span_the_features_equal_interdomain(name: str) -> None:
    """8 inducing points and 4 or 16 features: K_zz has their rank, so both families hold the exact posterior."""
    field = FIELDS[name](2)
    spectral, local = Interdomain(field), InducingPoints(field, jnp.asarray(sphere_points(7, 8)))
    ours, theirs = (facts(with_moments(q, optimum(facts(q)))) for q in (spectral, local))
    assert ours.bound == pytest.approx(ours.evidence, abs=1e-6)
    assert theirs.bound == pytest.approx(ours.bound, abs=1e-3)
    np.testing.assert_allclose(ours.joint_mean, theirs.joint_mean, atol=1e-4)
    np.testing.assert_allclose(ours.joint_covariance, theirs.joint_covariance, atol=1e-4)


def test_the_bound_of_a_projected_field_is_stationary_at_the_best_posterior() -> None:
    q = Interdomain(FIELDS["projected"](2))
    model, y = shallow(with_moments(q, optimum(facts(q)))), observations(q.field)
    free, rest = split_trainable(model.output.variational.blocks)

    @eqx.filter_jit
    @eqx.filter_grad
    def gradient(free: object) -> jax.Array:
        moved = eqx.tree_at(lambda m: m.output.variational.blocks, model, eqx.combine(free, rest))
        return elbo(moved, X, y, key=jax.random.key(0), samples=1)

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
    x, y = jnp.asarray(file["train_x"]), jnp.asarray(file["train_y"])
    model = DeepGP((), Interdomain(ScalarField(SPHERE, Matern(), num_levels=7)), Gaussian())
    model = start_shallow(model, model.check_data(x, y))
    bound = elbo(model, x, y, key=jax.random.key(0), samples=1)
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
def test_the_joint_distribution_has_the_marginal_moments(family: str, name: str) -> None:
    known = facts(perturbed(FAMILIES[family](name)))
    n, size = len(TEST), known.joint_mean.size // len(TEST)
    own = known.frame @ blocks_of(known, n) @ np.swapaxes(known.frame, 1, 2)
    mean = np.einsum("npq,nq->np", known.frame, known.joint_mean.reshape(n, size))
    np.testing.assert_allclose(mean, known.mean.reshape(mean.shape), atol=1e-10)
    np.testing.assert_allclose(own, known.covariance.reshape(own.shape), atol=1e-10)
    assert np.linalg.eigvalsh(known.joint_covariance).min() > -1e-9


@pytest.mark.parametrize("name", ["hodge"])
def test_fixed_tail_is_the_plain_family_with_the_prior_there(name: str) -> None:
    field = FIELDS[name](4)
    q, plain = Interdomain(field, tail=2, tail_variances="fixed"), Interdomain(field)
    moments = []
    triples = zip(field.processes, random_moments(q), plain.blocks, strict=True)
    for process, (small_mean, small_factor), large in triples:
        head, shape = np.flatnonzero(process.levels.level < 2), large._mean.raw.shape
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


@pytest.mark.parametrize("name", ["scalar", "hodge"])
def test_draws_follow_the_variances_of_a_learned_tail(name: str) -> None:
    """Normal numbers of the tail are multiplied by its standard deviations: a log variance counts half."""
    q = perturbed(FAMILIES["tail"](name))
    normal = jnp.asarray(np.random.default_rng(0).normal(size=q.num_normals))
    weight, slope = jax.value_and_grad(lambda raw: _tail_weight(q, raw, normal))(q.tails[0].raw)
    np.testing.assert_allclose(np.sum(slope), 0.5 * weight, rtol=1e-9)


def _tail_weight(q: Interdomain, raw: jax.Array, normal: jax.Array) -> jax.Array:
    """Return the sum of all drawn weights of the tail."""
    weights = eqx.tree_at(lambda own: own.tails[0].raw, q, raw).weights(normal)
    pairs = zip(q.field.processes, weights, strict=True)
    return sum(jnp.sum(w[:, process.levels.level >= process.levels.num_levels - q.tail]) for process, w in pairs)


@pytest.mark.parametrize("space", [Product(SPHERE, Circle()), Torus(2), Rotations()], ids=str)
def test_every_part_of_a_hodge_field_has_its_own_tail(space: Space) -> None:
    names = {"harmonic": ROUGH} if space != Rotations() else {}
    field = HodgeField(space, ROUGH, SMOOTH, 3, **names)
    q = Interdomain(field, tail=1)
    assert q.tails[0].raw.shape == (len(field.kernels), 1)
    levels = field.processes[0].levels
    parts = [np.repeat(part.level, part.multiplicities) for part in field.spectrum.parts]
    starts = np.cumsum([0, *(part.size for part in parts)])
    for i, ((a, b), part) in enumerate(zip(pairwise(starts), parts, strict=True)):
        assert np.all(levels.part[a:b] == i)
        assert np.all(np.diff(levels.level[a:b]) >= 0)
        np.testing.assert_array_equal(levels.level[a:b], part)


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


def test_fixed_inducing_points_are_not_trained_and_trained_ones_stay_on_the_space() -> None:
    fixed, trained = (InducingPoints(FIELDS["scalar"](3), X, trainable=flag) for flag in (False, True))
    assert len(jax.tree.leaves(split_trainable(trained)[0])) == len(jax.tree.leaves(split_trainable(fixed)[0])) + 1
    moved = eqx.tree_at(lambda q: q._z.raw, trained, 1.3 * X + 0.1)
    assert np.all(SPHERE.contains(moved.nearest().z))


def test_euclidean_fields_have_no_interdomain_family() -> None:
    with pytest.raises(ValueError, match="spectrum"):
        Interdomain(ScalarField(Euclidean(2), Matern()))
