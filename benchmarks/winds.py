"""Winds along a day of the Aeolus track, at four heights: scikit-learn, shallow and deep models on the same cells.

Needs RDGP_DATA. Run with `make winds`. Each finished cell of the table is a line of a CSV file and is skipped when the
command runs again. Arguments choose levels (`surface 850`), `--models` some models, `--folder` the place of the file;
`--print` computes nothing.
"""

import argparse
import csv
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from timing import print_table

jax.config.update("jax_enable_x64", True)  # analyses are smooth: their noise is below what single precision resolves

from rdgp import DeepGP, Sphere, datasets, deep_gp, euclidean_deep_gp, fit, metrics  # noqa: E402
from rdgp.estimators._law import in_frame  # noqa: E402
from rdgp.models import Prediction  # noqa: E402
from rdgp.spaces import east_north_frame, latlon_to_sphere, wind_to_tangent  # noqa: E402

RECORDS = ("ncep1-2022-01", "ncep1-2022-02", "eraint-jan", "eraint-jul", "ncep1-jun-1979-1998")
DATA: dict[str, tuple[str | int, ...]] = {
    "surface": (7, 1, 4, 10, 12),  # months
    "1000": tuple(record for record in RECORDS if not record.startswith("eraint")),  # which has no such level
    "850": RECORDS,
    "500": RECORDS,
}
FILE = "winds.csv"
COLUMNS = (
    "level",
    "data",
    "model",
    "nlpd",
    "mse",
    "crps",
    "energy_score",
    "coverage",
    "noise_std",
    "scale",
    "train",
    "test",
    "cpu_seconds",
)


class Winds(NamedTuple):
    """Places in degrees and winds (u east, v north) over the mean speed of training, `scale` in m/s."""

    latlon: np.ndarray
    uv: np.ndarray
    test_latlon: np.ndarray
    test_uv: np.ndarray
    scale: float


Law = tuple[Prediction, float]  # of the components (u, v) at the test points, and the standard deviation of the noise


def read(level: str, when: str | int) -> Winds:
    path = Path(os.environ["RDGP_DATA"]) / "wind" / "wind_global_2p5deg.nc"
    names = ("u_surface", "v_surface") if level == "surface" else ("u", "v")
    height = None if level == "surface" else int(level)
    grid = datasets.read_dataset(path, names, level=height, time=when)
    train, test = datasets.along_track(grid, datasets.ground_track(datasets.load_tle("aeolus")), names)
    scale = float(np.mean(np.linalg.norm(train.values, axis=1)))
    return Winds(train.latlon, train.values / scale, test.latlon, test.values / scale, scale)


def fitted(model: DeepGP, data: Winds, **options: Any) -> Law:
    """Fit a model of tangent vectors and return its law in east and north components."""
    x, test_x = latlon_to_sphere(data.latlon), latlon_to_sphere(data.test_latlon)
    result = fit(model, x, wind_to_tangent(data.latlon, data.uv), key=jax.random.key(0), progress=False, **options)
    if result.status != "ok":
        raise RuntimeError(f"training ended with status {result.status}")
    law = result.model.predict(test_x, key=jax.random.key(1), samples=10 if model.hidden else 1)
    return in_frame(law, east_north_frame(test_x)), float(result.model.noise_variance) ** 0.5


def residual(layers: int, field: str = "hodge", **options: int) -> Callable[[Winds], Law]:
    """Return what fits a shallow or residual deep model by the quick recipe."""
    return lambda data: fitted(deep_gp(Sphere(2), layers, field, "tangent", **options), data, recipe="quick")


def euclidean(data: Winds) -> Law:
    """Fit the paper's baseline, whose hidden layer leaves the sphere, in the paper's way."""
    x = latlon_to_sphere(data.latlon)
    model = euclidean_deep_gp(3, 2, INDUCING, x=x, input_space=Sphere(2), output="tangent", levels=9)
    return fitted(model, data, recipe="paper")


def scikit(data: Winds) -> Law:
    """Fit a GP on unit vectors to each of u and v."""
    x, test_x = (np.asarray(latlon_to_sphere(places), np.float64) for places in (data.latlon, data.test_latlon))
    laws, noise = [], []
    for component in data.uv.T:
        process = _best_scikit(x, component)
        laws.append(process.predict(test_x, return_std=True))  # the white kernel's share included
        noise.append(process.kernel_.k2.noise_level)
    means = jnp.stack([jnp.asarray(mean) for mean, _ in laws], axis=1)[None]
    deviations = jnp.stack([jnp.asarray(deviation) for _, deviation in laws], axis=1)[None]
    covariances = jnp.square(deviations)[..., None] * jnp.eye(2)
    return Prediction(means, covariances, None, None, False), float(np.mean(noise)) ** 0.5


def _best_scikit(x: np.ndarray, y: np.ndarray) -> Any:
    """Return the process of the smoothness with the largest evidence of every second point, trained on all points."""
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    starts = [ConstantKernel(0.3) * Matern(0.3, (1e-2, 10.0), nu=nu) + WhiteKernel(0.01, (1e-7, 1.0)) for nu in SMOOTH]
    some = [GaussianProcessRegressor(kernel).fit(x[::2], y[::2]) for kernel in starts]
    best = max(some, key=lambda process: process.log_marginal_likelihood_value_)
    return GaussianProcessRegressor(best.kernel_).fit(x, y)


