"""Does depth ever hurt? The default two-layer fit against the default shallow one on twenty data sets.

Needs RDGP_DATA. Run with `make depth`; numbers of data sets as arguments choose some of them.
"""

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from timing import print_table

jax.config.update("jax_enable_x64", True)

from rdgp import Sphere, datasets, deep_gp, fit  # noqa: E402
from rdgp.metrics import nlpd  # noqa: E402
from rdgp.spaces import Space, latlon_to_sphere, wind_to_tangent  # noqa: E402

Data = tuple[Space, str, str, list[jax.Array]]  # space, kind of field, kind of output, training and test data

MOST = 2000  # training points of the two large tables
EVERY = 3  # of the cells of a satellite track, so that a fit takes a minute
WINDS = [("surface", 1), ("surface", 7)]
RECORDS = [(1000, "ncep1-2022-01"), (850, "ncep1-2022-01"), (500, "ncep1-2022-01"), (200, "ncep1-2022-01")]


def folder() -> Path:
    return Path(os.environ["RDGP_DATA"])


def released(n: int) -> Data:
    with np.load(folder() / "synthetic" / f"synth_N{n}_seed0.npz") as file:
        arrays = [jnp.asarray(file[name]) for name in ("train_x", "train_y", "test_x", "test_y")]
    return Sphere(2), "hodge", "scalar", arrays


def printed(n: int) -> Data:
    """Evaluate the paper's printed formula, with noise of the size of the released draws."""
    noise = np.random.default_rng(n)
    arrays: list[jax.Array] = []
    for count in (n, 5000):
        x = datasets.fibonacci_sphere(count)
        y = datasets.irregular_target(x, "printed")
        arrays += [jnp.asarray(x), jnp.asarray(y) + 0.01 * noise.normal(size=count)]
    return Sphere(2), "hodge", "scalar", arrays


def wind(level: str | int, time: int | str) -> Data:
    """Winds at cells of a satellite track, over their mean size."""
    path = folder() / "wind" / "wind_global_2p5deg.nc"
    if level == "surface":
        grid, names = datasets.read_dataset(path, ("u_surface", "v_surface"), time=time), ("u_surface", "v_surface")
    else:
        grid, names = datasets.read_dataset(path, ("u", "v"), level=level, time=time), ("u", "v")
    split = datasets.along_track(grid, datasets.ground_track(datasets.load_tle("aeolus")), names)
    size = np.mean(np.linalg.norm(split.train.values, axis=1))
    arrays: list[jax.Array] = []
    for part, stride in ((split.train, EVERY), (split.test, 2)):
        latlon, uv = part.latlon[::stride], part.values[::stride] / size
        arrays += [latlon_to_sphere(latlon), wind_to_tangent(latlon, uv)]
    return Sphere(2), "hodge", "tangent", arrays


def table(name: str) -> Data:
    """One of the UCI sets, lifted to a sphere as in the paper."""
    split = datasets.split_standardized(*datasets.load_uci(name), seed=0)
    arrays = [split.x_train[:MOST], split.y_train[:MOST], split.x_test, split.y_test]
    for i in (0, 2):
        lifted = np.concatenate([arrays[i], np.ones((len(arrays[i]), 1))], axis=1)
        arrays[i] = lifted / np.linalg.norm(lifted, axis=1, keepdims=True)
    return Sphere(arrays[0].shape[1] - 1), "projected", "scalar", [jnp.asarray(a) for a in arrays]


def data_sets() -> Iterator[tuple[str, Callable[[], Data]]]:
    for n in (100, 200, 400, 800, 1600):
        yield f"released target, N = {n}", lambda n=n: released(n)
    for n in (100, 200, 400, 800):
        yield f"printed target, N = {n}", lambda n=n: printed(n)
    for level, when in [*WINDS, *RECORDS]:
        yield f"winds, {level}, {when}", lambda level=level, when=when: wind(level, when)
    for name in datasets.UCI_NAMES:
        yield f"UCI {name}", lambda name=name: table(name)


def compare(name: str, make: Callable[[], Data]) -> tuple[str, ...]:
    space, field, output, (x, y, test_x, test_y) = make()
    losses, seconds = [], []
    for layers in (1, 2):
        model = deep_gp(space, layers, field, output, constant_mean=name.startswith("UCI"))
        start = time.process_time()
        result = fit(model, x, y, key=jax.random.key(0), progress=False)
        seconds.append(time.process_time() - start)
        law = result.model.predict(test_x, key=jax.random.key(1), samples=20 if layers > 1 else 1)
        losses.append(nlpd(law, test_y))
    gain = losses[0] - losses[1]
    print(f"{name}: {losses[0]:.3f} {losses[1]:.3f} ({seconds[0]:.0f} s, {seconds[1]:.0f} s)", file=sys.stderr)
    verdict = "deep better" if gain > 0.02 else "equal" if gain >= -0.02 else "**deep loses**"
    cells = [f"{loss:.3f}" for loss in losses]
    return name, str(x.shape[0]), *cells, f"{gain:+.3f}", verdict, f"{seconds[0]:.0f} / {seconds[1]:.0f}"


if __name__ == "__main__":
    chosen = [int(argument) for argument in sys.argv[1:]]
    rows = []
    for i, (name, make) in enumerate(data_sets()):
        if not chosen or i in chosen:
            rows.append(compare(name, make))
    header = ("data", "N", "shallow NLPD", "two layers", "gain", "", "CPU s")
    print_table("Default fits: shallow against two layers", rows, header)
