"""L-BFGS for smooth functions of a tree of arrays."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import scipy.optimize
from jax.flatten_util import ravel_pytree
from jaxtyping import PyTree

T = TypeVar("T", bound=PyTree)
_WALL = 1e20  # stands for a value that is not finite, so that the line search turns back


class Minimum(NamedTuple):
    """Where a minimisation ended: the arguments, the value, the number of steps and why it stopped."""

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
    callback: Callable[[int, float], None] | None = None,
) -> Minimum:
    """Minimise function(arguments, *rest) over the arrays in `arguments`.

    The function is traced once per set of shapes, as long as the same function object is passed. Values that are not
    finite count as a wall.
    """
    flat, unravel = ravel_pytree(start)
    if not flat.size:
        return Minimum(start, float(_value_and_gradient(function, start, rest)[0]), 0, "nothing to change")
    count, last = 0, np.inf

    def evaluate(vector: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal last
        value, gradient = _value_and_gradient(function, unravel(jnp.asarray(vector, flat.dtype)), rest)
        slope = np.asarray(ravel_pytree(gradient)[0], dtype=float)
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
    result = scipy.optimize.minimize(
        evaluate, np.asarray(flat, dtype=float), jac=True, method="L-BFGS-B", callback=report, options=options
    )
    arguments = unravel(jnp.asarray(result.x, flat.dtype))
    return Minimum(arguments, float(result.fun), int(result.nit), str(result.message))


@eqx.filter_jit
def _value_and_gradient(function: Callable[..., jax.Array], arguments: T, rest: tuple) -> tuple[jax.Array, T]:
    value, gradient = eqx.filter_value_and_grad(function)(arguments, *rest)
    return value, gradient
