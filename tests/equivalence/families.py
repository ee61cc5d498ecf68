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

from rdgp import (
    FrameField,
    HodgeField,
    Matern,
    ProjectedField,
    ScalarField,
    Sphere,
    StackedField,
)
from rdgp.fields import Field
from rdgp.inference import Batch, elbo
from rdgp.inference._recipe import optimal_output
from rdgp.likelihoods import Gaussian
from rdgp.models import DeepGP
from rdgp.models._conditioned import Conditioned, log_evidence
from rdgp.variational import InducingLocations, Interdomain, Variational

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


def grouped(chosen: list[tuple[str, str]]) -> pytest.MarkDecorator:
    """Keep the tests of one case in one worker, which then compiles its facts once."""
    marked = [pytest.param(*case, marks=pytest.mark.xdist_group("-".join(case))) for case in chosen]
    return pytest.mark.parametrize(("family", "name"), marked)


cases = grouped(CASES)


def blocks_of(known: Facts, n: int) -> np.ndarray:
    """Return the covariance of the coordinates at each point, from the joint one."""
    size = known.joint_mean.size // n
    return np.stack([known.joint_covariance[i * size : (i + 1) * size, i * size : (i + 1) * size] for i in range(n)])
