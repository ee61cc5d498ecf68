"""The laws of pictures: projections and their inverses, grids and their orientation, even ramps, even arrows."""

import base64
from collections.abc import Callable

import numpy as np
import pytest
import xarray
from hypothesis import given
from hypothesis import strategies as st

from rdgp.plotting._coastline import coast
from rdgp.plotting._colors import RAMPS, color_table, lightness
from rdgp.plotting._diagnostics import smooth
from rdgp.plotting._displacement import carry
from rdgp.plotting._grid import middle_of_region, pick, read_grid, sample, sample_tangents
from rdgp.plotting._payload import _pack
from rdgp.plotting._projections import (
    Projection,
    equal_earth,
    from_cartopy,
    graticule,
    orthographic,
    plate_carree,
    project_lines,
)
from rdgp.plotting._sphere import lattice, to_latlon, to_tangents, to_vectors
from rdgp.spaces import latlon_to_sphere, wind_to_tangent

PLACES = lattice(300)
VECTORS = to_vectors(PLACES)


def smooth_field(lat: np.ndarray, lon: np.ndarray) -> np.ndarray:
    lat, lon = np.deg2rad(lat)[:, None], np.deg2rad(lon)[None, :]
    return np.cos(lat) * np.cos(lon - 0.3) + np.sin(lat)


@pytest.mark.parametrize("make", [equal_earth, plate_carree])
@given(center=st.floats(-180.0, 180.0))
def test_flat_maps_come_back(make: Callable[[float], Projection], center: float) -> None:
    projection = make(center)
    np.testing.assert_allclose(to_vectors(projection.inverse(projection.forward(PLACES))), VECTORS, atol=1e-9)
    assert np.isnan(projection.inverse(np.array([[3.2, 0.0], [0.0, 1.6]]))).all()


@given(lat=st.floats(-90.0, 90.0), lon=st.floats(-180.0, 180.0))
def test_the_globe_shows_its_front_and_hides_its_back(lat: float, lon: float) -> None:
    projection = orthographic(lat, lon)
    toward = VECTORS @ to_vectors([[lat, lon]])[0]
    page = projection.forward(PLACES)
    assert np.isnan(page[toward < -1e-9]).all()
    front = toward > 1e-3
    np.testing.assert_allclose(to_vectors(projection.inverse(page[front])), VECTORS[front], atol=1e-6)
    np.testing.assert_allclose(np.sum(page[front] ** 2, axis=-1), 1.0 - toward[front] ** 2, atol=1e-9)
    assert np.isnan(projection.inverse(np.array([[1.1, 0.0]]))).all()


def test_equal_earth_keeps_areas() -> None:
    step = 1e-4
    inner = PLACES[np.abs(PLACES).max(axis=-1) < 179.0]
    start, north, east = (equal_earth().forward(inner + np.array(shift) * step) for shift in ([0, 0], [1, 0], [0, 1]))
    area = np.linalg.det(np.stack([east - start, north - start], axis=-2))
    np.testing.assert_allclose(area, np.deg2rad(step) ** 2 * np.cos(np.deg2rad(inner[:, 0])), rtol=1e-3)


def test_projections_of_cartopy_agree_with_our_own() -> None:
    crs = pytest.importorskip("cartopy.crs")
    radius = 6371e3
    ball = crs.Globe(semimajor_axis=radius, semiminor_axis=radius, ellipse=None)
    theirs = from_cartopy(crs.EqualEarth(globe=ball))
    np.testing.assert_allclose(theirs.forward(PLACES) / radius, equal_earth().forward(PLACES), atol=1e-6)
    globe, ours = from_cartopy(crs.Orthographic(10.0, 40.0, globe=ball)), orthographic(40.0, 10.0).forward(PLACES)
    inner = np.nan_to_num(np.hypot(*ours.T), nan=2.0) < 0.99
    np.testing.assert_allclose(globe.forward(PLACES)[inner] / radius, ours[inner], atol=1e-6)
    np.testing.assert_allclose(to_vectors(globe.inverse(ours[inner] * radius)), VECTORS[inner], atol=1e-6)


