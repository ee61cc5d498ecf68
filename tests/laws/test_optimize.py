"""Searches on spaces: they find known minima, stay on the space, and stop at its boundary."""

import jax
import jax.numpy as jnp
import numpy as np

from rdgp.core import compiled
from rdgp.fields import TangentBundle
from rdgp.optimize import minimize_on_space
from rdgp.spaces import Box, Product, Rotations, Space, Sphere, Torus
from tests.cases import points

SPACE = Product(Sphere(2), Torus(2), Rotations(), Box([0.0], [1.0]))  # every kind of space in one compilation


def minimize(space: Space, starts: jax.Array, goal: jax.Array) -> object:
    """Minimise an ill-conditioned function of the vector from a point to its only minimum."""
    stretch = jnp.linspace(1.0, 30.0, space.ambient_dim)

    def cost(x: jax.Array) -> jax.Array:
        away = space.log(jnp.broadcast_to(goal, x.shape), x)
        return jnp.sum(stretch * jnp.square(away), axis=-1)

    return minimize_on_space(cost, space, starts, evaluations=40)


def test_searches_find_the_minimum_and_stay_on_the_space() -> None:
    goal, starts = points(SPACE, 3, 1)[0], points(SPACE, 1, 16)
    found = compiled(minimize, SPACE, starts, goal)
    assert np.all(SPACE.contains(found.points))
    assert np.median(found.values) < 1e-9  # cut loci may stop some


def bounded(starts: jax.Array) -> object:
    curvature = jnp.asarray([[2.0, 0.5, 0.3], [0.5, 1.0, 0.4], [0.3, 0.4, 1.5]])
    center = jnp.asarray([2.0, -1.0, 0.3])

    def cost(x: jax.Array) -> jax.Array:
        value = jnp.einsum("ri,ij,rj->r", x - center, curvature, x - center)
        return jnp.where(x[:, 2] > 0.9, jnp.nan, value)  # not a number is a wall too

    return minimize_on_space(cost, Box([0.0] * 3, [1.0] * 3), starts)


def test_searches_slide_along_the_boundary() -> None:
    starts = jnp.asarray(np.random.default_rng(0).uniform(0.0, 0.9, (8, 3)))
    found = compiled(bounded, starts)
    np.testing.assert_allclose(found.points, np.tile([1.0, 0.0, 0.7 / 3.0], (8, 1)), atol=1e-5)


def test_a_box_has_covectors_beside_its_lower_bounds() -> None:
    x, v = points(Box([0.0] * 3, [1.0] * 3), 5, 4), jnp.asarray(np.random.default_rng(1).normal(size=(4, 3)))
    frame = TangentBundle(Box([0.0] * 3, [1.0] * 3)).frame(x)
    np.testing.assert_allclose(frame.values(frame.coordinates(v)), v, atol=1e-12)
