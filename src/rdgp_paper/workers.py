"""One run, and many: in this process, in processes of its own, or on a Dask cluster.

A pool of `concurrent.futures` is broken as a whole when one of its processes dies; here only the run of the dead
process is given to another one. Messages are JSON. JAX is not imported before a run needs it.
"""

import json
import multiprocessing
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from multiprocessing.connection import Connection, wait
from typing import Any

from rdgp.core import require
from rdgp_paper.runs import EXPERIMENTS, Run, Settings
from rdgp_paper.store import Numbers, Record, make_record

Finished = Iterator[tuple[Run, Record]]

_ATTEMPTS = 2
_PATIENCE = "20s"  # until a scheduler answers
_ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
_KEPT = {  # of freed memory, so that large arrays are not asked of the system at every step (glibc)
    "MALLOC_MMAP_THRESHOLD_": "4294967296",
    "MALLOC_TRIM_THRESHOLD_": "17179869184",
    "MALLOC_TOP_PAD_": "268435456",
}


def perform(experiment: str, settings: Settings) -> Record:
    """Do a run and return its record: settings, numbers, seconds; a failure is a record too."""
    wall, cpu = time.monotonic(), time.process_time()
    try:
        numbers, reason = _plain(_find_task(experiment)(settings)), None
    except Exception as error:
        numbers, reason = {}, _explain(error)
    seconds = time.process_time() - cpu, time.monotonic() - wall
    return make_record(experiment, settings, numbers, reason, seconds)


def _find_task(experiment: str) -> Callable[[Settings], Numbers]:
    """Return the function of an experiment; others than the paper's are named "module:function"."""
    module, _, name = experiment.partition(":")
    if not name:
        if experiment not in EXPERIMENTS:
            raise ValueError(f"experiment must be one of {', '.join(EXPERIMENTS)}, got {experiment!r}")
        module, name = f"rdgp_paper.experiments.{experiment}", "run"
    return getattr(import_module(module), name)


def _explain(error: BaseException) -> str:
    """Say in one line why a run failed."""
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


def run_here(runs: Sequence[Run]) -> Finished:
    """Do runs in this process, one after the other."""
    with one_thread_each():  # which XLA heeds if nothing has been computed yet
        for i, run in enumerate(runs):
            if i > 0 and run.group != runs[i - 1].group:
                _free_compiled()
            yield run, perform(run.experiment, run.settings)


def run_in_processes(runs: Sequence[Run], workers: int) -> Finished:
    """Do runs in so many processes and give their records as they come."""
    queue = Queue(runs)
    with one_thread_each():
        pool = [_Worker() for _ in range(workers)]
        try:
            while busy := [worker for worker in pool if worker.run is not None or worker.take(queue)]:
                ready = wait([worker.connection for worker in busy])
                for worker in busy:
                    if worker.connection in ready:
                        yield from worker.collect(queue)
        finally:
            for worker in pool:
                worker.stop()


def run_on_cluster(runs: Sequence[Run], address: str, say: Callable[[str], None]) -> Finished:
    """Do runs on the workers of a Dask scheduler and give their records as they come.

    The scheduler gives the runs of a worker that is lost to others. `say` gets a line about the cluster.
    """
    distributed = require("distributed", "paper")
    try:
        client: Any = distributed.Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"no Dask scheduler answers at {address} ({_explain(error)}); start one or use --workers"
        ) from None
    try:
        workers = len(client.scheduler_info(n_workers=-1)["workers"])
        say(f"{address}: {workers} worker{'s'[: workers != 1]}" + ("" if workers else "; waiting for one to come"))
        futures = {_submit(client, i, run): run for i, run in enumerate(runs)}
        for future in distributed.as_completed(futures, loop=client.loop):
            run, error = futures[future], future.exception()
            if error is None:
                record = future.result()
            else:
                record = make_record(run.experiment, run.settings, {}, _explain(error))
            future.release()
            yield run, record
    finally:
        client.close()


