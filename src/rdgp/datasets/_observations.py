"""Turn datasets into scattered observations: places, values, names and units."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float

from rdgp.core import require
from rdgp.datasets._coordinates import coordinate_names, is_plainly_level, listed, positions
from rdgp.datasets._selection import Level, Time, select, time_texts

if TYPE_CHECKING:
    import xarray

_POLE = 90.0 - 1e-6


class Observations(NamedTuple):
    """Hold values observed at places: latitude -90..90 and longitude -180..180 in degrees, one row an observation."""

    latlon: Float[np.ndarray, "N 2"]
    values: Float[np.ndarray, "N P"]
    names: tuple[str, ...]
    units: tuple[str, ...]


def observations(
    dataset: "xarray.Dataset", variables: str | Sequence[str], *, level: Level | None = None, time: Time | None = None
) -> Observations:
    """Return every place where all the variables are known, at one level and time.

    Missing values are simply not observations. On a grid a place counts once: of a repeated column (0 and 360 degrees)
    the first stays, of the row at a pole one value, and none of a wind, whose components there depend on the frame.
    """
    chosen = pick_variables(dataset, variables)
    names = tuple(str(name) for name in chosen.data_vars)
    chosen = squeeze(select(chosen, level=level, time=time))
    lat, lon = positions(chosen)
    gridded = lat.dims != lon.dims
    _check_dimensions(chosen, names, tuple(dict.fromkeys((*lat.dims, *lon.dims))))
    lat, lon, *arrays = require("xarray", "geo").broadcast(lat, lon, *(chosen[name] for name in names))
    latlon = np.stack([lat.values.ravel(), lon.values.ravel()], axis=-1)
    values = np.stack([_as_numbers(array).ravel() for array in arrays], axis=-1)
    keep = _known(values, names) & np.isfinite(latlon).all(axis=-1)
    if is_wind(chosen, names):
        keep &= np.abs(latlon[:, 0]) < _POLE
    if not keep.any():
        raise ValueError(
            f"nothing is left of {', '.join(names)}: at every place one of them, or the position, is missing "
            "or it is a wind at a pole; choose other variables"
        )
    latlon, values = latlon[keep], values[keep]
    if gridded:
        first = _first_of_each_place(latlon)
        latlon, values = latlon[first], values[first]
    return Observations(latlon, values, names, tuple(str(chosen[name].attrs.get("units", "")) for name in names))


def pick_variables(dataset: "xarray.Dataset", variables: str | Sequence[str]) -> "xarray.Dataset":
    """Return a dataset of the variables alone, in the order asked for, with their coordinates."""
    names = [name.strip() for name in variables.split(",")] if isinstance(variables, str) else list(variables)
    if not names or len(set(names)) != len(names):
        raise ValueError(
            f"variables must be one or more different names, got {names}; there are {_data_names(dataset)}"
        )
    for name in names:
        if name not in dataset.variables:
            raise ValueError(f"no variable {name}; there are {_data_names(dataset)}; choose among them")
        if name in dataset.indexes:
            raise ValueError(f"{name} is a coordinate, not a variable; there are {_data_names(dataset)}")
    found = coordinate_names(dataset)
    loose = [name for name in found if name in dataset.data_vars and name not in names]
    return dataset.set_coords(loose).reset_coords([name for name in names if name in dataset.coords])[names]


def squeeze(dataset: "xarray.Dataset") -> "xarray.Dataset":
    """Drop dimensions of size one, but for those of the places."""
    names = coordinate_names(dataset)
    places = {*dataset[names.lat].dims, *dataset[names.lon].dims}
    return dataset.squeeze([name for name, size in dataset.sizes.items() if size == 1 and name not in places])


def is_wind(dataset: "xarray.Dataset", variables: Sequence[str]) -> bool:
    """Tell whether two variables are the components of a wind: eastward and northward, or u and v in their names."""
    if len(variables) != 2:
        return False
    first, second = (name.lower() for name in variables)
    east, north = (f"{name.lower()} {dataset[name].attrs.get('standard_name', '')}" for name in variables)
    if any(word in east and other in north for word, other in (("eastward", "northward"), ("zonal", "meridional"))):
        return True
    different = [pair for pair in zip(first, second, strict=False) if pair[0] != pair[1]]
    return len(first) == len(second) and different == [("u", "v")]


def _check_dimensions(dataset: "xarray.Dataset", names: tuple[str, ...], places: tuple[object, ...]) -> None:
    shapes = {name: dict(dataset[name].sizes) for name in names}
    for name in names[1:]:
        if shapes[name] != shapes[names[0]]:
            raise ValueError(
                f"{names[0]} and {name} must have one shape, got {shapes[names[0]]} and {shapes[name]}; "
                "bring them to one grid"
            )
    extra = [name for name in shapes[names[0]] if name not in places]
    if extra:
        raise ValueError(_choose(dataset, extra))
    missing = [name for name in places if name not in shapes[names[0]]]
    if missing:
        raise ValueError(f"{names[0]} has no dimension {listed(missing)}; it has {listed(shapes[names[0]])}")
    _check_one_level(dataset)


def _choose(dataset: "xarray.Dataset", extra: Sequence[object]) -> str:
    found = coordinate_names(dataset)
    for kind, name in (("level", found.level), ("time", found.time)):
        if name is not None and name in dataset.coords and dataset[name].dims == (extra[0],):
            there = time_texts(dataset[name]) if kind == "time" else dataset[name].values
            return f"choose a {kind}: there are {listed(there)} in {name}"
    return f"the dimension {extra[0]} has {dataset.sizes[str(extra[0])]} entries; select one of them first"


def _check_one_level(dataset: "xarray.Dataset") -> None:
    level = coordinate_names(dataset).level
    if level is not None and level in dataset.coords and dataset[level].ndim and is_plainly_level(level):
        there = np.unique(dataset[level].values)
        if there.size > 1:
            raise ValueError(f"choose a level: there are {listed(there)} in {level}")


def _as_numbers(array: "xarray.DataArray") -> np.ndarray:
    try:
        return array.values.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{array.name} must hold numbers, got {array.dtype}; choose another variable") from None


def _known(values: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    finite = np.isfinite(values)
    if values.shape[0] == 0:
        raise ValueError(f"no observations: {', '.join(names)} hold no values at all; check the file")
    for name, column in zip(names, finite.T, strict=True):
        if not column.any():
            raise ValueError(f"all {column.size} values of {name} are missing; choose another level, time or variable")
    return finite.all(axis=-1)


def _first_of_each_place(latlon: np.ndarray) -> np.ndarray:
    pole = np.abs(latlon[:, :1]) >= _POLE
    place = np.where(np.hstack([np.zeros_like(pole), pole]), 0.0, latlon)
    return np.sort(np.unique(np.round(place, 7), axis=0, return_index=True)[1])


def _data_names(dataset: "xarray.Dataset") -> str:
    return listed(dataset.data_vars)
