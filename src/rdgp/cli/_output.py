"""Files that appear whole or not at all, and what is printed."""

import json
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray


def check_output(path: Path, force: bool, endings: Sequence[str] = ()) -> None:
    """Raise before any work is done if a file cannot or must not be written."""
    if endings and path.suffix.lower() not in endings:
        raise ValueError(f"{path} must end in {' or '.join(endings)}; choose another name")
    if path.is_dir():
        raise ValueError(f"{path} is a folder; add the name of a file")
    if not path.parent.is_dir():
        raise ValueError(f"cannot write {path}: there is no folder {path.parent}; create it first")
    if path.exists() and not force:
        raise ValueError(f"{path} is there already; choose another name or pass --force")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary name with the same ending, which becomes the file only if nothing goes wrong."""
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".rdgp-{secrets.token_hex(8)}{target.suffix}")
    try:
        yield temporary
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def write_dataset(dataset: "xarray.Dataset", path: Path) -> None:
    """Write a dataset as NetCDF, or as a table if the name ends in .csv."""
    with replacing(path) as temporary:
        if path.suffix.lower() == ".csv":
            _as_table(dataset).to_csv(temporary, index=False, float_format="%.10g")
        else:
            dataset.to_netcdf(temporary, engine="h5netcdf")


def _as_table(dataset: "xarray.Dataset") -> Any:
    """Return one row for each place; samples and quantiles become columns such as u_quantile_0.05."""
    import xarray

    columns: dict[str, xarray.DataArray] = {}
    for name, array in dataset.data_vars.items():
        many = next((dim for dim in ("sample", "quantile") if dim in array.dims), None)
        if many is None:
            columns[str(name)] = array
        else:
            columns |= {f"{name}_{value:g}": array.sel({many: value}).drop_vars(many) for value in array[many].values}
    frame = xarray.Dataset(columns).to_dataframe().reset_index()
    places = [name for name in frame.columns if name not in columns and name != "point"]
    return frame[[*places, *columns]]


def tell(text: str, facts: Mapping[str, Any], as_json: bool) -> None:
    """Print what was done, as text or as one JSON object."""
    print(json.dumps(_plain(facts), allow_nan=False) if as_json else text)


def _plain(value: Any) -> Any:
    """Return a value as JSON knows it; numbers that are not finite become null."""
    if isinstance(value, Mapping):
        return {str(name): _plain(own) for name, own in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(own) for own in value]
    if isinstance(value, str | bool | int | None):
        return value
    if isinstance(value, Path):
        return str(value)
    number = float(value)
    return number if number - number == 0.0 else None


def print_table(rows: Sequence[Mapping[str, Any]], title: str | None = None) -> None:
    """Print rows as a table, numbers flush right."""
    from rich.console import Console
    from rich.table import Table

    table = Table(
        title=title, title_justify="left", box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0)
    )
    names = list(dict.fromkeys(name for row in rows for name in row))
    for name in names:
        numeric = all(isinstance(row.get(name), float | None) for row in rows)
        table.add_column(name, justify="right" if numeric else "left", no_wrap=True)
    for row in rows:
        table.add_row(*(_cell(row.get(name)) for name in names))
    console = Console(highlight=False)
    console.print(table, soft_wrap=not console.is_terminal)


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)
