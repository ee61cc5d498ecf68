"""The results folder: one small file for each finished run, and tables of them."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import rdgp
from rdgp.core import require
from rdgp.io import write_atomically
from rdgp_paper.runs import Run, Settings

Numbers = dict[str, Any]  # numbers, texts, and lists of numbers
Record = dict[str, Any]
Table = Any  # a DataFrame of pandas, which has no types
_FIELDS = ("experiment", "settings", "numbers", "reason", "cpu_seconds", "wall_seconds", "version")


def make_record(
    experiment: str,
    settings: Settings,
    numbers: Numbers,
    reason: str | None,
    seconds: tuple[float, float] = (0.0, 0.0),
) -> Record:
    """Return what is kept of a run.

    `numbers` is what it returned, `reason` why it failed or None, `seconds` those of the processors and of the clock.
    """
    return {
        "experiment": experiment,
        "settings": dict(settings),
        "numbers": numbers,
        "reason": reason,
        "cpu_seconds": round(seconds[0], 3),
        "wall_seconds": round(seconds[1], 3),
        "version": rdgp.__version__,
    }


class Store:
    """Records of runs in a folder, each in a file under the run's key; files appear whole or not at all."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"{self.folder} is a file; choose the name of a folder for results")

    def path(self, run: Run) -> Path:
        """Return where the record of a run is."""
        return self.folder / run.experiment.rpartition(":")[2] / f"{run.key}.json"

    def write(self, run: Run, record: Mapping[str, Any]) -> None:
        """Keep the record of a run."""
        path = self.path(run)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, (json.dumps(dict(record), allow_nan=False) + "\n").encode())

    def read(self, run: Run) -> Record | None:
        """Return the record of a run, None if there is none, or raise if it is damaged."""
        path = self.path(run)
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError:
            record = None
        whole = isinstance(record, dict) and all(name in record for name in _FIELDS)
        if not whole or record["settings"] != dict(run.settings):
            raise ValueError(f"{path} is damaged; it is not the record of this run")
        return record

    def finished(self, runs: Iterable[Run]) -> tuple[dict[str, Record], list[str]]:
        """Return the records of runs that succeeded by key, and what is wrong with damaged files."""
        records, damaged = {}, []
        for run in runs:
            try:
                record = self.read(run)
            except ValueError as error:
                damaged.append(str(error))
                continue
            if record is not None and record["reason"] is None:
                records[run.key] = record
        return records, damaged

    def table(self, runs: Iterable[Run]) -> Table:
        """Return one row for each finished run: settings, numbers, seconds; lists stay lists."""
        records, _ = self.finished(runs)
        return as_table(records.values())


def as_table(records: Iterable[Record]) -> Table:
    """Return a row for each record."""
    rows = [
        {**r["settings"], **r["numbers"], **{name: r[name] for name in ("cpu_seconds", "wall_seconds", "version")}}
        for r in records
    ]
    return require("pandas", "paper").DataFrame(rows)


def tidy(table: Table) -> Table:
    """Return a table without lists: a row for each entry of the lists of a row, numbered in the column `entry`."""
    lists = [name for name in table.columns if table[name].map(lambda value: isinstance(value, list)).any()]
    if not lists:
        return table
    numbered = table.assign(entry=[list(range(len(row))) for row in table[lists[0]]])
    same = all((table[name].map(len) == table[lists[0]].map(len)).all() for name in lists)
    if not same:
        raise ValueError(f"the lists {', '.join(lists)} must have one length in each row")
    return numbered.explode(["entry", *lists], ignore_index=True)
