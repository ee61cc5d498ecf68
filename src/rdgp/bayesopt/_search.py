"""Where the acquisition is largest: many searches on the space at once."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from rdgp.bayesopt._acquisition import Feasibility, log_expected_improvement
from rdgp.bayesopt._mixture import Mixture
from rdgp.core import compiled
from rdgp.models import DeepGP
from rdgp.optimize import Minima, minimize_on_space
from rdgp.spaces import Space

Sizes = tuple[int, int, int, int]  # candidates anywhere and around the incumbent, searches, evaluations of each
_SCALES = (-3.0, 0.0)  # of distances to the incumbent, powers of ten


def log_acquisition(
    x: Float[Array, "R D"], space: Space, mixture: Mixture, feasibility: Feasibility
) -> Float[Array, "R"]:
    """Return the log of expected improvement times the probability of success."""
    improvement = log_expected_improvement(*mixture.moments(x), mixture.best.reshape(-1, 1))
    return improvement + feasibility.log_probability(space, x)


@eqx.filter_jit
def search(
    space: Space,
    plain: Bool[Array, ""],
    mixture: Mixture,
    feasibility: Feasibility,
    candidates: Float[Array, "C D"],
    sizes: Sizes,
) -> Minima:
    """Return the ends of all searches: half start anywhere, half around the incumbent at all scales.

    They climb the log of expected improvement or, to have it as others do, the plain one.
    """

    def cost(x: Float[Array, "R D"]) -> Float[Array, "R"]:
        value = log_acquisition(x, space, mixture, feasibility)
        return -jnp.where(plain, jnp.exp(value), value)

    return _search(space, cost, candidates, sizes)


@eqx.filter_jit
def search_draw(
    space: Space,
    model: DeepGP,
    feasibility: Feasibility,
    candidates: Float[Array, "C D"],
    key: PRNGKeyArray,
    sizes: Sizes,
) -> Minima:
    """Return where one function drawn from a model that carries its data is small; failures raise it."""
    draw = model.draw(key=key)

    def cost(x: Float[Array, "R D"]) -> Float[Array, "R"]:
        return draw(x) - feasibility.log_probability(space, x)

    return _search(space, cost, candidates, sizes)


def _search(
    space: Space,
    cost: Callable[[Float[Array, "R D"]], Float[Array, "R"]],
    candidates: Float[Array, "C D"],
    sizes: Sizes,
) -> Minima:
    """Evaluate the candidates, and search on from the best of each kind."""
    num_random, num_around, restarts, evaluations = sizes
    first = -cost(candidates)
    first = jnp.where(jnp.isfinite(first), first, -jnp.inf)
    share = restarts // 2 if num_around else restarts
    parts = [jax.lax.top_k(first[:num_random], share)[1]]
    if num_around:
        parts.append(num_random + jax.lax.top_k(first[num_random:], share)[1])
    return minimize_on_space(cost, space, candidates[jnp.concatenate(parts)], evaluations=evaluations)


def candidates_of(
    space: Space, incumbent: Float[np.ndarray, "D"], key: PRNGKeyArray, sizes: Sizes
) -> Float[Array, "C D"]:
    """Draw candidates: anywhere, then around the incumbent at distances spread evenly over scales.

    Drawn outside of the search, whose compilation random numbers would double.
    """
    anywhere = space.random(sizes[0], key=key)
    generator = np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())
    normal = generator.normal(size=(sizes[1], incumbent.shape[0]))
    length = 10.0 ** generator.uniform(_SCALES[0], _SCALES[1], size=(sizes[1], 1))
    return compiled(
        _around, space, jnp.asarray(incumbent, float), anywhere, jnp.asarray(normal, float), jnp.asarray(length, float)
    )


def _around(
    space: Space,
    incumbent: Float[Array, "D"],
    anywhere: Float[Array, "C D"],
    normal: Float[Array, "n D"],
    length: Float[Array, "n 1"],
) -> Float[Array, "c D"]:
    here = jnp.broadcast_to(incumbent, normal.shape)
    direction = space.project(here, normal)
    size = jnp.sqrt(space.inner(here, direction, direction))
    unit = direction / jnp.maximum(size, 1e-12)[:, None]
    return jnp.concatenate([anywhere, space.exp(here, length * unit)])
