"""The shell: `rdgp fit`, `rdgp predict` and their kin. Nothing heavy is imported before a command needs it."""

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the shell and return its exit code: 0 done, 1 training failed, 2 wrong use or data, 130 interrupted."""
    try:
        from rdgp.cli._run import run
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        print(f"rdgp: the shell needs {error.name}; run: pip install 'rdgp[cli]'", file=sys.stderr)
        return 2
    return run(sys.argv[1:] if arguments is None else list(arguments))
