"""The one training loop: steps of an optimizer on the bound, inside one compilation."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PRNGKeyArray, PyTree

from rdgp.core import compiled, log_prior, split_trainable
from rdgp.inference._objective import estimate
from rdgp.inference._recipe import Recipe
from rdgp.models import Data, DeepGP
from rdgp.posteriors import Variational


class Plan(NamedTuple):
    """How to train; equal plans share one compilation."""

    recipe: Recipe
    optimizer: optax.GradientTransformation | None  # instead of the recipe's
    steps: int
    samples: int
    batch_size: int | None
    fixed_draws: bool = False  # whether all steps see the same draws, as line searches need

    def chain(self, rates: Float[Array, "P"] | float) -> optax.GradientTransformationExtraArgs:
        """Return the optimizer, given a rate for each number."""
        own = self.recipe.optimizer(rates, self.steps) if self.optimizer is None else self.optimizer
        return optax.with_extra_args_support(own)


class LoopState(NamedTuple):
    """All that training changes; the parameters as one vector, which takes few operations to update."""

    parameters: Float[Array, "P"]
    kept: Float[Array, "P"]  # the last with a finite bound and gradient
    best: Float[Array, "P"]  # after the steps with the largest mean bound ...
    record: Float[Array, ""]  # ... and that mean
    optimizer: PyTree
    step: Int[Array, ""]
    bad: Int[Array, ""]  # steps in a row without a finite bound and gradient


def initial_state(vector: Float[Array, "P"], plan: Plan) -> LoopState:
    """Return the state before the first step."""
    zero = jnp.zeros((), jnp.int32)
    return LoopState(
        vector, vector, vector, jnp.asarray(-jnp.inf, vector.dtype), plan.chain(1.0).init(vector), zero, zero
    )


def advance(
    state: LoopState,
    model: DeepGP,
    data: Data,
    key: PRNGKeyArray,
    plan: Plan,
    count: Int[Array, ""] | int,
    most: int,
) -> tuple[LoopState, Float[Array, "most"]]:
    """Take `count` steps, at most `most`; return the state and the bound before each step."""
    basis = first_basis(model, data) if plan.batch_size is None else None  # of all points, large for batches
    optimizer = plan.chain(plan.recipe.rates(model))

    def body(i: Int[Array, ""], carry: tuple[LoopState, Array]) -> tuple[LoopState, Array]:
        state, bounds = carry
        key_batch, key_draws = jax.random.split(jax.random.fold_in(key, jnp.where(plan.fixed_draws, 0, state.step)))
        batch = _batch(data, plan.batch_size, key_batch, distinct=model.output.joint)

        def loss(parameters: Float[Array, "P"]) -> Float[Array, ""]:
            own = with_vector(model, parameters)
            return -estimate(own, batch, key_draws, plan.samples, basis) - log_prior(own)

        value, gradient = jax.value_and_grad(loss)(state.parameters)
        change, memory = optimizer.update(
            gradient, state.optimizer, state.parameters, value=value, grad=gradient, value_fn=loss
        )
        return _updated(state, value, gradient, change, memory, model), bounds.at[i].set(-value)

    return jax.lax.fori_loop(0, count, body, (state, jnp.zeros(most, data.x.dtype)))


def first_basis(model: DeepGP, data: Data) -> Any:
    """Return what the first hidden layer needs of the points, if its draws can use it."""
    if not model.order or not model.hidden[0].num_normals:
        return None
    field = model.hidden[0].field
    return compiled(type(field).basis, field, data.x)


def with_vector(template: DeepGP, parameters: Float[Array, "P"]) -> DeepGP:
    """Put a vector of parameters into a model."""
    free, rest = split_trainable(template)
    return eqx.combine(ravel_pytree(free)[1](parameters), rest)


def _batch(data: Data, size: int | None, key: PRNGKeyArray, distinct: bool) -> Data:
    """Return random points; the evidence needs distinct ones, since a copy of a point has a copy of its noise."""
    if size is None:
        return data
    if distinct:
        index = jax.random.permutation(key, data.num_points)[:size]
    else:
        index = jax.random.randint(key, (size,), 0, data.num_points)
    return data.rows(index, data.num_points)


def _updated(
    state: LoopState,
    value: Float[Array, ""],
    gradient: Float[Array, "P"],
    change: Float[Array, "P"],
    memory: PyTree,
    model: DeepGP,
) -> LoopState:
    """Take one step, or none where value or gradient are not finite."""
    good = jnp.isfinite(value) & jnp.all(jnp.isfinite(gradient))
    parameters = jnp.where(good, _on_spaces(state.parameters + change, model), state.parameters)
    memory = jax.tree.map(lambda new, old: jnp.where(good, new, old), memory, state.optimizer)
    kept = jnp.where(good, state.parameters, state.kept)
    step, bad = state.step + 1, jnp.where(good, 0, state.bad + 1)
    return state._replace(parameters=parameters, kept=kept, optimizer=memory, step=step, bad=bad)


def _on_spaces(parameters: Float[Array, "P"], template: DeepGP) -> Float[Array, "P"]:
    """Move what training has moved off its space back on it."""

    def is_layer(node: object) -> bool:
        return isinstance(node, Variational)

    model = with_vector(template, parameters)
    model = jax.tree.map(lambda node: node.nearest() if is_layer(node) else node, model, is_leaf=is_layer)
    return ravel_pytree(split_trainable(model)[0])[0]
