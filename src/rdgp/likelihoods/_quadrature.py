"""One-dimensional quadrature, elementwise over arrays, in the dtype of its input."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

_NODES, _WEIGHTS = np.polynomial.hermite.hermgauss(32)


def hermite_rule(dtype: np.dtype, ndim: int) -> tuple[Float[Array, "n ..."], Float[Array, "n ..."]]:
    """Return nodes and weights for the standard normal distribution, along a new first axis before `ndim` others."""
    shape = (-1, *(1,) * ndim)
    nodes, weights = np.sqrt(2.0) * _NODES, _WEIGHTS / np.sqrt(np.pi)
    return jnp.asarray(nodes.reshape(shape), dtype), jnp.asarray(weights.reshape(shape), dtype)


def expect(
    function: Callable[[Float[Array, "n *S"]], Float[Array, "n *S"]],
    mean: Float[Array, "*S"],
    variance: Float[Array, "*S"],
) -> Float[Array, "*S"]:
    """Return E g(f), f ~ N(mean, variance), for a function that changes on the scale of one."""
    nodes, weights = hermite_rule(mean.dtype, mean.ndim)
    return jnp.sum(weights * function(mean + root(variance) * nodes).astype(mean.dtype), axis=0)


def root(variance: Float[Array, "*S"]) -> Float[Array, "*S"]:
    """Return the standard deviation; a variance below rounding counts as rounding, for a finite derivative."""
    return jnp.sqrt(jnp.maximum(variance, jnp.finfo(variance.dtype).eps))


def trapezoid_rule(
    low: Float[Array, "*#S"], high: Float[Array, "*#S"], size: int
) -> tuple[Float[Array, "n *S"], Float[Array, "*S"]]:
    """Return equidistant nodes along a new first axis, and their distance.

    Once the integrand vanishes at both ends the integral does not depend on them, so they carry no derivative.
    """
    low, high = jnp.broadcast_arrays(jax.lax.stop_gradient(low), jax.lax.stop_gradient(high))
    step = (high - low) / (size - 1)
    count = jnp.arange(size, dtype=step.dtype).reshape(-1, *(1,) * step.ndim)
    return low + step * count, step