INDUCING = 100  # locations in each layer of the baseline
SMOOTH = (0.5, 1.5, 2.5)
SCORES = {"NLPD": ".3f", "MSE": ".4f", "CRPS": ".4f", "coverage": ".1%"}  # and how to write them
MODELS: dict[str, Callable[[Winds], Law]] = {
    "scikit-learn GP": scikit,
    "shallow projected": residual(1, "projected"),
    "shallow Hodge, 198 fields": residual(1, output_levels=9),
    "shallow Hodge, converged": residual(1),
    "deep Hodge, 2 layers": residual(2),
    "deep Hodge, 3 layers": residual(3),
    "Euclidean hidden layer": euclidean,
}


def score(law: Prediction, data: Winds) -> dict[str, float]:
    """Return all scores in units of the mean speed."""
    y = data.test_uv
    return {
        "nlpd": metrics.nlpd(law, y),
        "mse": metrics.mse(law, y),
        "crps": float(jnp.mean(metrics.crps(law, y))),
        "energy_score": metrics.energy_score(law.observed, y, key=jax.random.key(2), samples=100),
        "coverage": float(jnp.mean(metrics.coverage(law, y))),
    }


def compute(level: str, when: str | int, model: str) -> dict[str, str]:
    data, start = read(level, when), time.process_time()
    law, noise = MODELS[model](data)
    seconds = time.process_time() - start
    numbers = {**score(law, data), "noise_std": noise, "scale": data.scale}
    found = {name: f"{value:.5g}" for name, value in numbers.items()}
    counts = {"train": len(data.uv), "test": len(data.test_uv), "cpu_seconds": round(seconds)}
    return {"level": level, "data": str(when), "model": model, **found, **{k: str(n) for k, n in counts.items()}}


def finished(path: Path) -> list[dict[str, str]]:
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def append(path: Path, row: dict[str, str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        if new:
            writer.writeheader()
        writer.writerow(row)


def run(levels: list[str], models: list[str], path: Path) -> None:
    """Compute the cells that are not in the file yet, one data set of each level after the other."""
    turns = max(len(DATA[level]) for level in levels)
    sets = [(level, DATA[level][turn]) for turn in range(turns) for level in levels if turn < len(DATA[level])]
    for level, when in sets:
        for model in models:
            done = {(row["level"], row["data"], row["model"]) for row in finished(path)}
            if (level, str(when), model) not in done:
                row = compute(level, when, model)
                append(path, row)
                print(" ".join(f"{name}={value}" for name, value in row.items()), file=sys.stderr, flush=True)


def show(rows: list[dict[str, str]]) -> None:
    """Print a summary by level and all numbers."""
    header = ("model", "NLPD", "MSE", "RMSE, m/s", "CRPS", "energy score", "90 % coverage", "CPU s")
    for level in DATA:
        here = [row for row in rows if row["level"] == level]
        lines = [_summary(model, [row for row in here if row["model"] == model]) for model in MODELS]
        data = list(dict.fromkeys(row["data"] for row in here))
        print_table(f"{level}: mean over {', '.join(data)}", [line for line in lines if line], header)
    for score, form in SCORES.items():
        print_table(f"{score} of each data set", _by_data(rows, score.lower(), form), ("level", "data", *MODELS))


def _by_data(rows: list[dict[str, str]], score: str, form: str) -> list[tuple[str, ...]]:
    """Return a line for each data set with a score of every model, the best NLPD in bold."""
    found = {(row["level"], row["data"], row["model"]): float(row[score]) for row in rows}
    lines = []
    for level, when in [(level, str(when)) for level, times in DATA.items() for when in times]:
        values = [found.get((level, when, model), np.nan) for model in MODELS]
        texts = ["" if np.isnan(value) else format(value, form) for value in values]
        if score == "nlpd" and any(texts):
            best = int(np.nanargmin(values))
            texts[best] = f"**{texts[best]}**"
        lines.append((level, when, *texts))
    return lines


def _summary(model: str, rows: list[dict[str, str]]) -> tuple[str, ...]:
    """Return mean and standard deviation over data sets."""
    if not rows:
        return ()
    column = {name: np.array([float(row[name]) for row in rows]) for name in COLUMNS[3:]}
    meters = np.sqrt(column["mse"]) * column["scale"]
    return (
        model,
        f"{column['nlpd'].mean():.3f} ± {column['nlpd'].std():.3f}",
        f"{column['mse'].mean():.4f}",
        f"{meters.mean():.2f}",
        f"{column['crps'].mean():.4f}",
        f"{column['energy_score'].mean():.4f}",
        f"{column['coverage'].mean():.1%} ({column['coverage'].min():.1%} to {column['coverage'].max():.1%})",
        f"{column['cpu_seconds'].mean():.0f}",
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("levels", nargs="*", help=", ".join(DATA))
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--folder", type=Path, default=Path(__file__).parent / "results")
    parser.add_argument("--print", action="store_true", help="print the table of what is there")
    options = parser.parse_args()
    unknown = set(options.levels) - set(DATA)
    if unknown:
        parser.error(f"no level {min(unknown)}; there are {', '.join(DATA)}")
    path = options.folder / FILE
    if not options.print:
        run(options.levels or list(DATA), options.models, path)
    show(finished(path))
