"""Degrees at the interface of the estimators."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rdgp.core import compiled
from rdgp.fields import TangentFrame
from rdgp.spaces import latlon_to_sphere, wind_to_tangent


def latlon_points(latlon: Float[np.ndarray, "N F"]) -> Float[Array, "N 3"]:
    """Return (latitude, longitude) in degrees as unit vectors."""
    return latlon_to_sphere(_wrapped(latlon))


def tangent_winds(latlon: Float[np.ndarray, "N F"], uv: Float[np.ndarray, "N P"]) -> Float[Array, "N 3"]:
    """Return winds as tangent vectors."""
    return wind_to_tangent(_wrapped(latlon), jnp.asarray(uv))


def wind_frame(latlon: Float[np.ndarray, "N F"], dtype: Any = None) -> TangentFrame:
    """Return the frame of the vectors to the east and to the north; at the poles the longitude given decides."""
    columns = compiled(_columns, jnp.asarray(_wrapped(latlon))).astype(dtype)
    return TangentFrame(columns, columns, (0,))


def _columns(latlon: Float[Array, "N 2"]) -> Float[Array, "N 3 2"]:
    units = jnp.eye(2, dtype=latlon.dtype)
    return jnp.stack([wind_to_tangent(latlon, jnp.broadcast_to(unit, latlon.shape)) for unit in units], axis=-1)


def _wrapped(latlon: Float[np.ndarray, "N F"]) -> Float[np.ndarray, "N F"]:
    """Return longitudes within ±180 degrees, before single precision makes 359.9 and -0.1 two places."""
    if latlon.shape[1] != 2:
        raise ValueError(f"X must have 2 columns, latitude and longitude in degrees, got {latlon.shape[1]}")
    lat, lon = latlon.T
    return np.stack([lat, (lon + 180.0) % 360.0 - 180.0], axis=1)
