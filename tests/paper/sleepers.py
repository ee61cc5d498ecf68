"""Tasks for tests of the machinery, which need no model."""

import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def run(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Sleep, and leave a mark that tells which process was here; fail or die if asked."""
    if "marks" in settings:
        with (Path(settings["marks"]) / f"{settings['n']}-{settings['seed']}").open("a") as file:
            file.write(f"{os.getpid()}\n")
    if settings["n"] == 13:
        raise ValueError("thirteen is not\na number")
    if settings["n"] == 99:
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(settings.get("sleep", 0.0))
    return {"square": float(settings["n"]) ** 2, "curve": [0.0, float(settings["seed"])]}
