"""Compilation at the doors of the library."""

from collections.abc import Callable
from typing import Any

import equinox as eqx


@eqx.filter_jit
def compiled(function: Callable[..., Any], *arguments: Any) -> Any:
    """Run a function compiled as a whole, once for each structure and shape of its arguments.

    Called op by op, every small operation would be compiled and dispatched on its own.
    """
    return function(*arguments)
