"""Where the acquisition is largest: many searches on the space at once."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from rdgp.bayesopt._acquisition import log_expected_improvement
from rdgp.bayesopt._draw import draw_posterior
from rdgp.bayesopt._posterior import Observed, Posterior
from rdgp.core import compiled, safe_norm
from rdgp.optimize import Minima, minimize_on_space
from rdgp.spaces import Space

Sizes = tuple[int, int, int, int]  # candidates anywhere and around the incumbent, searches, evaluations of each
_SCALES = (-3.0, 0.0)  # of distances to the incumbent, powers of ten


class Votes(NamedTuple):
    """Points whose evaluation succeeded or failed, padded, and the reach of their votes."""

    x: Float[Array, "V D"]
    succeeded: Bool[Array, "V"]
    failed: Bool[Array, "V"]
    reach: Float[Array, ""]


def log_success(space: Space, x: Float[Array, "R D"], votes: Votes) -> Float[Array, "R"]:
    """Return the log probability that an evaluation succeeds: votes of the points around, and one vote for success."""
    apart = jax.vmap(lambda point: space._distance(jnp.broadcast_to(point, votes.x.shape), votes.x))(x)
    weight = jnp.exp(-0.5 * jnp.square(apart / votes.reach))
    yes = jnp.sum(jnp.where(votes.succeeded, weight, 0.0), axis=1)
    no = jnp.sum(jnp.where(votes.failed, weight, 0.0), axis=1)
    return jnp.log1p(yes) - jnp.log1p(yes + no)


def log_acquisition(x: Float[Array, "R D"], space: Space, posterior: Posterior, votes: Votes) -> Float[Array, "R"]:
    """Return the log of expected improvement times the probability of success."""
    improvement = log_expected_improvement(*posterior.mixture(x), posterior.best.reshape(-1, 1))
    return improvement + log_success(space, x, votes)


@eqx.filter_jit
def search(
    space: Space,
    plain: Bool[Array, ""],
    posterior: Posterior,
    votes: Votes,
    candidates: Float[Array, "C D"],
    sizes: Sizes,
) -> Minima:
    """Return the ends of all searches: half start anywhere, half around the incumbent at all scales.

    They climb the log of expected improvement or, to have it as others do, the plain one.
    """

    def cost(x: Float[Array, "R D"]) -> Float[Array, "R"]:
        value = log_acquisition(x, space, posterior, votes)
        return -jnp.where(plain, jnp.exp(value), value)

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
    direction = space._project(here, normal)
    unit = direction / jnp.maximum(safe_norm(direction), 1e-12)[:, None]
    return jnp.concatenate([anywhere, space._exp(here, length * unit)])


@eqx.filter_jit
def search_draw(
    space: Space,
    posterior: Posterior,
    observed: Observed,
    votes: Votes,
    candidates: Float[Array, "C D"],
    key: PRNGKeyArray,
    sizes: Sizes,
) -> Minima:
    """Return where one function drawn from the posterior is small; failures raise it."""
    draw = draw_posterior(posterior, observed, key)

    def cost(x: Float[Array, "R D"]) -> Float[Array, "R"]:
        return draw(x) - log_success(space, x, votes)

    return _search(space, cost, candidates, sizes)
