"""Experiments as data: plans, results folder, workers, interruption, a Dask cluster that loses a worker."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path

import pytest

from rdgp.experiments import EXPERIMENTS, PRESETS, Cell, Store, choose, read_plan, run
from rdgp.experiments._plans import expand
from rdgp.experiments._pool import Queue
from rdgp.experiments._store import tidy

TASK = "tests.end_to_end.sleepers:run"
QUIET: list[str] = []
ROOT = Path(__file__).parents[2]


def cells(numbers: list[int], seeds: int = 1, **more: str | float) -> list[Cell]:
    return list(expand(TASK, "smoke", [{"n": numbers, "seed": list(range(seeds)), **more}]).cells)


def marks(folder: Path) -> dict[str, list[str]]:
    """Return which processes ran each cell."""
    return {path.name: path.read_text().split() for path in folder.iterdir()}


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_plans_expand(experiment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RDGP_DATA", "somewhere")
    monkeypatch.setenv("RDGP_ERA5", "somewhere")
    monkeypatch.setattr("rdgp.experiments._plans.find_spec", lambda _: "somewhere")
    for preset in PRESETS:
        plan = read_plan(experiment, preset)
        assert plan.cells
        assert not plan.left_out
        assert len({cell.key for cell in plan.cells}) == len(plan.cells)
        assert all(cell.seconds > 0 for cell in plan.cells)
        groups = [cell.group for cell in plan.cells]
        changes = sum(a != b for a, b in pairwise(groups))
        assert changes == len(set(groups)) - 1  # cells of one group in a row


def test_keys_are_stable() -> None:
    cell = Cell("synthetic", {"n": 400, "target": "released", "seed": 0})
    assert cell.key == Cell("synthetic", {"seed": 0, "target": "released", "n": 400}, seconds=7.0).key
    assert cell.key == "13b76a2eaa595864"
    assert cell.group == Cell("synthetic", {"target": "released", "seed": 1, "n": 400}).group
    assert cell.key != Cell("uci", cell.settings).key


def test_only_keeps_the_cells_asked_for() -> None:
    plan = expand(TASK, "smoke", [{"n": [1, 2, 3], "seed": [0, 1]}, {"n": 4, "word": "a", "seed": 0}])
    assert len(choose(plan, ["n=1,2", "seed=1"]).cells) == 2
    assert len(choose(plan, ["word=a"]).cells) == 1
    assert len(choose(plan, ["word=", "seed=0"]).cells) == 3
    for text, message in (("n", "such as layers=2"), ("m=1", "there are n, seed, word"), ("n=7", "there are 1, 2, 3")):
        with pytest.raises(ValueError, match=message):
            choose(plan, [text])


def test_grids_without_their_data_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RDGP_ERA5", raising=False)
    plan = expand(TASK, "smoke", [{"n": 1, "needs": "era5"}, {"n": 2}])
    assert len(plan.cells) == 1
    assert plan.left_out == ("cells that need RDGP_ERA5",)


def test_a_second_run_does_what_is_left(tmp_path: Path) -> None:
    store, where = Store(tmp_path / "results"), tmp_path / "marks"
    where.mkdir()
    first, every = cells([1], 2, marks=str(where)), cells([1, 2], 2, marks=str(where))
    assert run(first, store, workers=1, say=QUIET.append).done == 2
    store.path(every[0]).write_text('{"settings": ')
    printed: list[str] = []
    report = run(every, store, workers=1, say=printed.append)
    assert (report.kept, report.done, report.left, len(report.damaged)) == (1, 3, 0, 1)
    assert "is damaged; it is not the record of this cell; its cell is run again" in printed[0]
    assert {name: len(runs) for name, runs in marks(where).items()} == {"1-0": 2, "1-1": 1, "2-0": 1, "2-1": 1}
    assert run(every, store, workers=1, force=True, say=QUIET.append).done == 4
    table = store.table(every)
    assert table["square"].tolist() == [1.0, 1.0, 4.0, 4.0]
    assert {"n", "seed", "cpu_seconds", "wall_seconds", "version"} <= set(table)
    assert tidy(table)[["entry", "curve"]].iloc[3].tolist() == [1, 1.0]
    assert not list(tmp_path.rglob(".*"))


def test_failures_are_recorded_and_others_go_on(tmp_path: Path) -> None:
    store = Store(tmp_path)
    printed: list[str] = []
    report = run(cells([1, 13, 2]), store, workers=1, say=printed.append)
    assert report.done == 2
    ((cell, reason),) = report.failed
    assert reason == "ValueError: thirteen is not a number"
    assert json.loads(store.path(cell).read_text())["reason"] == reason
    assert "FAILED, ValueError: thirteen" in printed[1]
    assert len(run([cell], store, workers=1, say=QUIET.append).failed) == 1  # tried again


def test_a_worker_goes_on_with_what_it_has_compiled() -> None:
    queue = Queue(cells([1, 2, 3], 2))
    taken = [queue.take(None), queue.take(None)]
    mine = queue.take(taken[1].group if taken[1] else None)
    assert [cell and (cell.settings["n"], cell.settings["seed"]) for cell in (*taken, mine)] == [(1, 0), (2, 0), (2, 1)]
    rest = [queue.take(None) for _ in range(4)]
    assert [cell and cell.settings["n"] for cell in rest] == [3, 1, 3, None]


def test_processes_and_one_that_dies(tmp_path: Path) -> None:
    where = tmp_path / "marks"
    where.mkdir()
    work = cells([1, 99, 2], 2, marks=str(where))[:3] + cells([2], 2, marks=str(where))
    report = run(work, Store(tmp_path / "results"), workers=2, say=QUIET.append)
    ((cell, reason),) = report.failed
    assert cell.settings["n"] == 99
    assert reason == "its process died 2 times, the last time with exit code -9"
    assert report.done == 4
    runs = marks(where)
    assert len(runs["99-0"]) == 2
    assert str(os.getpid()) not in {number for own in runs.values() for number in own}


@pytest.mark.parametrize("workers", [1, 2])
def test_interruption_and_resumption(tmp_path: Path, workers: int) -> None:
    store, work = Store(tmp_path), cells(list(range(1, 7)), sleep=0.4)
    told: list[str] = []
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it

    def interrupt(line: str) -> None:
        told.append(line)
        if len(told) == 2:
            os.kill(os.getpid(), signal.SIGINT)

    try:
        report = run(work, store, workers=workers, say=interrupt)
    finally:
        signal.signal(signal.SIGINT, before)
    assert report.interrupted
    assert 0 < report.done < 6
    assert report.left == 6 - report.done
    again = run(work, store, workers=workers, say=QUIET.append)
    assert (again.kept, again.done, again.interrupted) == (report.done, report.left, False)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[str, list[subprocess.Popen]]]:
    """Start a scheduler and two workers as processes of their own."""
    pytest.importorskip("distributed")
    file = tmp_path / "scheduler.json"
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}

    def start(kind: str, *options: str) -> subprocess.Popen:
        command = [
            sys.executable,
            "-m",
            f"distributed.cli.dask_{kind}",
            "--scheduler-file",
            str(file),
            "--no-dashboard",
        ]
        return subprocess.Popen([*command, *options], env=environment, stderr=subprocess.DEVNULL)

    with ExitStack() as stack:
        started = [start("scheduler", "--host", "127.0.0.1", "--port", "0")]
        stack.callback(lambda: [process.wait(30.0) for process in started])
        stack.callback(lambda: [process.kill() for process in started])
        started += [start("worker", "--no-nanny", "--nthreads", "1", "--host", "127.0.0.1") for _ in range(2)]
        for _ in range(600):
            if file.exists() and file.stat().st_size:
                break
            time.sleep(0.1)
        yield json.loads(file.read_text())["address"], started[1:]


def test_a_cluster_that_loses_a_worker_loses_no_cell(
    cluster: tuple[str, list[subprocess.Popen]], tmp_path: Path
) -> None:
    address, (first, second) = cluster
    where = tmp_path / "marks"
    where.mkdir()
    work = cells(list(range(1, 9)), sleep=0.8, marks=str(where))
    store = Store(tmp_path / "results")

    def kill_at_work() -> None:
        """Kill a worker as soon as it has begun a cell."""
        while str(first.pid) not in {number for own in marks(where).values() for number in own}:
            time.sleep(0.05)
        first.send_signal(signal.SIGKILL)

    thread = threading.Thread(target=kill_at_work, daemon=True)
    thread.start()
    report = run(work, store, dask=address, say=QUIET.append)
    thread.join(10.0)
    assert first.wait(10.0) == -signal.SIGKILL
    assert (report.done, report.left, report.failed) == (8, 0, ())
    assert sorted(store.table(work)["square"]) == [float(n * n) for n in range(1, 9)]
    runs = marks(where)
    again = [own for own in runs.values() if own[0] == str(first.pid) and own[-1] == str(second.pid)]
    assert again, f"no cell of the killed worker was run again: {runs}"


def test_a_scheduler_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("rdgp.experiments._cluster._PATIENCE", "1s")
    with pytest.raises(
        ValueError, match=r"no Dask scheduler answers at tcp://127.0.0.1:9 .*start one or use --workers"
    ):
        run(cells([1]), Store(tmp_path), dask="tcp://127.0.0.1:9", say=QUIET.append)
