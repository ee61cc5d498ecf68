"""Run the cells of a plan that have no result yet: one after the other, in processes, or on a Dask cluster."""

import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rdgp.experiments._cells import forget_programs, run_cell
from rdgp.experiments._plans import Cell
from rdgp.experiments._pool import one_thread_each, run_in_processes
from rdgp.experiments._store import Record, Store

Finished = Iterator[tuple[Cell, Record]]


@dataclass(frozen=True)
class Report:
    """How a run ended: cells with results from before and from now, failed ones with reasons, and damaged files."""

    kept: int
    done: int
    failed: tuple[tuple[Cell, str], ...]
    damaged: tuple[str, ...]
    left: int
    interrupted: bool


def run(
    cells: Sequence[Cell],
    store: Store,
    *,
    workers: int | None = None,
    dask: str | None = None,
    force: bool = False,
    say: Callable[[str], None] | None = None,
) -> Report:
    """Run cells and keep their records; a second call goes on where the first was stopped.

    One worker is this process itself. `say` gets a line for each cell, by default on stderr. Only this process writes
    results. Ctrl-C loses no more than the cells at work.
    """
    records, damaged = ({}, []) if force else store.finished(cells)
    waiting = [cell for cell in cells if cell.key not in records]
    failed: list[tuple[Cell, str]] = []
    count, interrupted = 0, False
    progress = _Progress(waiting, _print if say is None else say)
    for text in damaged:
        progress.say(f"{text}; its cell is run again")
    if waiting:
        source = _source(waiting, workers, dask, progress.say)
        try:
            for cell, record in source:
                store.write(cell, record)
                count += 1
                if record["reason"] is not None:
                    failed.append((cell, record["reason"]))
                progress.show(cell, record)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            source.close()
    left = len(waiting) - count
    return Report(len(records), count - len(failed), tuple(failed), tuple(damaged), left, interrupted)


def default_workers() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _source(cells: list[Cell], workers: int | None, dask: str | None, say: Callable[[str], None]) -> Any:
    if dask is not None:
        from rdgp.experiments._cluster import run_on_cluster

        return run_on_cluster(cells, dask, say)
    count = min(default_workers() if workers is None else workers, len(cells))
    if count <= 1:
        return _run_here(cells)
    return run_in_processes(cells, count)


def _run_here(cells: Sequence[Cell]) -> Finished:
    with one_thread_each():  # which XLA heeds if nothing has been computed yet
        for i, cell in enumerate(cells):
            if i > 0 and cell.group != cells[i - 1].group:
                forget_programs()
            yield cell, run_cell(cell.experiment, cell.settings)


def _print(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class _Progress:
    """A line for each finished cell, with the time left by the guesses for the cells and how they turned out."""

    def __init__(self, cells: Sequence[Cell], say: Callable[[str], None]) -> None:
        self.total, self.left = len(cells), sum(cell.seconds for cell in cells)
        self.guessed, self.count = 0.0, 0
        self.start, self.say = time.monotonic(), say

    def show(self, cell: Cell, record: Record) -> None:
        """Print how a cell ended and the time left."""
        self.count += 1
        self.guessed += cell.seconds
        self.left -= cell.seconds
        pace = (time.monotonic() - self.start) / max(self.guessed, 1e-9)
        end = self._numbers(record) if record["reason"] is None else f"FAILED, {record['reason']}"
        took = f"{record['cpu_seconds']:.1f} CPU s"
        self.say(f"[{self.count}/{self.total}] {cell}: {end} ({took}; {clock(pace * self.left)} left)")

    def _numbers(self, record: Record) -> str:
        shown = [(name, value) for name, value in record["numbers"].items() if isinstance(value, float)]
        return ", ".join(f"{name} {value:.4g}" for name, value in shown[:3]) or "done"


def clock(seconds: float) -> str:
    """Return a time as 1:02:03 or 2:03."""
    minutes, rest = divmod(max(round(seconds), 0), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
