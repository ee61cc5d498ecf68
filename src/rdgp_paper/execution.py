"""Do the runs of a plan that have no result yet, keep their records, and say how it goes."""

import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rdgp_paper.runs import Run
from rdgp_paper.store import Record, Store
from rdgp_paper.workers import run_here, run_in_processes, run_on_cluster


@dataclass(frozen=True)
class Report:
    """How it ended: runs with results from before and from this call, failed ones with reasons, damaged files."""

    kept: int
    done: int
    failed: tuple[tuple[Run, str], ...]
    damaged: tuple[str, ...]
    left: int
    interrupted: bool


def execute(
    runs: Sequence[Run],
    store: Store,
    *,
    workers: int | None = None,
    dask: str | None = None,
    force: bool = False,
    say: Callable[[str], None] | None = None,
) -> Report:
    """Do runs and keep their records; a second call goes on where the first was stopped.

    `workers` is the number of processes, by default that of the cores; one worker is this process itself. `dask` is the
    address of a scheduler to use instead. With `force`, finished runs are done again. `say` gets a line for each run,
    by default on stderr. Only this process writes results. Ctrl-C loses no more than the runs at work.
    """
    records, damaged = ({}, []) if force else store.finished(runs)
    waiting = [run for run in runs if run.key not in records]
    failed: list[tuple[Run, str]] = []
    count, interrupted = 0, False
    progress = _Progress(waiting, _print if say is None else say)
    for text in damaged:
        progress.say(f"{text}; the run is done again")
    if waiting:
        source = _source(waiting, workers, dask, progress.say)
        try:
            for run, record in source:
                store.write(run, record)
                count += 1
                if record["reason"] is not None:
                    failed.append((run, record["reason"]))
                progress.show(run, record)
        except KeyboardInterrupt:
            interrupted = True
        finally:
            source.close()
    left = len(waiting) - count
    return Report(len(records), count - len(failed), tuple(failed), tuple(damaged), left, interrupted)


def default_workers() -> int:
    """Return the number of cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _source(runs: list[Run], workers: int | None, dask: str | None, say: Callable[[str], None]) -> Any:
    if dask is not None:
        return run_on_cluster(runs, dask, say)
    count = min(default_workers() if workers is None else workers, len(runs))
    return run_here(runs) if count <= 1 else run_in_processes(runs, count)


def _print(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


class _Progress:
    """A line for each finished run, with the time left by the estimates of the runs and how they turned out."""

    def __init__(self, runs: Sequence[Run], say: Callable[[str], None]) -> None:
        self.total, self.left = len(runs), sum(run.seconds for run in runs)
        self.estimated, self.count = 0.0, 0
        self.start, self.say = time.monotonic(), say

    def show(self, run: Run, record: Record) -> None:
        """Print how a run ended and the time left."""
        self.count += 1
        self.estimated += run.seconds
        self.left -= run.seconds
        pace = (time.monotonic() - self.start) / max(self.estimated, 1e-9)
        end = self._numbers(record) if record["reason"] is None else f"FAILED, {record['reason']}"
        took = f"{record['cpu_seconds']:.1f} CPU s"
        self.say(f"[{self.count}/{self.total}] {run}: {end} ({took}; {clock(pace * self.left)} left)")

    def _numbers(self, record: Record) -> str:
        shown = [(name, value) for name, value in record["numbers"].items() if isinstance(value, float)]
        return ", ".join(f"{name} {value:.4g}" for name, value in shown[:3]) or "done"


def clock(seconds: float) -> str:
    """Return a time as 1:02:03 or 2:03."""
    minutes, rest = divmod(max(round(seconds), 0), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
