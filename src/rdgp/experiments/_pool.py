"""Worker processes: each takes a cell, runs it, and sends back its record.

A pool of `concurrent.futures` is broken as a whole when one of its processes dies; here only the cell of the dead
process is given to another one. Messages are JSON.
"""

import json
import multiprocessing
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, wait

from rdgp.experiments._cells import forget_programs, make_record, run_cell
from rdgp.experiments._plans import Cell
from rdgp.experiments._store import Record

_ATTEMPTS = 2
_ONE_THREAD = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
_KEPT = {  # of freed memory, so that large arrays are not asked of the system at every step (glibc)
    "MALLOC_MMAP_THRESHOLD_": "4294967296",
    "MALLOC_TRIM_THRESHOLD_": "17179869184",
    "MALLOC_TOP_PAD_": "268435456",
}


def run_in_processes(cells: list[Cell], workers: int) -> Iterator[tuple[Cell, Record]]:
    """Run cells in so many processes and give their records as they come."""
    queue = Queue(cells)
    with one_thread_each():
        pool = [_Worker() for _ in range(workers)]
        try:
            while busy := [worker for worker in pool if worker.cell is not None or worker.take(queue)]:
                ready = wait([worker.connection for worker in busy])
                for worker in busy:
                    if worker.connection in ready:
                        yield from worker.collect(queue)
        finally:
            for worker in pool:
                worker.stop()


class Queue:
    """Cells that wait: a worker goes on with the seeds of what it has compiled, others begin something else."""

    def __init__(self, cells: list[Cell]) -> None:
        self.groups: dict[str, list[Cell]] = {}
        for cell in cells:
            self.groups.setdefault(cell.group, []).append(cell)
        self.begun: set[str] = set()
        self.attempts: dict[str, int] = {}

    def take(self, group: str | None) -> Cell | None:
        """Return a cell of a group, else of one nobody has begun, else of any, or None."""
        if not self.groups:
            return None
        fresh = next((name for name in self.groups if name not in self.begun), next(iter(self.groups)))
        chosen = group if group in self.groups else fresh
        self.begun.add(chosen)
        cell = self.groups[chosen].pop(0)
        if not self.groups[chosen]:
            del self.groups[chosen]
        self.attempts[cell.key] = self.attempts.get(cell.key, 0) + 1
        return cell

    def again(self, cell: Cell) -> bool:
        """Put a cell back whose process died, unless that happened before."""
        if self.attempts[cell.key] >= _ATTEMPTS:
            return False
        self.groups.setdefault(cell.group, []).insert(0, cell)
        return True


class _Worker:
    """A process and the cell it is at."""

    def __init__(self) -> None:
        self.cell: Cell | None = None
        self.group: str | None = None
        self._start()

    def _start(self) -> None:
        context = multiprocessing.get_context("spawn")  # a forked process would inherit the threads of JAX, dead
        self.connection, there = context.Pipe()
        self.process = context.Process(target=_work, args=(there,), daemon=True)
        self.process.start()
        there.close()

    def take(self, queue: Queue) -> bool:
        """Begin a cell if there is one."""
        self.cell = queue.take(self.group)
        if self.cell is None:
            return False
        self.group = self.cell.group
        order = {"experiment": self.cell.experiment, "settings": dict(self.cell.settings), "group": self.group}
        with suppress(BrokenPipeError):  # of a dead process; seen when its answer is collected
            self.connection.send_bytes(json.dumps(order).encode())
        return True

    def collect(self, queue: Queue) -> Iterator[tuple[Cell, Record]]:
        """Give the record of the cell; if the process has died, start another and put the cell back."""
        cell, self.cell = self.cell, None
        assert cell is not None
        try:
            record = json.loads(self.connection.recv_bytes())
        except (EOFError, ConnectionResetError):
            self.process.join()
            code = self.process.exitcode
            self.connection.close()
            self._start()
            self.group = None
            if queue.again(cell):
                return
            reason = f"its process died {_ATTEMPTS} times, the last time with exit code {code}"
            record = make_record(cell.experiment, cell.settings, {}, reason)
        yield cell, record

    def stop(self) -> None:
        """End the process, whatever it is at."""
        self.connection.close()
        if self.cell is not None:
            self.process.terminate()
        self.process.join(10.0)
        if self.process.is_alive():
            self.process.kill()
            self.process.join()


def _work(connection: Connection) -> None:
    """Run cells until the other end is closed; Ctrl-C is the business of the process that started this one."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    group = None
    while True:
        try:
            order = json.loads(connection.recv_bytes())
        except (EOFError, OSError):
            return
        if order["group"] != group:
            forget_programs()
        group = order["group"]
        record = run_cell(order["experiment"], order["settings"])
        with suppress(BrokenPipeError):
            connection.send_bytes(json.dumps(record, allow_nan=False).encode())


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
