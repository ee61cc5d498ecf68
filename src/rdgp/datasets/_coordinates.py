"""Recognize latitude, longitude, level and time of a dataset by CF attributes, units and common names."""

from collections.abc import Hashable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

if TYPE_CHECKING:
    import xarray


class CoordinateNames(NamedTuple):
    """Say what a dataset calls its coordinates; `pressure_level` is the vertical one, be it a pressure or a height."""

    lat: str
    lon: str
    pressure_level: str | None
    time: str | None


class _Kind(NamedTuple):
    standard_names: tuple[str, ...]
    units: tuple[str, ...]
    axis: str
    names: tuple[str, ...]


_LATITUDE = _Kind(
    ("latitude",),
    ("degrees_north", "degree_north", "degrees_n", "degree_n", "degreesn", "degreen"),
    "Y",
    ("lat", "latitude", "nav_lat", "lat_deg", "latitude_deg", "lat_rad", "latitude_rad", "xlat", "lats", "y"),
)
_LONGITUDE = _Kind(
    ("longitude",),
    ("degrees_east", "degree_east", "degrees_e", "degree_e", "degreese", "degreee"),
    "X",
    (
        *("lon", "longitude", "nav_lon", "lon_deg", "longitude_deg", "lon_rad", "longitude_rad"),
        *("long", "lng", "xlong", "lons", "x"),
    ),
)
PRESSURE_UNITS = {
    **dict.fromkeys(("hpa", "mb", "mbar", "millibar", "millibars", "hectopascal", "hectopascals"), 1.0),
    **dict.fromkeys(("pa", "pascal", "pascals"), 0.01),
}
_LEVEL = _Kind(
    (
        "air_pressure",
        "altitude",
        "height",
        "depth",
        "model_level_number",
        "atmosphere_hybrid_sigma_pressure_coordinate",
    ),
    tuple(PRESSURE_UNITS),
    "Z",
    (
        *("level", "lev", "plev", "pressure_level", "isobaricinhpa", "isobaric", "pressure", "pres"),
        *("height", "altitude", "depth", "z"),
    ),
)
_TIME = _Kind(
    ("time", "forecast_reference_time"),
    (),
    "T",
    ("time", "valid_time", "time_utc", "date", "datetime", "month", "time_counter", "record", "t"),
)
_ALSO_VARIABLES = ("t", "z")  # temperature and geopotential, unless it is the name of a dimension
_RADIANS = ("radian", "radians", "rad")
_LENGTHS = ("m", "km", "meter", "meters", "metre", "metres")


def coordinate_names(dataset: "xarray.Dataset") -> CoordinateNames:
    """Return the names of latitude, longitude, level and time; the last two are None where there is none.

    What counts, in this order: standard_name, units, axis, a common name. Coordinates win over variables.
    """
    lat, lon = _find(dataset, _LATITUDE), _find(dataset, _LONGITUDE)
    if lat is None or lon is None:
        missing = "latitude" if lat is None else "longitude"
        raise ValueError(
            f"no {missing} found; expected a coordinate named lat, latitude, lon, longitude or with CF attributes, "
            f"there are {listed(dataset.variables)}; rename it"
        )
    return CoordinateNames(lat, lon, _find(dataset, _LEVEL, (lat, lon)), _find(dataset, _TIME, (lat, lon)))


def positions(dataset: "xarray.Dataset") -> tuple["xarray.DataArray", "xarray.DataArray"]:
    """Return latitude and longitude in degrees, longitude from -180 to 180, checked."""
    names = coordinate_names(dataset)
    lat, lon = dataset[names.lat].astype(np.float64), dataset[names.lon].astype(np.float64)
    for array in (lat, lon):
        if _declared(array, _RADIANS) or str(array.name).lower().endswith("_rad"):
            raise ValueError(f"{array.name} is in radians, degrees are expected; convert it with numpy.rad2deg")
    declared = any(_declared(array, (*_LATITUDE.units, *_LONGITUDE.units, "degrees")) for array in (lat, lon))
    if not declared and _look_like_radians(lat.values, lon.values):
        raise ValueError(
            f"{names.lat} and {names.lon} look like radians (they span {np.ptp(lat.values):.3g} and "
            f"{np.ptp(lon.values):.3g}), degrees are expected; convert them with numpy.rad2deg"
        )
    worst = float(np.nanmax(np.abs(lat.values), initial=0.0))
    if worst > 90.0 + 1e-6:
        raise ValueError(f"{names.lat} must lie within ±90 degrees, got {worst:g}; are latitude and longitude swapped?")
    return lat, wrap_longitude(lon)


def wrap_longitude(lon: "xarray.DataArray") -> "xarray.DataArray":
    """Bring longitudes into (-180, 180], leaving those that lie there untouched."""
    return lon.where((lon > -180.0) & (lon <= 180.0), 180.0 - (180.0 - lon) % 360.0)


def listed(items: object, limit: int = 24) -> str:
    """List what there is, shortened."""
    names = [format_item(item) for item in items]  # type: ignore[attr-defined]
    shown = ", ".join(names[:limit])
    return f"{shown}, ... ({len(names)} in all)" if len(names) > limit else shown or "none"


def format_item(item: object) -> str:
    """Write a coordinate value the way a user would type it."""
    return f"{item:g}" if isinstance(item, int | float | np.number) else str(item)


def is_plainly_level(name: str) -> bool:
    """Tell names that mean a level from those, like pressure or height, that may as well be something observed."""
    return name.lower() in ("level", "lev", "plev", "pressure_level", "isobaricinhpa", "isobaric")


def _find(dataset: "xarray.Dataset", kind: _Kind, taken: tuple[str, ...] = ()) -> str | None:
    bounds = {variable.attrs.get("bounds") for variable in dataset.variables.values()}
    ranked = []
    for order, (name, variable) in enumerate(dataset.variables.items()):
        rank = _rank(name, variable, kind)
        if rank is not None and name not in taken and name not in bounds:
            ranked.append((name not in dataset.coords, rank, name not in dataset.dims, order, str(name)))
    return min(ranked)[-1] if ranked else None


def _rank(name: Hashable, variable: "xarray.Variable", kind: _Kind) -> tuple[int, int] | None:
    attributes = {key: str(value).strip().lower() for key, value in variable.attrs.items()}
    lowered, units = str(name).lower(), attributes.get("units")
    dimension = variable.dims == (name,)
    horizontal = kind.axis in "XY"
    if (not horizontal and variable.ndim > 1) or (horizontal and units in _LENGTHS):
        return None
    if attributes.get("standard_name") in kind.standard_names:
        return 0, 0
    if kind is _TIME and np.issubdtype(variable.dtype, np.datetime64):
        return 1, 0
    if units in kind.units and (horizontal or dimension or lowered in kind.names):
        return 1, 0
    if attributes.get("axis") == kind.axis.lower():
        return 2, 0
    if lowered in kind.names and (dimension or lowered not in _ALSO_VARIABLES):
        return 3, kind.names.index(lowered)
    return None


def _declared(array: "xarray.DataArray", units: tuple[str, ...]) -> bool:
    return str(array.attrs.get("units", "")).strip().lower() in units


def _look_like_radians(lat: np.ndarray, lon: np.ndarray) -> bool:
    """Tell global data in radians: the whole span of both angles, and never more."""
    if lat.size < 10 or lon.size < 10 or np.nanmax(np.abs(lat)) > 1.5709 or np.nanmax(np.abs(lon)) > 6.2833:
        return False
    return bool(np.nanmax(lat) - np.nanmin(lat) > 2.5 and np.nanmax(lon) - np.nanmin(lon) > 5.0)
