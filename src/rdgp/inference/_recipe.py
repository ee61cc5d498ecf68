"""Recipes: how models are trained."""

from collections.abc import Callable
from typing import Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PyTree

from rdgp.core import split_trainable
from rdgp.inference._initialize import ENOUGH, start_like_the_paper, start_shallow
from rdgp.models import Data, DeepGP
from rdgp.posteriors import WhitenedGaussian, uses_features

RecipeName = Literal["default", "quick", "paper"]


class Recipe(NamedTuple):
    """An initializer, numbers of Adam, and how data are used; `fit(recipe=...)` takes one of your own."""

    initialize: Callable[[DeepGP, Data], DeepGP]  # where training starts
    steps: int
    steps_if_expensive: int  # where the evidence by the kernel makes a step expensive
    steps_if_shallow: int  # without hidden layers, where the start is nearly the end
    variational_rate: float  # learning rate of inducing variables ...
    rate: float  # ... and of everything else
    warm_up: int  # steps over which the rates rise; 0 keeps them constant throughout
    explicit: bool = False  # whether an output field gets an explicit posterior
    subsample: bool = False  # whether an expensive step takes a random part of the points

    def num_steps(self, model: DeepGP, data: Data) -> int:
        """Return how many steps to take."""
        if not model.order and model.output.joint:
            return self.steps_if_shallow
        return self.steps_if_expensive if is_expensive(model, data) else self.steps

    def optimizer(self, rates: Float[Array, "P"] | float, steps: int) -> optax.GradientTransformation:
        """Return Adam on a vector of parameters with a rate for each, which rises and then falls to nearly zero."""

        def schedule(step: Array) -> Array:
            if not self.warm_up:
                return jnp.ones(())
            warm_up = min(self.warm_up, max(steps // 4, 1))
            return optax.warmup_cosine_decay_schedule(0.1, 1.0, warm_up, max(steps, warm_up + 1), 0.02)(step)

        scale = optax.stateless(lambda updates, _: jax.tree.map(lambda u: -rates * u, updates))
        return optax.chain(optax.scale_by_adam(), optax.scale_by_schedule(schedule), scale)

    def rates(self, model: DeepGP) -> Float[Array, "P"]:
        """Return the rate of each trainable number: inducing variables have their own, a mean that of the size of y."""

        def rate(node: PyTree) -> PyTree:
            value = self.variational_rate if isinstance(node, WhitenedGaussian) else self.rate
            return jax.tree.map(lambda leaf: jnp.full_like(leaf, value), node)

        free, _ = split_trainable(model)
        tree = jax.tree.map(rate, free, is_leaf=lambda node: isinstance(node, WhitenedGaussian))
        if model.mean is not None and model.likelihood.conjugate:
            size = jnp.sqrt(model.field.variance + model.noise_variance)
            tree = eqx.tree_at(lambda m: m.mean.raw, tree, tree.mean.raw * size.astype(tree.mean.raw.dtype))
        return ravel_pytree(tree)[0]


RECIPES = {
    "default": Recipe(start_shallow, 400, 100, 40, variational_rate=0.02, rate=0.05, warm_up=20),
    "quick": Recipe(start_shallow, 400, 100, 40, variational_rate=0.02, rate=0.05, warm_up=20, subsample=True),
    "paper": Recipe(start_like_the_paper, 1000, 1000, 1000, variational_rate=0.01, rate=0.01, warm_up=0, explicit=True),
}


def is_expensive(model: DeepGP, data: Data) -> bool:
    """Tell whether a step with all points would take seconds: the evidence of many observations, by the kernel."""
    if not model.output.joint:
        return False
    num_values = data.num_points * model.field.width
    return not uses_features(model.field, num_values) and num_values > ENOUGH


def affordable_subsample(model: DeepGP, data: Data) -> int | None:
    """Return how many points a step of an expensive fit by subsamples takes, or None for all.

    The bound of a random part's evidence, another one in each step, trains kernels and hidden layers; the fitted model
    is conditioned on all points.
    """
    return max(ENOUGH // model.field.width, 1) if is_expensive(model, data) else None
