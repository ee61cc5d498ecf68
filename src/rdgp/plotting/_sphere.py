"""Places and winds as vectors of space, in numpy.

`rdgp.spaces` does the same for models; pictures have new shapes all the time, and compiling for each of them would take
longer than drawing.
"""

import numpy as np
from jaxtyping import Float

from rdgp.core import Numbers


def to_vectors(latlon: Numbers) -> Float[np.ndarray, "*n 3"]:
    """Return unit vectors of places (latitude, longitude) in degrees."""
    lat, lon = np.moveaxis(np.deg2rad(np.asarray(latlon, float)), -1, 0)
    return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=-1)


def to_latlon(x: Float[np.ndarray, "*n 3"]) -> Float[np.ndarray, "*n 2"]:
    """Return (latitude, longitude) in degrees of vectors of any length."""
    lat = np.arctan2(x[..., 2], np.hypot(x[..., 0], x[..., 1]))
    return np.rad2deg(np.stack([lat, np.arctan2(x[..., 1], x[..., 0])], axis=-1))


def to_tangents(
    latlon: Float[np.ndarray, "*n 2"], u: Float[np.ndarray, "*n"], v: Float[np.ndarray, "*n"]
) -> Float[np.ndarray, "*n 3"]:
    """Return winds (u east, v north) as tangent vectors."""
    lat, lon = np.moveaxis(np.deg2rad(latlon), -1, 0)
    east = np.stack([-np.sin(lon), np.cos(lon), np.zeros_like(lon)], axis=-1)
    north = np.stack([-np.sin(lat) * np.cos(lon), -np.sin(lat) * np.sin(lon), np.cos(lat)], axis=-1)
    return u[..., None] * east + v[..., None] * north


def lattice(num_points: int) -> Float[np.ndarray, "n 2"]:
    """Return Fibonacci points (latitude, longitude), equally dense all over the globe."""
    index = np.arange(num_points)
    lat = np.rad2deg(np.arcsin(1.0 - (2.0 * index + 1.0) / num_points))
    lon = (360.0 * index * 2.0 / (1.0 + np.sqrt(5.0)) + 180.0) % 360.0 - 180.0
    return np.stack([lat, lon], axis=-1)
