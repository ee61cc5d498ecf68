"""Where a search for the numbers of a model starts, and how far it goes."""

from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from rdgp.core import log_widths
from rdgp.models._data import Data
from rdgp.optimize import Minimum, minimize_lbfgs

START_NOISE = 0.03  # share of the noise in the size of the observations at the start
_FLOOR = {8: 1e-12, 4: 1e-6}  # least share of the noise, by bytes of a number
_WIDTHS = dict.fromkeys(("lengthscale", "nu"), float(np.log(1e3)))  # logarithms of factors by which a search changes


def scatter(data: Data) -> float:
    """Return the mean variance of the coordinates of the observations; zero if they are constant up to rounding."""
    y = np.asarray(data.y, float)
    variance, rounding = float(np.mean(np.var(y, axis=0))), 4.0 * float(np.finfo(data.y.dtype).eps)
    return variance if variance > rounding**2 * float(np.mean(np.square(y))) else 0.0


def noise_floor(data: Data) -> float:
    """Return the least noise variance that rounding lets one tell from none, for observations of a size."""
    size = scatter(data) or float(np.mean(np.square(np.asarray(data.y, float))))
    return _FLOOR[data.y.dtype.itemsize] * size


def search(
    objective: Callable[..., jax.Array],
    free: PyTree,
    *rest: Any,
    steps: int,
    callback: Callable[[int, float], None] | None = None,
) -> Minimum:
    """Minimise by L-BFGS; constant observations would otherwise drive lengthscales out of all bounds."""
    widths = log_widths(free, _WIDTHS)
    return minimize_lbfgs(objective, free, *rest, steps=steps, widths=widths, callback=callback)
