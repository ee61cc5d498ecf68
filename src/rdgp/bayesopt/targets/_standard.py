"""Test functions of R^d in coordinates around a base point: u = stretch * log_base(x).

On R^d each has its minimum at a known u. Where that lies too far out for the space (|u| <= π on a sphere, π/2 on
rotations), coordinates are stretched until it does not, so the minimum on R^d is the minimum on the space.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rdgp.bayesopt.targets._chart import as_space, coordinates, point_at, stretch_for
from rdgp.bayesopt.targets._target import Formula, Target, Values
from rdgp.core import safe_norm
from rdgp.spaces import Space

_LOWEST = -2.903534027771177  # the deeper of the two wells of t^4 - 16 t^2 + 5 t


def ackley(space: Space | int) -> Target:
    """Return Ackley's function: many shallow wells around one cone, minimum 0 at the base point.

    f = -20 exp(-0.2 √mean u²) - exp(mean cos 2πu) + 20 + e.

    >>> target = ackley(2)
    >>> round(abs(float(target([1.0, 0.0, 0.0]))), 3)
    0.0
    """
    space = as_space(space)
    return _standard("Ackley", space, _ackley, np.zeros(space.dim), 0.0)


def rosenbrock(space: Space | int) -> Target:
    """Return Rosenbrock's function: a curved, narrow basin, minimum 0 at u = (1, ..., 1).

    f = Σ 100 (u_(i+1) - u_i²)² + (1 - u_i)².
    """
    space = _plural(as_space(space), "Rosenbrock's function")
    return _standard("Rosenbrock", space, _rosenbrock, np.ones(space.dim), 0.0)


def levy(space: Space | int) -> Target:
    """Return Levy's function: waves on a bowl, minimum 0 at u = (1, ..., 1).

    f = sin² πw_1 + Σ_(i<d) (w_i - 1)² (1 + 10 sin²(πw_i + 1)) + (w_d - 1)² (1 + sin² 2πw_d), w = 1 + (u - 1)/4.
    """
    space = as_space(space)
    return _standard("Levy", space, _levy, np.ones(space.dim), 0.0)


def styblinski_tang(space: Space | int) -> Target:
    """Return the function of Styblinski and Tang: 2^d wells of unlike depth, minimum -39.166 d at u = -2.9035.

    f = ½ Σ u_i⁴ - 16 u_i² + 5 u_i.
    """
    space = as_space(space)
    lowest = float(0.5 * (_LOWEST**4 - 16.0 * _LOWEST**2 + 5.0 * _LOWEST))
    return _standard("Styblinski-Tang", space, _styblinski_tang, np.full(space.dim, _LOWEST), space.dim * lowest)


def product_of_sines(space: Space | int) -> Target:
    """Return 100 sin u_1 Π sin u_i: flat saddles between wells of one depth, minimum -100 at u = (π/2, ..., -π/2)."""
    space = _plural(as_space(space), "the product of sines")
    quarter = np.full(space.dim, np.pi / 2.0)
    quarter[-1] *= -1.0
    return _standard("product of sines", space, _product_of_sines, quarter, -100.0)


def _plural(space: Space, name: str) -> Space:
    if space.dim < 2:
        raise ValueError(f"{name} needs at least two dimensions, got {space}; use ackley or levy")
    return space


def _standard(name: str, space: Space, formula: Formula, u: Float[np.ndarray, "d"], minimum: float) -> Target:
    """Return a function of coordinates with a known minimum at u."""
    base, stretch = space.base_point(), stretch_for(space, u)
    center = point_at(space, base, u / stretch)
    return Target(name, space, minimum, formula, center, (jnp.asarray(base, float), jnp.asarray(stretch, float)))


def _stretched(
    space: Space, x: Float[Array, "*N D"], base: Float[Array, "D"], stretch: Float[Array, ""]
) -> Float[Array, "*N d"]:
    return stretch.astype(x.dtype) * coordinates(space, x, base)


def _ackley(space: Space, x: Float[Array, "*N D"], base: Float[Array, "D"], stretch: Float[Array, ""]) -> Values:
    u = _stretched(space, x, base, stretch)
    spread = safe_norm(u) / np.sqrt(space.dim)
    ripples = jnp.mean(jnp.cos(2.0 * jnp.pi * u) - 1.0, axis=-1)
    return -20.0 * jnp.expm1(-0.2 * spread) - np.e * jnp.expm1(ripples)


def _rosenbrock(space: Space, x: Float[Array, "*N D"], base: Float[Array, "D"], stretch: Float[Array, ""]) -> Values:
    u = _stretched(space, x, base, stretch)
    off_axis = jnp.square(u[..., 1:] - jnp.square(u[..., :-1]))
    return jnp.sum(100.0 * off_axis + jnp.square(1.0 - u[..., :-1]), axis=-1)


def _levy(space: Space, x: Float[Array, "*N D"], base: Float[Array, "D"], stretch: Float[Array, ""]) -> Values:
    w = (_stretched(space, x, base, stretch) - 1.0) / 4.0  # one less than in the formula: no square of a sine changes
    first = jnp.square(jnp.sin(jnp.pi * w[..., 0]))
    wave = 1.0 + 10.0 * jnp.square(jnp.sin(jnp.pi * w[..., :-1] - 1.0 + 2.0))
    last = jnp.square(w[..., -1]) * (1.0 + jnp.square(jnp.sin(2.0 * jnp.pi * w[..., -1])))
    return first + jnp.sum(jnp.square(w[..., :-1]) * wave, axis=-1) + last


def _styblinski_tang(
    space: Space, x: Float[Array, "*N D"], base: Float[Array, "D"], stretch: Float[Array, ""]
) -> Values:
    u = _stretched(space, x, base, stretch)
    squared = u * u
    return 0.5 * jnp.sum(squared * (squared - 16.0) + 5.0 * u, axis=-1)


def _product_of_sines(
    space: Space, x: Float[Array, "*N D"], base: Float[Array, "D"], stretch: Float[Array, ""]
) -> Values:
    sines = jnp.sin(_stretched(space, x, base, stretch))
    return 100.0 * sines[..., 0] * jnp.prod(sines, axis=-1)
