"""Milliseconds of a training step, residual against Euclidean."""

import time
from typing import Any

import jax
import numpy as np

from rdgp.spaces import Euclidean, Space, Sphere
from rdgp_paper.data import Split
from rdgp_paper.experiments import uci
from rdgp_paper.hypotheses import Check, Hypothesis
from rdgp_paper.models import build, double_precision, train
from rdgp_paper.runs import Settings
from rdgp_paper.store import Numbers, Table

_CAUSES = {"n": "N", "inducing_variables": "M", "layers": "layers", "samples": "samples"}


def run(settings: Settings) -> Numbers:
    """Train for some steps and return milliseconds of a step, by processor and by clock.

    Mean and standard deviation are over the stretches of steps between calls of the callback, the first left out.
    """
    with double_precision():
        split, space = _data(settings)
        dim = split.x.shape[1] if settings["model"] == "euclidean" else space.dim
        chosen = uci.with_sizes(settings, dim)
        watch = _Watch()
        options: dict[str, Any] = {"samples": int(settings["samples"]), "callback": watch}
        train(build(space, chosen, split.x), split, chosen, **options)
    steps, wall, cpu = np.diff(watch.marks, axis=0).T
    wall_ms, cpu_ms = 1e3 * wall[1:] / steps[1:], 1e3 * cpu[1:] / steps[1:]
    return {
        "cpu_ms": cpu_ms.mean(),
        "cpu_ms_std": cpu_ms.std(),
        "wall_ms": wall_ms.mean(),
        "wall_ms_std": wall_ms.std(),
        "first_cpu_seconds": cpu[0],
        "inducing_variables": int(chosen["num_inducing"]),
        "points": min(len(split.x), int(settings.get("batch", 0)) or len(split.x)),
        "inputs": dim,
    }


class _Watch:
    """Note step, clock and processor time, at the start and whenever training calls."""

    def __init__(self) -> None:
        self.marks = [(0.0, time.monotonic(), time.process_time())]

    def __call__(self, step: int, elbo: float) -> None:
        """Note the time."""
        self.marks.append((float(step), time.monotonic(), time.process_time()))


def _data(settings: Settings) -> tuple[Split, Space]:
    """Return a table of UCI, or points at random of any number."""
    if settings["data"] != "random":
        split, space, _ = uci.load({**settings, "bias": "one"})
        return split, space
    dim, count = int(settings["inputs"]), int(settings["n"])
    x = np.asarray(Sphere(dim).random(count, key=jax.random.key(int(settings["seed"]))))
    flat = settings["model"] == "euclidean"
    x = x[:, :dim] if flat else x
    y = np.cos(3.0 * x[:, 0])
    return Split(x, y, x[:1], y[:1]), Euclidean(dim) if flat else Sphere(dim)


def faster(table: Table) -> Hypothesis:
    """Compare steps of both kinds of models on the data sets."""
    statement = "A training step of residual models is faster than one of Euclidean models, more so with more layers"
    sets = table[table["data"] != "random"]
    wide = sets.pivot_table(index=["data", "layers"], columns="model", values="cpu_ms")
    if not {"euclidean", "residual"} <= set(wide):
        return Hypothesis(statement, None, "")
    ratio = (wide["euclidean"] / wide["residual"]).dropna()
    lines = [
        f"{data}, {layers} layer{'s'[: layers != 1]}: {value:.1f} times" for (data, layers), value in ratio.items()
    ]
    grows = [bool(own.iloc[-1] > own.iloc[0]) for _, own in ratio.sort_index().groupby(level="data") if len(own) > 1]
    return Hypothesis(statement, bool((ratio > 1.0).all()) and all(grows), f"Euclidean takes {'; '.join(lines)}")


def growth(table: Table) -> dict[tuple[str, str], tuple[list[float], list[float], float]]:
    """Return, by what grows and by model, its values, CPU milliseconds of a step, and the fitted exponent.

    Of the runs on random points those count for a cause that differ from the most common values in nothing else.
    """
    found: dict[tuple[str, str], tuple[list[float], list[float], float]] = {}
    usual = {name: table[name].mode().iloc[0] for name in ("n", "layers", "samples")}
    for model, own in table.groupby("model", sort=False):
        inducing = own["inducing_variables"].mode().iloc[0]
        for column, cause in _CAUSES.items():
            others = {**usual, "inducing_variables": inducing}
            others.pop(column)
            same = own[np.logical_and.reduce([own[name] == value for name, value in others.items()])]
            same = same.groupby(column)["cpu_ms"].mean()
            if len(same) > 1:
                x, y = same.index.astype(float).tolist(), same.tolist()
                name = "Euclidean" if model == "euclidean" else "residual"
                found[cause, name] = x, y, float(np.polyfit(np.log(x), np.log(y), 1)[0])
    return found


def power_laws(table: Table) -> Hypothesis:
    """Tell how the time of a step grows."""
    statement = "Growth of the CPU time of a step, as a power (not in the paper)"
    found = growth(table[table["data"] == "random"]) if (table["data"] == "random").any() else {}
    lines = [
        f"{name} {cause}^{power:.2f} over {min(x):g}..{max(x):g}" for (cause, name), (x, _, power) in found.items()
    ]
    return Hypothesis(statement, None, "; ".join(lines))


HYPOTHESES: tuple[Check, ...] = (faster, power_laws)
