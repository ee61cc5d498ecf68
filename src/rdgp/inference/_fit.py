"""Training: initializer, loop and finalizer put together."""

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
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from rdgp.core import (
    Numbers,
    Progress,
    check_count,
    compiled_quickly,
    from_vector,
    register,
    split_trainable,
    to_vector,
)
from rdgp.inference._checkpoint import Summary, describe_fit, load_state, save_state
from rdgp.inference._finalize import finalize
from rdgp.inference._loop import LoopState, Plan, advance, initial_state
from rdgp.inference._noise import with_noise_of_hidden_layers
from rdgp.inference._recipe import RECIPES, Recipe, RecipeName, affordable_subsample, is_expensive
from rdgp.models import Data, DeepGP, Explicit, noise_floor, scatter
from rdgp.posteriors import InducingPoints, Interdomain, kmeans

_COARSE = 1e-4  # share of noise in the variance of the observations below which single precision harms
_NUM_INDUCING = 100  # inducing points of an explicit output where there is no spectrum

Status = Literal["ok", "nan", "diverged", "stopped"]
Callback = Callable[[int, float], bool | None]

CHUNK = 25  # steps between looks at the clock, the callback and the checkpoint ...
_FEW = 2  # ... where each takes seconds
_PATIENCE = 20  # steps in a row without a finite gradient before training gives up
_CHECKPOINT_SECONDS = 30.0


@register("rdgp:FitResult")
class FitResult(NamedTuple):
    """A fitted model, the ELBO at each step, and how training ended: ok, nan, diverged or stopped."""

    model: DeepGP
    history: Float[np.ndarray, "T"]
    status: Status
    seconds: float


class PrecisionWarning(UserWarning):
    """The noise is so small that rounding costs accuracy."""


def fit(
    model: DeepGP,
    x: Numbers,
    y: Numbers,
    *,
    key: PRNGKeyArray,
    noise_variance: Numbers | None = None,
    steps: int | None = None,
    batch_size: int | None = None,
    samples: int | None = None,
    optimizer: optax.GradientTransformation | None = None,
    fixed_draws: bool = False,
    recipe: RecipeName | Recipe = "default",
    progress: bool = True,
    checkpoint: str | Path | None = None,
    callback: Callback | None = None,
) -> FitResult:
    """Train a model on data and return it with the history of its ELBO.

    `noise_variance` is known of each observation: a variance [N], one of each output [N, P], or covariance matrices
    [N, P, P] of values; it adds to the learned one. The default recipe starts at the solution of the output layer alone
    and takes 400 steps of two mirrored draws: 100 of one draw where the kernel of many observations makes a step
    expensive, 40 without hidden layers. The quick one takes in each expensive step the bound of another random
    subsample of the points, and in the end the noise and the posterior given all of them. The paper's takes 1000 steps
    of Adam with three draws from the paper's starting point. With the latter, with `batch_size` and with noise that is
    not Gaussian, an output field gets an explicit posterior. An `optimizer` of optax replaces Adam; one with a line
    search, such as `optax.lbfgs()`, needs `fixed_draws`: the same draws in every step. A checkpoint file that exists is
    resumed: the result equals that of an uninterrupted run. A callback that returns True stops training.
    """
    chosen = _as_recipe(recipe)
    if optimizer is not None and not isinstance(optimizer, optax.GradientTransformation):
        raise ValueError(f"optimizer must come from optax, such as optax.adam(0.01), got {optimizer!r}")
    if not isinstance(model, DeepGP):
        raise ValueError(f"fit needs a DeepGP, got {type(model).__name__}; ExactGP has its own fit method")
    data = model.check_data(x, y, noise_variance)
    if batch_size is not None and check_count(batch_size, "batch_size") > data.num_points:
        raise ValueError(
            f"batch_size must be at most the {data.num_points} points, got {batch_size}; leave it out for all"
        )
    steps = chosen.num_steps(model, data) if steps is None else check_count(steps, "steps")
    model = _prepared(model, data, batch_size is not None or chosen.explicit, key)
    samples = _default_samples(model, data) if samples is None else check_count(samples, "samples")
    model = jax.tree.map(lambda leaf: _cast(leaf, data.x.dtype), chosen.initialize(model, data))
    _warn_if_coarse(model, data)
    model = with_noise_of_hidden_layers(model, data, key)
    subsample = affordable_subsample(model, data) if chosen.subsample else None
    plan = Plan(chosen, optimizer, steps, samples, batch_size or subsample, fixed_draws)
    return _train(model, data, key, plan, progress, checkpoint, callback)


def _as_recipe(recipe: RecipeName | Recipe) -> Recipe:
    if isinstance(recipe, Recipe):
        return recipe
    if recipe not in RECIPES:
        raise ValueError(f"recipe must be one of {', '.join(RECIPES)} or a Recipe, got {recipe!r}")
    return RECIPES[recipe]


def _cast(leaf: PyTree, dtype: jnp.dtype) -> PyTree:
    return leaf.astype(dtype) if eqx.is_inexact_array(leaf) and leaf.dtype != dtype else leaf


