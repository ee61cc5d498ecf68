"""Does depth ever hurt? The default two-layer fit against the default shallow one on twenty data sets.

Needs RDGP_DATA. Run with `make depth`; numbers of data sets as arguments choose some of them.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np

from rdgp.datasets import UCI_NAMES
from rdgp.inference import fit
from rdgp.metrics import nlpd
from rdgp.models import deep_gp
from rdgp.spaces import Space, Sphere
from rdgp_paper.benchmarks.arguments import one_of
from rdgp_paper.data import Split, first, lift_split, make_irregular, read_released, read_uci, read_winds
from rdgp_paper.hypotheses import EQUAL
from rdgp_paper.models import double_precision, predict_values
from rdgp_paper.tables import print_table

_MOST = 2000  # training points of the two large tables
_EVERY = 3  # of the cells of a satellite track, so that a fit takes a minute
_WINDS: list[tuple[str, str | int]] = [("surface", 1), ("surface", 7)]
_WINDS += [(level, "ncep1-2022-01") for level in ("1000", "850", "500", "200")]
_HEADER = ("data", "N", "shallow NLPD", "two layers", "gain", "", "CPU s")


class Data(NamedTuple):
    """A space, which field and output its models have, whether they have a constant mean, and the data."""

    space: Space
    field: Any
    output: Any
    mean: bool
    split: Split


def released(n: int) -> Data:
    """Return a released draw of the irregular function."""
    return Data(Sphere(2), "hodge", "scalar", False, read_released(n, 0))


def printed(n: int) -> Data:
    """Return values of the paper's printed formula, with noise of the size of the released draws."""
    return Data(Sphere(2), "hodge", "scalar", False, make_irregular("printed", n, 5000, np.random.default_rng(n)))


def wind(pressure_level: str, when: str | int) -> Data:
    """Return winds at cells of a satellite track, over their mean speed."""
    winds = read_winds("records", pressure_level, when)
    return Data(Sphere(2), "hodge", "tangent", False, winds.on_sphere(every=_EVERY, test_every=2))


def uci(name: str) -> Data:
    """Return one of the UCI tables, lifted to a sphere as in the paper."""
    split = lift_split(first(read_uci(name, seed=0), _MOST), 1.0)
    return Data(Sphere(split.x.shape[1] - 1), "projected", "scalar", True, split)


def data_sets() -> list[tuple[str, Callable[[], Data]]]:
    """Return the twenty data sets by name, each as what reads it."""
    found = [(f"released target, N = {n}", partial(released, n)) for n in (100, 200, 400, 800, 1600)]
    found += [(f"printed target, N = {n}", partial(printed, n)) for n in (100, 200, 400, 800)]
    found += [(f"winds, {level}, {when}", partial(wind, level, when)) for level, when in _WINDS]
    found += [(f"UCI {name}", partial(uci, name)) for name in UCI_NAMES]
    return list(found)


def compare(name: str, data: Data) -> tuple[str, ...]:
    """Fit both depths to a data set and return a line of the table."""
    losses, seconds = [], []
    x, y, test_x, test_y = data.split
    for layers in (1, 2):
        model = deep_gp(data.space, layers, data.field, data.output, constant_mean=data.mean)
        start = time.process_time()
        result = fit(model, x, y, key=jax.random.key(0), progress=False)
        seconds.append(time.process_time() - start)
        prediction = predict_values(result.model, test_x, seed=1, samples=20)
        losses.append(nlpd(prediction, test_y))
    gain = losses[0] - losses[1]
    print(f"{name}: {losses[0]:.3f} {losses[1]:.3f} ({seconds[0]:.0f} s, {seconds[1]:.0f} s)", file=sys.stderr)
    verdict = "deep better" if gain > EQUAL else "equal" if gain >= -EQUAL else "**deep loses**"
    texts = [f"{loss:.3f}" for loss in losses]
    return name, str(len(x)), *texts, f"{gain:+.3f}", verdict, f"{seconds[0]:.0f} / {seconds[1]:.0f}"


def main(arguments: Sequence[str] | None = None) -> None:
    """Compare both depths and print the table; `arguments` are by default those of the process."""
    every = data_sets()
    which = range(len(every))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("numbers", nargs="*", type=one_of(which), help="which data sets, by default all")
    numbers = [int(number) for number in parser.parse_args(arguments).numbers] or which
    rows = []
    with double_precision():
        for number in numbers:
            name, read = every[number]
            rows.append(compare(name, read()))
    print_table("Default fits: shallow against two layers", _HEADER, rows)


if __name__ == "__main__":
    main()
