"""Compilation at the doors of the library."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

from rdgp.core._checks import is_concrete

F = TypeVar("F", bound=Callable[..., Any])
_QUICK = {"xla_cpu_use_fusion_emitters": False, "xla_backend_optimization_level": 1}


@eqx.filter_jit
def compiled(function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a function compiled as a whole, once for each structure and shape of its arguments.

    Called op by op, every small operation would be compiled and dispatched on its own.
    """
    return function(*arguments)


def compiled_quickly(function: F) -> F:
    """Compile a large function that spends its time in products and factorizations.

    On CPUs options halve the time of compilation and leave that of a run as it is. They are refused inside another
    compilation, which then takes the function as it is.
    """

    @lru_cache
    def on(backend: str) -> Callable[..., Any]:
        options = {"compiler_options": _QUICK if backend == "cpu" else None}
        return eqx.filter_jit(function, **options)  # type: ignore[call-overload]

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        outermost = is_concrete(jnp.zeros(()))
        return on(jax.default_backend())(*arguments, **named) if outermost else function(*arguments, **named)

    return call  # type: ignore[return-value]
