"""Interpolation of winds from cells under a satellite's track: NLPD and MSE by month, level and layers."""

import os
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np

from rdgp.datasets import TrackSplit, along_track, ground_track, load_tle, load_wind, read_dataset
from rdgp.experiments._cells import Numbers
from rdgp.experiments._models import Split, build, count_parameters, precision, predict, scores, train
from rdgp.experiments._plans import Settings
from rdgp.models import Prediction
from rdgp.spaces import Sphere, latlon_to_sphere, wind_to_tangent

_NEIGHBORS = 8


def run(settings: Settings) -> Numbers:
    """Fit one model to the winds of one month and level and score it on cells elsewhere."""
    cells = _cells(settings)
    scale = float(np.mean(np.linalg.norm(cells.train.values, axis=1)))
    with precision(settings):
        arrays = []
        for part, stride in ((cells.train, int(settings["stride"])), (cells.test, 1)):
            latlon, wind = part.latlon[::stride], part.values[::stride] / scale
            arrays += [np.asarray(latlon_to_sphere(latlon)), np.asarray(wind_to_tangent(latlon, wind))]
        split = Split(*arrays)
        model = build(Sphere(2), settings, split.x, "tangent")
        result = train(model, split, settings)
        law = predict(result.model, split, settings)
        numbers = {**scores(law, split.test_y), **_uncertainty(law, split)}
        counted = {"variational_parameters": count_parameters(result.model), "bound": result.history[-1]}
    sizes = {"train": len(split.x), "test": len(split.test_x), "scale": scale}
    return {**numbers, "rmse_in_units": scale * numbers["mse"] ** 0.5, **sizes, **counted}


def _cells(settings: Settings) -> TrackSplit:
    """Return the cells of the training track and those of the test lattice."""
    dataset, names = _wind(settings)
    track = ground_track(load_tle("aeolus"), hours=float(settings["hours"]))
    return along_track(dataset, track, names, num_test=int(settings["num_test"]))


def _wind(settings: Settings) -> tuple[Any, tuple[str, str]]:
    source, level, when = settings["source"], settings["level"], settings["month"]
    if source == "bundle":
        return load_wind(str(level), int(when)), ("u", "v")
    if source == "records":
        path = Path(os.environ["RDGP_DATA"]) / "wind" / "wind_global_2p5deg.nc"
        return read_dataset(path, ("u", "v"), level=float(level), time=str(when)), ("u", "v")
    if source == "era5":
        path = Path(os.environ["RDGP_ERA5"])
        return read_dataset(path, ("u", "v"), level=float(level), time=int(when)), ("u", "v")
    raise ValueError(f"source must be bundle, records or era5, got {source!r}")


def _uncertainty(law: Prediction, split: Split) -> dict[str, float]:
    """Return rank correlations of the paper's uncertainty with errors and with how irregular the true winds are.

    Uncertainty is the mean over draws of the Frobenius norm of the last layer's covariance; irregular is the distance
    of a wind from the mean of those at the nearest test cells.
    """
    from scipy.spatial import KDTree
    from scipy.stats import spearmanr

    spread = np.asarray(jnp.mean(jnp.linalg.norm(law.covariances, axis=(-2, -1)), axis=0))
    error = np.linalg.norm(split.test_y - np.asarray(law.mean), axis=-1)
    near = KDTree(split.test_x).query(split.test_x, k=min(_NEIGHBORS + 1, len(split.test_x)))[1][:, 1:]
    irregular = np.linalg.norm(split.test_y - split.test_y[near].mean(axis=1), axis=-1)
    return {
        "spread_and_error": float(spearmanr(spread, error).statistic),
        "spread_and_irregularity": float(spearmanr(spread, irregular).statistic),
    }
