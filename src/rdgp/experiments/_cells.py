"""Run one cell; what workers import. JAX is not imported before a task needs it."""

import sys
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

import rdgp
from rdgp.experiments._plans import EXPERIMENTS, Settings

Numbers = dict[str, Any]  # numbers, texts, and lists of numbers
Task = Callable[[Settings], Numbers]


def find_task(experiment: str) -> Task:
    """Return the function of an experiment; others than the paper's are named "module:function"."""
    module, _, name = experiment.partition(":")
    if not name:
        if experiment not in EXPERIMENTS:
            raise ValueError(f"experiment must be one of {', '.join(EXPERIMENTS)}, got {experiment!r}")
        module, name = f"rdgp.experiments._{experiment}", "run"
    return getattr(import_module(module), name)


def forget_programs() -> None:
    """Free what JAX has compiled in this process, which would fill the memory over many kinds of cells."""
    if "jax" in sys.modules:
        sys.modules["jax"].clear_caches()


def run_cell(experiment: str, settings: Settings) -> dict[str, Any]:
    """Run a cell and return its record: settings, numbers, seconds; a failure is a record too."""
    wall, cpu = time.monotonic(), time.process_time()
    try:
        numbers, reason = _plain(find_task(experiment)(settings)), None
    except Exception as error:
        numbers, reason = {}, failure(error)
    seconds = time.process_time() - cpu, time.monotonic() - wall
    return make_record(experiment, settings, numbers, reason, seconds)


def make_record(
    experiment: str,
    settings: Settings,
    numbers: Numbers,
    reason: str | None,
    seconds: tuple[float, float] = (0.0, 0.0),
) -> dict[str, Any]:
    """Return what is kept of a cell; `seconds` are those of the processors and those of the clock."""
    return {
        "experiment": experiment,
        "settings": dict(settings),
        "numbers": numbers,
        "reason": reason,
        "cpu_seconds": round(seconds[0], 3),
        "wall_seconds": round(seconds[1], 3),
        "version": rdgp.__version__,
    }


def failure(error: BaseException) -> str:
    """Say in one line why a cell failed."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}" if text else type(error).__name__


def _plain(numbers: Mapping[str, Any]) -> Numbers:
    """Return numbers as JSON knows them; those that are not finite are a failure."""
    return {name: _as_plain(name, value) for name, value in numbers.items()}


def _as_plain(name: str, value: Any) -> Any:
    if isinstance(value, str | bool | int):
        return value
    if isinstance(value, list | tuple) or getattr(value, "ndim", 0) > 0:
        return [_as_plain(name, own) for own in value]
    number = float(value)
    if number - number != 0.0:
        raise ArithmeticError(f"{name} is {number}")
    return number
