"""`rdgp track` and `rdgp data`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rdgp.cli._options import Debug, Force, Json, Output, PressureLevel, Time, as_names, as_numbers, as_time
from rdgp.cli._output import check_output, tell, write_dataset

if TYPE_CHECKING:
    import xarray

    import rdgp.datasets


def track(
    *,
    tle: Annotated[str, typer.Option(help="File of two-line elements, or aeolus, which are bundled.")] = "aeolus",
    start: Annotated[
        str | None, typer.Option(help="UTC time of the first minute.", show_default="2021-06-02T18:00, near the epoch")
    ] = None,
    hours: Annotated[float, typer.Option(help="Length of the track.")] = 24.0,
    output: Output,
    data: Annotated[Path | None, typer.Option(help="Gridded file: write its cells under the track instead.")] = None,
    variables: Annotated[str, typer.Option(help="Variables of --data.")] = "u,v",
    pressure_level: PressureLevel = None,
    time: Time = None,
    test: Annotated[Path | None, typer.Option(help="File for cells of --data all over the globe, off track.")] = None,
    force: Force = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Write the ground track of a satellite, minute by minute, or the cells of a gridded file under it."""
    endings = (".csv",) if data is None else (".nc", ".csv")
    inputs = [data, Path(tle)]
    target, elsewhere = check_output(output, force, endings, inputs), None
    if test is not None:
        if data is None:
            raise ValueError("--test needs --data and a file of its own")
        elsewhere = check_output(test, force, endings, [*inputs, output])
    from rdgp.datasets import VALID_START, along_track, ground_track, load_tle, read_dataset, write_track

    elements = load_tle(tle) if tle == "aeolus" and not Path(tle).is_file() else tle
    path = ground_track(elements, start or VALID_START, hours)
    if data is None:
        with target.writing() as temporary:
            write_track(path, temporary)
        tell(f"{output}: {len(path.time):,} minutes", _facts(output, path), as_json)
        return
    names = as_names(variables)
    dataset = read_dataset(data, names, pressure_level=pressure_level, time=as_time(time))
    split = along_track(dataset, path, names)
    write_dataset(_as_dataset(split.train), target)
    text, facts = f"{output}: {len(split.train.latlon):,} cells", _facts(output, path)
    facts |= {"cells": len(split.train.latlon)}
    if elsewhere is not None:
        write_dataset(_as_dataset(split.test), elsewhere)
        text, facts = (
            f"{text}\n{test}: {len(split.test.latlon):,} cells",
            {**facts, "test_cells": len(split.test.latlon)},
        )
    tell(text, facts, as_json)


def _facts(output: Path, path: "rdgp.datasets.Track") -> dict[str, object]:
    return {"output": output, "minutes": len(path.time), "start": str(path.time[0]), "end": str(path.time[-1])}


def _as_dataset(found: "rdgp.datasets.Observations") -> "xarray.Dataset":
    import xarray

    attributes = [{"units": units} if units else {} for units in found.units]
    columns = {
        name: ("point", values, own) for name, values, own in zip(found.names, found.values.T, attributes, strict=True)
    }
    lat = ("point", found.latlon[:, 0], {"units": "degrees_north", "standard_name": "latitude"})
    lon = ("point", found.latlon[:, 1], {"units": "degrees_east", "standard_name": "longitude"})
    return xarray.Dataset(columns, {"lat": lat, "lon": lon})


def era5(
    *,
    year: Annotated[int, typer.Option(help="Year, from 1940 on.", show_default=False)],
    pressure_levels: Annotated[str, typer.Option(help="Pressure levels in hPa.")] = "500,850,1000",
    output: Output,
    force: Force = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Download monthly mean winds of ERA5; needs an account of the Climate Data Store (docs/data.md)."""
    target = check_output(output, force, (".nc",))
    from rdgp.datasets import download_era5

    asked = [int(level) if level.is_integer() else level for level in as_numbers(pressure_levels, "--pressure-levels")]
    with target.writing() as temporary:
        download_era5(year, asked, temporary)  # type: ignore[arg-type]  # it refuses what is not whole
    tell(f"{output}: ERA5 {year}, {', '.join(map(str, asked))} hPa", {"output": output, "year": year}, as_json)


def uci(
    name: Annotated[str, typer.Argument(help="yacht, energy, concrete, kin8nm or power.", show_default=False)],
    *,
    output: Output,
    force: Force = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Download a table of the UCI collection, checked by its checksum, and write it as CSV: inputs, then the target."""
    target = check_output(output, force, (".csv",))
    import numpy as np

    from rdgp.datasets import load_uci

    x, y = load_uci(name)
    header = ",".join([*(f"x{i + 1}" for i in range(x.shape[1])), "y"])
    with target.writing() as temporary:
        np.savetxt(temporary, np.column_stack([x, y]), fmt="%.17g", delimiter=",", header=header, comments="")
    text = f"{output}: {name}, {x.shape[0]} rows of {x.shape[1]} inputs and a target"
    tell(text, {"output": output, "rows": x.shape[0], "inputs": x.shape[1]}, as_json)


def sample(
    *,
    pressure_level: Annotated[str, typer.Option(help="surface or 200.")] = "surface",
    month: Annotated[int, typer.Option(help="Month 1..12.")] = 7,
    output: Output,
    force: Force = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Write the bundled real winds: monthly means on a grid of 2.5 degrees."""
    target = check_output(output, force, (".nc", ".csv"))
    from rdgp.datasets import load_wind

    wind = load_wind(pressure_level, month)
    write_dataset(wind, target)
    shape = list(wind["u"].shape)
    tell(f"{output}: u, v on {shape[0]} x {shape[1]} cells", {"output": output, "shape": shape}, as_json)
