"""How models are trained: learning rates, schedule, and where training starts."""

from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree

from rdgp.core import Parameter, compiled_quickly, log_prior, split_trainable
from rdgp.fields import Field
from rdgp.likelihoods import Gaussian
from rdgp.models import DeepGP
from rdgp.models._conditioned import log_evidence, uses_features
from rdgp.models._start import is_kernel, of_size, prior_size, with_noise
from rdgp.optimize import minimize_lbfgs
from rdgp.variational import Variational, WhitenedGaussian

RecipeName = Literal["default", "quick", "paper"]


NEARLY_DETERMINISTIC = 0.01  # deviation of hidden inducing variables where the paper's recipe starts
_ENOUGH = 1500  # observed numbers from which the kernel is learned before training ...
_PLENTY = 20_000  # ... and where a step costs no more than in proportion to them
_PART = 4096  # points whose features are held at once
_NOTHING = 1e-12  # stands for the size of observations that are all zero


class Recipe(NamedTuple):
    """Numbers of a way to train."""

    steps: int
    steps_for_many: int  # where the evidence by the kernel makes a step dear
    steps_of_shallow: int  # without hidden layers, where the start is nearly the end
    variational_rate: float
    rate: float
    warm_up: int  # steps over which the rates rise; 0 keeps them constant throughout
    start: Literal["shallow", "paper"]  # begin at the solution of the output layer alone, or where the paper does
    parts: bool = False  # where a step with all points is dear, take a random part of them

    def default_steps(self, model: DeepGP, numbers: int) -> int:
        """Return how many steps to take for a number of observed numbers."""
        if not model.hidden and isinstance(model.output, Field):
            return self.steps_of_shallow
        return self.steps_for_many if is_dear(model, numbers) else self.steps


RECIPES = {
    "default": Recipe(400, 100, 40, variational_rate=0.02, rate=0.05, warm_up=20, start="shallow"),
    "quick": Recipe(400, 100, 40, variational_rate=0.02, rate=0.05, warm_up=20, start="shallow", parts=True),
    "paper": Recipe(1000, 1000, 1000, variational_rate=0.01, rate=0.01, warm_up=0, start="paper"),
}


def is_dear(model: DeepGP, numbers: int) -> bool:
    """Tell whether a step with all points would take seconds: the evidence of many observed numbers, by the kernel."""
    return isinstance(model.output, Field) and not uses_features(model.output, numbers) and numbers > _ENOUGH