def _prepared(model: DeepGP, data: Data, explicit: bool, key: PRNGKeyArray) -> DeepGP:
    """Return the model without data of an earlier fit, its noise above rounding, its output explicit where needed."""
    model = model.with_data(None)
    if model.output.bundle is None:
        return model
    likelihood = model.likelihood.with_noise_floor(noise_floor(data))
    model = eqx.tree_at(lambda m: m.likelihood, model, likelihood)
    if not model.output.joint or (likelihood.conjugate and not explicit):
        return model
    field = model.field
    if field.has_features:
        return eqx.tree_at(lambda m: m.output, model, Explicit(Interdomain(field)))
    z = kmeans(field.space, data.x, _NUM_INDUCING, key=jax.random.split(key)[0])
    return eqx.tree_at(lambda m: m.output, model, Explicit(InducingPoints(field, z)))


def _warn_if_coarse(model: DeepGP, data: Data) -> None:
    """Warn if rounding is likely to be taken for noise: covariance matrices with little noise magnify its errors."""
    if not model.output.joint:
        return
    variance = scatter(data)
    noise = float(model.noise_variance) + (0.0 if data.noise is None else float(jnp.min(_smallest(data.noise))))
    if variance == 0.0:
        return
    share = noise / variance
    if data.y.dtype == jnp.float32 and share < _COARSE:
        text = (
            f"noise is {share:.1g} of the variance of y, too little for single precision; for sharper "
            'predictions give x and y as float64 after jax.config.update("jax_enable_x64", True)'
        )
        warnings.warn(text, PrecisionWarning, stacklevel=3)
    elif noise < 2.0 * noise_floor(data):
        text = (
            f"the observations look free of noise: their noise is {share:.1g} of the variance of y, the least that "
            "rounding allows; give noise_variance if it is known, or more levels"
        )
        warnings.warn(text, PrecisionWarning, stacklevel=3)


def _smallest(noise: Float[Array, "N ..."]) -> Float[Array, "..."]:
    return noise if noise.ndim == 1 else jnp.diagonal(noise, axis1=-2, axis2=-1)


def _default_samples(model: DeepGP, data: Data) -> int:
    """Return how many draws a step takes: one where it is expensive, else a mirrored pair, three if not joint."""
    if not model.output.joint:
        return 3
    return 1 if is_expensive(model, data) else 2


def _train(
    model: DeepGP,
    data: Data,
    key: PRNGKeyArray,
    plan: Plan,
    progress: bool,
    checkpoint: str | Path | None,
    callback: Callback | None,
) -> FitResult:
    state = initial_state(jnp.asarray(to_vector(split_trainable(model)[0]), data.x.dtype), plan)
    history, summary = np.zeros(0), _summary(plan, model, data, key)
    if checkpoint is not None and Path(checkpoint).exists():
        state, history = load_state(state, checkpoint, summary)
    start = saved = time.monotonic()
    status: Status = "ok"
    pace = _FEW if is_expensive(model, data) else CHUNK
    with Progress("fit", plan.steps, enabled=progress) as bar:
        try:
            while (done := int(state.step)) < plan.steps and status == "ok":
                count = min(pace, plan.steps - done)
                moved, bounds = _run(state, model, data, key, plan, jnp.asarray(count))
                recent = np.asarray(bounds)[:count]
                longer = np.concatenate([history, recent])
                state, history = _with_record(moved, recent), longer  # both or none, whenever the user interrupts
                bar.update(int(state.step), f"· ELBO {history[-1]:.5g}")
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
    fitted = finalize(fitted, data, key, subsampled=plan.batch_size is not None)
    return FitResult(fitted, history, status, time.monotonic() - start)


@compiled_quickly
def _run(
    state: LoopState, model: DeepGP, data: Data, key: PRNGKeyArray, plan: Plan, count: Int[Array, ""]
) -> tuple[LoopState, Array]:
    """Take some steps; one compilation serves any number of them."""
    return advance(state, model, data, jax.random.split(key)[1], plan, count, CHUNK)


def _summary(plan: Plan, model: DeepGP, data: Data, key: PRNGKeyArray) -> Summary:
    """Return what must agree for one fit to go on where another stopped."""
    numbers = {"steps": plan.steps, "samples": plan.samples, "batch_size": plan.batch_size}
    start = getattr(plan.recipe.initialize, "__name__", type(plan.recipe.initialize).__name__)
    return {**numbers, "start": start, **describe_fit(model, data, key)}


def _with_record(state: LoopState, bounds: Float[np.ndarray, "t"]) -> LoopState:
    """Remember the parameters if the last steps had the largest mean bound so far."""
    mean = jnp.asarray(np.mean(bounds), state.record.dtype)
    return state._replace(best=state.parameters, record=mean) if mean > state.record else state


def _status(state: LoopState, history: Float[np.ndarray, "T"], callback: Callback | None) -> Status:
    if int(state.bad) >= _PATIENCE:
        return "nan"
    recent, first = history[-CHUNK:], history[:CHUNK]
    spread = np.nanmax(first) - np.nanmin(first) + np.abs(np.nanmedian(first)) if np.isfinite(first).any() else np.inf
    if history.size > 2 * CHUNK and np.nanmedian(recent) < np.nanmin(first) - 10.0 * spread:
        return "diverged"
    return "stopped" if callback is not None and callback(history.size, float(history[-1])) else "ok"
