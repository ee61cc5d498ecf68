"""The one training loop."""

import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from rdgp.core import (
    Numbers,
    Progress,
    check_count,
    compiled_quickly,
    from_vector,
    log_prior,
    split_trainable,
    to_vector,
)
from rdgp.fields import Field
from rdgp.inference._bound import Batch, elbo
from rdgp.inference._checkpoint import Summary, describe_fit, load_state, save_state
from rdgp.inference._data import Data, batch_of, check_data, first_carriers
from rdgp.inference._noise import noise_of_all
from rdgp.inference._recipe import (
    RECIPES,
    Recipe,
    RecipeName,
    affordable_part,
    is_dear,
    learning_rates,
    make_optimizer,
    start_like_the_paper,
    start_shallow,
)
from rdgp.likelihoods import Gaussian
from rdgp.models import DeepGP
from rdgp.variational import InducingLocations, Interdomain, kmeans

_COARSE = 1e-4  # share of noise in the variance of the observations below which single precision harms

Status = Literal["ok", "nan", "diverged", "stopped"]
Callback = Callable[[int, float], bool | None]

CHUNK = 25  # steps between looks at the clock, the callback and the checkpoint ...
_FEW = 2  # ... where each takes seconds
_PATIENCE = 20  # steps in a row without a finite gradient before training gives up
_CHECKPOINT_SECONDS = 30.0


class FitResult(NamedTuple):
    """A fitted model, the bound at each step, and how training ended: ok, nan, diverged or stopped."""

    model: DeepGP
    history: Float[np.ndarray, "T"]
    status: Status
    seconds: float


class PrecisionWarning(UserWarning):
    """The noise is so small that single precision costs accuracy."""


class _State(NamedTuple):
    """All that training changes; the parameters as one vector, which takes few operations to update."""

    parameters: Float[Array, "P"]
    kept: Float[Array, "P"]  # the last with a finite bound and gradient
    best: Float[Array, "P"]  # after the steps with the largest mean bound ...
    record: Float[Array, ""]  # ... and that mean
    optimizer: PyTree
    step: Int[Array, ""]
    bad: Int[Array, ""]


def fit(
    model: DeepGP,
    x: Numbers,
    y: Numbers,
    *,
    key: PRNGKeyArray,
    steps: int | None = None,
    batch_size: int | None = None,
    samples: int | None = None,
    optimizer: optax.GradientTransformation | None = None,
    recipe: RecipeName = "default",
    progress: bool = True,
    checkpoint: str | Path | None = None,
    callback: Callback | None = None,
) -> FitResult:
    """Train a model on data and return it with the history of its bound.

    The default recipe starts at the solution of the output layer alone and takes 400 steps of two mirrored draws: 100
    of one draw where the kernel of many observations makes a step dear, 40 without hidden layers. The quick one takes
    in each dear step the bound of another random part of the points, and in the end the noise and the posterior given
    all of them. The paper's takes 1000 steps of Adam with three draws from the paper's starting point. With the latter,
    with `batch_size` and with noise that is not Gaussian, an output field gets an explicit posterior. A checkpoint file
    that exists is resumed: the result equals that of an uninterrupted run. A callback that returns True stops training.
    """
    if recipe not in RECIPES:
        raise ValueError(f"recipe must be one of {', '.join(RECIPES)}, got {recipe!r}")
    if optimizer is not None and not isinstance(optimizer, optax.GradientTransformation):
        raise ValueError(f"optimizer must come from optax, such as optax.adam(0.01), got {optimizer!r}")
    chosen = RECIPES[recipe]
    x, y = check_data(model, x, y)
    steps = chosen.default_steps(model, y.size) if steps is None else check_count(steps, "steps")
    if batch_size is not None and check_count(batch_size, "batch_size") > x.shape[0]:
        raise ValueError(f"batch_size must be at most the {x.shape[0]} points, got {batch_size}; leave it out for all")
    explicit = batch_size is not None or chosen.start == "paper" or not isinstance(model.likelihood, Gaussian)
    model = _prepared(model, x, explicit, key)
    samples = _default_samples(model, y.size) if samples is None else check_count(samples, "samples")
    model = start_shallow(model, x, y) if chosen.start == "shallow" else start_like_the_paper(model)
    model = jax.tree.map(lambda leaf: _cast(leaf, x.dtype), model)
    _warn_if_coarse(model, y)
    part = affordable_part(model, y) if chosen.parts else None
    plan = _Plan(chosen, optimizer, steps, samples, batch_size or part)
    return _train(model, Data(x, y, key), plan, progress, checkpoint, callback)