def affordable_part(model: DeepGP, y: Float[Array, "N p r"]) -> int | None:
    """Return how many points a step of a dear fit by parts takes, or None for all.

    The bound of a random part's evidence, another one in each step, trains kernels and hidden layers; the fitted model
    is conditioned on all points.
    """
    return max(_ENOUGH // y[0].size, 1) if is_dear(model, y.size) else None


def make_optimizer(recipe: Recipe, rates: Float[Array, "P"] | float, steps: int) -> optax.GradientTransformation:
    """Return Adam on a vector of parameters with a rate for each, which rises and then falls to nearly zero."""

    def schedule(step: Array) -> Array:
        if not recipe.warm_up:
            return jnp.ones(())
        warm_up = min(recipe.warm_up, max(steps // 4, 1))
        return optax.warmup_cosine_decay_schedule(0.1, 1.0, warm_up, max(steps, warm_up + 1), 0.02)(step)

    scale = optax.stateless(lambda updates, _: jax.tree.map(lambda u: -rates * u, updates))
    return optax.chain(optax.scale_by_adam(), optax.scale_by_schedule(schedule), scale)


def learning_rates(recipe: Recipe, model: DeepGP) -> Float[Array, "P"]:
    """Return the rate of each trainable number: inducing variables have their own, a mean moves by the size of y."""

    def rate(node: PyTree) -> PyTree:
        value = recipe.variational_rate if isinstance(node, WhitenedGaussian) else recipe.rate
        return jax.tree.map(lambda leaf: jnp.full_like(leaf, value), node)

    free, _ = split_trainable(model)
    tree = jax.tree.map(rate, free, is_leaf=lambda node: isinstance(node, WhitenedGaussian))
    field = model.output_field
    if model.mean is not None and field is not None and isinstance(model.likelihood, Gaussian):
        size = jnp.sqrt(prior_size(field, model.likelihood))
        tree = eqx.tree_at(lambda m: m.mean.raw, tree, tree.mean.raw * size.astype(tree.mean.raw.dtype))
    return ravel_pytree(tree)[0]


def start_shallow(model: DeepGP, x: Float[Array, "N D"], y: Float[Array, "N ..."], steps: int = 60) -> DeepGP:
    """Return the model with kernel, noise and mean of its output at the optimum of a model without hidden layers.

    The search begins with variances that fit the size of the observations. An explicit output posterior is left at its
    optimum too, with the noise that it leaves: a few locations may not resolve what the exact evidence does.
    """
    field = model.output_field
    if field is None or not isinstance(model.likelihood, Gaussian):
        return model
    mean = _mean_of(model.mean, y)
    size = float(np.mean(np.square(np.asarray(y, float) - (0.0 if mean is None else np.asarray(mean.value)))))
    shallow = _Shallow(*of_size(field, model.likelihood, size or _NOTHING), mean)
    free, rest = split_trainable(shallow)
    x_some, y_some = _some(field, x, y)
    best = minimize_lbfgs(_negative_log_evidence, free, rest, x_some, y_some, steps=steps)
    found = eqx.combine(best.arguments, rest)
    if not np.isfinite(best.value):
        return model
    model = eqx.tree_at(lambda m: m.likelihood, model, found.likelihood)
    if model.mean is not None:
        model = eqx.tree_at(lambda m: m.mean, model, found.mean)
    if isinstance(model.output, Field):
        return eqx.tree_at(lambda m: m.output, model, found.field)
    model = eqx.tree_at(lambda m: m.output.field, model, found.field)
    model = eqx.tree_at(lambda m: m.output, model, optimal_output(model, x, y))
    noisier = with_noise(found.likelihood, _mean_square_error(model, x, y))
    model = eqx.tree_at(lambda m: m.likelihood, model, noisier)
    return eqx.tree_at(lambda m: m.output, model, optimal_output(model, x, y))


def _mean_of(mean: Parameter | None, y: Float[Array, "N p r"]) -> Parameter | None:
    """Set a constant mean to that of the observations."""
    if mean is None:
        return None
    average = np.mean(np.asarray(y, float), axis=(0, 1)).reshape(mean.raw.shape)
    return eqx.tree_at(lambda m: m.raw, mean, jnp.asarray(average, mean.raw.dtype))


def start_like_the_paper(model: DeepGP) -> DeepGP:
    """Return the model at the paper's starting point.

    ν = 3/2, κ = 1, output variance 1, hidden variance 1e-4 shared by the layers (each part of a Hodge field has the
    full value), noise 1. The paper does not say how inducing variables start; as in Salimbeni and Deisenroth, those of
    hidden layers start nearly deterministic, those of the output at their prior.
    """
    share = 1e-4 / max(len(model.hidden), 1)
    hidden = tuple(_reset(layer, share, NEARLY_DETERMINISTIC) for layer in model.hidden)
    model = eqx.tree_at(lambda m: m.hidden, model, hidden)
    if model.output is not None:
        model = eqx.tree_at(lambda m: m.output, model, _reset(model.output, 1.0, 1.0))
    if not isinstance(model.likelihood, Gaussian):
        return model
    return eqx.tree_at(lambda m: m.likelihood, model, with_noise(model.likelihood, 1.0))


def _reset(part: PyTree, variance: float, deviation: float) -> PyTree:
    """Set all kernels of a layer to ν = 3/2, κ = 1 and a variance, and its inducing variables to a deviation."""
    start = {"_nu": 1.5, "_lengthscale": 1.0, "_variance": variance}

    def reset(node: PyTree) -> PyTree:
        if isinstance(node, WhitenedGaussian):
            return WhitenedGaussian(node.mean.shape[0], node.mean.shape[1], deviation=deviation)
        if not is_kernel(node):
            return node
        held = {name: getattr(node, name, None) for name in start}
        free = {name: value for name, value in held.items() if isinstance(value, Parameter) and value.trainable}
        found = list(free)
        new = [jnp.full_like(value.raw, jnp.log(start[name])) for name, value in free.items()]
        return eqx.tree_at(lambda k: [getattr(k, name).raw for name in found], node, new) if found else node

    return jax.tree.map(reset, part, is_leaf=lambda node: isinstance(node, WhitenedGaussian) or is_kernel(node))


def _some(field: Field, x: Float[Array, "N D"], y: Float[Array, "N p r"]) -> tuple[Array, Array]:
    """Return every so many of the points where all of them would make the search dear."""
    numbers = x.shape[0] * y.shape[1]
    stride = -(-numbers // (_PLENTY if uses_features(field, numbers) else _ENOUGH))
    return x[::stride], y[::stride]


class _Shallow(eqx.Module):
    field: Field
    likelihood: Gaussian
    mean: Parameter | None


def _negative_log_evidence(
    free: _Shallow, rest: _Shallow, x: Float[Array, "N D"], y: Float[Array, "N p r"]
) -> Float[Array, ""]:
    shallow = eqx.combine(free, rest)
    offset = 0.0 if shallow.mean is None else shallow.mean.value.astype(x.dtype)
    evidence = log_evidence(shallow.field, shallow.likelihood.noise_variance, x, shallow.field.basis(x), y - offset)
    return -evidence - log_prior(shallow)


def optimal_output(model: DeepGP, x: Float[Array, "N D"], y: Float[Array, "N p r"]) -> Variational:
    """Return the output posterior at its optimum for Gaussian noise, were there no hidden layers."""
    output = model.output
    if not isinstance(output, Variational):
        raise ValueError("only a variational output has an optimal posterior")
    if len(output.blocks) > 1 or output.field.mixing(x, None) is not None:
        return output
    noise = model.noise_variance.astype(x.dtype)
    pieces = [_normal_equations(model, *part) for part in _parts(x, y)]
    gram, target = (sum(piece[1:], start=piece[0]) for piece in zip(*pieces, strict=True))
    return eqx.tree_at(lambda q: q.blocks, output, (_optimal_block(output.blocks[0], gram, target, noise),))


@compiled_quickly
def _optimal_block(
    block: WhitenedGaussian, gram: Float[Array, "m m"], target: Float[Array, "m r"], noise: Float[Array, ""]
) -> WhitenedGaussian:
    """Return the posterior of weights given ΨᵀΨ and Ψᵀy."""
    precision = gram / noise + jnp.eye(gram.shape[0], dtype=gram.dtype)
    inverse = jnp.linalg.inv(precision)
    covariance = (inverse + inverse.T) / 2.0
    mean = (covariance @ target / noise).T
    factor = jnp.linalg.cholesky(covariance)
    return block.with_moments(mean, jnp.broadcast_to(factor, (mean.shape[0], *factor.shape)))


@compiled_quickly
def _normal_equations(model: DeepGP, x: Float[Array, "N D"], y: Float[Array, "N p r"]) -> tuple[Array, Array]:
    """Return ΨᵀΨ and Ψᵀy of a variational output."""
    if not isinstance(model.output, Variational):
        raise ValueError("only a variational output has weights")
    weights = model.output.conditionals(x)[0].weights
    psi = weights.reshape(-1, weights.shape[-1])
    return psi.T @ psi, psi.T @ (y - model.offset(x.dtype)).reshape(psi.shape[0], -1)


def _mean_square_error(model: DeepGP, x: Float[Array, "N D"], y: Float[Array, "N p r"]) -> float:
    """Return E[(y - f)²] per number under a variational output."""
    return float(sum(_square_error(model, *part) for part in _parts(x, y))) / y.size


@compiled_quickly
def _square_error(model: DeepGP, x: Float[Array, "N D"], y: Float[Array, "N p r"]) -> Float[Array, ""]:
    if not isinstance(model.output, Variational):
        raise ValueError("only a variational output has moments")
    mean, covariance = model.output.coordinate_moments(x, model.start(x).frame)
    residual = y.reshape(mean.shape) - model.offset(x.dtype) - mean
    return jnp.sum(jnp.square(residual)) + jnp.sum(jnp.trace(covariance, axis1=1, axis2=2))


def _parts(x: Array, y: Array) -> list[tuple[Array, Array]]:
    return [(x[i : i + _PART], y[i : i + _PART]) for i in range(0, x.shape[0], _PART)]
