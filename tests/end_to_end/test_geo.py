"""Datasets in, maps with their uncertainty out."""

import numpy as np
import pytest
import xarray

from rdgp import geo
from rdgp.datasets import Observations
from rdgp.estimators import SphereRegressor, load_estimator

pytestmark = pytest.mark.xdist_group("estimators")  # which compile the same shapes
TINY = {"layers": 2, "num_levels": 2, "num_output_levels": 4, "steps": 1, "hidden_samples": 2, "progress": False}
LAT, LON = np.arange(-75.0, 76.0, 30.0), np.arange(0.0, 360.0, 45.0)


def turning_globe(lat: np.ndarray, lon: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the wind of a globe that turns about an axis that is not its own."""
    lat, lon = np.broadcast_arrays(np.deg2rad(lat), np.deg2rad(lon))
    return 10.0 * np.cos(lat) - 4.0 * np.sin(lat) * np.cos(lon), 4.0 * np.sin(lon)


def made(lat: np.ndarray = LAT, lon: np.ndarray = LON) -> xarray.Dataset:
    u, v = turning_globe(lat[:, None], lon[None, :])
    u, v = u + 0.2 * np.cos(9.0 * v), v + 0.2 * np.cos(9.0 * u)  # rough at the scale of the grid, like noise
    common = {"units": "m s-1", "valid_range": np.array([-99.0, 99.0])}
    return xarray.Dataset(
        {
            "uwnd": (("latitude", "longitude"), u, {**common, "standard_name": "eastward_wind", "long_name": "U"}),
            "vwnd": (("latitude", "longitude"), v, {**common, "standard_name": "northward_wind"}),
            "t": (("latitude", "longitude"), 280.0 + 0.0 * u + lat[:, None] / 10.0, {"units": "K"}),
        },
        {"latitude": lat, "longitude": lon, "month": 7},
        {"title": "made up", "Conventions": "CF-1.8"},
    )


@pytest.fixture(scope="module")
def estimators() -> tuple:
    return geo.fit(made(), ("vwnd", "uwnd"), **TINY)


def test_a_wind_becomes_a_map_with_its_attributes() -> None:
    to = xarray.Dataset(coords={"latitude": [-30.0, 0.0, 45.0, 90.0], "longitude": [10.0, 100.0, 359.0]})
    result = geo.interpolate(made(), "uwnd,vwnd", to, samples=2, quantiles=(0.1, 0.5), **TINY)
    u, v = turning_globe(to.latitude.values[:, None], to.longitude.values[None, :])
    np.testing.assert_allclose(result.uwnd, u, atol=0.5)
    np.testing.assert_allclose(result.vwnd, v, atol=0.5)
    assert result.uwnd.dims == result.wind_std.dims == ("latitude", "longitude")
    assert result.uwnd_sample.dims == ("sample", "latitude", "longitude")
    assert result.uwnd_quantile.dims == ("quantile", "latitude", "longitude")
    assert result.uwnd.attrs["standard_name"] == "eastward_wind"
    assert result.uwnd.attrs["units"] == result.uwnd_std.attrs["units"] == "m s-1"
    assert result.uwnd_std.attrs["long_name"] == "standard deviation of U"
    assert result.uwnd_std.attrs["standard_name"] == "eastward_wind standard_error"
    assert "valid_range" not in result.uwnd.attrs
    assert result.latitude.attrs["units"] == "degrees_north"
    assert result.attrs == {"title": "made up", "Conventions": "CF-1.8"}
    assert result.month == 7
    np.testing.assert_allclose(result.wind_std**2, result.uwnd_std**2 + result.vwnd_std**2)
    assert (result.wind_frobenius <= result.wind_std**2 * (1.0 + 1e-9)).all()
    assert (result.uwnd_quantile[0] < result.uwnd).all()


def test_longitudes_latitudes_and_gaps_in_any_order(estimators: tuple) -> None:
    points = np.array([[10.0, -180.0], [10.0, 179.9], [89.0, 5.0], [-45.0, 200.0]])
    expected = geo.predict(estimators, points)
    turned = made().assign_coords(longitude=(LON + 180.0) % 360.0 - 180.0).isel(latitude=slice(None, None, -1))
    result = geo.interpolate(turned, ("uwnd", "vwnd"), points + np.array([0.0, 360.0]), **TINY)
    assert result.uwnd.dims == ("point",)
    for name in ("uwnd", "vwnd", "uwnd_std", "wind_std"):
        np.testing.assert_allclose(result[name], expected[name], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(expected.uwnd[0], expected.uwnd[1], atol=0.05)


def test_missing_values_are_not_observations() -> None:
    dataset = made()
    dataset["t"][2, 3] = np.nan
    (estimator,) = geo.fit(dataset, "t", **TINY | {"layers": 1})
    assert isinstance(estimator, SphereRegressor)
    assert len(estimator.fitted_.inputs) == LAT.size * LON.size - 1
    result = geo.predict(estimator, made(np.array([-10.0, 20.0]), np.array([0.0, 50.0])).t)
    np.testing.assert_allclose(result.t, [[279.0] * 2, [282.0] * 2], atol=0.3)
    assert result.t.attrs["units"] == "K"
    assert set(result.data_vars) == {"t", "t_std"}


def test_samples_are_functions_over_the_whole_map(estimators: tuple) -> None:
    whole = geo.predict(estimators, "60deg", samples=2, seed=3)
    part = geo.predict(estimators, np.array([[30.0, 60.0], [90.0, -120.0]]), samples=2, seed=3)
    np.testing.assert_allclose(part.uwnd_sample[:, 0], whole.uwnd_sample.sel(lat=30.0, lon=60.0), rtol=1e-6)
    np.testing.assert_allclose(part.vwnd_sample[:, 1], whole.vwnd_sample.sel(lat=90.0, lon=-120.0), rtol=1e-6)


def test_files_predict_like_what_was_saved(estimators: tuple, tmp_path: object) -> None:
    estimators[0].save(f"{tmp_path}/winds.rdgp")
    again = geo.predict(load_estimator(f"{tmp_path}/winds.rdgp"), "60deg")
    xarray.testing.assert_identical(again, geo.predict(estimators, "60deg"))
    again.to_netcdf(f"{tmp_path}/map.nc", engine="h5netcdf")
    xarray.testing.assert_identical(xarray.load_dataset(f"{tmp_path}/map.nc", engine="h5netcdf"), again)


def test_grids_reach_both_poles_and_go_round_once() -> None:
    grid = geo.grid("2.5deg")
    assert grid.sizes == {"lat": 73, "lon": 144}
    assert grid.lat.values[[0, -1]].tolist() == [-90.0, 90.0]
    assert grid.lon.values[[0, -1]].tolist() == [-180.0, 177.5]
    xarray.testing.assert_identical(geo.grid(2.5), grid)


def test_wrong_input_is_answered_in_one_line(estimators: tuple) -> None:
    with pytest.raises(ValueError, match=r"180001 x 360000 points needs about .* GB, this machine has .* GB"):
        geo.predict(estimators, 0.001)
    with pytest.raises(ValueError, match="grid spacing must divide 180 degrees, got 7"):
        geo.grid(7)
    with pytest.raises(ValueError, match="grid spacing must be degrees such as 2 or \"2deg\", got 'fine'"):
        geo.predict(estimators, "fine")
    with pytest.raises(ValueError, match="target points must be"):
        geo.predict(estimators, np.zeros(3))
    with pytest.raises(ValueError, match=r"quantiles must lie between 0 and 1, got 1\.5"):
        geo.interpolate(made(), "t", "30deg", quantiles=(1.5,))
    with pytest.raises(ValueError, match="is in radians"):
        geo.predict(estimators, geo.grid(30).assign_coords(lat=("lat", np.linspace(-1, 1, 7), {"units": "radians"})))
    with pytest.raises(ValueError, match="not fitted"):
        geo.predict(SphereRegressor(), "30deg")
    with pytest.raises(ValueError, match="a checkpoint is of one fit"):
        geo.fit(made(), "uwnd,vwnd,t", checkpoint="state")
    with pytest.raises(ValueError, match="no variable w"):
        geo.interpolate(made(), "w", "30deg")
    with pytest.raises(ValueError, match="must have the same units"):
        geo.fit(Observations(np.zeros((3, 2)), np.zeros((3, 2)), ("u", "v"), ("m/s", "km/h")))
