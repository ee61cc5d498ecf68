"""Double precision where it is needed, whatever the process is set to."""

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

import jax
import jax.numpy as jnp

P = ParamSpec("P")
T = TypeVar("T")


def in_double(function: Callable[P, T]) -> Callable[P, T]:
    """Let a function compute in double precision; the arrays it returns have the precision of the caller."""

    @functools.wraps(function)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        with jax.enable_x64(True):
            result = function(*args, **kwargs)
        return as_here(result)

    return wrapped


def as_here(tree: T) -> T:
    """Return a tree with its floating-point arrays of JAX in the precision of the process."""
    dtype = jnp.result_type(float)
    return jax.tree.map(lambda leaf: leaf.astype(dtype) if _is_wider(leaf, dtype) else leaf, tree)


def _is_wider(leaf: object, dtype: jnp.dtype) -> bool:
    return isinstance(leaf, jax.Array) and leaf.dtype == jnp.float64 and leaf.dtype != dtype
