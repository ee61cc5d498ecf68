"""Plans, the results folder, workers, interruption, a Dask cluster that loses a worker."""

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

from rdgp_paper.execution import execute
from rdgp_paper.runs import EXPERIMENTS, PRESETS, Run, choose, expand, read_plan
from rdgp_paper.store import Store, tidy
from rdgp_paper.workers import Queue

TASK = "tests.paper.sleepers:run"
QUIET: list[str] = []
ROOT = Path(__file__).parents[2]


def make_runs(numbers: list[int], seeds: int = 1, **more: str | float) -> list[Run]:
    return list(expand(TASK, "smoke", [{"n": numbers, "seed": list(range(seeds)), **more}]).runs)


def marks(folder: Path) -> dict[str, list[str]]:
    """Return which processes did each run."""
    return {path.name: path.read_text().split() for path in folder.iterdir()}


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_plans_expand(experiment: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RDGP_DATA", "somewhere")
    monkeypatch.setenv("RDGP_ERA5", "somewhere")
    monkeypatch.setattr("rdgp_paper.runs.find_spec", lambda _: "somewhere")
    for preset in PRESETS:
        plan = read_plan(experiment, preset)
        assert plan.runs
        assert not plan.left_out
        assert len({run.key for run in plan.runs}) == len(plan.runs)
        assert all(run.seconds > 0 for run in plan.runs)
        groups = [run.group for run in plan.runs]
        changes = sum(a != b for a, b in pairwise(groups))
        assert changes == len(set(groups)) - 1  # runs of one group in a row


def test_keys_are_stable() -> None:
    run = Run("synthetic", {"n": 400, "target": "released", "seed": 0})
    assert run.key == Run("synthetic", {"seed": 0, "target": "released", "n": 400}, seconds=7.0).key
    assert run.key == "13b76a2eaa595864"
    assert run.group == Run("synthetic", {"target": "released", "seed": 1, "n": 400}).group
    assert run.key != Run("uci", run.settings).key


def test_only_keeps_the_runs_asked_for() -> None:
    plan = expand(TASK, "smoke", [{"n": [1, 2, 3], "seed": [0, 1]}, {"n": 4, "word": "a", "seed": 0}])
    assert len(choose(plan, ["n=1,2", "seed=1"]).runs) == 2
    assert len(choose(plan, ["word=a"]).runs) == 1
    assert len(choose(plan, ["word=", "seed=0"]).runs) == 3
    for text, message in (("n", "such as layers=2"), ("m=1", "there are n, seed, word"), ("n=7", "there are 1, 2, 3")):
        with pytest.raises(ValueError, match=message):
            choose(plan, [text])


def test_grids_without_their_data_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RDGP_ERA5", raising=False)
    plan = expand(TASK, "smoke", [{"n": 1, "needs": "era5"}, {"n": 2}])
    assert len(plan.runs) == 1
    assert plan.left_out == ("runs that need RDGP_ERA5",)


def test_a_second_run_does_what_is_left(tmp_path: Path) -> None:
    store, where = Store(tmp_path / "results"), tmp_path / "marks"
    where.mkdir()
    first, every = make_runs([1], 2, marks=str(where)), make_runs([1, 2], 2, marks=str(where))
    assert execute(first, store, workers=1, say=QUIET.append).done == 2
    store.path(every[0]).write_text('{"settings": ')
    printed: list[str] = []
    report = execute(every, store, workers=1, say=printed.append)
    assert (report.kept, report.done, report.left, len(report.damaged)) == (1, 3, 0, 1)
    assert "is damaged; it is not the record of this run; the run is done again" in printed[0]
    assert {name: len(own) for name, own in marks(where).items()} == {"1-0": 2, "1-1": 1, "2-0": 1, "2-1": 1}
    assert execute(every, store, workers=1, force=True, say=QUIET.append).done == 4
    table = store.table(every)
    assert table["square"].tolist() == [1.0, 1.0, 4.0, 4.0]
    assert {"n", "seed", "cpu_seconds", "wall_seconds", "version"} <= set(table)
    assert tidy(table)[["entry", "curve"]].iloc[3].tolist() == [1, 1.0]
    assert not list(tmp_path.rglob(".*"))


def test_failures_are_recorded_and_others_go_on(tmp_path: Path) -> None:
    store = Store(tmp_path)
    printed: list[str] = []
    report = execute(make_runs([1, 13, 2]), store, workers=1, say=printed.append)
    assert report.done == 2
    ((run, reason),) = report.failed
    assert reason == "ValueError: thirteen is not a number"
    assert json.loads(store.path(run).read_text())["reason"] == reason
    assert "FAILED, ValueError: thirteen" in printed[1]
    assert len(execute([run], store, workers=1, say=QUIET.append).failed) == 1  # tried again


def test_a_worker_goes_on_with_what_it_has_compiled() -> None:
    queue = Queue(make_runs([1, 2, 3], 2))
    taken = [queue.take(None), queue.take(None)]
    mine = queue.take(taken[1].group if taken[1] else None)
    assert [run and (run.settings["n"], run.settings["seed"]) for run in (*taken, mine)] == [(1, 0), (2, 0), (2, 1)]
    rest = [queue.take(None) for _ in range(4)]
    assert [run and run.settings["n"] for run in rest] == [3, 1, 3, None]


def test_processes_and_one_that_dies(tmp_path: Path) -> None:
    where = tmp_path / "marks"
    where.mkdir()
    work = make_runs([1, 99, 2], 2, marks=str(where))[:3] + make_runs([2], 2, marks=str(where))
    report = execute(work, Store(tmp_path / "results"), workers=2, say=QUIET.append)
    ((run, reason),) = report.failed
    assert run.settings["n"] == 99
    assert reason == "its process died 2 times, the last time with exit code -9"
    assert report.done == 4
    done = marks(where)
    assert len(done["99-0"]) == 2
    assert str(os.getpid()) not in {number for own in done.values() for number in own}


@pytest.mark.parametrize("workers", [1, 2])
def test_interruption_and_resumption(tmp_path: Path, workers: int) -> None:
    store, work = Store(tmp_path), make_runs(list(range(1, 7)), sleep=0.4)
    told: list[str] = []
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background ignores it

    def interrupt(line: str) -> None:
        told.append(line)
        if len(told) == 2:
            os.kill(os.getpid(), signal.SIGINT)

    try:
        report = execute(work, store, workers=workers, say=interrupt)
    finally:
        signal.signal(signal.SIGINT, before)
    assert report.interrupted
    assert 0 < report.done < 6
    assert report.left == 6 - report.done
    again = execute(work, store, workers=workers, say=QUIET.append)
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


def test_a_cluster_that_loses_a_worker_loses_no_run(
    cluster: tuple[str, list[subprocess.Popen]], tmp_path: Path
) -> None:
    address, (first, second) = cluster
    where = tmp_path / "marks"
    where.mkdir()
    work = make_runs(list(range(1, 9)), sleep=0.8, marks=str(where))
    store = Store(tmp_path / "results")

    def kill_at_work() -> None:
        """Kill a worker as soon as it has begun a run."""
        while str(first.pid) not in {number for own in marks(where).values() for number in own}:
            time.sleep(0.05)
        first.send_signal(signal.SIGKILL)

    thread = threading.Thread(target=kill_at_work, daemon=True)
    thread.start()
    report = execute(work, store, dask=address, say=QUIET.append)
    thread.join(10.0)
    assert first.wait(10.0) == -signal.SIGKILL
    assert (report.done, report.left, report.failed) == (8, 0, ())
    assert sorted(store.table(work)["square"]) == [float(n * n) for n in range(1, 9)]
    done = marks(where)
    again = [own for own in done.values() if own[0] == str(first.pid) and own[-1] == str(second.pid)]
    assert again, f"no run of the killed worker was done again: {done}"


def test_a_scheduler_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("rdgp_paper.workers._PATIENCE", "1s")
    with pytest.raises(
        ValueError, match=r"no Dask scheduler answers at tcp://127.0.0.1:9 .*start one or use --workers"
    ):
        execute(make_runs([1]), Store(tmp_path), dask="tcp://127.0.0.1:9", say=QUIET.append)
