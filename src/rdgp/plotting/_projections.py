"""From the globe to the page and back: equal earth, plate carree, orthographic, and any projection of cartopy."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from rdgp.core import require

Plane = Float[np.ndarray, "*n 2"]
# Coefficients of the equal earth projection (Šavrič, Patterson and Jenny 2018).
_A1, _A2, _A3, _A4 = 1.340264, -0.081106, 0.000893, 0.003796


@dataclass(frozen=True)
class Projection:
    """A map (latitude, longitude) in degrees -> page, its inverse, NaN where there is none, and the rim of the map.

    `radian` is the length on the page of about one radian; `foreshortens` makes arrows seen from the side shorter.
    """

    forward: Callable[[Plane], Plane]
    inverse: Callable[[Plane], Plane]
    outline: Float[np.ndarray, "m 2"]
    radian: float = 1.0
    foreshortens: bool = False


def resolve(projection: Any, center: float) -> Projection:
    """Return a projection by name, or one of cartopy as it is."""
    if isinstance(projection, Projection):
        return projection
    if projection == "equal_earth":
        return equal_earth(center)
    if projection == "plate_carree":
        return plate_carree(center)
    if hasattr(projection, "transform_points"):
        return from_cartopy(projection)
    raise ValueError(f"projection must be 'equal_earth', 'plate_carree' or a projection of cartopy, got {projection!r}")


def equal_earth(center: float = 0.0) -> Projection:
    """Return the equal earth projection: equal areas, continents of a familiar shape."""

    def forward(latlon: Plane) -> Plane:
        theta = np.arcsin(np.sqrt(3.0) / 2.0 * np.sin(np.deg2rad(latlon[..., 0])))
        x = 2.0 * np.sqrt(3.0) * _from_center(latlon[..., 1], center) * np.cos(theta) / (3.0 * _slope(theta))
        return np.stack([x, _height(theta)], axis=-1)

    def inverse(page: Plane) -> Plane:
        theta = np.clip(page[..., 1] / _A1, -np.pi / 3.0, np.pi / 3.0)
        for _ in range(6):
            theta = np.clip(theta - (_height(theta) - page[..., 1]) / _slope(theta), -np.pi / 3.0, np.pi / 3.0)
        lon = 3.0 * page[..., 0] * _slope(theta) / (2.0 * np.sqrt(3.0) * np.cos(theta))
        inside = (np.abs(lon) <= np.pi) & (np.abs(page[..., 1]) <= _height(np.pi / 3.0))
        lat = np.arcsin(np.clip(2.0 / np.sqrt(3.0) * np.sin(theta), -1.0, 1.0))
        return _degrees(lat, lon, center, inside)

    return Projection(forward, inverse, _rim(forward, center))


def plate_carree(center: float = 0.0) -> Projection:
    """Return the plain map of latitude against longitude."""

    def forward(latlon: Plane) -> Plane:
        return np.stack([_from_center(latlon[..., 1], center), np.deg2rad(latlon[..., 0])], axis=-1)

    def inverse(page: Plane) -> Plane:
        inside = (np.abs(page[..., 0]) <= np.pi) & (np.abs(page[..., 1]) <= np.pi / 2.0)
        return _degrees(page[..., 1], page[..., 0], center, inside)

    return Projection(forward, inverse, _rim(forward, center))


def orthographic(lat: float, lon: float) -> Projection:
    """Return the globe seen from far above a place; the back side has no image."""
    tilt = np.deg2rad(lat)

    def forward(latlon: Plane) -> Plane:
        phi, turn = np.deg2rad(latlon[..., 0]), _from_center(latlon[..., 1], lon)
        x, y, z = np.cos(phi) * np.sin(turn), np.sin(phi), np.cos(phi) * np.cos(turn)
        toward = np.sin(tilt) * y + np.cos(tilt) * z
        page = np.stack([x, np.cos(tilt) * y - np.sin(tilt) * z], axis=-1)
        return np.where(toward[..., None] >= 0.0, page, np.nan)

    def inverse(page: Plane) -> Plane:
        x, y = page[..., 0], page[..., 1]
        squared = 1.0 - x * x - y * y
        z = np.sqrt(np.maximum(squared, 0.0))
        up, toward = np.cos(tilt) * y + np.sin(tilt) * z, np.cos(tilt) * z - np.sin(tilt) * y
        return _degrees(np.arcsin(np.clip(up, -1.0, 1.0)), np.arctan2(x, toward), lon, squared >= 0.0)

    angle = np.linspace(0.0, 2.0 * np.pi, 361)
    return Projection(forward, inverse, np.stack([np.cos(angle), np.sin(angle)], axis=-1), foreshortens=True)


def from_cartopy(crs: Any) -> Projection:
    """Return a projection of cartopy; only its formulas are used, so nothing is downloaded."""
    degrees = require("cartopy.crs", "maps").PlateCarree(globe=crs.globe)
    path = require("matplotlib.path", "plot").Path
    outline = np.asarray(crs.boundary.coords, float)[:, :2]
    inside = path(outline)

    def forward(latlon: Plane) -> Plane:
        page = crs.transform_points(degrees, np.ascontiguousarray(latlon[..., 1]), np.ascontiguousarray(latlon[..., 0]))
        return np.where(np.isfinite(page[..., :2]), page[..., :2], np.nan)

    def inverse(page: Plane) -> Plane:
        lonlat = degrees.transform_points(crs, np.ascontiguousarray(page[..., 0]), np.ascontiguousarray(page[..., 1]))
        valid = inside.contains_points(page.reshape(-1, 2)).reshape(page.shape[:-1])
        valid &= np.isfinite(lonlat[..., :2]).all(axis=-1)
        return np.where(valid[..., None], lonlat[..., 1::-1], np.nan)

    return Projection(forward, inverse, outline, radian=float(np.ptp(outline[:, 0])) / 5.4)


def focus(projection: Projection, places: Float[np.ndarray, "n 2"]) -> Projection:
    """Return the part of a map around places, a rectangle with a small margin."""
    page = projection.forward(places)
    low, high = np.nanmin(page, axis=0), np.nanmax(page, axis=0)
    low, high = low - 0.04 * (high - low).max(), high + 0.04 * (high - low).max()
    corners = np.array([[low[0], low[1]], [high[0], low[1]], [high[0], high[1]], [low[0], high[1]]])
    return replace(projection, outline=corners)


def project_lines(projection: Projection, lines: Sequence[Float[np.ndarray, "_ 2"]]) -> list[Float[np.ndarray, "_ 2"]]:
    """Return lines on the page, cut where they pass behind the globe or jump over the rim of the map."""
    far = 1.35 * projection.radian
    pieces = []
    for line in lines:
        if len(line) < 2:
            continue
        page = projection.forward(np.asarray(line, float))
        visible = np.isfinite(page).all(axis=-1)
        joined = visible[1:] & visible[:-1]
        joined &= np.where(joined, np.hypot(*np.nan_to_num(np.diff(page, axis=0)).T), np.inf) < far
        cuts = np.flatnonzero(~joined) + 1
        pieces += [piece for piece in np.split(page, cuts) if len(piece) > 1]
    return pieces


def graticule(step: float = 30.0) -> list[Float[np.ndarray, "_ 2"]]:
    """Return meridians and parallels as lines of (latitude, longitude)."""
    lat, lon = np.arange(-90.0, 90.1, 2.0), np.arange(-180.0, 180.1, 2.0)
    meridians = [np.stack([lat, np.full_like(lat, turn)], axis=-1) for turn in np.arange(-180.0, 180.0, step)]
    parallels = [np.stack([np.full_like(lon, up), lon], axis=-1) for up in np.arange(-90.0 + step, 90.0, step)]
    return meridians + parallels


def _from_center(lon: Float[np.ndarray, "*n"], center: float) -> Float[np.ndarray, "*n"]:
    """Return radians east of the center; the rim itself stays on the side it was given on."""
    turn = lon - center
    wrapped = (turn + 180.0) % 360.0 - 180.0
    return np.deg2rad(np.where(np.abs(turn) == 180.0, turn, wrapped))


def _degrees(
    lat: Float[np.ndarray, "*n"], lon: Float[np.ndarray, "*n"], center: float, inside: Bool[np.ndarray, "*n"]
) -> Float[np.ndarray, "*n 2"]:
    turned = (np.rad2deg(lon) + center + 180.0) % 360.0 - 180.0
    return np.where(inside[..., None], np.stack([np.rad2deg(lat), turned], axis=-1), np.nan)


def _rim(forward: Callable[[Plane], Plane], center: float) -> Float[np.ndarray, "m 2"]:
    side = np.linspace(-90.0, 90.0, 181)
    top = np.linspace(180.0, -180.0, 181)
    east = np.stack([side, np.full_like(side, center + 180.0)], axis=-1)
    north = np.stack([np.full_like(top, 90.0), center + top], axis=-1)
    return forward(np.concatenate([east, north, east[::-1] - [0.0, 360.0], north[::-1] * [-1.0, 1.0]]))


def _height(theta: Any) -> Any:
    square = theta * theta
    return theta * (_A1 + square * (_A2 + square * square * (_A3 + square * _A4)))


def _slope(theta: Any) -> Any:
    square = theta * theta
    return _A1 + square * (3.0 * _A2 + square * square * (7.0 * _A3 + square * 9.0 * _A4))
