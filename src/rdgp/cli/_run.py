"""Run a command and turn whatever goes wrong into one line and an exit code."""

import sys
import traceback
import warnings
from collections.abc import Sequence
from typing import Any

from rdgp.cli._app import app
from rdgp.cli._process import prepare_process

FAILED, WRONG, INTERRUPTED = 1, 2, 130


def run(arguments: Sequence[str]) -> int:
    """Run the command line with arguments and return its exit code."""
    prepare_process()
    try:
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning
            code = app(list(arguments), prog_name="rdgp", standalone_mode=False)
    except KeyboardInterrupt:
        code = INTERRUPTED
    except Exception as error:
        if "--debug" in arguments:
            traceback.print_exc()
        _say(_explain(error))
        return WRONG if _is_expected(error) else FAILED
    if code == INTERRUPTED:
        _say("interrupted")
    return code if isinstance(code, int) else 0


def _say(text: str) -> None:
    print(f"rdgp: {' '.join(text.split())}", file=sys.stderr)


def _is_expected(error: Exception) -> bool:
    return _is_usage(error) or isinstance(error, ValueError | OSError | ImportError | MemoryError)


def _is_usage(error: Exception) -> bool:
    """Tell errors of the command line; which class they have depends on the version of typer."""
    return hasattr(error, "format_message")


def _explain(error: Exception) -> str:
    if _is_usage(error):
        return _explain_usage(error)
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, MemoryError):
        return f"not enough memory; take fewer points, eigenvalues or samples ({error or 'no details'})"
    if _is_expected(error):
        return str(error)
    return f"unexpected {type(error).__name__}: {error}; run again with --debug and report what it prints"


def _explain_usage(error: Any) -> str:
    path = getattr(getattr(error, "ctx", None), "command_path", "rdgp")
    return f"{error.format_message().rstrip('.')}; see {path} --help"


def _show_warning(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
    _say(f"warning: {message}")
