"""Fit a function and a vector field on the sphere from few noisy observations, and draw what is known of them.

Run with a folder for the output: python examples/posterior_on_the_sphere.py demo-output
"""

import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from rdgp import ExactGP, HodgeField, Matern, Prediction, ScalarField, Sphere
from rdgp.core import require

SPHERE = Sphere(2)
VIEW_LATITUDE, VIEW_LONGITUDE = np.deg2rad(25.0), np.deg2rad(35.0)


def irregular_function(x: jax.Array) -> jax.Array:
    """Two harmonics with latitude and longitude exchanged, which makes them singular at the poles and elsewhere."""

    def angles(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        return jnp.arctan2(x[:, 1], x[:, 0]), jnp.arccos(jnp.clip(x[:, 2], -1.0, 1.0))

    turned = jnp.stack([x[:, 0], -x[:, 2], x[:, 1]], axis=1)
    (theta, phi), (theta2, phi2) = angles(x), angles(turned)
    first = np.sqrt(105 / (32 * np.pi)) * jnp.sin(theta) ** 3 * jnp.sin(3 * phi)
    return first + np.sqrt(15 / (8 * np.pi)) * jnp.sin(theta2) * jnp.sin(2 * phi2)


def fit_function(key: jax.Array) -> tuple[jax.Array, ExactGP]:
    """Fit 250 observations with noise 0.05; return the points and the fitted process."""
    key_x, key_noise = jax.random.split(key)
    x = SPHERE.random(250, key=key_x)
    y = irregular_function(x) + 0.05 * jax.random.normal(key_noise, (250,))
    return x, ExactGP(ScalarField(SPHERE, Matern(variance=0.3), num_levels=30), noise_variance=0.01).fit(x, y)


def fit_vector_field(key: jax.Array) -> tuple[HodgeField, jax.Array, ExactGP]:
    """Draw a mostly divergence-free wind, observe it at 80 points with noise 0.1, and fit it."""
    key_field, key_x, key_noise = jax.random.split(key, 3)
    wind = HodgeField(SPHERE, divergence=Matern(2.5, 0.4, 0.1), curl=Matern(2.5, 0.4, 1.0), num_levels=15)
    truth = wind.sample(key=key_field)
    x = SPHERE.random(80, key=key_x)
    y = truth(x) + SPHERE.project(x, 0.1 * jax.random.normal(key_noise, x.shape))
    start = HodgeField(SPHERE, divergence=Matern(variance=0.5), curl=Matern(variance=0.5), num_levels=15)
    return truth, x, ExactGP(start, noise_variance=0.05).fit(x, y)


def globe() -> tuple[np.ndarray, np.ndarray]:
    """Return a latitude-longitude mesh of points and the rotation that turns the view towards us."""
    lat, lon = np.deg2rad(np.linspace(-90, 90, 121)), np.deg2rad(np.linspace(-180, 180, 241))
    lat, lon = np.meshgrid(lat, lon, indexing="ij")
    points = np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=-1)
    c, s = np.cos(VIEW_LONGITUDE), np.sin(VIEW_LONGITUDE)
    a, b = np.cos(VIEW_LATITUDE), np.sin(VIEW_LATITUDE)
    return points, np.array([[-s, c, 0.0], [-b * c, -b * s, a], [a * c, a * s, b]])


def draw_scalar(axes, title: str, values: np.ndarray, points: np.ndarray, turn: np.ndarray, **style) -> None:
    """Colour the visible half of the globe."""
    across, up, towards = np.moveaxis(points @ turn.T, -1, 0)
    hidden = np.minimum.reduce([towards[:-1, :-1], towards[1:, :-1], towards[:-1, 1:], towards[1:, 1:]]) < 0
    corners = values.reshape(points.shape[:2])
    middle = (corners[:-1, :-1] + corners[1:, :-1] + corners[:-1, 1:] + corners[1:, 1:]) / 4
    mesh = axes.pcolormesh(across, up, np.ma.masked_where(hidden, middle), rasterized=True, **style)
    axes.figure.colorbar(mesh, ax=axes, shrink=0.6, pad=0.02)
    axes.set_title(title, fontsize=11)
    axes.set_aspect("equal")
    axes.axis("off")


def draw_arrows(axes, x: np.ndarray, v: np.ndarray, turn: np.ndarray, **style) -> None:
    """Draw tangent vectors on the visible half of the globe."""
    place, arrow = x @ turn.T, v @ turn.T
    seen = place[:, 2] > 0.05
    axes.quiver(*place[seen, :2].T, *arrow[seen, :2].T, scale=22, width=0.005, **style)


