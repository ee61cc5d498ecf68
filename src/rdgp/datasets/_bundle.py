"""The real sample that ships with the package: winds, coastlines and the orbit of one satellite."""

from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from rdgp.datasets._files import read_dataset
from rdgp.datasets._selection import PressureLevel

if TYPE_CHECKING:
    import xarray

_WINDS = {"surface": "wind_surface.nc", "200": "wind_200hpa.nc"}


def load_wind(pressure_level: PressureLevel = "surface", month: int = 7) -> "xarray.Dataset":
    """Return the mean wind of a month, u and v in m/s on a grid of 2.5 degrees, at the surface or at 200 hPa.

    `pressure_level` is "surface" or 200, `month` is 1..12. Means of 1982-1992 (US Navy) at the surface, of the
    NCEP/NCAR reanalysis at 200 hPa.
    """
    key = str(pressure_level).lower().removesuffix("hpa").strip()
    if key not in _WINDS:
        raise ValueError(f"pressure_level must be 'surface' or 200 for the bundled winds, got {pressure_level!r}")
    if isinstance(month, bool) or not isinstance(month, int | np.integer) or not 1 <= month <= 12:
        raise ValueError(f"month must be a whole number from 1 to 12, got {month!r}")
    return read_dataset(bundled(_WINDS[key]), ("u", "v"), time=int(month))


def load_coastline() -> list[Float[np.ndarray, "n 2"]]:
    """Return the coastlines of the world (1:110 million) as lines of latitude and longitude, cut at the date line."""
    with np.load(bundled("coastline_110m.npz"), allow_pickle=False) as file:
        latlon, lengths = file["latlon"].astype(np.float64), file["lengths"]
    return np.split(latlon, np.cumsum(lengths)[:-1])


def load_tle(name: str = "aeolus") -> tuple[str, str]:
    """Return the two lines of orbit elements of a satellite."""
    if name.lower() != "aeolus":
        raise ValueError(f"orbit elements are bundled for 'aeolus' only, got {name!r}; pass the path of a TLE file")
    lines = bundled("aeolus.tle").read_text().splitlines()
    return lines[-2], lines[-1]


def bundled(name: str) -> Path:
    """Return the path of a file that ships with the package."""
    return Path(str(resources.files("rdgp.datasets") / "bundle" / name))