def _submit(client: Any, number: int, run: Run) -> Any:
    options = {"key": f"rdgp-{run.key}-{number}", "priority": -number, "retries": 1, "pure": False}
    return client.submit(perform, run.experiment, dict(run.settings), **options)


class Queue:
    """Runs that wait: a worker goes on with the seeds of what it has compiled, others begin something else."""

    def __init__(self, runs: Sequence[Run]) -> None:
        self.groups: dict[str, list[Run]] = {}
        for run in runs:
            self.groups.setdefault(run.group, []).append(run)
        self.begun: set[str] = set()
        self.attempts: dict[str, int] = {}

    def take(self, group: str | None) -> Run | None:
        """Return a run of a group, else of one nobody has begun, else of any, or None."""
        if not self.groups:
            return None
        fresh = next((name for name in self.groups if name not in self.begun), next(iter(self.groups)))
        chosen = group if group in self.groups else fresh
        self.begun.add(chosen)
        run = self.groups[chosen].pop(0)
        if not self.groups[chosen]:
            del self.groups[chosen]
        self.attempts[run.key] = self.attempts.get(run.key, 0) + 1
        return run

    def again(self, run: Run) -> bool:
        """Put a run back whose process died, unless that happened before."""
        if self.attempts[run.key] >= _ATTEMPTS:
            return False
        self.groups.setdefault(run.group, []).insert(0, run)
        return True


class _Worker:
    """A process and the run it is at."""

    def __init__(self) -> None:
        self.run: Run | None = None
        self.group: str | None = None
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")  # a forked process would inherit the threads of JAX, dead
        self.connection, there = context.Pipe()
        self.process = context.Process(target=_work, args=(there,), daemon=True)
        self.process.start()
        there.close()

    def take(self, queue: Queue) -> bool:
        """Begin a run if there is one."""
        self.run = queue.take(self.group)
        if self.run is None:
            return False
        self.group = self.run.group
        order = {"experiment": self.run.experiment, "settings": dict(self.run.settings), "group": self.group}
        with suppress(BrokenPipeError):  # of a dead process; seen when its answer is collected
            self.connection.send_bytes(json.dumps(order).encode())
        return True

    def collect(self, queue: Queue) -> Finished:
        """Give the record of the run; if the process has died, start another and put the run back."""
        run, self.run = self.run, None
        assert run is not None
        try:
            record = json.loads(self.connection.recv_bytes())
        except (EOFError, ConnectionResetError):
            self.process.join()
            code = self.process.exitcode
            self.connection.close()
            self._start()
            self.group = None
            if queue.again(run):
                return
            reason = f"its process died {_ATTEMPTS} times, the last time with exit code {code}"
            record = make_record(run.experiment, run.settings, {}, reason)
        yield run, record

    def stop(self) -> None:
        """End the process, whatever it is at."""
        self.connection.close()
        if self.run is not None:
            self.process.terminate()
        self.process.join(10.0)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def _work(connection: Connection) -> None:
    """Do runs until the other end is closed; Ctrl-C is the business of the process that started this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    group = None
    while True:
        try:
            order = json.loads(connection.recv_bytes())
        except (EOFError, OSError):
            return
        if order["group"] != group:
            _free_compiled()
        group = order["group"]
        record = perform(order["experiment"], order["settings"])
        with suppress(BrokenPipeError):
            connection.send_bytes(json.dumps(record, allow_nan=False).encode())


def _free_compiled() -> None:
    """Free what JAX has compiled in this process, which would fill the memory over many kinds of runs."""
    if "jax" in sys.modules:
        sys.modules["jax"].clear_caches()


@contextmanager
def one_thread_each() -> Iterator[None]:
    """Set the variables that processes started meanwhile read: one thread for BLAS and for XLA, memory kept."""
    flags = os.environ.get("XLA_FLAGS", "")
    wanted = {
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "XLA_FLAGS": flags if _ONE_THREAD in flags else f"{flags} {_ONE_THREAD}".strip(),
        **_KEPT,
    }
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
