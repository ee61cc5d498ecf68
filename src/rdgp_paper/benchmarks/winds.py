"""Winds along a day of the Aeolus track, at four heights: scikit-learn, shallow and deep models on the same cells.

Needs RDGP_DATA. Run with `make winds`. Each finished run is a line of the file `winds.csv` and is skipped when the
command runs again. Arguments choose pressure levels (`surface 850`), `--models` some models, `--folder` the place of
the file; `--print` computes nothing.
"""

import argparse
import csv
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rdgp import metrics
from rdgp.core import require
from rdgp.fields import NumberFrame, TangentBundle
from rdgp.inference import fit
from rdgp.models import DeepGP, Prediction, deep_gp, euclidean_deep_gp
from rdgp.spaces import Sphere, latlon_to_sphere
from rdgp_paper.benchmarks.arguments import one_of
from rdgp_paper.data import Winds, read_winds
from rdgp_paper.models import double_precision, predict_values
from rdgp_paper.tables import print_table

Row = dict[str, str]
Fitted = tuple[Prediction, float]  # of (u, v) at the test points, and the standard deviation of the noise

_RECORDS = ("ncep1-2022-01", "ncep1-2022-02", "eraint-jan", "eraint-jul", "ncep1-jun-1979-1998")
DATA: dict[str, tuple[str | int, ...]] = {
    "surface": (7, 1, 4, 10, 12),  # months
    "1000": tuple(record for record in _RECORDS if not record.startswith("eraint")),  # which has no such level
    "850": _RECORDS,
    "500": _RECORDS,
}
_FILE = "winds.csv"
_NAMES = ("pressure_level", "data", "model")
_NUMBERS = ("nlpd", "mse", "crps", "energy_score", "coverage", "noise_std", "scale", "train", "test", "cpu_seconds")
_FORMS = {"NLPD": ".3f", "MSE": ".4f", "CRPS": ".4f", "coverage": ".1%"}  # of the tables by data set
_HEADER = ("model", "NLPD", "MSE", "RMSE, m/s", "CRPS", "energy score", "90 % coverage", "CPU s")
_INDUCING = 100  # inducing points in each layer of the baseline
_SMOOTHNESS = (0.5, 1.5, 2.5)  # among which scikit-learn's is chosen


def fitted(model: DeepGP, data: Winds, **options: Any) -> Fitted:
    """Fit a model of tangent vectors and return its prediction in east and north components."""
    split = data.on_sphere()
    result = fit(model, split.x, split.y, key=jax.random.key(0), progress=False, **options)
    if result.status != "ok":
        raise RuntimeError(f"training ended with status {result.status}")
    prediction = predict_values(result.model, split.test_x, seed=1, samples=10)
    return _east_north(prediction, jnp.asarray(split.test_x)), float(result.model.noise_variance) ** 0.5


def _east_north(prediction: Prediction, x: jax.Array) -> Prediction:
    """Return the predictive distribution of the components (u, v) of tangent vectors."""
    turn = TangentBundle(Sphere(2), frame="east_north").frame(x).components_of(prediction.frame)  # type: ignore[arg-type]
    means = jnp.einsum("npq,snq->snp", turn, prediction.means)
    covariances = jnp.einsum("nij,snjk,nlk->snil", turn, prediction.covariances, turn)
    return Prediction(means, covariances, prediction.likelihood, NumberFrame((2,)))


def residual(layers: int, field: Any = "hodge", **options: int) -> Callable[[Winds], Fitted]:
    """Return what fits a shallow or residual deep model by the quick recipe; `options` are those of `deep_gp`."""
    return lambda data: fitted(deep_gp(Sphere(2), layers, field, "tangent", **options), data, recipe="quick")  # type: ignore[arg-type]


def euclidean(data: Winds) -> Fitted:
    """Fit the paper's baseline, whose hidden layer leaves the sphere, in the paper's way."""
    x = latlon_to_sphere(data.latlon)
    model = euclidean_deep_gp(3, 2, _INDUCING, x=x, input_space=Sphere(2), output="tangent", num_levels=9)
    return fitted(model, data, recipe="paper")


def scikit(data: Winds) -> Fitted:
    """Fit a GP on unit vectors to each of u and v."""
    x, test_x = (np.asarray(latlon_to_sphere(places), np.float64) for places in (data.latlon, data.test_latlon))
    means, stds, noise = [], [], []
    for component in data.uv.T:
        process = _best_scikit(x, component)
        mean, std = process.predict(test_x, return_std=True)  # the white kernel's share included
        means.append(mean)
        stds.append(std)
        noise.append(process.kernel_.k2.noise_level)
    covariances = jnp.square(jnp.stack(stds, axis=1))[None, ..., None] * jnp.eye(2)
    prediction = Prediction(jnp.stack(means, axis=1)[None], covariances, None, NumberFrame((2,)))
    return prediction, float(np.mean(noise)) ** 0.5


