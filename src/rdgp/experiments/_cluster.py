"""Cells on a Dask cluster."""

from collections.abc import Callable, Iterator
from typing import Any

from rdgp.core import require
from rdgp.experiments._cells import failure, make_record, run_cell
from rdgp.experiments._plans import Cell
from rdgp.experiments._store import Record

_PATIENCE = "20s"  # until a scheduler answers


def run_on_cluster(cells: list[Cell], address: str, say: Callable[[str], None]) -> Iterator[tuple[Cell, Record]]:
    """Run cells on the workers of a scheduler and give their records as they come.

    The scheduler gives the cells of a worker that is lost to others.
    """
    distributed = require("distributed", "dask")
    try:
        client: Any = distributed.Client(address, timeout=_PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"no Dask scheduler answers at {address} ({failure(error)}); start one or use --workers"
        ) from None
    try:
        workers = len(client.scheduler_info(n_workers=-1)["workers"])
        say(f"{address}: {workers} worker{'s'[: workers != 1]}" + ("" if workers else "; waiting for one to come"))
        futures = {
            client.submit(
                run_cell,
                cell.experiment,
                dict(cell.settings),
                key=f"rdgp-{cell.key}-{i}",
                priority=-i,
                retries=1,
                pure=False,
            ): cell
            for i, cell in enumerate(cells)
        }
        for future in distributed.as_completed(futures, loop=client.loop):
            cell, error = futures[future], future.exception()
            if error is None:
                record = future.result()
            else:
                record = make_record(cell.experiment, cell.settings, {}, failure(error))
            future.release()
            yield cell, record
    finally:
        client.close()
