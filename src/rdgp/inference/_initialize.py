"""Initializers: where training starts."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from rdgp.core import Parameter, Parametric, compiled_quickly, log_prior, split_trainable
from rdgp.fields import Field
from rdgp.kernels import ClosedFormKernel, Kernel
from rdgp.likelihoods import ObservationModel
from rdgp.models import START_NOISE, Data, DeepGP, noise_of, search
from rdgp.posteriors import WhitenedGaussian, log_evidence, uses_features

NEARLY_DETERMINISTIC = 0.01  # standard deviation of hidden inducing variables where the paper's recipe starts
ENOUGH = 1500  # scalar observations from which the kernel is learned before training ...
_PLENTY = 20_000  # ... and where a step costs no more than in proportion to them
_PART = 4096  # points whose features are held at once
_NOTHING = 1e-12  # stands for the size of observations that are all zero
_STEPS = 60
_SCORING_STEPS = 10


def start_shallow(model: DeepGP, data: Data) -> DeepGP:
    """Return the model with kernel, noise and mean of its output at the optimum of a model without hidden layers.

    The search begins with variances that fit the size of the observations. An explicit output posterior is left at its
    optimum too, with the noise that it leaves: a few inducing points may not resolve what the exact evidence does.
    """
    if model.output.bundle is None or not model.likelihood.conjugate:
        return model
    mean = _mean_of(model.mean, data)
    centered = np.asarray(data.y, float) - (0.0 if mean is None else np.atleast_1d(np.asarray(mean.value)))
    size = float(np.mean(np.square(centered))) or _NOTHING
    likelihood = model.likelihood.with_values(noise_variance=START_NOISE * size)
    shallow = _Shallow(model.field.with_scale_of(np.asarray(data.x), size), likelihood, mean)
    free, rest = split_trainable(shallow)
    best = search(_negative_log_evidence, free, rest, _some(model.field, data), steps=_STEPS)
    if not np.isfinite(best.value):
        return model
    found = eqx.combine(best.arguments, rest)
    model = eqx.tree_at(lambda m: m.likelihood, model, found.likelihood)
    if model.mean is not None:
        model = eqx.tree_at(lambda m: m.mean, model, found.mean)
    return _start_output(model, found.field, data)


def _start_output(model: DeepGP, field: Field, data: Data) -> DeepGP:
    """Return the model with a field of its output, and with an explicit posterior at its optimum."""
    model = eqx.tree_at(lambda m: m.output, model, model.process_output.with_field(field))
    if model.output.joint:
        return model
    model = with_optimal_output(model, data)
    noisier = model.likelihood.with_values(noise_variance=_noise_left(model, data))
    return with_optimal_output(eqx.tree_at(lambda m: m.likelihood, model, noisier), data)


def _mean_of(mean: Parameter | None, data: Data) -> Parameter | None:
    """Set a constant mean to that of the observations."""
    if mean is None:
        return None
    return mean.with_value(np.mean(np.asarray(data.y, float), axis=0).reshape(mean.raw.shape))


def start_like_the_paper(model: DeepGP, data: Data) -> DeepGP:
    """Return the model at the paper's starting point.

    ν = 3/2, κ = 1, output variance 1, hidden variance 1e-4 shared by the layers (each part of a Hodge field has the
    full value), noise 1. The paper does not say how inducing variables start; as in Salimbeni and Deisenroth, those of
    hidden layers start nearly deterministic, those of the output at their prior.
    """
    share = 1e-4 / max(len(model.order), 1)
    layers = tuple(_reset(layer, share, NEARLY_DETERMINISTIC) for layer in model.layers)
    model = eqx.tree_at(lambda m: (m.layers, m.output), model, (layers, _reset(model.output, 1.0, 1.0)))
    if not getattr(model.likelihood, "conjugate", False):
        return model
    return eqx.tree_at(lambda m: m.likelihood, model, model.likelihood.with_values(noise_variance=1.0))


def _reset(part: PyTree, variance: float, std: float) -> PyTree:
    """Set all kernels of a layer to ν = 3/2, κ = 1 and a variance, its inducing variables to a standard deviation."""
    start = {"nu": 1.5, "lengthscale": 1.0, "variance": variance}

    def is_reset(node: object) -> bool:
        return isinstance(node, WhitenedGaussian | Kernel | ClosedFormKernel)

    def reset(node: PyTree) -> PyTree:
        if isinstance(node, WhitenedGaussian):
            return WhitenedGaussian(node.mean.shape[0], node.mean.shape[1], std)
        if isinstance(node, Parametric):
            return node.with_values(**{name: value for name, value in start.items() if name in node.parameters})
        return node

    return jax.tree.map(reset, part, is_leaf=is_reset)


def _some(field: Field, data: Data) -> Data:
    """Return every so many of the points where all of them would make the search expensive."""
    num_values = data.num_points * field.width
    stride = -(-num_values // (_PLENTY if uses_features(field, num_values) else ENOUGH))
    return data.rows(slice(None, None, stride))


class _Shallow(eqx.Module):
    field: Field
    likelihood: ObservationModel
    mean: Parameter | None


def _negative_log_evidence(free: _Shallow, rest: _Shallow, data: Data) -> Float[Array, ""]:
    shallow = eqx.combine(free, rest)
    if shallow.mean is not None:
        data = data.minus(jnp.atleast_1d(shallow.mean.value))
    frame = shallow.field.bundle.frame(data.x)
    evidence = log_evidence(shallow.field, noise_of(shallow.likelihood, data), data.x, frame, data.y)
    return -evidence - log_prior(shallow)


def with_optimal_output(model: DeepGP, data: Data) -> DeepGP:
    """Return the model with its explicit output at the optimum for Gaussian noise, were there no hidden layers.

    Several processes whose values mix at a point have no optimum of each on its own; they stay.
    """
    output = _explicit(model)
    if not output.field.is_one_process:
        return model
    pieces = [_normal_equations(model, part) for part in _parts(data)]
    gram, target = (sum(piece[1:], start=piece[0]) for piece in zip(*pieces, strict=True))
    block = _optimal_block(output.blocks[0], gram, target)
    return eqx.tree_at(lambda m: m.output.variational.blocks, model, (block,))


@compiled_quickly
def _optimal_block(block: WhitenedGaussian, gram: Float[Array, "m m"], target: Float[Array, "m r"]) -> WhitenedGaussian:
    """Return the posterior of weights given ΨᵀΨ and Ψᵀy of whitened observations."""
    inverse = jnp.linalg.inv(gram + jnp.eye(gram.shape[0], dtype=gram.dtype))
    covariance = (inverse + inverse.T) / 2.0
    mean = (covariance @ target).T
    factor = jnp.linalg.cholesky(covariance)
    return block.with_moments(mean, jnp.broadcast_to(factor, (mean.shape[0], *factor.shape)))


@compiled_quickly
def _normal_equations(model: DeepGP, data: Data) -> tuple[Array, Array]:
    """Return ΨᵀΨ and Ψᵀy of an explicit output, both whitened by the noise."""
    output, noise = _explicit(model), noise_of(model.likelihood, data)
    frame = output.field.bundle.frame(data.x)
    y = output.field.split(data.x, frame, data.y - model.offset(data.y.dtype))
    noise = noise.averaged() if output.field.width < data.y.shape[1] else noise  # copies count as independent
    psi = noise.whiten(output.conditionals(data.x)[0].weights)
    rows = psi.reshape(-1, psi.shape[-1])
    return rows.T @ rows, rows.T @ noise.whiten(y).reshape(rows.shape[0], -1)


def _noise_left(model: DeepGP, data: Data) -> float:
    """Return the noise variance under which an explicit output explains the observations best, beside what is known.

    It is the mean of E[(y - f)²], or found by Fisher scoring where observations have known noise.
    """
    squares = np.concatenate([np.asarray(_square_errors(model, part), float) for part in _parts(data)])
    known = noise_of(model.likelihood, data).averaged().known
    if known is None:
        return float(np.mean(squares))
    noise, others = float(model.noise_variance), np.asarray(known, float)
    for _ in range(_SCORING_STEPS):
        weights = np.square(noise / (noise + others))
        noise = max(float(np.sum(weights * (squares - others)) / np.sum(weights)), 0.1 * noise)
    return noise


@compiled_quickly
def _square_errors(model: DeepGP, data: Data) -> Float[Array, "N"]:
    """Return the mean of E[(y - f)²] over the coordinates of each point."""
    mean, trace = _explicit(model).mean_and_trace(data.x, model.output.frame(data.x))
    residual = data.y - model.offset(data.y.dtype) - mean
    return (jnp.sum(jnp.square(residual), axis=1) + trace) / data.y.shape[1]


def _explicit(model: DeepGP) -> Any:
    """Return the posterior of an explicit output."""
    return model.process_output.posterior(model.likelihood, None, None)


def _parts(data: Data) -> list[Data]:
    return [data.rows(slice(i, i + _PART)) for i in range(0, data.num_points, _PART)]