def fibonacci(n: int) -> np.ndarray:
    """Return n nearly uniform points."""
    i = np.arange(n)
    z, angle = 1 - (2 * i + 1) / n, np.pi * (1 + np.sqrt(5)) * i
    r = np.sqrt(1 - z**2)
    return np.stack([r * np.cos(angle), r * np.sin(angle), z], axis=1)


def draw(path: Path, scalar: tuple, vector: tuple) -> None:
    """Draw truth, posterior mean and uncertainty of both fits."""
    require("matplotlib", "plot").use("Agg")
    plt = require("matplotlib.pyplot", "plot")
    points, turn = globe()
    flat = jnp.asarray(points.reshape(-1, 3))
    figure, rows = plt.subplots(2, 3, figsize=(12.5, 7.6), layout="constrained")

    x, gp = scalar
    found, truth = gp.predict(flat), np.asarray(irregular_function(flat))
    colours = {"cmap": "RdBu_r", "vmin": -1.4, "vmax": 1.4}
    draw_scalar(rows[0, 0], "an irregular function", truth, points, turn, **colours)
    draw_scalar(rows[0, 1], "posterior mean from 250 points", np.asarray(found.mean), points, turn, **colours)
    std = np.sqrt(np.asarray(found.variance))
    draw_scalar(rows[0, 2], "posterior standard deviation", std, points, turn, cmap="viridis", vmin=0)
    seen = np.asarray(x) @ turn.T
    for axes in rows[0, 1:]:
        axes.plot(*seen[seen[:, 2] > 0, :2].T, "k.", markersize=2.5)

    field, x, gp = vector
    found, grid = gp.predict(flat), fibonacci(700)
    speed = {"cmap": "YlGnBu", "vmin": 0, "vmax": 2.2}
    truth = np.linalg.norm(np.asarray(field(flat)), axis=1)
    draw_scalar(rows[1, 0], "a wind, mostly free of divergence", truth, points, turn, **speed)
    draw_scalar(rows[1, 1], "posterior mean from 80 winds", np.linalg.norm(found.mean, axis=1), points, turn, **speed)
    total = np.sqrt(np.sum(np.asarray(found.variance), axis=1))
    draw_scalar(rows[1, 2], "total standard deviation", total, points, turn, cmap="viridis", vmin=0)
    draw_arrows(rows[1, 0], grid, np.asarray(field(jnp.asarray(grid))), turn)
    draw_arrows(rows[1, 1], grid, np.asarray(gp.predict(jnp.asarray(grid)).mean), turn)
    draw_arrows(rows[1, 2], np.asarray(x), np.asarray(field(x)), turn, color="white")
    figure.savefig(path, dpi=110)


def report(name: str, prediction: Prediction, y: jax.Array) -> None:
    """Print how good the predictions are where nothing was observed."""
    inside = np.abs(np.asarray(y - prediction.mean)) < 1.645 * np.sqrt(np.asarray(prediction.observed.variance))
    error, density = float(jnp.sqrt(jnp.mean(jnp.square(y - prediction.mean)))), float(jnp.mean(prediction.log_prob(y)))
    print(f"{name}: RMSE {error:.3f}, NLPD {-density:.3f}, 90% intervals cover {inside.mean():.0%}")


def main(folder: str = "demo-output") -> None:
    """Fit both, print numbers, write the picture."""
    jax.config.update("jax_enable_x64", True)
    output = Path(folder)
    output.mkdir(parents=True, exist_ok=True)
    start = time.perf_counter()
    keys = jax.random.split(jax.random.key(0), 6)
    scalar, vector = fit_function(keys[0]), fit_vector_field(keys[1])

    test = SPHERE.random(2000, key=keys[2])
    noise = 0.05 * jax.random.normal(keys[3], (2000,))
    report("function, 250 points   ", scalar[1].predict(test), irregular_function(test) + noise)
    noise = SPHERE.project(test, 0.1 * jax.random.normal(keys[4], (2000, 3)))
    report("vector field, 80 points", vector[2].predict(test), vector[0](test) + noise)

    draw(output / "posterior.png", scalar, vector)
    print(f"picture in {output / 'posterior.png'}, {time.perf_counter() - start:.0f} s in all")


if __name__ == "__main__":
    main(*sys.argv[1:])