def _cast(leaf: PyTree, dtype: jnp.dtype) -> PyTree:
    return leaf.astype(dtype) if eqx.is_inexact_array(leaf) and leaf.dtype != dtype else leaf


def _warn_if_coarse(model: DeepGP, y: Float[Array, "N ..."]) -> None:
    """Warn if rounding is likely to be taken for noise: covariance matrices with little noise magnify its errors."""
    if y.dtype != jnp.float32 or not isinstance(model.output, Field) or not isinstance(model.likelihood, Gaussian):
        return
    variance = float(np.mean(np.var(np.asarray(y, float), axis=0)))
    noise = float(model.noise_variance)
    if noise < _COARSE * variance:
        text = (
            f"noise is {noise / variance:.1g} of the variance of y, too little for single precision; for sharper "
            'predictions give x and y as float64 after jax.config.update("jax_enable_x64", True)'
        )
        warnings.warn(text, PrecisionWarning, stacklevel=3)


def _default_samples(model: DeepGP, numbers: int) -> int:
    """Return how many draws a step takes: one where it is dear, else a mirrored pair, three for explicit posteriors."""
    if not isinstance(model.output, Field):
        return 3
    return 1 if is_dear(model, numbers) else 2


class _Plan(NamedTuple):
    """How to train; equal plans share one compilation."""

    recipe: Recipe
    optimizer: optax.GradientTransformation | None
    steps: int
    samples: int
    batch_size: int | None

    def chain(self, rates: Float[Array, "P"] | float) -> optax.GradientTransformation:
        if self.optimizer is not None:
            return self.optimizer
        return make_optimizer(self.recipe, rates, self.steps)

    def summary(self, model: DeepGP, data: Data) -> Summary:
        """Return what must agree for one fit to go on where another stopped."""
        numbers = {"steps": self.steps, "samples": self.samples, "batch_size": self.batch_size}
        return {**numbers, "start": self.recipe.start, **describe_fit(model, data)}


def _train(
    model: DeepGP,
    data: Data,
    plan: _Plan,
    progress: bool,
    checkpoint: str | Path | None,
    callback: Callback | None,
) -> FitResult:
    zero = jnp.zeros((), jnp.int32)
    vector = jnp.asarray(to_vector(split_trainable(model)[0]), data.x.dtype)
    worst = jnp.asarray(-jnp.inf, data.x.dtype)
    state = _State(vector, vector, vector, worst, plan.chain(1.0).init(vector), zero, zero)
    history, summary = np.zeros(0), plan.summary(model, data)
    if checkpoint is not None and Path(checkpoint).exists():
        state, history = load_state(state, checkpoint, summary)
    start = saved = time.monotonic()
    status: Status = "ok"
    pace = _FEW if is_dear(model, data.y.size) else CHUNK
    with Progress("fit", plan.steps, enabled=progress) as bar:
        try:
            while (done := int(state.step)) < plan.steps and status == "ok":
                count = min(pace, plan.steps - done)
                moved, bounds = _run(state, model, data, plan, jnp.asarray(count))
                recent = np.asarray(bounds)[:count]
                longer = np.concatenate([history, recent])
                state, history = _with_record(moved, recent), longer  # both or none, whenever the user interrupts
                bar.update(int(state.step), f"· bound {history[-1]:.5g}")
                status = _status(state, history, callback)
                if checkpoint is not None and time.monotonic() - saved > _CHECKPOINT_SECONDS:
                    save_state(state, history, checkpoint, summary)
                    saved = time.monotonic()
        except KeyboardInterrupt:
            status = "stopped"
    if checkpoint is not None:
        save_state(state, history, checkpoint, summary)
    failed = int(state.bad) > 0  # at the parameters it ended with the bound is not finite
    status = "nan" if failed and status == "ok" else status
    chosen = state.best if status == "diverged" else state.kept if failed else state.parameters
    free, rest = split_trainable(model)
    fitted = eqx.combine(from_vector(free, chosen), rest)
    if isinstance(fitted.output, Field):
        fitted = (fitted if plan.batch_size is None else noise_of_all(fitted, data)).with_coordinates(data.x, data.y)
    return FitResult(fitted, history, status, time.monotonic() - start)


