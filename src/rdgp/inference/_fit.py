"""The one training loop."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from rdgp.core import Numbers, Progress, check_count, split_trainable
from rdgp.fields import Field, check_points
from rdgp.inference._bound import Batch, elbo
from rdgp.inference._recipe import RECIPES, Recipe, RecipeName, make_optimizer, start_shallow
from rdgp.io import load_leaves, save_leaves
from rdgp.likelihoods import Gaussian, WrappedGaussian
from rdgp.models import DeepGP
from rdgp.variational import InducingLocations, Interdomain, kmeans

Status = Literal["ok", "nan", "diverged", "stopped"]
Callback = Callable[[int, float], bool | None]

_CHUNK = 25  # steps between looks at the clock, the callback and the checkpoint
_PATIENCE = 20  # steps in a row without a finite gradient before training gives up
_CHECKPOINT_SECONDS = 30.0


class FitResult(NamedTuple):
    """A fitted model, the bound at each step, and how training ended: ok, nan, diverged or stopped."""

    model: DeepGP
    history: Float[np.ndarray, "T"]
    status: Status
    seconds: float


class _State(NamedTuple):
    """All that training changes."""

    parameters: PyTree
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

    The default recipe starts at the solution of the output layer alone and takes 400 steps of two mirrored draws; the
    paper's takes 1000 steps of Adam with three draws. With `batch_size`, or noise that is not Gaussian, an output field
    gets an explicit posterior. A checkpoint file that exists is resumed: the result equals that of an uninterrupted
    run. A callback that returns True stops training.
    """
    if recipe not in RECIPES:
        raise ValueError(f"recipe must be one of {', '.join(RECIPES)}, got {recipe!r}")
    if optimizer is not None and not isinstance(optimizer, optax.GradientTransformation):
        raise ValueError(f"optimizer must come from optax, such as optax.adam(0.01), got {optimizer!r}")
    chosen = RECIPES[recipe]
    steps = chosen.steps if steps is None else check_count(steps, "steps")
    x, y = _check_data(model, x, y)
    if batch_size is not None and check_count(batch_size, "batch_size") > x.shape[0]:
        raise ValueError(f"batch_size must be at most the {x.shape[0]} points, got {batch_size}; leave it out for all")
    key_start, key_steps = jax.random.split(key)
    model = _prepared(model, x, batch_size, key_start)
    samples = (2 if isinstance(model.output, Field) else 3) if samples is None else check_count(samples, "samples")
    if chosen.shallow_start:
        model = start_shallow(model, x, y)
    plan = _Plan(chosen, optimizer, steps, samples, batch_size)
    return _train(model, _Data(x, y, key_steps), plan, progress, checkpoint, callback)


class _Plan(NamedTuple):
    """How to train; equal plans share one compilation."""

    recipe: Recipe
    optimizer: optax.GradientTransformation | None
    steps: int
    samples: int
    batch_size: int | None

    def chain(self, parameters: PyTree) -> optax.GradientTransformation:
        return make_optimizer(self.recipe, parameters, self.steps) if self.optimizer is None else self.optimizer

    def summary(self, n: int) -> dict[str, Any]:
        """Return what must agree for one fit to go on where another stopped."""
        return {"steps": self.steps, "samples": self.samples, "batch_size": self.batch_size, "points": n}


class _Data(NamedTuple):
    """Points, coordinates of observations, and the key of all draws."""

    x: Float[Array, "N D"]
    y: Float[Array, "N ..."]
    key: PRNGKeyArray


def _train(
    model: DeepGP,
    data: _Data,
    plan: _Plan,
    progress: bool,
    checkpoint: str | Path | None,
    callback: Callback | None,
) -> FitResult:
    parameters, rest = split_trainable(model)
    zero = jnp.zeros((), jnp.int32)
    state = _State(parameters, plan.chain(parameters).init(parameters), zero, zero)
    history, summary = np.zeros(0), plan.summary(data.x.shape[0])
    if checkpoint is not None and Path(checkpoint).exists():
        state, history = _resume(state, checkpoint, summary)
    start = saved = time.monotonic()
    status: Status = "ok"
    with Progress("fit", plan.steps, enabled=progress) as bar:
        try:
            while (done := int(state.step)) < plan.steps and status == "ok":
                count = min(_CHUNK, plan.steps - done)
                state, bounds = _run(state, rest, data, plan, jnp.asarray(count))
                history = np.concatenate([history, np.asarray(bounds)[:count]])
                bar.update(int(state.step), f"· bound {history[-1]:.5g}")
                status = _status(state, history, callback)
                if checkpoint is not None and time.monotonic() - saved > _CHECKPOINT_SECONDS:
                    _save(state, history, checkpoint, summary)
                    saved = time.monotonic()
        except KeyboardInterrupt:
            status = "stopped"
    if checkpoint is not None:
        _save(state, history, checkpoint, summary)
    fitted = eqx.combine(state.parameters, rest)
    if isinstance(fitted.output, Field):
        fitted = fitted.with_coordinates(data.x, data.y)
    return FitResult(fitted, history, status, time.monotonic() - start)


