"""Where to predict: grids and lists of points."""

import os
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float

from rdgp.core import check_unmasked, require
from rdgp.datasets import coordinate_names

if TYPE_CHECKING:
    import xarray

_LATITUDE = {"standard_name": "latitude", "long_name": "latitude", "units": "degrees_north"}
_LONGITUDE = {"standard_name": "longitude", "long_name": "longitude", "units": "degrees_east"}
_SHARE_OF_MEMORY = 0.5
_NUMBERS_AT_WORK = 40  # kept for each point while predicting


class Targets(NamedTuple):
    """Places to predict at: latitudes and longitudes, which span `dims` together, and the coordinates to keep."""

    lat: "xarray.DataArray"
    lon: "xarray.DataArray"
    dims: tuple[str, ...]
    shape: tuple[int, ...]
    coordinates: dict[str, "xarray.DataArray"]

    @property
    def size(self) -> int:
        """Number of places."""
        return int(np.prod([float(n) for n in self.shape]))

    def latlon(self) -> Float[np.ndarray, "N 2"]:
        """Return all places, in the order of the dimensions."""
        lat, lon = require("xarray", "geo").broadcast(self.lat, self.lon)
        both = [array.transpose(*self.dims).values.astype(np.float64).ravel() for array in (lat, lon)]
        return np.stack(both, axis=1)


def grid(spacing: float | int | str = 2.0) -> "xarray.Dataset":
    """Return a regular grid over the globe, poles included, longitudes from -180; spacing in degrees, "2deg" too."""
    xarray = require("xarray", "geo")
    degrees = _degrees(spacing)
    rows = round(180.0 / degrees)
    lat = -90.0 + 180.0 * np.arange(rows + 1) / rows
    lon = -180.0 + 180.0 * np.arange(2 * rows) / rows
    return xarray.Dataset(coords={"lat": ("lat", lat, _LATITUDE), "lon": ("lon", lon, _LONGITUDE)})


def _degrees(spacing: float | int | str) -> float:
    text = str(spacing).strip().lower()
    for ending in ("degrees", "degree", "deg", "°"):
        text = text.removesuffix(ending)
    try:
        degrees = float(text)
    except ValueError:
        raise ValueError(f'grid spacing must be degrees such as 2 or "2deg", got {spacing!r}') from None
    if not 1e-4 <= degrees <= 90.0 or abs(180.0 / degrees - round(180.0 / degrees)) > 1e-6 * 180.0 / degrees:
        raise ValueError(f"grid spacing must divide 180 degrees, got {spacing!r}; use 0.25, 0.5, 1, 2, 2.5 or 5")
    return degrees


def find_targets(to: Any) -> Targets:
    """Return targets from a Dataset or DataArray with latitude and longitude, a grid spacing, or points [N, 2]."""
    xarray = require("xarray", "geo")
    if isinstance(to, str | int | float):
        to = grid(to)
    if isinstance(to, xarray.DataArray):
        to = to.coords.to_dataset()
    return _of_dataset(to) if isinstance(to, xarray.Dataset) else _of_points(getattr(to, "latlon", to))


def _of_dataset(dataset: "xarray.Dataset") -> Targets:
    names = coordinate_names(dataset)
    dataset = dataset.set_coords([names.lat, names.lon])
    lat, lon = dataset[names.lat], dataset[names.lon]
    for array in (lat, lon):
        if str(array.attrs.get("units", "")).startswith("rad"):
            raise ValueError(f"{array.name} of the target grid is in radians, degrees are expected; convert it first")
    dims = tuple(str(dim) for dim in dict.fromkeys((*lat.dims, *lon.dims)))
    kept = {str(name): own for name, own in dataset.coords.items() if own.dims and set(own.dims) <= set(dims)}
    coordinates = {name: own.reset_coords(drop=True) for name, own in kept.items()}
    for name, attributes in ((names.lat, _LATITUDE), (names.lon, _LONGITUDE)):
        array = dataset[name].reset_coords(drop=True)
        coordinates[name] = array.assign_attrs({**attributes, **array.attrs})
    shape = tuple(int(dataset.sizes[dim]) for dim in dims)
    return Targets(lat.reset_coords(drop=True), lon.reset_coords(drop=True), dims, shape, coordinates)


def _of_points(latlon: Any) -> Targets:
    check_unmasked(latlon, "target points")
    points = np.asarray(latlon, dtype=np.float64)
    if points.ndim != 2 or points.shape[1] != 2 or not len(points):
        raise ValueError(f"target points must be [N, 2], latitude and longitude in degrees, got shape {points.shape}")
    xarray = require("xarray", "geo")
    lat = xarray.DataArray(points[:, 0], dims="point", name="lat", attrs=_LATITUDE)
    lon = xarray.DataArray(points[:, 1], dims="point", name="lon", attrs=_LONGITUDE)
    return Targets(lat, lon, ("point",), (len(points),), {"lat": lat, "lon": lon})


def check_size(targets: Targets, numbers: int) -> None:
    """Raise if a result with so many numbers at each place would not fit into memory."""
    if targets.size == 0:
        raise ValueError(f"the target grid must hold at least one place, got {' x '.join(map(str, targets.shape))}")
    needed = 8.0 * targets.size * (numbers + _NUMBERS_AT_WORK)
    there = float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    if needed > _SHARE_OF_MEMORY * there:
        size = " x ".join(map(str, targets.shape))
        raise ValueError(
            f"the target grid of {size} points needs about {needed / 1e9:.3g} GB, this machine has {there / 1e9:.3g} "
            "GB; take a coarser grid, fewer samples or a part of the globe at a time"
        )
