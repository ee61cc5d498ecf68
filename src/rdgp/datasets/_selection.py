"""Choose a level and a time by value."""

import re
from typing import TYPE_CHECKING

import numpy as np

from rdgp.datasets._coordinates import PRESSURE_UNITS, coordinate_names, format_item, listed

if TYPE_CHECKING:
    import xarray

PressureLevel = float | int | str
Time = str | int | np.datetime64

_HIGHEST_PRESSURE = 1100.0  # hPa; no air is denser on Earth, so a larger number must be Pa
_QUANTITY = re.compile(r"\s*([-+0-9.eE]+)\s*([A-Za-z]*)\s*")


def select(
    dataset: "xarray.Dataset", *, pressure_level: PressureLevel | None = None, time: Time | None = None
) -> "xarray.Dataset":
    """Return the part of a dataset at one level and one time, chosen by value, never by index.

    `pressure_level` is a number in hPa, or in Pa above 1100, or a text like "850 hPa"; where the vertical coordinate is
    a height or a depth, a number in its units. `time` is an ISO text as long as it needs to be ("2010-07"), a month
    1..12, or a name of a record.
    """
    names = coordinate_names(dataset)
    if pressure_level is not None:
        dataset = _select_level(dataset, names.pressure_level, pressure_level)
    if time is not None:
        dataset = _select_time(dataset, names.time, time)
    return dataset


def _select_level(dataset: "xarray.Dataset", name: str | None, level: PressureLevel) -> "xarray.Dataset":
    if name is None:
        raise ValueError(f"no level {level} here: the data have no vertical coordinate; leave pressure_level out")
    coordinate = dataset[name]
    values = np.atleast_1d(coordinate.values).astype(np.float64)
    scale = _pressure_scale(name, coordinate.attrs.get("units"))
    unit = "" if scale is None else " hPa"
    shown = values if scale is None else values * scale
    matches = np.isclose(shown, _as_number(level, pressure=scale is not None), rtol=1e-5, atol=1e-8)
    if not matches.any():
        raise ValueError(f"no level {level} in {name}; there are {listed(_distinct(shown))}{unit}; choose one of them")
    return _keep(dataset, coordinate, matches)


def _pressure_scale(name: str, units: object) -> float | None:
    """Return what turns the coordinate into hPa, or None for a coordinate that is no pressure."""
    if units is not None:
        return PRESSURE_UNITS.get(str(units).strip().lower())
    return {"plev": 0.01, "isobaricinhpa": 1.0, "pressure_level": 1.0, "pressure": 1.0}.get(name.lower())


def _as_number(level: PressureLevel, *, pressure: bool) -> float:
    match = _QUANTITY.fullmatch(str(level))
    try:
        number, unit = float(match[1]), match[2].lower()  # type: ignore[index]
    except (TypeError, ValueError):
        raise ValueError(f"pressure_level must be a number or a text like '850 hPa', got {level!r}") from None
    if not pressure:
        return number
    if unit and unit not in PRESSURE_UNITS:
        raise ValueError(f"pressure_level must be a pressure in hPa or Pa, got {level!r}")
    return number * (PRESSURE_UNITS[unit] if unit else 1.0 if number <= _HIGHEST_PRESSURE else 0.01)


def _select_time(dataset: "xarray.Dataset", name: str | None, time: Time) -> "xarray.Dataset":
    if name is None:
        raise ValueError(f"no time {time} here: the data have no time coordinate; leave time out")
    coordinate = dataset[name]
    texts = time_texts(coordinate)
    matches = _match_time(texts, time)
    found = _distinct(texts[matches])
    if len(found) == 0:
        raise ValueError(f"no time {time} in {name}; there are {listed(_distinct(texts))}; choose one of them")
    if len(found) > 1 and coordinate.dims == (name,):
        raise ValueError(f"time {time} fits {len(found)} times of {name}: {listed(found)}; choose one of them")
    return _keep(dataset, coordinate, matches)


def time_texts(coordinate: "xarray.DataArray") -> np.ndarray:
    """Write times as ISO texts; months and names of records stay what they are."""
    if np.issubdtype(coordinate.dtype, np.datetime64):
        return np.atleast_1d(np.datetime_as_string(coordinate.values.astype("datetime64[s]")))
    if coordinate.dtype == object and hasattr(coordinate.values.flat[0], "isoformat"):
        return np.array([value.isoformat() for value in coordinate.values.flat])
    return np.array([format_item(value) for value in np.atleast_1d(coordinate.values)])


def _match_time(texts: np.ndarray, time: Time) -> np.ndarray:
    if isinstance(time, np.datetime64):
        time = str(time)
    if isinstance(time, int | np.integer) or (time.strip().isdigit() and len(time.strip()) <= 2):
        month = int(time)
        if not 1 <= month <= 12:
            raise ValueError(f"time must be a month 1..12 or an ISO text such as '2010-07', got {time!r}")
        return np.array(
            [text == str(month) or re.match(rf"\d{{4}}-{month:02d}(-|$)", text) is not None for text in texts]
        )
    wanted = time.strip().replace(" ", "T").removesuffix("Z")
    exact = np.array([text in (time, wanted) for text in texts])
    return exact if exact.any() else np.array([_begins_with(text, wanted) for text in texts])


def _begins_with(text: str, wanted: str) -> bool:
    """Compare ISO texts at the precision of the one asked for, between whole numbers only."""
    rest = text[len(wanted) :]
    return text[:4].isdigit() and len(wanted) >= 4 and text.startswith(wanted) and not rest[:1].isdigit()


def _distinct(values: np.ndarray) -> list[object]:
    return list(dict.fromkeys(values.tolist()))


def _keep(dataset: "xarray.Dataset", coordinate: "xarray.DataArray", matches: np.ndarray) -> "xarray.Dataset":
    if coordinate.ndim == 0:
        return dataset
    if coordinate.ndim > 1:
        raise ValueError(f"{coordinate.name} must have one dimension to choose from, got {coordinate.dims}")
    (dimension,) = coordinate.dims
    found = np.flatnonzero(matches)
    return dataset.isel({dimension: int(found[0]) if dimension == coordinate.name and len(found) == 1 else found})
