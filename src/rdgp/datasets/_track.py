"""Ground tracks of satellites from orbit elements."""

import datetime
import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Shaped

from rdgp.core import check_unmasked, require
from rdgp.datasets._files import FilePath

PAPER_START = "2019-01-01T09:00"
"""Start of the day of Aeolus used in the paper: years before the epoch of its elements, where SGP4 reports decay."""
VALID_START = "2021-06-02T18:00"
"""Start of a day within hours of the epoch of the elements."""

_EPOCH_1970 = 2440587.5  # Julian date of 1970-01-01T00
_FARTHEST = 30.0  # days from the epoch within which elements of a low orbit mean anything
_DECAYED = 6
_RADIUS, _FLATTENING = 6378.137, 1.0 / 298.257223563  # WGS 84, km
_MEANING = {
    1: "mean eccentricity out of range",
    2: "mean motion below zero",
    3: "perturbed eccentricity out of range",
    4: "semilatus rectum below zero",
    _DECAYED: "the satellite has decayed",
}


class TrackWarning(UserWarning):
    """Warn that a track is computed but is not where the satellite was."""


class Track(NamedTuple):
    """Hold the places under a satellite: UTC times, latitude and longitude in degrees."""

    time: Shaped[np.ndarray, "N"]
    latlon: Float[np.ndarray, "N 2"]


def ground_track(
    tle: FilePath | Sequence[str], start: str | np.datetime64 | datetime.datetime = VALID_START, hours: float = 24.0
) -> Track:
    """Return the places under a satellite every minute, from its two-line elements (the lines, or a file of them).

    Positions by SGP4, turned with the Earth by mean sidereal time; latitude is geodetic; times are UTC, end excluded.
    """
    satellite = _read_elements(tle)
    if not np.isfinite(hours) or hours <= 0.0:
        raise ValueError(f"hours must be a positive number, got {hours!r}")
    minutes = np.arange(max(1, round(hours * 60.0))) * np.timedelta64(1, "m")
    time = _as_time(start) + minutes.astype("timedelta64[s]")
    day = time.astype("datetime64[D]")
    date = _EPOCH_1970 + day.astype(np.float64)
    fraction = (time - day) / np.timedelta64(1, "D")
    codes, position, _ = satellite.sgp4_array(date, fraction)
    _warn(satellite, codes, date + fraction)
    if not np.isfinite(position).all():
        raise ValueError(f"SGP4 gives no positions at {time[0]} ({_explain(codes)}); choose a time near the epoch")
    return Track(time, _geodetic(_turn_with_earth(position, date, fraction)))


def read_track(path: FilePath) -> Track:
    """Read a track from a CSV file of the columns time_utc, lat_deg, lon_deg."""
    if not Path(path).is_file():
        raise FileNotFoundError(f"cannot read {path}: there is no such file; check the path")
    try:
        time, *latlon = np.loadtxt(path, dtype=str, delimiter=",", skiprows=1, ndmin=2, usecols=(0, 1, 2)).T
        return Track(np.char.rstrip(time, "Z").astype("datetime64[s]"), np.stack(latlon, axis=-1).astype(np.float64))
    except ValueError as error:
        raise ValueError(f"{path} must have the columns time_utc, lat_deg, lon_deg ({error})") from None


def write_track(track: Track, path: FilePath) -> None:
    """Write a track as a CSV file of the columns time_utc, lat_deg, lon_deg."""
    check_unmasked(track.latlon, "track.latlon")
    rows = [f"{time}Z,{lat:.5f},{lon:.5f}" for time, (lat, lon) in zip(track.time, track.latlon, strict=True)]
    Path(path).write_text("\n".join(["time_utc,lat_deg,lon_deg", *rows]) + "\n")


def _read_elements(tle: FilePath | Sequence[str]) -> Any:
    if isinstance(tle, str | os.PathLike):
        if not Path(tle).is_file():
            raise FileNotFoundError(f"cannot read {tle}: there is no such file of orbit elements; check the path")
        tle = Path(tle).read_text(errors="replace").splitlines()
    lines = [line.strip() for line in tle if line.strip()][-2:]
    if len(lines) < 2 or any(len(line) != 69 or line[:2] != f"{i} " for i, line in enumerate(lines, 1)):
        raise ValueError("orbit elements must be two lines of 69 characters that begin with 1 and 2; check the TLE")
    for line in lines:
        total = sum(int(c) if c.isdigit() else c == "-" for c in line[:68])
        if str(total % 10) != line[68]:
            raise ValueError(f"the checksum of line {line[0]} of the orbit elements is wrong; copy the TLE again")
    return require("sgp4.api", "geo").Satrec.twoline2rv(*lines)


def _as_time(start: str | np.datetime64 | datetime.datetime) -> np.datetime64:
    try:
        if isinstance(start, datetime.datetime) and start.tzinfo is not None:
            start = start.astimezone(datetime.UTC).replace(tzinfo=None)
        text = start.strip().removesuffix("Z") if isinstance(start, str) else start
        time: np.datetime64 = np.array([text], dtype="datetime64[s]")[0]
    except ValueError:
        time = np.datetime64("NaT")
    if np.isnat(time):
        raise ValueError(f"start must be a UTC time such as '{VALID_START}', got {start!r}")
    return time


def _warn(satellite: Any, codes: np.ndarray, dates: np.ndarray) -> None:
    epoch = satellite.jdsatepoch + satellite.jdsatepochF
    days = dates[int(np.argmax(np.abs(dates - epoch)))] - epoch
    if codes.any():
        warnings.warn(
            f"SGP4 reports for {int((codes != 0).sum())} of {codes.size} minutes: {_explain(codes)}; "
            "the track is not where the satellite was",
            TrackWarning,
            stacklevel=3,
        )
    if abs(days) > _FARTHEST:
        warnings.warn(
            f"the track lies {abs(days):.0f} days {'after' if days > 0 else 'before'} the epoch of the orbit elements; "
            f"within {_FARTHEST:.0f} days they can be trusted",
            TrackWarning,
            stacklevel=3,
        )


def _explain(codes: np.ndarray) -> str:
    return ", ".join(_MEANING.get(int(code), f"error {code}") for code in np.unique(codes[codes != 0])) or "no error"


def _turn_with_earth(position: np.ndarray, date: np.ndarray, fraction: np.ndarray) -> np.ndarray:
    """Turn the true-equator frame of SGP4 into the Earth's by Greenwich mean sidereal time (IAU 1982, UT1 = UTC)."""
    centuries = (date - 2451545.0 + fraction) / 36525.0
    seconds = (
        67310.54841 + (876600.0 * 3600.0 + 8640184.812866) * centuries + (0.093104 - 6.2e-6 * centuries) * centuries**2
    )
    angle = seconds % 86400.0 * (2.0 * np.pi / 86400.0)
    x, y, z = position.T
    return np.stack([np.cos(angle) * x + np.sin(angle) * y, np.cos(angle) * y - np.sin(angle) * x, z], axis=-1)


def _geodetic(position: np.ndarray) -> np.ndarray:
    """Return latitude and longitude over the ellipsoid, by fixed-point iteration on the latitude."""
    x, y, z = position.T
    rho, square = np.hypot(x, y), _FLATTENING * (2.0 - _FLATTENING)
    lat = np.arctan2(z, rho)
    for _ in range(8):
        normal = _RADIUS / np.sqrt(1.0 - square * np.sin(lat) ** 2)
        lat = np.arctan2(z + square * normal * np.sin(lat), rho)
    return np.rad2deg(np.stack([lat, np.arctan2(y, x)], axis=-1))
