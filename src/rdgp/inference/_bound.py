"""Evidence lower bounds of deep models, estimated from draws of the hidden layers."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from rdgp.core import standard_normal
from rdgp.fields import Field
from rdgp.likelihoods import Gaussian, WrappedGaussian
from rdgp.models import DeepGP
from rdgp.models._conditioned import log_evidence
from rdgp.models._layers import Path, walk
from rdgp.variational import Interdomain, Variational

_GROUPS = 64  # points of a batch share a drawn function in that many groups; fewer would make noisier gradients
_NORMALS = 32  # to draw so many normal numbers, and their function, costs as much as to evaluate it at one point

Carriers = tuple[Float[Array, "..."], ...] | None


class Batch(eqx.Module):
    """Points, coordinates of the observations (or observed points), and how many points the batch stands for.

    Carriers are what the first layer needs of the points.
    """

    x: Float[Array, "B D"]
    y: Float[Array, "B ..."]
    carriers: Carriers
    total: int = eqx.field(static=True)


def elbo(model: DeepGP, batch: Batch, key: PRNGKeyArray, samples: int) -> Float[Array, ""]:
    """Estimate a lower bound of log p(y) without bias."""
    divergence = sum((layer.kl() for layer in model.hidden), start=jnp.zeros((), batch.x.dtype))
    if isinstance(model.output, Field):
        return _integrated(model, batch, key, samples) - divergence
    if isinstance(model.output, Variational):
        divergence = divergence + model.output.kl()
    terms = _over_draws(model, batch, key, samples, lambda path, y: _log_density(model, path, y))
    return jnp.mean(jnp.sum(terms, axis=-1)) * (batch.total / batch.x.shape[0]) - divergence


def _integrated(model: DeepGP, batch: Batch, key: PRNGKeyArray, samples: int) -> Float[Array, ""]:
    """Average log p(y | h) over joint draws h of the hidden layers, the output process integrated out.

    Draws come in pairs mirrored about the mean, which takes noise out of the gradient.
    """
    if not model.hidden:
        return _evidence(model, batch, Seed(key, jnp.zeros(0)))
    half = _seeds(model, key, (-(-samples // 2),), batch.x.dtype)
    others = jax.vmap(lambda own: jax.random.fold_in(own, 1))(half.key)  # locations are not mirrored, but drawn anew
    mirrored = Seed(others, -half.normal)
    both = jax.tree.map(lambda a, b: jnp.concatenate([a, b])[:samples], half, mirrored)
    return _mean_evidence(model, batch, both)


class Seed(NamedTuple):
    """Randomness of one joint draw of the hidden layers."""

    key: PRNGKeyArray
    normal: Float[Array, "*S _"]


def _evidence(model: DeepGP, batch: Batch, seed: Seed) -> Float[Array, ""]:
    """Return log p(y | h) for one draw h of the hidden layers."""
    path = _lead(model, model.start(batch.x), batch.carriers, seed)
    y = batch.y - model.offset(batch.x.dtype)
    return log_evidence(model.integrated_field, model.noise_variance, path.x, path.frame, y)


@eqx.filter_custom_vjp
def _mean_evidence(model: DeepGP, batch: Batch, seeds: Seed) -> Float[Array, ""]:
    """Average over draws, differentiable in the model alone.

    The gradient is taken draw by draw on the way forward: nothing of a draw is kept for later, which makes a smaller
    program than the derivative of a loop.
    """
    return jnp.mean(jax.lax.map(lambda seed: _evidence(model, batch, seed), seeds))


@_mean_evidence.def_fwd  # type: ignore[untyped-decorator]
def _mean_evidence_forward(
    perturbed: PyTree, model: DeepGP, batch: Batch, seeds: Seed
) -> tuple[Float[Array, ""], PyTree]:
    free, rest = eqx.partition(model, perturbed)

    def add(total: PyTree, seed: Seed) -> tuple[PyTree, None]:
        one = jax.value_and_grad(lambda part: _evidence(eqx.combine(part, rest), batch, seed))(free)
        return jax.tree.map(jnp.add, total, one), None

    nothing = jax.tree.map(jnp.zeros_like, (jnp.zeros((), batch.x.dtype), free))
    total, _ = jax.lax.scan(add, nothing, seeds)
    return jax.tree.map(lambda sum_: sum_ / seeds.normal.shape[0], total)


@_mean_evidence.def_bwd  # type: ignore[untyped-decorator]
def _mean_evidence_backward(
    gradient: PyTree,
    cotangent: Float[Array, ""],
    perturbed: PyTree,
    model: DeepGP,
    batch: Batch,
    seeds: Seed,
) -> PyTree:
    return jax.tree.map(lambda slope: cotangent.astype(slope.dtype) * slope, gradient)


def _seeds(model: DeepGP, key: PRNGKeyArray, shape: tuple[int, ...], dtype: jnp.dtype) -> Seed:
    """Draw all normal numbers at once, which compiles and runs faster than layer by layer."""
    key_normal, key_rest = jax.random.split(key)
    total = sum(layer.num_normals for layer in model.hidden if isinstance(layer, Interdomain))
    return Seed(jax.random.split(key_rest, shape), standard_normal(key_normal, (*shape, total), dtype))


def _lead(model: DeepGP, path: Path, carriers: Carriers, seed: Seed) -> Path:
    """Follow one joint draw of the hidden layers; the first layer's carriers are constants of the data."""
    used = 0
    for i, layer in enumerate(model.hidden):
        if isinstance(layer, Interdomain):
            carriers = layer.field.carriers(path.x) if carriers is None else carriers
            normal = seed.normal[used : used + layer.num_normals]
            used += layer.num_normals
            v = layer.field.evaluate(carriers, path.x, layer.weights(normal))
        else:
            own = jax.random.fold_in(seed.key, i)
            v = layer.draw(key=own)(path.x) if layer.draws_are_exact else layer.sample_independently(path.x, own)
        path, carriers = walk(layer.field, path, v), None
    return path


