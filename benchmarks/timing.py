"""Interleaved CPU-time measurement: machines are noisy, so functions take turns and the least time of each counts."""

import time
from collections.abc import Callable, Mapping
from typing import Any

import jax


def first_call(function: Callable[..., Any], *arguments: Any) -> float:
    """Return the CPU seconds of the first call: tracing, compilation and one run."""
    start = time.process_time()
    jax.block_until_ready(function(*arguments))
    return time.process_time() - start


def interleaved(functions: Mapping[str, Callable[[], Any]], repetitions: int = 30) -> dict[str, float]:
    """Run functions in turns and return the least CPU milliseconds of each."""
    best = dict.fromkeys(functions, float("inf"))
    for _ in range(repetitions):
        for name, run in functions.items():
            start = time.process_time()
            jax.block_until_ready(run())
            best[name] = min(best[name], 1e3 * (time.process_time() - start))
    return best


def print_table(title: str, rows: list[tuple[str, ...]], header: tuple[str, ...]) -> None:
    """Print a Markdown table."""
    print(f"\n## {title}\n\n| {' | '.join(header)} |\n|{'---|' * len(header)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")
