"""`rdgp reproduce`: the paper's experiments, cell by cell."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rdgp.cli._options import Debug, Json
from rdgp.cli._output import tell

if TYPE_CHECKING:
    import rdgp.experiments


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
        typer.Option("--only", help="Cells with a setting: layers=2, n=100,400 or (none) noise=. Repeat to narrow."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="List the cells and how long they may take.")] = False,
    results: Annotated[Path, typer.Option(help="Folder of results.")] = Path("results"),
    docs: Annotated[
        Path | None, typer.Option(help="Folder of documentation: write figures, table and section there too.")
    ] = None,
    era5: Annotated[Path | None, typer.Option(help="File of rdgp data era5, for the wind experiment.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Run finished cells again.")] = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Run an experiment of the paper; finished cells are kept, so that a second call goes on.

    Ctrl-C stops after what is written; failed cells are listed and run again by the next call.
    """
    if workers is not None and dask is not None:
        raise ValueError("--workers and --dask exclude each other; the cluster has its own workers")
    if era5 is not None:
        if not era5.is_file():
            raise FileNotFoundError(f"there is no file {era5}; get it with rdgp data era5")
        os.environ["RDGP_ERA5"] = str(era5.absolute())
    if docs is not None and not docs.is_dir():
        raise ValueError(f"there is no folder {docs}; create it first")
    from rdgp.experiments import Store, choose, read_plan, run

    plan = choose(read_plan(experiment, preset), only or [])
    for words in plan.left_out:
        print(f"left out: {words}", file=sys.stderr)
    store = Store(results)
    if experiment == "timing" and dask is None:
        workers = 1  # cells at the same time would disturb each other
    if dry_run:
        _list(plan, store, workers, force, as_json)
        return
    report = run(plan.cells, store, workers=workers, dask=dask, force=force)
    written = _write(plan, store, results, None if report.interrupted else docs)
    _tell(plan, report, written, as_json)
    raise typer.Exit(130 if report.interrupted else 1 if report.failed else 0)


def _list(
    plan: "rdgp.experiments.Plan", store: "rdgp.experiments.Store", workers: int | None, force: bool, as_json: bool
) -> None:
    from rdgp.experiments._run import clock, default_workers

    done = {} if force else store.finished(plan.cells)[0]
    waiting = [cell for cell in plan.cells if cell.key not in done]
    seconds, count = sum(cell.seconds for cell in waiting), workers or default_workers()
    if not as_json:
        for cell in plan.cells:
            print(f"{cell.key} {'done' if cell.key in done else clock(cell.seconds):>7}  {cell}")
    text = (
        f"{len(plan.cells)} cells, {len(done)} done; about {clock(seconds)} of CPU time, "
        f"{clock(seconds / count)} with {count} worker{'s'[: count != 1]}"
    )
    rows = [{"key": cell.key, "done": cell.key in done, "settings": dict(cell.settings)} for cell in plan.cells]
    tell(text, {"cells": rows, "done": len(done), "cpu_seconds": seconds, "workers": count}, as_json)


def _write(
    plan: "rdgp.experiments.Plan", store: "rdgp.experiments.Store", results: Path, docs: Path | None
) -> list[Path]:
    from rdgp.experiments import write_docs, write_results

    written = write_results(store, plan, results)
    return written if docs is None else [*written, write_docs(store, plan, docs)]


def _tell(
    plan: "rdgp.experiments.Plan",
    report: "rdgp.experiments.Report",
    written: list[Path],
    as_json: bool,
) -> None:
    for cell, reason in report.failed:
        print(f"failed: {cell}: {reason}", file=sys.stderr)
    text = f"{plan.experiment}, {plan.preset}: {report.done} cells run, {report.kept} kept, {len(report.failed)} failed"
    text += f", {report.left} left: the same command goes on" if report.left else ""
    text += f"; wrote {', '.join(map(str, written))}" if written else ""
    facts: dict[str, Any] = {
        "experiment": plan.experiment,
        "preset": plan.preset,
        "run": report.done,
        "kept": report.kept,
        "failed": [{"settings": dict(cell.settings), "reason": reason} for cell, reason in report.failed],
        "left": report.left,
        "damaged": report.damaged,
        "files": written,
    }
    tell(text, facts, as_json)
