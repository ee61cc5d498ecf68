"""Objectives of training: the evidence lower bound, estimated from draws of the hidden layers, and log densities."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from rdgp.core import Numbers, check_count, compiled_quickly, log_prior, standard_normal
from rdgp.likelihoods import ObservationModel
from rdgp.models import Data, DeepGP, Randomness, State
from rdgp.posteriors import WeightsDraw

_GROUPS = 64  # points of a batch share a drawn function in that many groups; fewer would make noisier gradients
_NORMALS = 32  # to draw so many normal numbers, and their function, costs as much as to evaluate it at one point


def elbo(
    model: DeepGP,
    x: Numbers,
    y: Numbers,
    *,
    key: PRNGKeyArray,
    samples: int = 3,
    noise_variance: Numbers | None = None,
) -> Float[Array, ""]:
    """Estimate the evidence lower bound of log p(y) without bias, from `samples` draws of the hidden layers.

    It is differentiable in the model. An integrated output contributes the evidence given the hidden layers, so that a
    model without hidden layers has its log marginal likelihood as bound. `noise_variance` is that of `fit`.
    """
    data = model.check_data(x, y, noise_variance)
    return _elbo(model, data, key, check_count(samples, "samples"))


@compiled_quickly
def _elbo(model: DeepGP, data: Data, key: PRNGKeyArray, samples: int) -> Float[Array, ""]:
    return estimate(model, data, key, samples)


def log_density(
    model: DeepGP, x: Numbers, y: Numbers, weights: Float[Array, "_"], *, noise_variance: Numbers | None = None
) -> Float[Array, ""]:
    """Return log p(y, w, θ): of observations, whitened weights of the hidden layers, and parameters with priors.

    Weights are `model.num_normals` numbers with a standard normal prior; the output is integrated out, or there is
    none. Samplers differentiate it in the weights and in the model's parameters.
    """
    if not model.output.joint and model.output.bundle is not None:
        raise ValueError(
            "log_density needs a model whose output is a field or None; its explicit posterior is no prior"
        )
    data = model.check_data(x, y, noise_variance)
    return _log_density(model, data, jnp.asarray(weights))


@compiled_quickly
def _log_density(model: DeepGP, data: Data, weights: Float[Array, "_"]) -> Float[Array, ""]:
    draws, used = [], 0
    for layer in model.layers:
        size = layer.field.num_weights
        draws.append(WeightsDraw(layer.field, layer.field.arrange(weights[used : used + size])))
        used += size
    state = model.propagate(model.start(data.x), [draws[i] for i in model.order])
    density = model.output.log_density(_likelihood(model, data), state, _centered(model, data))
    return jnp.sum(density) - 0.5 * jnp.sum(jnp.square(weights)) - 0.5 * used * jnp.log(2.0 * jnp.pi) + log_prior(model)


def estimate(model: DeepGP, data: Data, key: PRNGKeyArray, samples: int, basis: Any = None) -> Float[Array, ""]:
    """Estimate the bound on data; `basis` is what the first layer needs of the points, where it is known."""
    divergence = sum((layer.kl() for layer in model.layers), start=jnp.zeros((), data.x.dtype))
    divergence = divergence + model.output.divergence().astype(data.x.dtype)
    if model.output.joint:
        return _over_joint_draws(model, data, basis, key, samples) - divergence
    terms = _over_grouped_draws(model, data, basis, key, samples)
    return jnp.mean(jnp.sum(terms, axis=-1)) * data.share - divergence


def _likelihood(model: DeepGP, data: Data) -> ObservationModel:
    """Return the likelihood of the observations, with what is known of their noise."""
    return model.likelihood if data.noise is None or model.output.joint else model.likelihood.given(data.noise)


def _centered(model: DeepGP, data: Data) -> Data:
    return data if model.mean is None else data.minus(model.offset(data.y.dtype))


def _over_joint_draws(model: DeepGP, data: Data, basis: Any, key: PRNGKeyArray, samples: int) -> Float[Array, ""]:
    """Average log p(y | h) over joint draws h of the hidden layers, the output process integrated out.

    Draws come in pairs mirrored about the mean, which takes noise out of the gradient.
    """
    if not model.order:
        return _evidence(model, data, basis, Randomness(key, jnp.zeros(0)))
    half = _randomness(model, key, (-(-samples // 2),), data.x.dtype)
    others = jax.vmap(lambda own: jax.random.fold_in(own, 1))(half.key)  # what a key determines is not mirrored
    mirrored = Randomness(others, -half.normal)
    both = jax.tree.map(lambda a, b: jnp.concatenate([a, b])[:samples], half, mirrored)
    return _mean_evidence(model, data, basis, both)


def _evidence(model: DeepGP, data: Data, basis: Any, randomness: Randomness) -> Float[Array, ""]:
    """Return log p(y | h) for one draw h of the hidden layers."""
    state = model.propagate(model.start(data.x, basis), model.draws_with(randomness))
    return model.output.log_density(model.likelihood, state, _centered(model, data))


@eqx.filter_custom_vjp
def _mean_evidence(model: DeepGP, data: Data, basis: Any, randomness: Randomness) -> Float[Array, ""]:
    """Average over draws, differentiable in the model alone.

    The gradient is taken draw by draw on the way forward: nothing of a draw is kept for later, which makes a smaller
    XLA executable than the derivative of a loop.
    """
    return jnp.mean(jax.lax.map(lambda one: _evidence(model, data, basis, one), randomness))


@_mean_evidence.def_fwd  # type: ignore[untyped-decorator]
def _mean_evidence_forward(
    perturbed: PyTree, model: DeepGP, data: Data, basis: Any, randomness: Randomness
) -> tuple[Float[Array, ""], PyTree]:
    free, rest = eqx.partition(model, perturbed)

    def add(total: PyTree, one: Randomness) -> tuple[PyTree, None]:
        both = jax.value_and_grad(lambda part: _evidence(eqx.combine(part, rest), data, basis, one))(free)
        return jax.tree.map(jnp.add, total, both), None

    nothing = jax.tree.map(jnp.zeros_like, (jnp.zeros((), data.x.dtype), free))
    total, _ = jax.lax.scan(add, nothing, randomness)
    return jax.tree.map(lambda sum_: sum_ / randomness.normal.shape[0], total)


@_mean_evidence.def_bwd  # type: ignore[untyped-decorator]
def _mean_evidence_backward(
    gradient: PyTree,
    cotangent: Float[Array, ""],
    perturbed: PyTree,
    model: DeepGP,
    data: Data,
    basis: Any,
    randomness: Randomness,
) -> PyTree:
    return jax.tree.map(lambda slope: cotangent.astype(slope.dtype) * slope, gradient)


def _randomness(model: DeepGP, key: PRNGKeyArray, shape: tuple[int, ...], dtype: jnp.dtype) -> Randomness:
    """Draw all normal numbers at once, which compiles and runs faster than layer by layer."""
    key_normal, key_rest = jax.random.split(key)
    normal = standard_normal(key_normal, (*shape, model.num_normals), dtype)
    return Randomness(jax.random.split(key_rest, shape), normal)


def _over_grouped_draws(model: DeepGP, data: Data, basis: Any, key: PRNGKeyArray, samples: int) -> Float[Array, "S _"]:
    """Return the expected log density of every observation for each sample, points in groups that share functions.

    The marginal distribution of the hidden layers at each point, hence the expectation, does not depend on the
    grouping.
    """
    n = data.num_points
    groups = _num_groups(model, n)
    size = -(-n // groups)
    index = jnp.minimum(jnp.arange(groups * size), n - 1)
    counts = jnp.arange(groups * size) < n
    counts = counts if data.mask is None else counts & data.mask[index]
    start = jax.tree.map(lambda leaf: leaf[index.reshape(groups, size)], model.start(data.x, basis))

    def at(one: Randomness, state: State) -> State:
        return model.propagate(state, model.draws_with(one))

    over_groups = jax.vmap(jax.vmap(at), in_axes=(0, None))
    states = over_groups(_randomness(model, key, (samples, groups), data.x.dtype), start)
    flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[3:]), states)
    repeated = _centered(model, data).rows(jnp.tile(index, samples))
    values = model.output.log_density(_likelihood(model, repeated), flat, repeated)
    return jnp.where(counts, values.reshape(samples, -1), 0.0)


def _num_groups(model: DeepGP, num_points: int) -> int:
    """Return how many groups of points draw their own functions: many, unless drawing would cost the most."""
    normals = [layer.num_normals for layer in model.layers]
    if not normals or not all(normals):
        return 1
    return min(_GROUPS, max(num_points // max(max(normals) // _NORMALS, 1), 1))
