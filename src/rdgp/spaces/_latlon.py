"""Latitude, longitude and winds: the only place where angles enter and leave."""

import warnings

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rdgp.core import Numbers, as_float_array, check_finite, check_last_axis, check_same_shape, is_concrete
from rdgp.spaces._sphere import Sphere, east_north, east_north_frame, longitude

_SPHERE = Sphere(2)


def _check_latlon(latlon: Numbers) -> Float[Array, "*N 2"]:
    latlon = as_float_array(latlon, "latlon")
    check_last_axis(latlon, 2, "latlon", "(latitude, longitude) in degrees")
    check_finite(latlon, "latlon")
    if is_concrete(latlon) and latlon.size:
        lat, lon = np.asarray(latlon[..., 0]), np.asarray(latlon[..., 1])
        worst = float(lat.flat[np.argmax(np.abs(lat))])
        if abs(worst) > 90.0 + 1e-6:
            raise ValueError(
                f"latitude must lie within ±90 degrees, got {worst:g}; the columns are (latitude, longitude)"
            )
        if lat.size >= 20 and np.ptp(lat) > 1.5 and np.abs(lat).max() < 1.58 and 3.0 < np.abs(lon).max() < 6.3:
            warnings.warn("latitude and longitude look like radians; degrees are expected", stacklevel=3)
    return latlon


def latlon_to_sphere(latlon_deg: Numbers) -> Float[Array, "*N 3"]:
    """Turn (latitude, longitude) in degrees into unit vectors.

    >>> [round(float(number), 3) for number in latlon_to_sphere([30.0, 0.0])]
    [0.866, 0.0, 0.5]
    """
    lat, lon = jnp.moveaxis(jnp.deg2rad(_check_latlon(latlon_deg)), -1, 0)
    return jnp.stack([jnp.cos(lat) * jnp.cos(lon), jnp.cos(lat) * jnp.sin(lon), jnp.sin(lat)], axis=-1)


def sphere_to_latlon(x: Numbers) -> Float[Array, "*N 2"]:
    """Turn unit vectors into (latitude, longitude) in degrees, longitude in (-180, 180], 0 at the poles."""
    x = _SPHERE.check(x)
    rho, cosine, sine = longitude(x)
    return jnp.rad2deg(jnp.stack([jnp.arctan2(x[..., 2], rho), jnp.arctan2(sine, cosine)], axis=-1))


def wind_to_tangent(latlon_deg: Numbers, uv: Numbers) -> Float[Array, "*N 3"]:
    """Turn winds (u east, v north) at given places into tangent vectors; at the poles the longitude given decides."""
    latlon = _check_latlon(latlon_deg)
    uv = as_float_array(uv, "uv")
    check_last_axis(uv, 2, "uv", "winds (u east, v north)")
    check_same_shape(latlon, uv, "latlon and uv", owner="winds")
    lat, lon = jnp.moveaxis(jnp.deg2rad(latlon), -1, 0)
    return jnp.sum(east_north(jnp.sin(lat), jnp.cos(lat), jnp.cos(lon), jnp.sin(lon)) * uv[..., None, :], axis=-1)


def tangent_to_wind(x: Numbers, v: Numbers) -> Float[Array, "*N 2"]:
    """Turn tangent vectors into winds (u east, v north); at the poles longitude counts as 0."""
    x, v = _SPHERE._check_pair(x, v, "v")
    return jnp.sum(east_north_frame(x) * v[..., None], axis=-2)
