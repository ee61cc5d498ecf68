"""Files that appear whole or not at all, and what is printed."""

import itertools
import json
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import xarray


class OutputFile(NamedTuple):
    """A file to write: over what is there if that is meant, else under another name if somebody made it meanwhile."""

    path: Path
    force: bool = False
    replaced: tuple[int, ...] | None = None  # identity of the one file that may be written over without force

    @contextmanager
    def writing(self) -> Iterator[Path]:
        """Give a temporary name with the same ending, which becomes the file only if nothing goes wrong."""
        target = Path(os.path.realpath(self.path))
        temporary = target.with_name(f".rdgp-{secrets.token_hex(8)}{target.suffix}")
        try:
            yield temporary
            if self.force or (self.replaced is not None and _identity(target) == self.replaced):
                os.replace(temporary, target)
            elif not _appeared(temporary, target):
                others = (target.with_name(f"{target.stem}-{i}{target.suffix}") for i in itertools.count(1))
                other = next(name for name in others if _appeared(temporary, name))
                raise ValueError(f"{self.path} was made meanwhile and is left as it is; the result is in {other}")
        finally:
            temporary.unlink(missing_ok=True)


def _identity(path: Path) -> tuple[int, ...] | None:
    """Return what changes when a file is written or replaced, None if there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _appeared(temporary: Path, target: Path) -> bool:
    """Give a finished file its name unless the name is taken; tell whether it was free."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        return False
    except OSError:  # a file system without links
        if target.exists():
            return False
        os.replace(temporary, target)
    return True


def check_output(
    path: Path, force: bool, endings: Sequence[str] = (), inputs: Sequence[Path | None] = (), *, replace: bool = False
) -> OutputFile:
    """Return a file to write, or raise before any work is done if it cannot or must not be written.

    `inputs` are never written over, whatever `force` says; `replace` allows the file that is there, and only that one.
    """
    if endings and path.suffix.lower() not in endings:
        raise ValueError(f"{path} must end in {' or '.join(endings)}; choose another name")
    if path.is_dir():
        raise ValueError(f"{path} is a folder; add the name of a file")
    if not path.parent.is_dir():
        raise ValueError(f"cannot write {path}: there is no folder {path.parent}; create it first")
    for own in inputs:
        if own is not None and _is_same(path, own):
            raise ValueError(f"{path} is also an input, {own}; choose another name")
    if path.exists() and not (force or replace):
        raise ValueError(f"{path} is there already; choose another name or pass --force")
    return OutputFile(path, force, _identity(path) if replace else None)


def _is_same(path: Path, other: Path) -> bool:
    alike = path.exists() and other.exists() and path.samefile(other)
    return alike or os.path.realpath(path) == os.path.realpath(other)


def write_dataset(dataset: "xarray.Dataset", output: OutputFile) -> None:
    """Write a dataset as NetCDF, or as a table if the name ends in .csv."""
    with output.writing() as temporary:
        if temporary.suffix.lower() == ".csv":
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
