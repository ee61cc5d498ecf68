"""Read NetCDF, CSV and Parquet files."""

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rdgp.core import require
from rdgp.datasets._coordinates import coordinate_names
from rdgp.datasets._observations import Names, Observations, observations, pick_variables
from rdgp.datasets._selection import PressureLevel, Time, select

if TYPE_CHECKING:
    import xarray

FilePath = str | os.PathLike[str]

_SIGNATURES = {b"\x89HDF": "h5netcdf", b"CDF\x01": "scipy", b"CDF\x02": "scipy"}
_TABLES = {".csv": "csv", ".txt": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet"}


def read_observations(
    path: FilePath,
    variables: Names,
    *,
    noise_std: Names | None = None,
    pressure_level: PressureLevel | None = None,
    time: Time | None = None,
) -> Observations:
    """Read the places and values of variables at one level and time from a NetCDF, CSV or Parquet file.

    `variables`, `noise_std` (columns of standard deviations, one for each variable), `pressure_level` and `time` are
    those of `observations`; `rdgp.geo.fit` takes what it returns.
    """
    dataset = read_dataset(path, variables, noise_std=noise_std, pressure_level=pressure_level, time=time)
    try:
        return observations(dataset, variables, noise_std=noise_std)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def read_dataset(
    path: FilePath,
    variables: Names | None = None,
    *,
    noise_std: Names | None = None,
    pressure_level: PressureLevel | None = None,
    time: Time | None = None,
) -> "xarray.Dataset":
    """Read a file into memory as a dataset, only the part asked for; rows of a table lie along a dimension `point`.

    `variables` are those to keep, all if it is left out; `noise_std` names variables of their standard deviations to
    keep beside them; `pressure_level` and `time` choose as in `select`. Packed integers and fill values are decoded.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"cannot read {path}: there is no such file; check the path")
    with path.open("rb") as file:
        start = file.read(4)
    try:
        if path.suffix.lower() in _TABLES or start == b"PAR1":
            return _narrow(_read_table(path, start), variables, noise_std, pressure_level, time)
        with _open_netcdf(path, start) as dataset:
            return _narrow(dataset, variables, noise_std, pressure_level, time).load()
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def _narrow(
    dataset: "xarray.Dataset",
    variables: Names | None,
    noise_std: Names | None,
    pressure_level: PressureLevel | None,
    time: Time | None,
) -> "xarray.Dataset":
    if "expver" in dataset.dims:  # ERA5 and its preliminary months, side by side, each missing where the other is
        dataset = dataset.max("expver", keep_attrs=True)
    if variables is not None:
        dataset = pick_variables(dataset, variables, noise_std or ())
    if pressure_level is None and time is None:
        return dataset
    return select(dataset, pressure_level=pressure_level, time=time)


def _open_netcdf(path: Path, start: bytes) -> "xarray.Dataset":
    xarray = require("xarray", "geo")
    engine = _SIGNATURES.get(start)
    if engine is None:
        advice = "unzip it first" if start[:2] == b"PK" else "tables must end in .csv or .parquet"
        raise ValueError(f"it is not a NetCDF file; {advice}")
    require(engine, "geo")
    try:
        return xarray.open_dataset(path, engine=engine, decode_timedelta=False)
    except (ValueError, ImportError):  # calendars that need another package: the times stay numbers
        try:
            return xarray.open_dataset(path, engine=engine, decode_times=False)
        except Exception as error:
            raise _damaged(error) from None
    except Exception as error:
        raise _damaged(error) from None


def _damaged(error: Exception) -> ValueError:
    return ValueError(f"it cannot be read as NetCDF ({str(error).splitlines()[0] if str(error) else error!r})")


def _read_table(path: Path, start: bytes) -> "xarray.Dataset":
    pandas = require("pandas", "geo")
    try:
        if start == b"PAR1":
            require("pyarrow", "geo")
            frame = pandas.read_parquet(path)
        elif _TABLES[path.suffix.lower()] == "csv":
            frame = _read_csv(path, pandas)
        else:
            raise ValueError("it is not a Parquet file")
    except ImportError:
        raise
    except Exception as error:
        raise ValueError(f"the table cannot be read ({str(error).splitlines()[0]})") from None
    frame.columns = [str(name).strip() for name in frame.columns]
    return _as_dataset(frame.reset_index(drop=True), pandas)


def _read_csv(path: Path, pandas: Any) -> Any:
    """Read a text table; commas at the end of rows are left out, more fields than the header names are refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", pandas.errors.ParserWarning)
        try:
            separator = "\t" if path.suffix.lower() == ".tsv" else ","
            return pandas.read_csv(path, sep=separator, comment="#", index_col=False)
        except pandas.errors.ParserWarning:
            raise ValueError("rows have more fields than the header; give both the same columns") from None


def _as_dataset(frame: Any, pandas: Any) -> "xarray.Dataset":
    """Put the columns along one dimension, those of place, level and time as coordinates."""
    xarray = require("xarray", "geo")
    dataset = xarray.Dataset({name: ("point", _as_column(frame[name], pandas)) for name in frame.columns})
    names = coordinate_names(dataset)
    if names.time is not None and dataset[names.time].dtype == object:
        dataset[names.time] = ("point", _as_times(frame[names.time], pandas))
    return dataset.set_coords([name for name in names if name is not None])


def _as_column(column: Any, pandas: Any) -> Any:
    if pandas.api.types.is_numeric_dtype(column) or pandas.api.types.is_datetime64_any_dtype(column):
        return _without_zone(column).to_numpy()
    return column.to_numpy(dtype=object)


def _as_times(column: Any, pandas: Any) -> Any:
    try:
        return _without_zone(pandas.to_datetime(column, utc=True)).to_numpy()
    except (ValueError, TypeError):
        return column.to_numpy(dtype=object)


def _without_zone(column: Any) -> Any:
    if getattr(column.dtype, "tz", None) is None:
        return column
    return column.dt.tz_convert("UTC").dt.tz_localize(None)
