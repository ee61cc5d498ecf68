"""Seconds of a training step, residual against Euclidean."""

import time
from typing import Any

import jax
import numpy as np

from rdgp.experiments import _uci
from rdgp.experiments._cells import Numbers
from rdgp.experiments._models import Split, build, precision, train
from rdgp.experiments._plans import Settings
from rdgp.inference._fit import CHUNK
from rdgp.spaces import Euclidean, Space, Sphere


def run(settings: Settings) -> Numbers:
    """Train for some steps and return milliseconds of a step: mean and deviation between runs of 25 steps."""
    with precision(settings):
        split, space = _data(settings)
        dim = split.x.shape[1] if settings["model"] == "euclidean" else space.dim
        chosen = _uci.with_sizes(settings, dim)
        watch = _Watch()
        started = watch.now()
        options: dict[str, Any] = {"samples": int(settings["samples"]), "callback": watch}
        train(build(space, chosen, split.x), split, chosen, **options)
    wall, cpu = np.diff(watch.times, axis=0).T * 1e3 / CHUNK
    first = np.subtract(watch.times[0], started)
    return {
        "cpu_ms": cpu.mean(),
        "cpu_ms_deviation": cpu.std(),
        "wall_ms": wall.mean(),
        "wall_ms_deviation": wall.std(),
        "first_cpu_seconds": first[1],
        "inducing_variables": int(chosen["num_inducing"]),
        "points": min(len(split.x), int(settings.get("batch", 0)) or len(split.x)),
        "inputs": split.x.shape[1] if settings["model"] == "euclidean" else space.dim,
    }


class _Watch:
    """Note clock and processor time after every run of steps."""

    def __init__(self) -> None:
        self.times: list[tuple[float, float]] = []

    def now(self) -> tuple[float, float]:
        return time.monotonic(), time.process_time()

    def __call__(self, step: int, bound: float) -> None:
        """Note the time."""
        self.times.append(self.now())


def _data(settings: Settings) -> tuple[Split, Space]:
    """Return a table of UCI, or points at random of any number."""
    if settings["data"] != "random":
        split, space, _ = _uci.load({**settings, "bias": "one"})
        return split, space
    dim, count = int(settings["inputs"]), int(settings["n"])
    x = np.asarray(Sphere(dim).random(count, key=jax.random.key(int(settings["seed"]))))
    flat = settings["model"] == "euclidean"
    x = x[:, :dim] if flat else x
    y = np.cos(3.0 * x[:, 0])
    return Split(x, y, x[:1], y[:1]), Euclidean(dim) if flat else Sphere(dim)
