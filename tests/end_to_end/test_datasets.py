"""Files in all the shapes they come in give the same observations."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import xarray as xr

from rdgp.datasets import coordinate_names, is_wind, observations, read_dataset, read_observations, select

LAT, LON = np.array([-90.0, -45.0, 0.0, 45.0, 90.0]), np.arange(0.0, 360.0, 60.0)
NORTH, EAST = {"units": "degrees_north"}, {"units": "degrees_east"}


def field(lat: np.ndarray, lon: np.ndarray, factor: float = 1.0) -> np.ndarray:
    lat, lon = np.deg2rad(lat)[:, None], np.deg2rad(lon)
    return factor * (3.0 * np.cos(lat) * np.cos(lon) + 7.0 * np.sin(lat))


def make(lat: np.ndarray = LAT, lon: np.ndarray = LON, names: tuple[str, str] = ("lat", "lon")) -> xr.Dataset:
    wind = {name: (names, field(lat, lon, factor), {"units": "m s-1"}) for name, factor in (("u", 1.0), ("v", -2.0))}
    return xr.Dataset(wind, {names[0]: (names[0], lat, NORTH), names[1]: (names[1], lon, EAST)})


def layers(time_name: str = "time", level_name: str = "level", levels: tuple[float, ...] = (1000, 500)) -> xr.Dataset:
    months = pd.date_range("2010-01-01", periods=3, freq="MS")
    scale = xr.DataArray(np.arange(1.0, 7.0).reshape(3, 2), dims=(time_name, level_name))
    dataset = make(names=("latitude", "longitude")) * scale
    dataset = dataset.transpose(time_name, level_name, "latitude", "longitude")
    return dataset.assign_coords({time_name: months.to_numpy(), level_name: np.array(levels)})


def rows(data: object) -> set[tuple[float, ...]]:
    return {tuple(row) for row in np.round(np.hstack([data.latlon, data.values]), 2).tolist()}  # type: ignore[attr-defined]


def test_every_layout_gives_the_same_rows(tmp_path: Path) -> None:
    truth = rows(observations(make(), ("u", "v")))
    assert len(truth) == 3 * 6  # no wind at the poles
    west = (LON + 180.0) % 360.0 - 180.0
    layouts = {
        "descending": make(LAT[::-1]),
        "west": make(lon=np.sort(west)),
        "repeated column": make(lon=np.append(LON, 360.0)),
        "other names": make().rename(lat="YAX", lon="XAX", u="UWND", v="VWND"),
        "transposed": make().transpose("lon", "lat"),
        "curvilinear": xr.Dataset(
            {name: (("y", "x"), make()[name].values) for name in ("u", "v")},
            {"nav_lat": (("y", "x"), np.tile(LAT[:, None], 6)), "nav_lon": (("y", "x"), np.tile(LON, (5, 1)))},
        ),
    }
    for name, dataset in layouts.items():
        variables = ("UWND", "VWND") if name == "other names" else ("u", "v")
        path = tmp_path / "file.nc"
        packing = {"dtype": "i2", "scale_factor": 0.001, "_FillValue": -32768}
        dataset.to_netcdf(path, engine="h5netcdf", encoding=dict.fromkeys(variables, packing))
        assert rows(read_observations(path, variables)) == truth, name
    make().to_netcdf(tmp_path / "classic.nc", engine="scipy")
    assert rows(read_observations(tmp_path / "classic.nc", "u,v")) == truth
    frame = make().to_dataframe().reset_index().rename(columns={"lat": "Latitude", "lon": "LON"})
    frame.to_csv(tmp_path / "table.csv", index=False)
    frame.to_parquet(tmp_path / "table.parquet")
    assert rows(read_observations(tmp_path / "table.csv", ("u", "v"))) == truth
    assert rows(read_observations(tmp_path / "table.parquet", ("u", "v"))) == truth


def test_missing_values_are_not_observations_and_a_pole_is_one_place() -> None:
    dataset = make()
    dataset["v"][2, 3] = np.nan
    assert len(observations(dataset, ("u", "v")).latlon) == 17
    scalar = observations(dataset, "u")
    assert len(scalar.latlon) == 18 + 2
    assert (np.abs(scalar.latlon[:, 1]) <= 180.0).all()
    assert scalar.names == ("u",)
    assert scalar.units == ("m s-1",)
    assert len(observations(dataset, ("v", "u")).latlon) == 17  # a wind in any order


def with_errors() -> xr.Dataset:
    dataset = make()
    errors = np.arange(1.0, 31.0).reshape(5, 6)
    attributes = {"units": "m s-1"}
    return dataset.assign(u_err=(("lat", "lon"), errors, attributes), v_err=(("lat", "lon"), errors / 8.0, attributes))


def test_standard_deviations_are_read_along(tmp_path: Path) -> None:
    dataset = with_errors()
    dataset["u"][2, 3] = np.nan
    dataset["u_err"][2, 3] = np.nan  # of nothing
    dataset.to_netcdf(tmp_path / "grid.nc", engine="h5netcdf")
    dataset.to_dataframe().reset_index().to_csv(tmp_path / "table.csv", index=False)
    for name in ("grid.nc", "table.csv"):
        for noise in (("u_err", "v_err"), "u_err, v_err"):
            found = read_observations(tmp_path / name, ("u", "v"), noise_std=noise)
            assert found.values.shape == found.noise_std.shape == (17, 2)
            for latlon, values, std in zip(found.latlon, found.values, found.noise_std, strict=True):
                cell = dataset.sel(lat=latlon[0], lon=latlon[1] % 360.0)
                np.testing.assert_allclose(values, [cell.u, cell.v])
                np.testing.assert_allclose(std, [cell.u_err, cell.v_err])
        assert list(read_dataset(tmp_path / name, "v", noise_std="v_err").data_vars) == ["v", "v_err"]
    shared = observations(dataset, "v,u", noise_std="v_err,v_err")
    np.testing.assert_array_equal(shared.noise_std[:, 0], shared.noise_std[:, 1])
    both = observations(dataset, "v,u", noise_std="v_err,u_err")
    np.testing.assert_array_equal(both.pick(("u",)).noise_std[:, 0], 8.0 * shared.noise_std[:, 1])
    assert observations(dataset, "u").noise_std is None


def test_winds_are_told_from_pairs() -> None:
    dataset = make().assign(u10=1.0, v10=2.0, temperature=3.0)
    dataset["east"] = dataset.u.assign_attrs(standard_name="eastward_wind")
    dataset["north"] = dataset.v.assign_attrs(standard_name="northward_wind")
    assert is_wind(dataset, ("u", "v"))
    assert is_wind(dataset, ("u10", "v10"))
    assert is_wind(dataset, ("east", "north"))
    assert is_wind(dataset.assign(wind_u=1.0, wind_v=2.0), ("wind_u", "wind_v"))
    assert is_wind(dataset.assign(zonal=1.0, meridional=2.0), ("zonal", "meridional"))
    assert not is_wind(dataset, ("u", "temperature"))
    assert not is_wind(dataset, ("u",))
    found = observations(dataset, ("east", "north", "u"))
    assert is_wind(found, ("east", "north"))
    assert not is_wind(found, ("north", "east"))
    assert not is_wind(found, ("east", "u"))


@pytest.mark.parametrize(("time_name", "level_name"), [("time", "level"), ("valid_time", "pressure_level")])
def test_both_layouts_of_era5(tmp_path: Path, time_name: str, level_name: str) -> None:
    dataset = layers(time_name, level_name)
    dataset[level_name].attrs["units"] = "millibars" if level_name == "level" else "hPa"
    if level_name == "pressure_level":
        dataset = dataset.assign_coords(number=0, expver=(time_name, ["0001"] * 3))
    packing = {"dtype": "i2", "scale_factor": 0.004, "add_offset": 1.0, "_FillValue": -32767}
    encoding = {"u": packing, "v": packing} if level_name == "level" else {}
    dataset.to_netcdf(tmp_path / "era5.nc", engine="h5netcdf", encoding=encoding)
    read = read_dataset(tmp_path / "era5.nc")
    assert coordinate_names(read) == ("latitude", "longitude", level_name, time_name)
    for time, index in ((2, 1), ("2010-02", 1), ("2010-03-01", 2), (np.datetime64("2010-01"), 0)):
        for level, other in ((1000, 0), ("50000 Pa", 1), (50000, 1), ("500 hPa", 1)):
            data = read_observations(tmp_path / "era5.nc", ("u", "v"), pressure_level=level, time=time)
            truth = observations(dataset.isel({time_name: index, level_name: other}), ("u", "v"))
            np.testing.assert_allclose(data.values, truth.values, atol=0.0021)


def test_preliminary_months_of_era5_are_joined(tmp_path: Path) -> None:
    dataset = layers()
    first = dataset.where(dataset.time < np.datetime64("2010-03-01"))
    second = dataset.where(dataset.time >= np.datetime64("2010-03-01"))
    xr.concat([first, second], pd.Index([1, 5], name="expver")).to_netcdf(tmp_path / "mix.nc", engine="h5netcdf")
    read = read_dataset(tmp_path / "mix.nc", ("u", "v"), pressure_level=500, time=3)
    np.testing.assert_allclose(read.u, dataset.u.isel(time=2, level=1))


def test_levels_in_pascal_heights_and_months() -> None:
    pascal = layers(level_name="plev", levels=(100000.0, 50000.0))
    pascal.plev.attrs = {"units": "Pa", "standard_name": "air_pressure"}
    assert float(select(pascal, pressure_level=500).plev) == 50000.0
    height = layers(level_name="height", levels=(2.0, 10.0))
    height.height.attrs["units"] = "m"
    assert float(select(height, pressure_level=10).height) == 10.0
    months = layers("month").assign_coords(month=[1, 2, 7])
    assert int(select(months, time=7).month) == 7
    records = layers("record").assign_coords(record=["first", "second", "2010-07"])
    assert str(select(records, time="second").record.values) == "second"
    assert str(select(records, time=7).record.values) == "2010-07"


def test_tables_are_filtered_by_level_and_time(tmp_path: Path) -> None:
    text = "time_utc,lat_deg,lon_deg,lev,t\n"
    text += "".join(f"2020-0{m}-01T00:00:00Z,{10 * m},200,{p},{m + p}\n" for m in (1, 2, 3) for p in (500, 850))
    (tmp_path / "table.csv").write_text(text)
    data = read_observations(tmp_path / "table.csv", "t", pressure_level=850, time="2020-02")
    np.testing.assert_array_equal(data.latlon, [[20.0, -160.0]])
    np.testing.assert_array_equal(data.values, [[852.0]])
    assert len(read_observations(tmp_path / "table.csv", "t", pressure_level=500).latlon) == 3


@pytest.mark.parametrize("suffix", [".csv", ".tsv"])
def test_separators_at_the_end_of_rows_shift_no_column(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"table{suffix}"
    text = "lat,lon,t # header\n10,20,280,\n-30,40,290,\n"
    path.write_text(text.replace(",", "\t") if suffix == ".tsv" else text)
    data = read_observations(path, "t")
    np.testing.assert_array_equal(data.latlon, [[10.0, 20.0], [-30.0, 40.0]])
    np.testing.assert_array_equal(data.values, [[280.0], [290.0]])


def test_columns_named_like_coordinates_can_be_observed(tmp_path: Path) -> None:
    path = tmp_path / "stations.csv"
    path.write_text("lat,lon,t,z,pressure,month\n1,2,280,30,1000,7\n3,4,290,40,1010,8\n")
    for name, value in (("t", 280.0), ("z", 30.0), ("pressure", 1000.0), ("month", 7.0)):
        data = read_observations(path, name)
        np.testing.assert_array_equal(data.values[0], [value])
        assert len(data.values) == 2
    assert len(read_observations(path, "t,z", time=8).values) == 1
    assert len(read_observations(path, "t,z", pressure_level=1010).values) == 1


def test_real_files(data_folder: Path) -> None:
    winds = data_folder / "wind"
    upper = read_observations(winds / "wind_global_2p5deg.nc", ("u", "v"), pressure_level=850, time="eraint-jul")
    assert upper.latlon.shape == (71 * 144, 2)
    assert (
        len(read_observations(winds / "ncep1_monthly_202201_202202.nc", "u,v", pressure_level=1000, time=2).latlon)
        == 71 * 144
    )
    assert (
        len(read_observations(winds / "eraint_monthly_jan_jul_0p75deg.nc", "u,v", pressure_level=500, time=7).latlon)
        == 239 * 480
    )
    assert len(read_observations(winds / "era5_19590102T00_TL31.nc", "u,v", pressure_level=800).latlon) == 32 * 64
    ocean = data_folder / "geophysics" / "coads_monthly_climatology_2deg.nc"
    assert 5000 < len(read_observations(ocean, ("UWND", "VWND"), time=1).latlon) < 90 * 180
    assert read_observations(ocean, "SST", time=7).units == ("Deg C",)
