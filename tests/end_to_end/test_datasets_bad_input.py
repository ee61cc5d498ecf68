"""Wrong files and wrong wishes give one clear line."""
# ruff: noqa: E501 - one case a line reads as a table

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from rdgp.datasets import (
    along_track,
    era5_request,
    ground_track,
    irregular_target,
    load_tle,
    load_wind,
    observations,
    read_observations,
    read_track,
    select,
    split_standardized,
)
from tests.end_to_end.test_datasets import LAT, LON, layers, make, with_errors

SOME = np.linspace(-1.0, 1.0, 20)


def radians(units: str | None) -> xr.Dataset:
    dataset = make(np.deg2rad(np.linspace(-88.0, 88.0, 20)), np.deg2rad(np.arange(0.0, 360.0, 10.0)))
    for name in ("lat", "lon"):
        dataset[name].attrs = {} if units is None else {"units": units}
    return dataset


def unlike() -> xr.Dataset:
    return xr.Dataset({"u": make().u, "v": make().v.isel(lat=0)})


def holes(where: slice) -> xr.Dataset:
    dataset = make()
    dataset["u"][where] = np.nan
    dataset["v"][slice(where.stop, None)] = np.nan
    return dataset


def errors(change: Callable[[xr.DataArray], xr.DataArray]) -> xr.Dataset:
    dataset = with_errors()
    return dataset.assign(u_err=change(dataset.u_err))