@pytest.mark.parametrize("center", [0.0, 120.0])
def test_lines_never_cross_the_whole_map(center: float) -> None:
    for projection in (equal_earth(center), plate_carree(center), orthographic(10.0, center)):
        pieces = project_lines(projection, graticule())
        assert max(np.hypot(*np.diff(piece, axis=0).T).max() for piece in pieces) < 0.2
        assert all(np.isfinite(piece).all() for piece in pieces)


def test_orientation_of_a_grid_does_not_matter() -> None:
    lat, lon = np.arange(-88.0, 89.0, 4.0), np.arange(-180.0, 180.0, 5.0)
    values, places = smooth_field(lat, lon), lattice(300)
    turned = xarray.Dataset(
        {"f": (("longitude", "latitude"), smooth_field(lat[::-1], lon % 360.0).T, {"units": "K"})},
        {"latitude": lat[::-1], "longitude": lon % 360.0},
    )
    plain, dataset = read_grid({"lat": lat, "lon": lon, "f": values}), read_grid(turned)
    assert dataset.units["f"] == "K"
    assert dataset.lon[-1] - dataset.lon[0] == 360.0
    one, other = (sample(grid, pick(grid, "f"), places) for grid in (plain, dataset))
    np.testing.assert_allclose(one, other, atol=1e-12)
    np.testing.assert_allclose(one, np.diag(smooth_field(*places.T)), atol=0.01)


def test_values_at_nodes_are_exact_and_regions_end() -> None:
    lat, lon = np.array([10.0, 11.0, 13.0]), np.array([170.0, 175.0, 179.0])
    values = np.arange(9.0).reshape(3, 3)
    values[0, 0] = np.nan
    grid = read_grid({"lat": lat, "lon": lon, "f": values})
    nodes = np.stack(np.meshgrid(lat, lon, indexing="ij"), axis=-1)
    np.testing.assert_array_equal(sample(grid, values, nodes), values)
    assert np.isnan(sample(grid, values, np.array([[50.0, 175.0], [11.0, 0.0], [11.0, -170.0]]))).all()
    assert sample(grid, values, np.array([[10.6, 171.0]])) == 3.0


def test_a_region_may_lie_across_the_date_line() -> None:
    lat, lon = np.arange(-20.0, 21.0, 5.0), np.array([-175.0, -170.0, 170.0, 175.0, 180.0])
    values = smooth_field(lat, lon)
    grid = read_grid({"lat": lat, "lon": lon, "f": values})
    assert np.ptp(grid.lon) == 20.0
    nodes = np.stack(np.meshgrid(lat, lon, indexing="ij"), axis=-1)
    np.testing.assert_allclose(sample(grid, pick(grid, "f"), nodes), values, atol=1e-12)
    assert np.isnan(sample(grid, pick(grid, "f"), np.array([[0.0, 0.0], [0.0, 160.0], [0.0, -160.0]]))).all()
    middle = middle_of_region(grid)
    assert middle is not None
    assert middle[1] % 360.0 == 180.0


def test_scattered_places_spread_to_their_neighbors() -> None:
    places = lattice(3000)
    grid = read_grid({"lat": places[:, 0], "lon": places[:, 1], "f": np.diag(smooth_field(*places.T))})
    np.testing.assert_allclose(pick(grid, "f"), smooth_field(grid.lat, grid.lon), atol=0.1)
    few = read_grid({"lat": [0.0, 1.0], "lon": [0.0, 1.0], "f": [1.0, 2.0]})
    assert np.isnan(pick(few, "f")).mean() > 0.99


