"""`rdgp reproduce`: the experiments of the paper, run by run."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rdgp.cli import Debug, Json, tell

if TYPE_CHECKING:
    from rdgp_paper.execution import Report
    from rdgp_paper.runs import Plan
    from rdgp_paper.store import Store


def reproduce(
    experiment: Annotated[
        str, typer.Argument(help="synthetic, wind, uci, timing, bayesopt or fields.", show_default=False)
    ],
    *,
    preset: Annotated[str, typer.Option(help="smoke (seconds), quick (minutes) or paper (the full grid).")] = "smoke",
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes, each of one thread.", show_default="all cores")
    ] = None,
    dask: Annotated[str | None, typer.Option(help="Address of a Dask scheduler, such as tcp://host:8786.")] = None,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", help="Runs with a setting: layers=2, n=100,400 or (none) noise=. Repeat to narrow."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the runs and how long they may take.")] = False,
    results: Annotated[Path, typer.Option(help="Folder of results.")] = Path("results"),
    docs: Annotated[
        Path | None, typer.Option(help="Folder of documentation: write figures, table and section there too.")
    ] = None,
    era5: Annotated[Path | None, typer.Option(help="File of rdgp data era5, for the wind experiment.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Do finished runs again.")] = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Run an experiment of the paper; finished runs are kept, so that a second call goes on.

    Ctrl-C stops after what is written; failed runs are listed and done again by the next call.
    """
    if workers is not None and dask is not None:
        raise ValueError("--workers and --dask exclude each other; the cluster has its own workers")
    if era5 is not None:
        if not era5.is_file():
            raise FileNotFoundError(f"there is no file {era5}; get it with rdgp data era5")
        os.environ["RDGP_ERA5"] = str(era5.absolute())
    if docs is not None and not docs.is_dir():
        raise ValueError(f"there is no folder {docs}; create it first")
    from rdgp_paper.execution import execute
    from rdgp_paper.runs import choose, read_plan
    from rdgp_paper.store import Store

    plan = choose(read_plan(experiment, preset), only or [])
    for words in plan.left_out:
        print(f"left out: {words}", file=sys.stderr)
    store = Store(results)
    if experiment == "timing" and dask is None:
        workers = 1  # runs at the same time would disturb each other
    if dry_run:
        _list(plan, store, workers, force, as_json)
        return
    report = execute(plan.runs, store, workers=workers, dask=dask, force=force)
    written = _write(plan, store, results, None if report.interrupted else docs)
    _tell(plan, report, written, as_json)
    raise typer.Exit(130 if report.interrupted else 1 if report.failed else 0)


def _list(plan: "Plan", store: "Store", workers: int | None, force: bool, as_json: bool) -> None:
    from rdgp_paper.execution import clock, default_workers

    done = {} if force else store.finished(plan.runs)[0]
    waiting = [run for run in plan.runs if run.key not in done]
    seconds, count = sum(run.seconds for run in waiting), workers or default_workers()
    if not as_json:
        for run in plan.runs:
            print(f"{run.key} {'done' if run.key in done else clock(run.seconds):>7}  {run}")
    text = (
        f"{len(plan.runs)} runs, {len(done)} done; about {clock(seconds)} of CPU time, "
        f"{clock(seconds / count)} with {count} worker{'s'[: count != 1]}"
    )
    rows = [{"key": run.key, "done": run.key in done, "settings": dict(run.settings)} for run in plan.runs]
    tell(text, {"runs": rows, "done": len(done), "cpu_seconds": seconds, "workers": count}, as_json)


def _write(plan: "Plan", store: "Store", results: Path, docs: Path | None) -> list[Path]:
    from rdgp_paper.page import write_docs, write_results

    written = write_results(store, plan, results)
    return written if docs is None else [*written, write_docs(store, plan, docs)]


def _tell(plan: "Plan", report: "Report", written: list[Path], as_json: bool) -> None:
    for run, reason in report.failed:
        print(f"failed: {run}: {reason}", file=sys.stderr)
    text = f"{plan.experiment}, {plan.preset}: {report.done} runs done, {report.kept} kept, {len(report.failed)} failed"
    text += f", {report.left} left: the same command goes on" if report.left else ""
    text += f"; wrote {', '.join(map(str, written))}" if written else ""
    facts: dict[str, Any] = {
        "experiment": plan.experiment,
        "preset": plan.preset,
        "run": report.done,
        "kept": report.kept,
        "failed": [{"settings": dict(run.settings), "reason": reason} for run, reason in report.failed],
        "left": report.left,
        "damaged": report.damaged,
        "files": written,
    }
    tell(text, facts, as_json)