CASES: dict[str, tuple[Callable[[], object], str]] = {
    "no such variable": (lambda: observations(make(), ("u", "w")), "no variable w; there are u, v"),
    "no variable": (lambda: observations(make(), ()), "one or more different names, got []; there are u, v"),
    "coordinate": (lambda: observations(make(), "lat"), "lat is a coordinate, not a variable; there are u, v"),
    "same variable twice": (lambda: observations(make(), "u,u"), "one or more different names"),
    "level not there": (lambda: observations(layers(), "u", pressure_level=700), "no level 700 in level; there are 1000, 500"),
    "level of no use": (lambda: observations(make(), "u", pressure_level=500), "the data have no vertical coordinate"),
    "level is a word": (lambda: observations(layers(), "u", pressure_level="high"), "a number or a text like '850 hPa', got 'high'"),
    "level not chosen": (lambda: observations(layers(), "u", time=1), "choose a pressure_level: there are 1000, 500 in level"),
    "time not there": (lambda: observations(layers(), "u", pressure_level=500, time="2011-01"), "no time 2011-01 in time; there are 2010-01-01T00:00:00, 2010-02"),
    "month not there": (lambda: observations(layers(), "u", pressure_level=500, time=7), "no time 7 in time"),
    "month 13": (lambda: observations(layers(), "u", pressure_level=500, time=13), "a month 1..12 or an ISO text such as '2010-07', got 13"),
    "time not chosen": (lambda: observations(layers(), "u", pressure_level=500), "choose a time: there are 2010-01-01"),
    "time of no use": (lambda: observations(make(), "u", time=7), "the data have no time coordinate"),
    "several times": (lambda: select(layers(), time="2010"), "time 2010 fits 3 times of time"),
    "another dimension": (lambda: observations(make().expand_dims(member=3), "u"), "the dimension member has 3 entries"),
    "all missing": (lambda: observations(make() * np.nan, "u"), "all 30 values of u are missing"),
    "empty after masking": (lambda: observations(holes(slice(0, 2)), ("u", "v")), "nothing is left of u, v"),
    "only poles": (lambda: observations(make().isel(lat=[0, 4]), ("u", "v")), "it is a wind at a pole"),
    "no rows": (lambda: observations(make().isel(lat=slice(0, 0)), "u"), "u hold no values at all"),
    "no latitude": (lambda: observations(make().rename(lat="a").assign_coords(a=LAT), "u"), "no latitude found"),
    "no longitude": (lambda: observations(make().rename(lon="a").assign_coords(a=LON), "u"), "no longitude found"),
    "declared radians": (lambda: observations(radians("radians"), "u"), "lat is in radians, degrees are expected; convert it with numpy.rad2deg"),
    "likely radians": (lambda: observations(radians(None), "u"), "lat and lon look like radians (they span 3.07 and 6.11)"),
    "latitude too large": (lambda: observations(make(LAT * 2.0), "u"), "lat must lie within ±90 degrees, got 180; are latitude and longitude swapped?"),
    "unlike shapes": (lambda: observations(unlike(), ("u", "v")), "u and v must have one shape, got {'lat': 5, 'lon': 6} and {'lon': 6}"),
    "text": (lambda: observations(make().assign(u=make().u.astype(object).where(False, "none")), "u"), "u must hold numbers"),
    "one error for two": (lambda: observations(with_errors(), "u,v", noise_std="u_err"), "noise_std must name a variable of standard deviations for each of u, v, got u_err"),
    "error of itself": (lambda: observations(with_errors(), "u", noise_std="u"), "for each of u, got u"),
    "no such error": (lambda: observations(with_errors(), "u", noise_std="err"), "no variable err; there are u, v, u_err, v_err"),
    "error missing": (lambda: observations(errors(lambda e: e.where(e < 20.0)), "u", noise_std="u_err"), "u_err must hold a standard deviation of each observation of u, got 6 missing of 20"),
    "error infinite": (lambda: observations(errors(lambda e: e / 0.0), "u", noise_std="u_err"), "got 20 missing of 20"),
    "error masked": (lambda: observations(errors(lambda e: e.copy(data=np.ma.masked_equal(e.values, 9.0))), "u,v", noise_std="u_err,v_err"), "got 1 missing of 18"),
    "error negative": (lambda: observations(errors(lambda e: 12.0 - e), "u", noise_std="u_err"), "got 13 negative of 20"),
    "error in other units": (lambda: observations(errors(lambda e: e.assign_attrs(units="km/h")), "u", noise_std="u_err"), "u_err must be in the units of u, m s-1, got km/h; convert it"),
    "error of another shape": (lambda: observations(errors(lambda e: e.isel(lat=0)), "u", noise_std="u_err"), "u and u_err must have one shape"),
    "bundled level": (lambda: load_wind(500), "pressure_level must be 'surface' or 200 for the bundled winds, got 500"),
    "bundled month": (lambda: load_wind(200, 0), "month must be a whole number from 1 to 12, got 0"),
    "other satellite": (lambda: load_tle("other"), "for 'aeolus' only, got 'other'"),
    "broken elements": (lambda: ground_track(["1 2", "2 3"]), "two lines of 69 characters"),
    "wrong checksum": (lambda: ground_track([line.replace("96.7150", "96.7151") for line in load_tle()]), "checksum of line 2"),
    "wrong start": (lambda: ground_track(load_tle(), "yesterday"), "start must be a UTC time such as"),
    "no hours": (lambda: ground_track(load_tle(), hours=0.0), "hours must be a positive number, got 0.0"),
    "no test points": (lambda: along_track(make(), ground_track(load_tle(), hours=1.0), "u", num_test=0), "num_test must be a whole number"),
    "ERA5 level": (lambda: era5_request(2010, [500, 510]), "pressure_levels must be among those of ERA5"),
    "ERA5 year": (lambda: era5_request(1930, [500]), "year must be a whole number from 1940 on, got 1930"),
    "plane points": (lambda: irregular_target(np.ones((4, 2))), "points of the 2-sphere [N, 3], got shape (4, 2)"),
    "lengths": (lambda: split_standardized(SOME[:, None], SOME[:5], 0), "one length, got 20 and 5"),
    "fraction": (lambda: split_standardized(SOME[:, None], SOME, 0, test_fraction=1.0), "test_fraction must leave"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_one_clear_line(name: str) -> None:
    call, text = CASES[name]
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared below
        call()
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"missing.nc: there is no such file"):
        read_observations(tmp_path / "missing.nc", "u")
    with pytest.raises(FileNotFoundError, match="no such file of orbit elements"):
        ground_track(tmp_path / "missing.tle")
    with pytest.raises(FileNotFoundError, match="no such file"):
        read_track(tmp_path / "missing.csv")
    contents = {
        "text.nc": (b"hello", "it is not a NetCDF file; tables must end in .csv or .parquet"),
        "empty.nc": (b"", "it is not a NetCDF file"),
        "zipped.nc": (b"PK\x03\x04....", "it is not a NetCDF file; unzip it first"),
        "damaged.nc": (b"\x89HDF\r\n\x1a\n" + b"x" * 100, "it cannot be read as NetCDF"),
        "classic.nc": (b"CDF\x01" + b"x" * 100, "it cannot be read as NetCDF"),
        "empty.csv": (b"", "the table cannot be read"),
        "more.csv": (b"lat,lon,u\n1,2,3,4\n5,6,7,8\n", "rows have more fields than the header"),
        "late.csv": (b"lat,lon,u\n1,2,3,\n5,6,7,8\n", "rows have more fields than the header"),
        "wrong.parquet": (b"hello", "it is not a Parquet file"),
        "nolat.csv": (b"a,b\n1,2\n", "no latitude found"),
        "radians.csv": (b"lat_rad,lon,u\n1,2,3\n", "lat_rad is in radians"),
        "levels.csv": (b"lat,lon,level,u\n1,2,500,3\n1,2,850,3\n", "choose a pressure_level: there are 500, 850"),
    }
    for name, (content, text) in contents.items():
        path = tmp_path / name
        path.write_bytes(content)
        with pytest.raises(ValueError, match=name) as caught:
            read_observations(path, "u")
        assert text in str(caught.value)
        assert "\n" not in str(caught.value)
    (tmp_path / "track.csv").write_text("a\n1\n")
    with pytest.raises(ValueError, match="must have the columns time_utc"):
        read_track(tmp_path / "track.csv")