@compiled_quickly
def _run(state: _State, model: DeepGP, data: Data, plan: _Plan, count: Int[Array, ""]) -> tuple[_State, Array]:
    """Take some steps, at most a chunk; one compilation serves any number of them."""
    carriers = first_carriers(model, data.x) if plan.batch_size is None else None  # of all points, large for batches
    whole = Batch(data.x, data.y, carriers, data.x.shape[0])
    key = jax.random.split(data.key)[1]
    optimizer = plan.chain(learning_rates(plan.recipe, model))

    def loss(parameters: Float[Array, "P"], batch: Batch, key: PRNGKeyArray) -> Float[Array, ""]:
        own = _model(model, parameters)
        return -elbo(own, batch, key, plan.samples) - log_prior(own)

    def body(i: Int[Array, ""], carry: tuple[_State, Array]) -> tuple[_State, Array]:
        state, bounds = carry
        key_batch, key_draws = jax.random.split(jax.random.fold_in(key, state.step))
        batch = batch_of(whole, plan.batch_size, key_batch, distinct=isinstance(model.output, Field))
        value, gradient = jax.value_and_grad(loss)(state.parameters, batch, key_draws)
        return _updated(state, value, gradient, optimizer, model), bounds.at[i].set(-value)

    return jax.lax.fori_loop(0, count, body, (state, jnp.zeros(CHUNK, data.x.dtype)))


def _model(template: DeepGP, parameters: Float[Array, "P"]) -> DeepGP:
    """Put a vector of parameters into a model."""
    free, rest = split_trainable(template)
    return eqx.combine(ravel_pytree(free)[1](parameters), rest)


def _updated(
    state: _State,
    value: Float[Array, ""],
    gradient: Float[Array, "P"],
    optimizer: optax.GradientTransformation,
    model: DeepGP,
) -> _State:
    """Take one step, or none where value or gradient are not finite."""
    good = jnp.isfinite(value) & jnp.all(jnp.isfinite(gradient))
    change, memory = optimizer.update(gradient, state.optimizer, state.parameters)
    moved = _on_spaces(state.parameters + change, model)
    parameters = jnp.where(good, moved, state.parameters)
    memory = jax.tree.map(lambda new, old: jnp.where(good, new, old), memory, state.optimizer)
    kept = jnp.where(good, state.parameters, state.kept)
    step, bad = state.step + 1, jnp.where(good, 0, state.bad + 1)
    return state._replace(parameters=parameters, kept=kept, optimizer=memory, step=step, bad=bad)


def _with_record(state: _State, bounds: Float[np.ndarray, "t"]) -> _State:
    """Remember the parameters if the last steps had the largest mean bound so far."""
    mean = jnp.asarray(np.mean(bounds), state.record.dtype)
    return state._replace(best=state.parameters, record=mean) if mean > state.record else state


def _on_spaces(parameters: Float[Array, "P"], template: DeepGP) -> Float[Array, "P"]:
    """Move trained locations back to their spaces."""
    layers = [*template.hidden, template.output]
    if not any(isinstance(layer, InducingLocations) and layer.trainable for layer in layers):
        return parameters

    def is_family(node: object) -> bool:
        return isinstance(node, InducingLocations)

    model = _model(template, parameters)
    model = jax.tree.map(lambda node: node.on_space() if is_family(node) else node, model, is_leaf=is_family)
    return ravel_pytree(split_trainable(model)[0])[0]


def _status(state: _State, history: Float[np.ndarray, "T"], callback: Callback | None) -> Status:
    if int(state.bad) >= _PATIENCE:
        return "nan"
    recent, first = history[-CHUNK:], history[:CHUNK]
    spread = np.nanmax(first) - np.nanmin(first) + np.abs(np.nanmedian(first)) if np.isfinite(first).any() else np.inf
    if history.size > 2 * CHUNK and np.nanmedian(recent) < np.nanmin(first) - 10.0 * spread:
        return "diverged"
    return "stopped" if callback is not None and callback(history.size, float(history[-1])) else "ok"


def _prepared(model: DeepGP, x: Float[Array, "N D"], explicit: bool, key: PRNGKeyArray) -> DeepGP:
    """Return the model without data of an earlier fit, its output with an explicit posterior if asked."""
    field = model.output
    if isinstance(field, Field) and explicit:
        spectral = all(latent.spectral for latent in field.latents)
        own = jax.random.split(key)[0]
        output = Interdomain(field) if spectral else InducingLocations(field, kmeans(field.space, x, 100, key=own))
        model = eqx.tree_at(lambda m: m.output, model, output)
    return eqx.tree_at(lambda m: m.data, model, None, is_leaf=lambda leaf: leaf is None)
