"""The region of trust around the best point: it grows with success, shrinks with failure, and moves along."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from rdgp.spaces import Space

_LARGEST, _SMALLEST = 0.5, 1e-6


class Step(NamedTuple):
    """One finished evaluation: where, its value (None if it failed), and whether it was asked for in the region."""

    x: Float[np.ndarray, "D"]
    value: float | None
    local: bool


class Region(NamedTuple):
    """The best point so far, by its number, and the radius of the region around it."""

    best: int
    radius: float


def follow(space: Space, steps: Sequence[Step]) -> Region:
    """Replay all evaluations, values to be minimised, and return the region after them."""
    shrink = 0.5 ** (1.0 / (space.dim + 1.0))
    best, radius = -1, _LARGEST
    for i, step in enumerate(steps):
        better = step.value is not None and (best < 0 or step.value < _value(steps[best]))
        if better and best >= 0 and not step.local:
            apart = float(space.distance(steps[best].x, step.x))
            if apart > 2.0 * radius:
                radius = min(_LARGEST, max(radius, 0.5 * apart))
        elif step.local and better:
            length = float(space.distance(steps[best].x, step.x))
            radius = float(np.clip(2.0 * length, 0.5 * radius, 2.0 * radius))
        elif step.local:
            radius = shrink * radius
        radius = float(np.clip(radius, _SMALLEST, _LARGEST))
        best = i if better else best
    return Region(best, radius)


def _value(step: Step) -> float:
    return np.inf if step.value is None else step.value
