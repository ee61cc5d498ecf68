"""Compilation at the interfaces of the library."""

import ctypes
import itertools
import sys
from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp

from rdgp.core._checks import is_concrete

F = TypeVar("F", bound=Callable[..., Any])
_QUICK = {"xla_cpu_use_fusion_emitters": False, "xla_backend_optimization_level": 1}
_KEPT = 32  # XLA executables of large functions after which all are forgotten
_large = itertools.count(1)  # compilations of large functions so far


def compiled(function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a function compiled as a whole, once for each structure and shape of its arguments.

    Called op by op, every small operation would be compiled and dispatched on its own. Inside another compilation the
    function is taken as it is.
    """
    if _is_traced(arguments):
        return function(*arguments)
    return _compiled(function, *arguments)


@eqx.filter_jit
def _compiled(function: Callable[..., Any], *arguments: Any) -> Any:
    return function(*arguments)


def compiled_quickly(function: F) -> F:
    """Compile a large function that spends its time in products and factorizations.

    On CPUs options halve the time of compilation and leave that of a run as it is. JAX refuses them inside a
    transformation; inside another compilation the function is taken as it is. An XLA executable of this size holds tens
    of megabytes, so after some number of them all are forgotten, and compiled again where they are needed.
    """

    @lru_cache
    def on(backend: str) -> Callable[..., Any]:
        options = {"compiler_options": _QUICK if backend == "cpu" else None}
        return eqx.filter_jit(function, **options)  # type: ignore[call-overload]

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        if not is_concrete(jnp.zeros(())):
            return function(*arguments, **named)
        jitted = on("any" if _is_traced((arguments, named)) else jax.default_backend())
        return _run(jitted, *arguments, **named)

    return call  # type: ignore[return-value]


def _is_traced(tree: Any) -> bool:
    return any(not is_concrete(leaf) for leaf in jax.tree.leaves(tree))


def _run(jitted: Any, *arguments: Any, **named: Any) -> Any:
    """Call a compiled function, and bound the memory of all that were compiled.

    JAX keeps the executable of every shape for good, and forgets them all or none; glibc keeps what they leave.
    """
    before = jitted._cached._cache_size()
    result = jitted(*arguments, **named)
    if jitted._cached._cache_size() > before and next(_large) % _KEPT == 0:
        jax.clear_caches()
        trim = getattr(_c_library(), "malloc_trim", None)
        if trim is not None:
            trim(0)
    return result


@lru_cache
def _c_library() -> ctypes.CDLL | None:
    return ctypes.CDLL(None) if sys.platform == "linux" else None