def _best_scikit(x: np.ndarray, y: np.ndarray) -> Any:
    """Return the process of the smoothness with the largest evidence of every second point, trained on all points."""
    processes = require("sklearn.gaussian_process", "paper")
    kernels = processes.kernels
    some = []
    for nu in _SMOOTHNESS:
        signal = kernels.ConstantKernel(0.3) * kernels.Matern(0.3, (1e-2, 10.0), nu=nu)
        noise = kernels.WhiteKernel(0.01, (1e-7, 1.0))
        some.append(processes.GaussianProcessRegressor(signal + noise).fit(x[::2], y[::2]))
    best = max(some, key=lambda process: process.log_marginal_likelihood_value_)
    return processes.GaussianProcessRegressor(best.kernel_).fit(x, y)


MODELS: dict[str, Callable[[Winds], Fitted]] = {
    "scikit-learn GP": scikit,
    "shallow projected": residual(1, "projected"),
    "shallow Hodge, 198 fields": residual(1, num_output_levels=9),
    "shallow Hodge, converged": residual(1),
    "deep Hodge, 2 layers": residual(2),
    "deep Hodge, 3 layers": residual(3),
    "Euclidean hidden layer": euclidean,
}


def score(prediction: Prediction, y: np.ndarray) -> dict[str, float]:
    """Return all scores in units of the mean speed."""
    return {
        "nlpd": metrics.nlpd(prediction, y),
        "mse": metrics.mse(prediction, y),
        "crps": float(jnp.mean(metrics.crps(prediction, y))),
        "energy_score": metrics.energy_score(prediction.observed, y, key=jax.random.key(2), samples=100),
        "coverage": float(jnp.mean(metrics.coverage(prediction, y))),
    }


def compute(pressure_level: str, when: str | int, model: str) -> Row:
    """Fit one model to one data set and return its row of the file."""
    with double_precision():  # analyses are smooth: their noise is below what single precision resolves
        data, start = read_winds("records", pressure_level, when), time.process_time()
        prediction, noise = MODELS[model](data)
        seconds = time.process_time() - start
        numbers = {**score(prediction, data.test_uv), "noise_std": noise, "scale": data.scale}
    texts = {name: f"{value:.5g}" for name, value in numbers.items()}
    counts = {"train": len(data.uv), "test": len(data.test_uv), "cpu_seconds": round(seconds)}
    names = dict(zip(_NAMES, (pressure_level, str(when), model), strict=True))
    return {**names, **texts, **{name: str(count) for name, count in counts.items()}}


def finished(path: Path) -> list[Row]:
    """Return the rows of the file, none if there is no file."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def append(path: Path, row: Row) -> None:
    """Add a row to the file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, (*_NAMES, *_NUMBERS))
        if new:
            writer.writeheader()
        writer.writerow(row)


def run(pressure_levels: list[str], models: list[str], path: Path) -> None:
    """Do the runs that are not in the file yet, one data set of each pressure level after the other."""
    most = max(len(DATA[level]) for level in pressure_levels)
    sets = [(level, DATA[level][i]) for i in range(most) for level in pressure_levels if i < len(DATA[level])]
    for level, when in sets:
        for model in models:
            done = {tuple(row[name] for name in _NAMES) for row in finished(path)}
            if (level, str(when), model) not in done:
                row = compute(level, when, model)
                append(path, row)
                print(" ".join(f"{name}={value}" for name, value in row.items()), file=sys.stderr, flush=True)


def show(rows: list[Row]) -> None:
    """Print a summary by pressure level and all numbers."""
    for level in DATA:
        here = [row for row in rows if row["pressure_level"] == level]
        own = {model: [row for row in here if row["model"] == model] for model in MODELS}
        data = dict.fromkeys(row["data"] for row in here)
        lines = [_summary(model, found) for model, found in own.items() if found]
        print_table(f"{level}: mean over {', '.join(data)}", _HEADER, lines)
    for name, form in _FORMS.items():
        print_table(f"{name} of each data set", ("level", "data", *MODELS), _by_data(rows, name.lower(), form))


def _by_data(rows: list[Row], name: str, form: str) -> list[tuple[str, ...]]:
    """Return a line for each data set with a score of every model, the best NLPD in bold."""
    found = {tuple(row[key] for key in _NAMES): float(row[name]) for row in rows}
    lines = []
    for level, when in [(level, str(when)) for level, times in DATA.items() for when in times]:
        values = [found.get((level, when, model), np.nan) for model in MODELS]
        texts = ["" if np.isnan(value) else format(value, form) for value in values]
        if name == "nlpd" and any(texts):
            best = int(np.nanargmin(values))
            texts[best] = f"**{texts[best]}**"
        lines.append((level, when, *texts))
    return lines


def _summary(model: str, rows: list[Row]) -> tuple[str, ...]:
    """Return mean and standard deviation over data sets."""
    column = {name: np.array([float(row[name]) for row in rows]) for name in _NUMBERS}
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


def main(arguments: Sequence[str] | None = None) -> None:
    """Do what is left to do and print the tables; `arguments` are by default those of the process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pressure_levels", nargs="*", type=one_of(DATA), metavar="LEVEL", help=", ".join(DATA))
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--folder", type=Path, default=Path("results"))
    parser.add_argument("--print", action="store_true", help="print the table of what is there")
    options = parser.parse_args(arguments)
    path = options.folder / _FILE
    if not options.print:
        run(options.pressure_levels or list(DATA), options.models, path)
    show(finished(path))


if __name__ == "__main__":
    main()
