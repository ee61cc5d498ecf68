"""Real data in: files, the bundled sample, satellite tracks, ERA5, small tables, and formulas.

>>> wind = load_wind("surface", month=7)
>>> split = along_track(wind, ground_track(load_tle("aeolus")), ("u", "v"))
>>> len(split.train.latlon), len(split.test.latlon)
(1368, 4224)
"""

from rdgp.datasets._along_track import TrackSplit, along_track
from rdgp.datasets._bundle import load_coastline, load_tle, load_wind
from rdgp.datasets._coordinates import CoordinateNames, coordinate_names, positions
from rdgp.datasets._era5 import ERA5_DATASET, ERA5_PRESSURE_LEVELS, download_era5, era5_request
from rdgp.datasets._files import read_dataset, read_observations
from rdgp.datasets._observations import Observations, is_wind, observations, variable_names
from rdgp.datasets._selection import select
from rdgp.datasets._synthetic import fibonacci_sphere, irregular_target
from rdgp.datasets._track import PAPER_START, VALID_START, Track, TrackWarning, ground_track, read_track, write_track
from rdgp.datasets._uci import UCI_NAMES, StandardizedSplit, load_uci, split_standardized

__all__ = [
    "ERA5_DATASET",
    "ERA5_PRESSURE_LEVELS",
    "PAPER_START",
    "UCI_NAMES",
    "VALID_START",
    "CoordinateNames",
    "Observations",
    "StandardizedSplit",
    "Track",
    "TrackSplit",
    "TrackWarning",
    "along_track",
    "coordinate_names",
    "download_era5",
    "era5_request",
    "fibonacci_sphere",
    "ground_track",
    "irregular_target",
    "is_wind",
    "load_coastline",
    "load_tle",
    "load_uci",
    "load_wind",
    "observations",
    "positions",
    "read_dataset",
    "read_observations",
    "read_track",
    "select",
    "split_standardized",
    "variable_names",
    "write_track",
]
