"""The command line: `rdgp fit`, `rdgp predict` and others. Nothing heavy is imported before a command needs it.

Other packages add commands: an entry point of the group `rdgp.commands` is a function that gets the application of
typer and adds its command to it. Such a command has the options `Json` and `Debug` and prints by `tell`.
"""

import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rdgp.cli._options import Debug, Json
    from rdgp.cli._output import tell

__all__ = ["Debug", "Json", "main", "tell"]

_PLACES = {"Debug": "_options", "Json": "_options", "tell": "_output"}  # imported when asked for: they need typer


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module 'rdgp.cli' has no attribute {name!r}")
    return getattr(import_module(f"rdgp.cli.{_PLACES[name]}"), name)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 done, 1 training failed, 2 wrong use or data, 130 interrupted."""
    try:
        from rdgp.cli._run import run
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        print(f"rdgp: the command line needs {error.name}; run: pip install 'rdgp[cli]'", file=sys.stderr)
        return 2
    return run(sys.argv[1:] if arguments is None else list(arguments))
