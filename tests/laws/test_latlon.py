"""Latitude, longitude and winds."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdgp.spaces import (
    Sphere,
    east_north_frame,
    latlon_to_sphere,
    sphere_to_latlon,
    tangent_to_wind,
    wind_to_tangent,
)

places = st.lists(st.tuples(st.floats(-89.9, 89.9), st.floats(-179.9, 179.9)), min_size=3, max_size=3)


@given(places=places)
def test_latlon_round_trip(places: list[tuple[float, float]]) -> None:
    latlon = jnp.array(places)
    np.testing.assert_allclose(sphere_to_latlon(latlon_to_sphere(latlon)), latlon, atol=1e-9)


@given(places=places, u=st.floats(-50, 50), v=st.floats(-50, 50))
def test_wind_round_trip(places: list[tuple[float, float]], u: float, v: float) -> None:
    latlon, uv = jnp.array(places), jnp.array([[u, v]] * 3)
    tangent = wind_to_tangent(latlon, uv)
    x = latlon_to_sphere(latlon)
    np.testing.assert_allclose(jnp.sum(x * tangent, -1), 0.0, atol=1e-12)
    np.testing.assert_allclose(tangent_to_wind(x, tangent), uv, atol=1e-9)


def test_east_and_north_point_where_they_should() -> None:
    step = 1e-4
    latlon = jnp.array([[40.0, 30.0], [-70.0, 200.0]])
    east = (latlon_to_sphere(latlon + jnp.array([0.0, step])) - latlon_to_sphere(latlon)) / step
    north = (latlon_to_sphere(latlon + jnp.array([step, 0.0])) - latlon_to_sphere(latlon)) / step
    wind = wind_to_tangent(latlon, jnp.array([[1.0, 0.0], [1.0, 0.0]]))
    np.testing.assert_allclose(wind, east / jnp.linalg.norm(east, axis=1, keepdims=True), atol=1e-5)
    wind = wind_to_tangent(latlon, jnp.array([[0.0, 1.0], [0.0, 1.0]]))
    np.testing.assert_allclose(wind, north / jnp.linalg.norm(north, axis=1, keepdims=True), atol=1e-5)


@jax.jit
def _frames_and_derivatives(x: jax.Array) -> tuple:
    functions = (east_north_frame, sphere_to_latlon)
    return *(f(x) for f in functions), [jax.vmap(jax.jacrev(f))(x) for f in functions]


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_the_poles_are_finite_with_their_derivatives(dtype: type) -> None:
    poles = jnp.array([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]], dtype)
    frame, latlon, derivatives = _frames_and_derivatives(poles)
    np.testing.assert_allclose(np.einsum("npi,npj->nij", frame, frame), np.stack([np.eye(2)] * 2), atol=1e-6)
    np.testing.assert_allclose(frame[:, :, 0], np.array([[0.0, 1.0, 0.0]] * 2))
    assert all(np.all(np.isfinite(slopes)) for slopes in derivatives)
    np.testing.assert_allclose(latlon, [[90.0, 0.0], [-90.0, 0.0]], atol=1e-4)
    assert np.all(Sphere(2).contains(latlon_to_sphere(jnp.array([[90.0, 77.0]], dtype))))