def test_winds_are_smooth_across_the_poles() -> None:
    lat, lon = np.linspace(-90.0, 90.0, 73), np.arange(0.0, 360.0, 2.5)
    axis = np.array([1.0, 0.5, 0.2])
    nodes = np.stack(np.meshgrid(lat, lon, indexing="ij"), axis=-1)
    east = np.stack([-np.sin(np.deg2rad(nodes[..., 1])), np.cos(np.deg2rad(nodes[..., 1])), 0 * nodes[..., 0]], axis=-1)
    turning = np.cross(axis, to_vectors(nodes))
    u, v = np.sum(turning * east, axis=-1), np.sum(turning * np.cross(to_vectors(nodes), east), axis=-1)
    grid = read_grid({"lat": lat, "lon": lon, "u": u, "v": v})
    places = np.concatenate([lattice(200), [[89.9, 33.0], [-89.5, 10.0], [88.9, -179.9]]])
    x, tangent = sample_tangents(grid, pick(grid, "u"), pick(grid, "v"), places)
    np.testing.assert_allclose(tangent, np.cross(axis, x), atol=1e-2)


def test_pictures_and_models_agree_on_places_and_winds() -> None:
    u, v = np.random.default_rng(0).normal(size=(2, len(PLACES)))
    np.testing.assert_allclose(VECTORS, latlon_to_sphere(PLACES), atol=1e-12)
    tangents = wind_to_tangent(PLACES, np.stack([u, v], axis=-1))
    np.testing.assert_allclose(to_tangents(PLACES, u, v), tangents, atol=1e-12)
    np.testing.assert_allclose(to_latlon(3.0 * VECTORS), PLACES, atol=1e-9)


def test_arrows_are_equally_dense_at_equator_and_poles() -> None:
    height = to_vectors(lattice(1000))[:, 2]
    assert np.abs(np.histogram(height, bins=10, range=(-1.0, 1.0))[0] - 100).max() <= 1


@pytest.mark.parametrize("name", RAMPS)
@pytest.mark.parametrize("dark", [False, True])
def test_lightness_of_ramps_moves_in_equal_steps(name: str, dark: bool) -> None:
    light = lightness(color_table(name, dark=dark))
    halves = (light[:128], light[128:]) if RAMPS[name].diverging else (light,)
    for half in halves:
        steps = np.diff(half)
        assert abs(np.sum(np.sign(np.mean(steps)) * steps)) > 0.2
        np.testing.assert_allclose(half, np.linspace(half[0], half[-1], half.size), atol=0.02)
    with pytest.raises(ValueError, match="no color ramp 'jet'; choose one of speed"):
        color_table("jet")


def test_places_are_carried_as_the_points_move() -> None:
    points, places = to_vectors(lattice(400)), to_vectors(lattice(77))
    angle = np.deg2rad(12.0)
    turn = np.array([[np.cos(angle), -np.sin(angle), 0], [np.sin(angle), np.cos(angle), 0], [0, 0, 1]])
    start, moved = carry(places, [points, points @ turn.T])
    np.testing.assert_allclose(start, places, atol=1e-12)
    np.testing.assert_allclose(moved, places @ turn.T, atol=1e-3)


def test_cuts_of_the_data_are_no_coast() -> None:
    line = np.array([[60.0, 170.0], [62.0, 180.0], [65.0, 180.0], [66.0, 172.0]])
    assert [len(part) for part in coast([line])] == [2, 2]
    assert coast([]) == []
    with pytest.raises(ValueError, match=r"shape \[n, 2\], got \(3,\)"):
        coast([np.zeros(3)])


def test_smoothing_keeps_lines_and_shows_where_training_failed() -> None:
    line = np.arange(400.0)
    np.testing.assert_allclose(smooth(line)[:-12], line[:-12])
    line[300:] = np.nan
    assert np.array_equal(np.isnan(smooth(line)), np.isnan(line))
    np.testing.assert_array_equal(smooth(line[:30]), line[:30])


def test_packed_numbers_keep_five_digits() -> None:
    values = np.random.default_rng(0).normal(size=(20, 30))
    values[3, 4] = np.nan
    packed = _pack(values)
    codes = np.frombuffer(base64.b64decode(packed["data"]), "<u2").reshape(values.shape)
    back = np.where(codes == 65535, np.nan, packed["offset"] + packed["scale"] * codes)
    np.testing.assert_allclose(back, values, atol=1e-4)