@eqx.filter_jit
def _run(state: _State, rest: DeepGP, data: _Data, plan: _Plan, count: Int[Array, ""]) -> tuple[_State, Array]:
    """Take some steps, at most a chunk; one compilation serves any number of them."""
    carriers = _first_carriers(eqx.combine(state.parameters, rest), data.x)
    whole = Batch(data.x, data.y, carriers, data.x.shape[0])
    optimizer = plan.chain(state.parameters)

    def loss(parameters: PyTree, batch: Batch, key: PRNGKeyArray) -> Float[Array, ""]:
        return -elbo(eqx.combine(parameters, rest), batch, key, plan.samples)

    def body(i: Int[Array, ""], carry: tuple[_State, Array]) -> tuple[_State, Array]:
        state, bounds = carry
        key_batch, key_draws = jax.random.split(jax.random.fold_in(data.key, state.step))
        batch = _batch(whole, plan.batch_size, key_batch)
        value, gradient = eqx.filter_value_and_grad(loss)(state.parameters, batch, key_draws)
        return _updated(state, value, gradient, optimizer, rest), bounds.at[i].set(-value)

    return jax.lax.fori_loop(0, count, body, (state, jnp.zeros(_CHUNK, data.x.dtype)))


def _updated(
    state: _State, value: Array, gradient: PyTree, optimizer: optax.GradientTransformation, rest: DeepGP
) -> _State:
    """Take one step, or none where value or gradient are not finite."""
    leaves = [jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(gradient)]
    good = jnp.all(jnp.stack([jnp.isfinite(value), *leaves]))
    change, memory = optimizer.update(gradient, state.optimizer, state.parameters)
    moved = _on_spaces(eqx.apply_updates(state.parameters, change), rest)
    pick = lambda new, old: jnp.where(good, new, old)  # noqa: E731 - a rule for leaves
    parameters = jax.tree.map(pick, moved, state.parameters)
    memory = jax.tree.map(pick, memory, state.optimizer)
    return _State(parameters, memory, state.step + 1, jnp.where(good, 0, state.bad + 1))


def _on_spaces(parameters: PyTree, rest: DeepGP) -> PyTree:
    """Move trained locations back to their spaces."""

    def is_family(node: object) -> bool:
        return isinstance(node, InducingLocations)

    model = eqx.combine(parameters, rest)
    model = jax.tree.map(lambda n: n.on_space() if is_family(n) else n, model, is_leaf=is_family)
    return split_trainable(model)[0]


def _first_carriers(model: DeepGP, x: Float[Array, "N D"]) -> tuple[Float[Array, "..."], ...] | None:
    first = model.hidden[0] if model.hidden else None
    return first.field.carriers(x) if isinstance(first, Interdomain) else None


def _batch(whole: Batch, size: int | None, key: PRNGKeyArray) -> Batch:
    if size is None:
        return whole
    index = jax.random.randint(key, (size,), 0, whole.total)
    x, y, carriers = jax.tree.map(lambda leaf: leaf[index], (whole.x, whole.y, whole.carriers))
    return Batch(x, y, carriers, whole.total)


def _status(state: _State, history: Float[np.ndarray, "T"], callback: Callback | None) -> Status:
    if int(state.bad) >= _PATIENCE:
        return "nan"
    recent, first = history[-_CHUNK:], history[:_CHUNK]
    spread = np.nanmax(first) - np.nanmin(first) + np.abs(np.nanmedian(first)) if np.isfinite(first).any() else np.inf
    if history.size > 2 * _CHUNK and np.nanmedian(recent) < np.nanmin(first) - 10.0 * spread:
        return "diverged"
    return "stopped" if callback is not None and callback(history.size, float(history[-1])) else "ok"


def _check_data(model: DeepGP, x: Numbers, y: Numbers) -> tuple[Float[Array, "N D"], Float[Array, "N ..."]]:
    """Return points and coordinates of observations, or raise."""
    if not isinstance(model, DeepGP):
        raise ValueError(f"fit needs a DeepGP, got {type(model).__name__}; ExactGP has its own fit method")
    x = check_points(model.space, x)
    if x.shape[0] == 0:
        raise ValueError("x must hold at least one point, got none")
    if isinstance(model.likelihood, WrappedGaussian) or model.output_field is None:
        y = check_points(model.space, y, "y")
        if y.shape[0] != x.shape[0]:
            raise ValueError(f"y must have one point for each of the {x.shape[0]} of x, got {y.shape[0]}")
        return x, y.astype(x.dtype)
    y = model.likelihood.check(model.output_field.check_values(x, y))
    return x, model.coordinates(x, y)


def _prepared(model: DeepGP, x: Float[Array, "N D"], batch_size: int | None, key: PRNGKeyArray) -> DeepGP:
    """Return the model in the data's precision, its output explicit where it cannot be integrated out."""
    field = model.output
    if isinstance(field, Field) and (batch_size is not None or not isinstance(model.likelihood, Gaussian)):
        spectral = all(latent.spectral for latent in field.latents)
        explicit = Interdomain(field) if spectral else InducingLocations(field, kmeans(field.space, x, 100, key=key))
        model = eqx.tree_at(lambda m: m.output, model, explicit)
    model = eqx.tree_at(lambda m: m.data, model, None, is_leaf=lambda leaf: leaf is None)
    return jax.tree.map(lambda leaf: leaf.astype(x.dtype) if eqx.is_inexact_array(leaf) else leaf, model)


def _save(state: _State, history: Float[np.ndarray, "T"], path: str | Path, summary: dict[str, Any]) -> None:
    save_leaves(state, path, extra={"plan": summary, "history": history})


def _resume(state: _State, path: str | Path, summary: dict[str, Any]) -> tuple[_State, Float[np.ndarray, "T"]]:
    state, extra = load_leaves(state, path)
    if extra.get("plan") != summary:
        raise ValueError(f"{path} belongs to a fit with {extra.get('plan')}, this one has {summary}; use another file")
    return state, np.asarray(extra["history"])
