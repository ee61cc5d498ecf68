"""Data of experiments and benchmarks, as training and test arrays; files are found through RDGP_DATA and RDGP_ERA5."""

import os
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from rdgp.datasets import (
    along_track,
    fibonacci_sphere,
    ground_track,
    irregular_target,
    load_tle,
    load_uci,
    load_wind,
    read_dataset,
    split_standardized,
)
from rdgp.spaces import latlon_to_sphere, wind_to_tangent

_NOISE = 0.01  # standard deviation of the noise of the synthetic values, in the test values too


class Split(NamedTuple):
    """Training and test data."""

    x: np.ndarray
    y: np.ndarray
    test_x: np.ndarray
    test_y: np.ndarray


class Winds(NamedTuple):
    """Places in degrees and winds (u east, v north) over the mean speed of training, `scale` in m/s."""

    latlon: np.ndarray
    uv: np.ndarray
    test_latlon: np.ndarray
    test_uv: np.ndarray
    scale: float

    def on_sphere(self, every: int = 1, test_every: int = 1) -> Split:
        """Return points of the sphere and tangent vectors of every so many training and test places."""
        arrays = []
        for latlon, uv, stride in ((self.latlon, self.uv, every), (self.test_latlon, self.test_uv, test_every)):
            latlon, uv = latlon[::stride], uv[::stride]
            arrays += [np.asarray(latlon_to_sphere(latlon)), np.asarray(wind_to_tangent(latlon, uv))]
        return Split(*arrays)


def read_winds(
    source: str, pressure_level: str | float, time: str | int, *, hours: float = 24.0, num_test: int = 5000
) -> Winds:
    """Return the winds at the grid cells under the satellite Aeolus and at others.

    `source` is bundle (months at the surface and at 200 hPa), records (the file of RDGP_DATA) or era5 (that of
    RDGP_ERA5); `pressure_level` is in hPa or the word surface; `time` is a month or the name of a record; `hours` is
    the length of the track, `num_test` the number of Fibonacci points whose nearest cells are the test data.
    """
    grid, names = _wind_grid(source, pressure_level, time)
    train, test = along_track(grid, ground_track(load_tle("aeolus"), hours=hours), names, num_test=num_test)
    scale = float(np.mean(np.linalg.norm(train.values, axis=1)))
    return Winds(train.latlon, train.values / scale, test.latlon, test.values / scale, scale)


def _wind_grid(source: str, pressure_level: str | float, time: str | int) -> tuple[Any, tuple[str, str]]:
    if source == "bundle":
        return load_wind(str(pressure_level), int(time)), ("u", "v")
    if source == "records":
        path = _data_folder() / "wind" / "wind_global_2p5deg.nc"
        if pressure_level == "surface":
            names = ("u_surface", "v_surface")
            return read_dataset(path, names, time=time), names
        return read_dataset(path, ("u", "v"), pressure_level=float(pressure_level), time=time), ("u", "v")
    if source == "era5":
        path = Path(os.environ["RDGP_ERA5"])
        return read_dataset(path, ("u", "v"), pressure_level=float(pressure_level), time=int(time)), ("u", "v")
    raise ValueError(f"source must be bundle, records or era5, got {source!r}")


def _data_folder() -> Path:
    folder = os.environ.get("RDGP_DATA")
    if not folder:
        raise ValueError("this needs data files; set RDGP_DATA to their folder")
    return Path(folder)


def read_released(n: int, seed: int) -> Split:
    """Return one of the paper's released draws of the irregular function: n training points, 5,000 test points."""
    with np.load(_data_folder() / "synthetic" / f"synth_N{n}_seed{seed}.npz", allow_pickle=False) as file:
        return Split(*(file[name] for name in ("train_x", "train_y", "test_x", "test_y")))


def make_irregular(target: str, n: int, num_test: int, noise: np.random.Generator) -> Split:
    """Return noisy values of the irregular function on Fibonacci lattices; `target` is released or printed."""
    arrays = []
    for count in (n, num_test):
        x = fibonacci_sphere(count)
        y = irregular_target(x, target)  # type: ignore[arg-type]
        arrays += [x, y + _NOISE * noise.normal(size=count)]
    return Split(*arrays)


def read_uci(name: str, seed: int) -> Split:
    """Return a table of UCI, standardized, nine tenths of it for training."""
    parts = split_standardized(*load_uci(name), seed=seed)
    return Split(parts.x_train, parts.y_train, parts.x_test, parts.y_test)


def lift(x: np.ndarray, bias: float) -> np.ndarray:
    """Return the points (x, b)/|(x, b)| of the sphere."""
    longer = np.concatenate([x, np.full((len(x), 1), bias)], axis=1)
    return longer / np.linalg.norm(longer, axis=1, keepdims=True)


def lift_split(split: Split, bias: float) -> Split:
    """Return a split whose inputs are points of the sphere."""
    return Split(lift(split.x, bias), split.y, lift(split.test_x, bias), split.test_y)


def first(split: Split, most: int | None) -> Split:
    """Return a split with at most so many training points; None keeps all."""
    return Split(split.x[:most], split.y[:most], split.test_x, split.test_y)
