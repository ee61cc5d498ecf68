"""What is drawn: named values on a latitude-longitude grid, read from an xarray Dataset or from plain arrays."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Shaped
from scipy.spatial import cKDTree

from rdgp.plotting._sphere import to_tangents, to_vectors

SCATTERED_STEP = 2.0  # degrees between the nodes on which scattered targets are shown


class Grid(NamedTuple):
    """Values [..., H, W] by name, latitudes and longitudes ascending, the last column closing the circle if it does."""

    lat: Float[np.ndarray, "H"]
    lon: Float[np.ndarray, "W"]
    values: dict[str, Float[np.ndarray, "..."]]
    units: dict[str, str]
    labels: dict[str, str]


def read_grid(data: Mapping[str, Any]) -> Grid:
    """Read an xarray Dataset, or a mapping of arrays with "lat" and "lon" among its names.

    A grid has values [..., H, W]; values [..., N] at N scattered places are spread to their nearest neighbors.
    """
    lat, lon = (_coordinate(data, name) for name in (("lat", "latitude"), ("lon", "longitude")))
    arrays = {name: _oriented(data[name]) for name in data if name not in ("lat", "lon", "latitude", "longitude")}
    shape = (lat.size, lon.size)
    on_grid = {name: array for name, array in arrays.items() if array.shape[-2:] == shape}
    if on_grid:
        lat, lon, values = _ascending(lat, lon, on_grid)
    elif lat.size == lon.size:
        values = {name: array for name, array in arrays.items() if array.shape[-1:] == lat.shape}
        lat, lon, values = _spread(np.stack([lat, lon], axis=-1), values)
    else:
        values = {}
    if not values:
        raise ValueError(
            f"there is nothing to draw on {lat.size} latitudes and {lon.size} longitudes; got {_all(data)}"
        )
    attributes = {name: dict(getattr(data[name], "attrs", {})) for name in values}
    units = {name: str(found.get("units", "")) for name, found in attributes.items()}
    labels = {name: str(found["long_name"]) for name, found in attributes.items() if "long_name" in found}
    return Grid(lat, lon, values, units, labels)


def pick(grid: Grid, name: str) -> Float[np.ndarray, "H W"]:
    """Return the values of a name, the first sample where there are several."""
    if name not in grid.values:
        raise ValueError(f"there is no variable {name!r}; there are {', '.join(grid.values)}")
    array = grid.values[name]
    return array.reshape(-1, *array.shape[-2:])[0]


def middle_of_region(grid: Grid) -> tuple[float, float] | None:
    """Return latitude and longitude of the middle of a grid that leaves out much of the world, else None."""
    if np.ptp(grid.lon) > 300.0 and np.ptp(grid.lat) > 100.0:
        return None
    return float(np.mean(grid.lat[[0, -1]])), float(np.mean(grid.lon[[0, -1]]))


def find_wind(grid: Grid) -> tuple[str, str] | None:
    """Return the names of the components (east, north) of the wind, if there is one."""
    if "u" in grid.values and "v" in grid.values:
        return "u", "v"
    parts = [name for name in grid.values if f"{name}_std" in grid.values and name != "wind"]
    return (parts[0], parts[1]) if "wind_std" in grid.values and len(parts) == 2 else None


def sample(grid: Grid, values: Float[np.ndarray, "H W"], latlon: Float[np.ndarray, "*n 2"]) -> Float[np.ndarray, "*n"]:
    """Return values between the nodes, bilinear, nearest where a neighbor is missing, NaN outside the grid."""
    row, column, inside = _position(grid, latlon)
    i = np.clip(np.floor(row).astype(int), 0, max(grid.lat.size - 2, 0))
    j = np.clip(np.floor(column).astype(int), 0, max(grid.lon.size - 2, 0))
    i1, j1 = np.minimum(i + 1, grid.lat.size - 1), np.minimum(j + 1, grid.lon.size - 1)
    a, b = row - i, column - j
    south = (1 - b) * values[i, j] + b * values[i, j1]
    north = (1 - b) * values[i1, j] + b * values[i1, j1]
    nearest = values[np.where(a < 0.5, i, i1), np.where(b < 0.5, j, j1)]
    mixed = (1 - a) * south + a * north
    return np.where(inside, np.where(np.isnan(mixed), nearest, mixed), np.nan)


def sample_tangents(
    grid: Grid, u: Float[np.ndarray, "H W"], v: Float[np.ndarray, "H W"], latlon: Float[np.ndarray, "n 2"]
) -> tuple[Float[np.ndarray, "n 3"], Float[np.ndarray, "n 3"]]:
    """Return unit vectors of places and the wind there as tangent vectors.

    Interpolated as vectors of space, because east and north turn quickly near the poles.
    """
    nodes = np.stack(np.meshgrid(grid.lat, grid.lon, indexing="ij"), axis=-1)
    tangents = to_tangents(nodes, u, v)
    x = to_vectors(latlon)
    wind = np.stack([sample(grid, tangents[..., axis], latlon) for axis in range(3)], axis=-1)
    return x, wind - np.sum(wind * x, axis=-1, keepdims=True) * x


def read_places(observations: Any) -> Float[np.ndarray, "n 2"]:
    """Return latitudes and longitudes of observations: an array [N, 2], or anything with such a `latlon`."""
    places = np.asarray(getattr(observations, "latlon", observations), float)
    if places.ndim != 2 or places.shape[1] != 2:
        raise ValueError(f"observations must be (latitude, longitude) rows of shape [N, 2], got {places.shape}")
    if places.size and not np.abs(places[:, 0]).max() <= 90.0:
        raise ValueError("latitudes of observations must lie within ±90 degrees; the columns are (latitude, longitude)")
    return places


def _coordinate(data: Mapping[str, Any], names: tuple[str, str]) -> Float[np.ndarray, "n"]:
    for name in names:
        if name in data:
            values = np.asarray(data[name], float)
            if values.ndim == 1 and values.size and np.isfinite(values).all():
                return values
            raise ValueError(f"{name} must be finite degrees along one axis, got shape {values.shape}")
    raise ValueError(f"{names[0]} is missing; name the coordinates lat and lon; got {_all(data)}")


def _oriented(array: Any) -> Shaped[np.ndarray, "..."]:
    """Return numbers with latitude and longitude last, in this order."""
    dims = getattr(array, "dims", ())
    last = [dim for names in (("lat", "latitude"), ("lon", "longitude")) for dim in names if dim in dims]
    values = np.asarray(array.transpose(..., *last) if len(last) == 2 else array)
    return values.astype(float) if values.dtype.kind in "fiub" else np.empty(0)


def _ascending(
    lat: Float[np.ndarray, "h"], lon: Float[np.ndarray, "w"], values: dict[str, Shaped[np.ndarray, "..."]]
) -> tuple[Float[np.ndarray, "h"], Float[np.ndarray, "W"], dict[str, Shaped[np.ndarray, "..."]]]:
    rows, (wrapped, columns) = np.argsort(lat), np.unique((lon + 180.0) % 360.0 - 180.0, return_index=True)
    gaps = np.diff(wrapped, append=wrapped[0] + 360.0)
    widest, step = int(np.argmax(gaps)), float(np.median(gaps[:-1])) if wrapped.size > 1 else 0.0
    if gaps[widest] < 1.5 * step:
        wrapped, columns = np.append(wrapped, wrapped[0] + 360.0), np.append(columns, columns[0])
    else:
        wrapped = np.concatenate([wrapped[widest + 1 :], wrapped[: widest + 1] + 360.0])
        columns = np.roll(columns, -widest - 1)
        wrapped -= 360.0 * np.round(wrapped.mean() / 360.0)
    return lat[rows], wrapped, {name: array[..., rows, :][..., columns] for name, array in values.items()}


def _spread(
    places: Float[np.ndarray, "n 2"], values: dict[str, Shaped[np.ndarray, "..."]]
) -> tuple[Float[np.ndarray, "H"], Float[np.ndarray, "W"], dict[str, Shaped[np.ndarray, "..."]]]:
    """Show scattered values on a grid: each node takes its nearest place unless that is far away."""
    lat = np.arange(-90.0 + SCATTERED_STEP / 2, 90.0, SCATTERED_STEP)
    lon = np.arange(-180.0, 180.1, SCATTERED_STEP)
    nodes = np.stack(np.meshgrid(lat, lon, indexing="ij"), axis=-1)
    tree = cKDTree(to_vectors(places))
    spacing = np.median(tree.query(tree.data, k=min(2, len(places)))[0][..., -1]) if len(places) > 1 else 0.0
    distance, nearest = tree.query(to_vectors(nodes))
    near = distance <= max(1.5 * spacing, np.deg2rad(SCATTERED_STEP))
    return lat, lon, {name: np.where(near, array[..., nearest], np.nan) for name, array in values.items()}


def _position(
    grid: Grid, latlon: Float[np.ndarray, "*n 2"]
) -> tuple[Float[np.ndarray, "*n"], Float[np.ndarray, "*n"], Shaped[np.ndarray, "*n"]]:
    """Return fractional row and column, and whether the place is at most half a step outside."""
    lat, lon = latlon[..., 0], grid.lon[0] + (latlon[..., 1] - grid.lon[0]) % 360.0
    margin = [float(np.median(np.diff(axis))) / 2.0 if axis.size > 1 else 0.5 for axis in (grid.lat, grid.lon)]
    lon = np.where(lon - 360.0 >= grid.lon[0] - margin[1], lon - 360.0, lon)
    inside = (lat >= grid.lat[0] - 2.0 * margin[0]) & (lat <= grid.lat[-1] + 2.0 * margin[0])
    inside &= (lon >= grid.lon[0] - margin[1]) & (lon <= grid.lon[-1] + margin[1])
    row = np.interp(np.nan_to_num(lat), grid.lat, np.arange(grid.lat.size))
    column = np.interp(np.nan_to_num(lon), grid.lon, np.arange(grid.lon.size))
    return row, column, inside


def _all(data: Mapping[str, Any]) -> str:
    return ", ".join(f"{name} {np.shape(data[name])}" for name in data) or "nothing"


def thin(
    grid: Grid, most: int
) -> tuple[Shaped[np.ndarray, "rows"], Shaped[np.ndarray, "columns"], Float[np.ndarray, "columns"]]:
    """Return rows and columns to keep so that not more than about `most` nodes stay, and the longitudes kept."""
    step = int(np.ceil(np.sqrt(grid.lat.size * grid.lon.size / most)))
    closed = grid.lon.size > 1 and np.isclose(grid.lon[-1] - grid.lon[0], 360.0)
    columns = np.arange(0, grid.lon.size - int(closed), step)
    lon = grid.lon[columns]
    if closed:
        columns, lon = np.append(columns, 0), np.append(lon, grid.lon[0] + 360.0)
    return np.arange(0, grid.lat.size, step), columns, lon
