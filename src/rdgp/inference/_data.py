"""What a step of training sees: points, observations as coordinates, and batches of them."""

from typing import NamedTuple

import jax
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import Numbers, compiled
from rdgp.fields import check_points
from rdgp.inference._bound import Batch
from rdgp.likelihoods import WrappedGaussian
from rdgp.models import DeepGP
from rdgp.variational import Interdomain


class Data(NamedTuple):
    """Points, coordinates of observations, and the key of all draws."""

    x: Float[Array, "N D"]
    y: Float[Array, "N ..."]
    key: PRNGKeyArray


def check_data(model: DeepGP, x: Numbers, y: Numbers) -> tuple[Float[Array, "N D"], Float[Array, "N ..."]]:
    """Return points and coordinates of observations, or raise."""
    if not isinstance(model, DeepGP):
        raise ValueError(f"fit needs a DeepGP, got {type(model).__name__}; ExactGP has its own fit method")
    x = check_points(model.space, x)
    if x.shape[0] == 0:
        raise ValueError("x must hold at least one point, got none")
    if isinstance(model.likelihood, WrappedGaussian):
        y = check_points(model.likelihood.space, y, "y")
        if y.shape[0] != x.shape[0]:
            raise ValueError(f"y must have one point for each of the {x.shape[0]} of x, got {y.shape[0]}")
        return x, y.astype(x.dtype)
    y = model.likelihood.check(model.check_values(x, y)).astype(x.dtype)
    return x, model.coordinates(x, y)


def first_carriers(model: DeepGP, x: Float[Array, "N D"]) -> tuple[Float[Array, "..."], ...] | None:
    first = model.hidden[0] if model.hidden else None
    return compiled(type(first.field).carriers, first.field, x) if isinstance(first, Interdomain) else None


def batch_of(whole: Batch, size: int | None, key: PRNGKeyArray, distinct: bool) -> Batch:
    """Return random points; the evidence needs distinct ones, since a copy of a point has a copy of its noise."""
    if size is None:
        return whole
    if distinct:
        index = jax.random.permutation(key, whole.total)[:size]
    else:
        index = jax.random.randint(key, (size,), 0, whole.total)
    x, y, carriers = jax.tree.map(lambda leaf: leaf[index], (whole.x, whole.y, whole.carriers))
    return Batch(x, y, carriers, whole.total)
