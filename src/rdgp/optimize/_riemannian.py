"""L-BFGS on a space, from many starting points at once."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, PyTree

from rdgp.spaces import Space

_SUFFICIENT = 1e-4  # of the decrease that the slope promises
_SHRINK = 0.3  # of a step that did not decrease enough
_NUDGE = 1e-3  # length of the step that finds out which directions the boundary of a space leaves open


class Minima(NamedTuple):
    """Where the searches ended: points and values, one row for each start."""

    points: Float[Array, "R D"]
    values: Float[Array, "R"]


class _State(NamedTuple):
    """One search in each row; the memory holds the latest steps and changes of gradient first."""

    x: Float[Array, "R D"]
    value: Float[Array, "R"]
    gradient: Float[Array, "R D"]
    direction: Float[Array, "R D"]
    length: Float[Array, "R"]
    steps: Float[Array, "m R D"]
    changes: Float[Array, "m R D"]
    inverse: Float[Array, "m R"]  # 1 / <step, change>, zero where the memory is empty


def minimize_on_space(
    function: Callable[..., Float[Array, "R"]],
    space: Space,
    starts: Float[Array, "R D"],
    *rest: PyTree,
    evaluations: int = 40,
    memory: int = 6,
    longest: float = 0.5,
) -> Minima:
    """Minimise function(x, *rest) [R] over points x [R, D] of a space, row by row, inside one trace.

    A row of the result may depend on its row of x only. Memory is carried along by projection. Each round evaluates
    the function once in all rows: where the step decreases it enough a row moves on, elsewhere it tries a shorter step.
    Steps are never longer than `longest`; values that are not finite count as a wall.
    """

    def evaluate(x: Float[Array, "R D"]) -> tuple[Float[Array, "R"], Float[Array, "R D"]]:
        value, pull = jax.vjp(lambda points: function(points, *rest), x)
        gradient = space.gradient(x, pull(jnp.ones_like(value))[0])
        good = jnp.isfinite(value) & jnp.all(jnp.isfinite(gradient), axis=-1)
        return jnp.where(good, value, jnp.inf), jnp.where(good[:, None], gradient, 0.0)

    def round_(_: Int[Array, ""], state: _State) -> _State:
        x = space.exp(state.x, state.length[:, None] * state.direction)
        moved = space.log(state.x, x)
        value, gradient = evaluate(x)
        enough = value <= state.value + _SUFFICIENT * jnp.minimum(space.inner(state.x, state.gradient, moved), 0.0)
        enough &= jnp.isfinite(value)
        shorter = state._replace(length=_SHRINK * state.length)
        return _choose(enough, _accepted(space, state, x, moved, value, gradient, longest), shorter)

    empty = jnp.zeros((memory, *starts.shape), starts.dtype)
    none = empty[0]
    state = _State(starts, none[:, 0] + jnp.inf, none, none, none[:, 0], empty, empty, empty[..., 0])
    state = jax.lax.fori_loop(0, evaluations, round_, state)  # the first round only evaluates the starts
    return Minima(state.x, state.value)


def _accepted(
    space: Space,
    old: _State,
    x: Float[Array, "R D"],
    moved: Float[Array, "R D"],
    value: Float[Array, "R"],
    gradient: Float[Array, "R D"],
    longest: float,
) -> _State:
    """Return the state after a step: memory carried to the new point and extended, next direction by two loops."""
    step = space.project(x, moved)
    change = gradient - space.project(x, old.gradient)
    curvature = space.inner(x, step, change)
    curved = curvature > 1e-10 * jnp.sqrt(space.inner(x, step, step) * space.inner(x, change, change))
    inverse = jnp.where(curved, 1.0 / jnp.where(curved, curvature, 1.0), 0.0)
    steps = jnp.concatenate([step[None], space.project(x, old.steps[:-1])])
    changes = jnp.concatenate([change[None], space.project(x, old.changes[:-1])])
    inverse = jnp.concatenate([inverse[None], old.inverse[:-1]])
    open_gradient = _open(space, x, gradient, -1.0)
    direction = _open(space, x, -_two_loops(space, x, steps, changes, inverse, open_gradient), 1.0)
    plain, plain_length = _steepest(space, x, gradient, longest)
    downhill = space.inner(x, direction, gradient) < 0.0
    usable = jnp.any(inverse > 0.0, axis=0) & downhill
    direction = jnp.where(usable[:, None], direction, plain)
    size = jnp.sqrt(space.inner(x, direction, direction))
    length = jnp.where(usable, jnp.minimum(1.0, longest / jnp.where(size > 0.0, size, 1.0)), plain_length)
    return _State(x, value, gradient, direction, length, steps, changes, inverse)


def _two_loops(
    space: Space,
    x: Float[Array, "R D"],
    steps: Float[Array, "m R D"],
    changes: Float[Array, "m R D"],
    inverse: Float[Array, "m R"],
    gradient: Float[Array, "R D"],
) -> Float[Array, "R D"]:
    """Return the inverse Hessian's approximation times the gradient; pairs without curvature are left out."""

    def backward(q: Array, pair: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        step, change, inverse = pair
        weight = inverse * space.inner(x, step, q)
        return q - weight[:, None] * change, weight

    def forward(q: Array, pair: tuple[Array, Array, Array, Array]) -> tuple[Array, None]:
        step, change, inverse, weight = pair
        return q + (weight - inverse * space.inner(x, change, q))[:, None] * step, None

    q, weights = jax.lax.scan(backward, gradient, (steps, changes, inverse))  # loops compile faster than 2 m lines
    product = inverse[0] * space.inner(x, changes[0], changes[0])
    q = q / jnp.where(product > 0.0, product, 1.0)[:, None]
    return jax.lax.scan(forward, q, (steps, changes, inverse, weights), reverse=True)[0]


def _steepest(
    space: Space, x: Float[Array, "R D"], gradient: Float[Array, "R D"], longest: float
) -> tuple[Float[Array, "R D"], Float[Array, "R"]]:
    """Return the direction of steepest descent, of unit length, and a first step along it."""
    direction = -_open(space, x, gradient, -1.0)
    size = jnp.sqrt(space.inner(x, direction, direction))
    unit = direction / jnp.where(size > 0.0, size, 1.0)[:, None]
    return unit, jnp.minimum(0.2 * longest, size)


def _open(space: Space, x: Float[Array, "R D"], v: Float[Array, "R D"], sign: float) -> Float[Array, "R D"]:
    """Return what the boundary of the space leaves of a vector along which (or, sign -1, against which) to walk."""
    if not space.has_boundary:
        return v
    size = jnp.sqrt(space.inner(x, v, v))
    factor = (sign * _NUDGE / jnp.where(size > 0.0, size, 1.0))[:, None]
    return space.log(x, space.exp(x, factor * v)) / factor


def _choose(rows: Bool[Array, "R"], new: _State, old: _State) -> _State:
    def pick(a: Array, b: Array, axis: int) -> Array:
        return jnp.where(rows.reshape([-1 if i == axis else 1 for i in range(a.ndim)]), a, b)

    of_memory = {"steps", "changes", "inverse"}
    axes = (1 if name in of_memory else 0 for name in _State._fields)
    return _State(*(pick(a, b, axis) for a, b, axis in zip(new, old, axes, strict=True)))
