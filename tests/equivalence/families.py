"""Variational families, and all their numbers.

Compilation dominates the time, so each family goes through one compiled function that returns all its numbers.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdgp.fields import Field, Frame, FrameField, HodgeField, ProjectedField, ScalarField, StackedField
from rdgp.inference import estimate
from rdgp.inference._initialize import with_optimal_output
from rdgp.kernels import Matern
from rdgp.likelihoods import Gaussian
from rdgp.models import DeepGP
from rdgp.posteriors import Exact, InducingPoints, Interdomain, Noise, Variational, log_evidence
from rdgp.spaces import Sphere

NOISE = 0.05
SPHERE = Sphere(2)
ROUGH, SMOOTH = Matern(1.5, 0.6, 1.7), Matern(2.5, 0.8, 0.9)
FIELDS: dict[str, Callable[[int], Field]] = {
    "scalar": lambda count: ScalarField(SPHERE, ROUGH, count),
    "stacked": lambda count: StackedField(SPHERE, ROUGH, count, outputs=2),
    "projected": lambda count: ProjectedField(SPHERE, ROUGH, count),
    "frame": lambda count: FrameField(SPHERE, ROUGH, count),
    "hodge": lambda count: HodgeField(SPHERE, divergence=ROUGH, curl=SMOOTH, num_levels=count),
}


def sphere_points(seed: int, n: int) -> np.ndarray:
    x = np.random.default_rng(seed).normal(size=(n, 3))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


X, TEST = jnp.asarray(sphere_points(0, 8)), jnp.asarray(sphere_points(2, 4))


def observations(field: Field) -> jax.Array:
    y = np.random.default_rng(1).normal(size=(8, *field.bundle.value_shape))
    along = np.sum(y * np.asarray(X), axis=1, keepdims=True) * np.asarray(X) if field.bundle.tangent else 0.0
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
    mixing: tuple[np.ndarray, ...]
    frame: np.ndarray  # the columns of the frame at test points, units for numbers
    coordinates: np.ndarray
    optimum: tuple[tuple[np.ndarray, np.ndarray], ...]
    evidence: np.ndarray
    exact_mean: np.ndarray
    exact_covariance: np.ndarray


@eqx.filter_jit
def _facts(q: Variational, x: jax.Array, y: jax.Array, test: jax.Array) -> Facts:
    model, field, noise = shallow(q), q.field, Noise(jnp.asarray(NOISE))
    data, here, there = model.check_data(x, y), field.bundle.frame(x), field.bundle.frame(test)
    exact = Exact(field, noise, x, here, data.y).coordinate_moments(test, there)
    return Facts(
        *q.moments(test),
        *q.joint(test),
        q.kl(),
        estimate(model, data, jax.random.key(0), 1),
        tuple(conditional.weights for conditional in q.conditionals(x)),
        field.mixing(x, here),
        _columns(there, test.shape[0], field.bundle.rank),
        data.y,
        tuple((block.mean, block.factor) for block in with_optimal_output(model, data).output.variational.blocks),
        log_evidence(field, noise, x, here, data.y),
        *exact,
    )


def _columns(frame: Frame, n: int, q: int) -> jax.Array:
    """Return the values [N, V, q] whose coordinates are units."""
    units = jnp.broadcast_to(jnp.eye(q)[:, None, :], (q, n, q))
    return jnp.moveaxis(frame.values(units).reshape(q, n, -1), 0, -1)


def facts(q: Variational) -> Facts:
    return jax.tree.map(np.asarray, _facts(q, X, observations(q.field), TEST))


def shallow(q: Variational) -> DeepGP:
    return DeepGP((), q, Gaussian(NOISE))


def design(known: Facts) -> list[list[np.ndarray]]:
    """Return the matrix from inducing variables to coordinates at the data, for each copy of each process."""
    blocks = []
    for i, weights in enumerate(known.weights):
        mix, m = known.mixing[i], weights.shape[-1]
        pieces = [np.einsum("nqp,npm->nqm", mix[..., r], weights).reshape(-1, m) for r in range(mix.shape[-1])]
        blocks.append(pieces)
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
    "points": lambda name: InducingPoints(FIELDS[name](4), X),
}

CASES = [
    *(("interdomain", name) for name in ("scalar", "hodge")),
    *(("tail", name) for name in ("scalar", "projected", "hodge")),
    *(("points", name) for name in FIELDS),
]


def grouped(chosen: list[tuple[str, str]]) -> pytest.MarkDecorator:
    """Keep the tests of one case in one worker, which then compiles its facts once."""
    marked = [pytest.param(*case, marks=pytest.mark.xdist_group("-".join(case))) for case in chosen]
    return pytest.mark.parametrize(("family", "name"), marked)


cases = grouped(CASES)


def blocks_of(known: Facts, n: int) -> np.ndarray:
    """Return the covariance of the coordinates at each point, from the joint one."""
    size = known.joint_mean.size // n
    return np.stack([known.joint_covariance[i * size : (i + 1) * size, i * size : (i + 1) * size] for i in range(n)])
