"""Small deep models, and their bounds and draws."""

from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rdgp.core import compiled
from rdgp.fields import Field, HodgeField, ScalarField, StackedField
from rdgp.inference import elbo
from rdgp.inference._initialize import with_optimal_output
from rdgp.kernels import Matern
from rdgp.likelihoods import Gaussian
from rdgp.models import DeepDraw, DeepGP
from rdgp.posteriors import Interdomain, Variational
from rdgp.spaces import Sphere

NOISE = 0.05
SPHERE = Sphere(2)
KEY = jax.random.key(0)


def sphere_points(seed: int, n: int) -> np.ndarray:
    x = np.random.default_rng(seed).normal(size=(n, 3))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


X, TEST = jnp.asarray(sphere_points(0, 10)), jnp.asarray(sphere_points(2, 3))


def hodge(variance: float = 0.05, num_levels: int = 2) -> HodgeField:
    return HodgeField(SPHERE, Matern(1.5, 0.6, variance), Matern(1.5, 0.8, variance), num_levels)


OUTPUTS: dict[str, Field] = {
    "scalar": ScalarField(SPHERE, Matern(1.5, 0.6, 1.5), 3),
    "stacked": StackedField(SPHERE, Matern(1.5, 0.6, 1.5), 3, outputs=2),
    "tangent": hodge(1.5),
}


def observations(kind: str) -> jax.Array:
    y = np.random.default_rng(1).normal(size=(10, *OUTPUTS[kind].bundle.value_shape))
    return jnp.asarray(y - np.sum(y * np.asarray(X), axis=1, keepdims=True) * np.asarray(X) if kind == "tangent" else y)


def with_means(q: Variational, seed: int, size: float = 1.0) -> Variational:
    """Return the family with random means of its inducing variables."""
    rng = np.random.default_rng(seed)
    raws = [jnp.asarray(size * rng.normal(size=block._mean.raw.shape)) for block in q.blocks]
    return eqx.tree_at(lambda family: [block._mean.raw for block in family.blocks], q, raws)


def conditioned(model: DeepGP, kind: str) -> DeepGP:
    return model.with_data(model.check_data(X, observations(kind)))


def best_output(kind: str) -> Variational:
    model = DeepGP((), Interdomain(OUTPUTS[kind]), Gaussian(NOISE))
    return with_optimal_output(model, model.check_data(X, observations(kind))).output.variational


@cache
def two_layers(kind: str, explicit: bool, variance: float = 0.05) -> DeepGP:
    """Return a model with one hidden layer that moves the points by about √(2 variance)."""
    hidden = with_means(Interdomain(hodge(variance), std=0.5), 3)
    if explicit:
        return DeepGP((hidden,), best_output(kind), Gaussian(NOISE))
    return conditioned(DeepGP((hidden,), OUTPUTS[kind], Gaussian(NOISE)), kind)


def draw_from(model: DeepGP) -> DeepDraw:
    return compiled(_draw, model, KEY)


def _draw(model: DeepGP, key: jax.Array) -> DeepDraw:
    return model.draw(key=key)


def bound(model: DeepGP, x: jax.Array, y: jax.Array, samples: int = 2) -> float:
    return float(elbo(model, x, y, key=KEY, samples=samples))
