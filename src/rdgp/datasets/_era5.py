"""Monthly means of ERA5 from the Copernicus Climate Data Store, for users who have an account there."""

import os
from collections.abc import Sequence
from pathlib import Path

from rdgp.core import require
from rdgp.datasets._files import FilePath

ERA5_DATASET = "reanalysis-era5-pressure-levels-monthly-means"
ERA5_PRESSURE_LEVELS = (
    *(1, 2, 3, 5, 7, 10, 20, 30, 50, 70, 100, 125, 150, 175, 200, 225, 250, 300, 350, 400, 450, 500, 550, 600, 650),
    *(700, 750, 775, 800, 825, 850, 875, 900, 925, 950, 975, 1000),
)

_FIRST_YEAR = 1940
_SITE = "https://cds.climate.copernicus.eu"


def era5_request(year: int, pressure_levels: Sequence[int]) -> dict[str, str | list[str]]:
    """Return the request for twelve monthly means of the wind in a year, at pressure levels in hPa.

    >>> era5_request(2010, [500, 850])["pressure_level"]
    ['500', '850']
    """
    if isinstance(year, bool) or not isinstance(year, int) or not _FIRST_YEAR <= year <= 2100:
        raise ValueError(f"year must be a whole number from {_FIRST_YEAR} on, got {year!r}")
    wrong = [level for level in pressure_levels if level not in ERA5_PRESSURE_LEVELS]
    if wrong or not pressure_levels:
        raise ValueError(
            f"pressure_levels must be among those of ERA5, {', '.join(map(str, ERA5_PRESSURE_LEVELS))} hPa; "
            f"got {wrong or 'none'}"
        )
    return {
        "product_type": ["monthly_averaged_reanalysis"],
        "variable": ["u_component_of_wind", "v_component_of_wind"],
        "pressure_level": [str(int(level)) for level in pressure_levels],
        "year": [str(year)],
        "month": [f"{month:02d}" for month in range(1, 13)],
        "time": ["00:00"],
        "data_format": "netcdf",
        "download_format": "unarchived",
    }


def download_era5(year: int, pressure_levels: Sequence[int], path: FilePath, *, overwrite: bool = False) -> Path:
    """Download the monthly mean winds of a year to a NetCDF file and return its path.

    The file appears whole or not at all. Needs an account, a key file and the accepted license: see docs/data.md.
    """
    request, path = era5_request(year, pressure_levels), Path(path)
    if path.exists() and not overwrite:
        raise ValueError(f"{path} is there already; choose another name or overwrite it")
    if not path.parent.is_dir():
        raise ValueError(f"cannot write {path}: there is no folder {path.parent}; create it first")
    cdsapi = require("cdsapi", "data")
    _check_account()
    partial = path.with_name(f".{path.name}.part")
    try:
        # by default a lost connection is tried again for hours
        client = cdsapi.Client(retry_max=4, sleep_max=15)
        client.retrieve(ERA5_DATASET, request, str(partial))
        partial.replace(path)
    except Exception as error:
        raise ValueError(f"the Climate Data Store did not deliver: {_explain(error)}") from error
    finally:
        partial.unlink(missing_ok=True)
    return path


def _check_account() -> None:
    if os.environ.get("CDSAPI_URL") and os.environ.get("CDSAPI_KEY"):
        return
    file = Path(os.environ.get("CDSAPI_RC", Path("~/.cdsapirc").expanduser()))
    if not file.is_file():
        raise ValueError(
            f"downloading ERA5 needs an account: register at {_SITE}, accept the license of {ERA5_DATASET}, and write "
            f"the two lines 'url: {_SITE}/api' and 'key: YOUR-TOKEN' to {file}"
        )


def _explain(error: Exception) -> str:
    text = " ".join(str(error).split()) or type(error).__name__
    if "licen" in text.lower():
        return f"accept the license of {ERA5_DATASET} once at {_SITE}, then try again ({text[:200]})"
    if "401" in text or "authentication" in text.lower():
        return f"the key is not accepted; copy it again from your profile at {_SITE} ({text[:200]})"
    if "connection" in text.lower():
        return f"no connection to {_SITE}; check the network"
    return f"{text[:300]}; check the network and {_SITE}"