def _over_draws(
    model: DeepGP,
    batch: Batch,
    key: PRNGKeyArray,
    samples: int,
    term: Callable[[Path, Float[Array, "B ..."]], Float[Array, "B"]],
) -> Float[Array, "S _"]:
    """Evaluate a term at every point for each sample, points in groups that share drawn functions.

    The marginal law of the hidden layers at each point, hence the expectation, does not depend on the grouping.
    """
    grouped = all(isinstance(layer, Interdomain) for layer in model.hidden) and bool(model.hidden)
    groups = _num_groups(model, batch.x.shape[0]) if grouped else 1
    size = -(-batch.x.shape[0] // groups)
    count = jnp.arange(groups * size)
    real = (count < batch.x.shape[0]).reshape(groups, size)
    index = jnp.minimum(count, batch.x.shape[0] - 1).reshape(groups, size)
    start = model.start(batch.x)
    x, frame, y, carriers = jax.tree.map(lambda leaf: leaf[index], (batch.x, start.frame, batch.y, batch.carriers))

    def at(seed: Seed, path: Path, carriers: Carriers) -> Path:
        return _lead(model, path, carriers, seed)

    over_groups = jax.vmap(jax.vmap(at), in_axes=(0, None, None))
    paths = over_groups(_seeds(model, key, (samples, groups), batch.x.dtype), Path(x, frame), carriers)
    flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[3:]), paths)
    values = term(flat, jnp.tile(y.reshape(-1, *y.shape[2:]), (samples, *[1] * (y.ndim - 2))))
    return jnp.where(real, values.reshape(samples, groups, size), 0.0).reshape(samples, -1)


def _num_groups(model: DeepGP, num_points: int) -> int:
    """Return how many groups of points draw their own functions: many, unless drawing would cost the most."""
    normals = max(layer.num_normals for layer in model.hidden if isinstance(layer, Interdomain))
    return min(_GROUPS, max(num_points // max(normals // _NORMALS, 1), 1))


def _log_density(model: DeepGP, path: Path, y: Float[Array, "n ..."]) -> Float[Array, "n"]:
    """Return the expected log density of observations where the hidden layers lead."""
    if isinstance(model.likelihood, WrappedGaussian):
        return model.likelihood.log_density(y, path.x)
    if not isinstance(model.output, Variational):
        raise ValueError("the expected density needs a variational output")
    flat = y.reshape(y.shape[0], -1)
    if isinstance(model.likelihood, Gaussian):
        mean, spread = model.output.mean_and_spread(path.x, path.frame)
        return model.likelihood.expected_log_density_by_spread(flat, mean + model.offset(mean.dtype), spread)
    mean, covariance = model.output.coordinate_moments(path.x, path.frame)
    return model.likelihood.expected_log_density(flat, mean + model.offset(mean.dtype), covariance)
