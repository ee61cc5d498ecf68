"""What users see of input that the type checker of the tests would refuse: calls in a process without the checker."""

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def print_errors(module: str) -> None:
    """Print what each of the UNTYPED cases of a module raises as a line of JSON; a case is a call and its message."""
    for name, (call, _) in importlib.import_module(module).UNTYPED.items():
        try:
            call()
            error = "nothing raised"
        except Exception as caught:
            error = f"{type(caught).__name__}: {caught}"
        print(json.dumps([name, error]))


def errors_of(module: str) -> dict[str, str]:
    """Return what the cases of a module raise in a process of its own."""
    script = f"from tests.end_to_end.untyped import print_errors; print_errors({module!r})"
    environment = {**os.environ, "JAX_ENABLE_X64": "1"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return dict(json.loads(line) for line in done.stdout.splitlines())


def assert_one_line(error: str, message: str) -> None:
    assert error.startswith("ValueError: ")
    assert message in error
    assert "\n" not in error
