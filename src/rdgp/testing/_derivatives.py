"""Values and derivatives of a space's maps where they are hard to keep finite."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from rdgp.core import compiled
from rdgp.spaces import Space
from rdgp.testing._laws import hold_true, precision
from rdgp.testing._places import LONGEST, Places, unit


def check_derivatives(owner: str, space: Space, at: Places) -> None:
    """Hold values and two derivatives to be finite at awkward points, along vectors of awkward lengths."""
    units = np.eye(space.ambient_dim)
    step = 1e-7 if precision() == np.float64 else 1e-4
    awkward = np.concatenate([units, -units, units + step * units[::-1], -units + step * units[::-1]])
    x = np.concatenate([np.asarray(at.x[:4]), np.asarray(space.nearest(jnp.asarray(awkward, precision())))])
    sizes = np.array([0.0, 1e-12, 1e-3, 1.0, np.pi, LONGEST])
    x = jnp.asarray(np.repeat(x, sizes.size, axis=0))
    generic = np.cos(np.arange(1.0, x.size + 1.0)).reshape(x.shape)
    v = np.tile(sizes, x.shape[0] // sizes.size)[:, None] * np.asarray(
        unit(space, x, space.project(x, jnp.asarray(generic, x.dtype)))
    )
    inside = np.sqrt(np.asarray(space.inner(x, v, v))) < 0.9 * min(space.injectivity_radius, 10.0)
    results = compiled(_derivatives, space, x, jnp.asarray(v, x.dtype), x[inside], jnp.asarray(v[inside], x.dtype))
    for name, numbers in results.items():
        for leaf in jax.tree.leaves(numbers):
            hold_true(owner, f"{name} and two derivatives of it are finite", np.isfinite(leaf))
            hold_true(owner, f"derivatives of {name} keep their precision", leaf.dtype == x.dtype)


def _derivatives(space: Space, x: Array, v: Array, near: Array, short: Array) -> dict[str, tuple]:
    return {
        "exp": _two_derivatives(space.exp, x, v),
        "transport": _two_derivatives(space.transport_along, x, v, jnp.roll(v, 1, axis=0)),
        "frame": _two_derivatives(space.frame, x),
        "distance": _two_derivatives(space.distance, x, space.exp(x, v)),
        "log": _two_derivatives(space.log, near, space.exp(near, short)),
    }


def _two_derivatives(function: object, *arguments: Array) -> tuple:
    """Return value, gradient, and Hessian times a generic vector, which shows any bad entry of the Hessian."""

    def scalar(*args: Array) -> Array:
        return jnp.sum(jnp.sin(function(*args)))  # type: ignore[operator]

    generic = tuple(jnp.asarray(np.cos(np.arange(1.0, a.size + 1.0)).reshape(a.shape), a.dtype) for a in arguments)
    return function(*arguments), *jax.jvp(jax.grad(scalar, tuple(range(len(arguments)))), arguments, generic)  # type: ignore[operator]
