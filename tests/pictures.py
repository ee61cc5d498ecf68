"""Made-up winds and layers for figures and the report."""

import jax
import numpy as np
import pandas
import xarray

from rdgp.plotting._sphere import lattice, to_vectors
from rdgp.spaces import Space


def made_up_winds() -> tuple[xarray.Dataset, xarray.Dataset]:
    """Return a prediction as `rdgp.geo` makes it, and a truth on its grid: 5 degrees, longitudes 0..360."""
    lat, lon = np.linspace(-90.0, 90.0, 37), np.arange(0.0, 360.0, 5.0)
    phi, turn = np.deg2rad(lat)[:, None], np.deg2rad(lon)[None, :]
    u, v = 8.0 * np.cos(phi) * np.cos(3.0 * phi) + 0.0 * turn, 4.0 * np.cos(phi) * np.sin(2.0 * turn)
    spread = 1.0 + 0.8 * np.cos(phi) * np.cos(6.0 * turn)
    samples = [component + shift for component in (u, v) for shift in (0.5, -0.5)]
    speed, dims = {"units": "m s-1"}, ("lat", "lon")
    prediction = xarray.Dataset(
        {
            "u": (dims, u, speed),
            "v": (dims, v, speed),
            "u_std": (dims, spread, speed),
            "v_std": (dims, spread, speed),
            "u_sample": (("sample", *dims), np.stack(samples[:2]), speed),
            "v_sample": (("sample", *dims), np.stack(samples[2:]), speed),
            "wind_std": (dims, np.sqrt(2.0) * spread, speed),
            "wind_frobenius": (dims, np.sqrt(2.0) * spread**2, {"units": "m2 s-2"}),
        },
        {"lat": lat, "lon": lon},
    )
    truth = prediction[["u", "v"]] + 0.5 * np.sin(phi + turn)
    return prediction, truth


def made_up_layers() -> list[np.ndarray]:
    """Return points and where two layers move them."""
    x = to_vectors(lattice(300))
    layers = [x]
    for axis in (np.array([0.2, 0.1, 0.0]), np.array([0.0, 0.1, 0.3])):
        moved = layers[-1] + np.cross(axis, layers[-1]) * np.cos(2.0 * layers[-1][:, :1])
        layers.append(moved / np.linalg.norm(moved, axis=-1, keepdims=True))
    return layers


def made_up_trials(space: Space, count: int = 30) -> pandas.DataFrame:
    """Return the table of a study as `study.history()` makes it, with failures and points that are pending."""
    x = np.asarray(space.random(count, key=jax.random.key(0)))
    y = np.sin(3.0 * x[:, 0]) + x[:, -1]
    state = np.where(np.arange(count) % 7 == 3, "failed", "done").astype(object)
    state[-2:] = "pending"
    columns = {f"x{i}": column for i, column in enumerate(x.T)}
    values = np.where(state == "done", y, np.nan)
    best = np.fmin.accumulate(values)
    return pandas.DataFrame({"number": np.arange(count), "state": state, **columns, "y": values, "best": best})
