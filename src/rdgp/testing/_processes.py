"""The laws of the processes of which a field is made: features, covariances, and tails of the last levels."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rdgp.fields import Field, Process
from rdgp.testing._laws import Laws, Sides, hold_true, precision

_LAWS = Laws()


class Places(NamedTuple):
    """Points and numbers at which a process is held to its laws."""

    x: Float[Array, "N D"]
    y: Float[Array, "L D"]
    weights: Float[Array, "r m"]
    last: Float[Array, "parts 1"]  # factors of the variances of the last level of each part
    all: Float[Array, "parts t"]  # and of all levels


def check_processes(owner: str, field: Field, x: Float[Array, "N D"], y: Float[Array, "L D"]) -> None:
    """Hold the processes of a field to their laws at some points."""
    for number, process in enumerate(field.processes):
        name = f"process {number} of {owner}"
        if process.has_features:
            levels = process.levels
            hold_true(name, "every feature has a part", levels.part.shape == (process.num_features,))
            hold_true(name, "every feature has a level", levels.level.shape == (process.num_features,))
            generator = np.random.default_rng(0)
            weights = generator.normal(size=(process.copies, process.num_features))
            last, every = (generator.uniform(size=(levels.num_parts, t)) for t in (1, levels.num_levels))
            _LAWS.hold(name, process, Places(x, y, *(jnp.asarray(z, precision()) for z in (weights, last, every))))


def _scaled(process: Process, x: Array) -> Float[Array, "N p m"]:
    return process.features(x) * process.scales().astype(x.dtype)


@_LAWS.law("the covariance is that of the features")
def _(process: Process, at: Places) -> Sides:
    expected = jnp.einsum("npm,lqm->nplq", _scaled(process, at.x), _scaled(process, at.y))
    return process.covariance(at.x, at.y), expected


@_LAWS.law("the variance is the covariance at equal points")
def _(process: Process, at: Places) -> Sides:
    return process.variance(at.x), jnp.einsum("npnq->npq", process.covariance(at.x, at.x))


@_LAWS.law("evaluate is the features with scaled weights")
def _(process: Process, at: Places) -> Sides:
    found = process.evaluate(process.basis(at.x), at.x, at.weights)
    return found, jnp.einsum("npm,rm->npr", _scaled(process, at.x), at.weights)


def _tail_weights(process: Process, factors: Float[Array, "parts t"]) -> Float[Array, "m"]:
    """Return the factor of each feature: that of its part and level in the tail, zero before."""
    levels, count = process.levels, factors.shape[1]
    place = levels.level - (levels.num_levels - count)
    return jnp.where(place >= 0, factors[levels.part, np.maximum(place, 0)], 0.0)


def _tail(process: Process, factors: Array, x: Array, y: Array) -> Float[Array, "N p L p"]:
    weighted = _scaled(process, x) * _tail_weights(process, factors)
    return jnp.einsum("npm,lqm->nplq", weighted, _scaled(process, y))


@_LAWS.law("the covariance of the last level is that of its features")
def _(process: Process, at: Places) -> Sides:
    return process.tail_covariance(at.last, at.x, at.y), _tail(process, at.last, at.x, at.y)


@_LAWS.law("the covariance of all levels, weighted, is that of their features")
def _(process: Process, at: Places) -> Sides:
    return process.tail_covariance(at.all, at.x, at.y), _tail(process, at.all, at.x, at.y)


@_LAWS.law("the variance of a tail is its covariance at equal points")
def _(process: Process, at: Places) -> Sides:
    found = jnp.stack([process.tail_variance(factors, at.x) for factors in (at.last, at.all)])
    tails = [_tail(process, factors, at.x, at.x) for factors in (at.last, at.all)]
    return found, jnp.stack([jnp.einsum("npnq->npq", tail) for tail in tails])
