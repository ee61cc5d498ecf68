"""The results folder: one small file for each finished cell."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rdgp.core import require
from rdgp.experiments._plans import Cell
from rdgp.io._file import write_atomically

Record = dict[str, Any]
Table = Any  # a DataFrame of pandas, which has no types
_FIELDS = ("experiment", "settings", "numbers", "reason", "cpu_seconds", "wall_seconds", "version")


class Store:
    """Records of cells in a folder, each in a file under the cell's key; files appear whole or not at all."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"{self.folder} is a file; choose the name of a folder for results")

    def path(self, cell: Cell) -> Path:
        """Return where the record of a cell is."""
        return self.folder / cell.experiment.rpartition(":")[2] / f"{cell.key}.json"

    def write(self, cell: Cell, record: Mapping[str, Any]) -> None:
        """Keep the record of a cell."""
        path = self.path(cell)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, (json.dumps(dict(record), allow_nan=False) + "\n").encode())

    def read(self, cell: Cell) -> Record | None:
        """Return the record of a cell, None if there is none, or raise if it is damaged."""
        path = self.path(cell)
        try:
            record = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return None
        except ValueError:
            record = None
        whole = isinstance(record, dict) and all(name in record for name in _FIELDS)
        if not whole or record["settings"] != dict(cell.settings):
            raise ValueError(f"{path} is damaged; it is not the record of this cell")
        return record

    def finished(self, cells: Iterable[Cell]) -> tuple[dict[str, Record], list[str]]:
        """Return the records of cells that succeeded by key, and what is wrong with damaged files."""
        records, damaged = {}, []
        for cell in cells:
            try:
                record = self.read(cell)
            except ValueError as error:
                damaged.append(str(error))
                continue
            if record is not None and record["reason"] is None:
                records[cell.key] = record
        return records, damaged

    def table(self, cells: Iterable[Cell]) -> Table:
        """Return one row for each finished cell: settings, numbers, seconds; lists stay lists."""
        records, _ = self.finished(cells)
        return as_table(records.values())


def as_table(records: Iterable[Record]) -> Table:
    """Return a row for each record."""
    rows = [
        {**r["settings"], **r["numbers"], **{name: r[name] for name in ("cpu_seconds", "wall_seconds", "version")}}
        for r in records
    ]
    return require("pandas", "geo").DataFrame(rows)


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
