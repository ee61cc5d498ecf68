"""L-BFGS for smooth functions of a tree of arrays."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
from jax.flatten_util import ravel_pytree
from jaxtyping import PyTree

from rdgp.core import compiled_quickly, from_vector, to_vector

T = TypeVar("T", bound=PyTree)
_WALL = 1e20  # stands for a value that is not finite, so that the line search turns back


class Minimum(NamedTuple):
    """Where a minimisation ended: the arguments, the value (infinite if none was finite), the steps, why it stopped."""

    arguments: Any
    value: float
    steps: int
    message: str


def minimize_lbfgs(
    function: Callable[..., jax.Array],
    start: T,
    *rest: PyTree,
    steps: int = 200,
    tolerance: float = 1e-6,
    widths: np.ndarray | None = None,
    callback: Callable[[int, float], None] | None = None,
) -> Minimum:
    """Minimise function(arguments, *rest) over the arrays in `arguments`.

    The function is traced once per set of shapes, as long as the same function object is passed. Values that are not
    finite count as a wall. `widths` says how far each number, in the order of `to_vector`, may move from its start.
    """
    flat = to_vector(start)
    if not flat.size:
        return Minimum(start, float(_value_and_gradient(function, jnp.asarray(flat), start, rest)[0]), 0, "no numbers")
    count, last = 0, np.inf

    def evaluate(vector: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal last
        value, gradient = _value_and_gradient(function, jnp.asarray(vector, flat.dtype), start, rest)
        slope = np.asarray(gradient, dtype=float)
        if not (np.isfinite(value) and np.all(np.isfinite(slope))):
            return _WALL, np.zeros_like(slope)
        last = float(value)
        return last, slope

    def report(_: np.ndarray) -> None:
        nonlocal count
        count += 1
        if callback is not None:
            callback(count, last)

    options = {"maxiter": steps, "ftol": tolerance * 1e-4, "gtol": tolerance, "maxls": 30}
    first = flat.astype(float)
    limits = None if widths is None else scipy.optimize.Bounds(first - widths, first + widths)
    result = scipy.optimize.minimize(
        evaluate, first, jac=True, method="L-BFGS-B", bounds=limits, callback=report, options=options
    )
    arguments = from_vector(start, result.x)
    value = float(result.fun) if result.fun < _WALL else np.inf
    return Minimum(arguments, value, int(result.nit), str(result.message))


@compiled_quickly
def _value_and_gradient(
    function: Callable[..., jax.Array], vector: jax.Array, like: PyTree, rest: tuple
) -> tuple[jax.Array, jax.Array]:
    unravel = ravel_pytree(like)[1]
    value, gradient = jax.value_and_grad(lambda v: function(unravel(v), *rest))(vector)
    return value, gradient
