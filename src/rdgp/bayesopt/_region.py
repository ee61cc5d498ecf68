"""Regions of trust: they grow with success, shrink with failure, and move along with the best point."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from rdgp.bayesopt._inner import chords
from rdgp.bayesopt._trial import Origin
from rdgp.spaces import Space

_LARGEST, _SMALLEST = 0.5, 1e-6
_SETTLED = 0.02  # a region so small has found its optimum: time to look at another one too
_RIVAL = 0.25  # radius with which a rival region begins
_ELSEWHERE = 0.4  # distance of its center from those that have settled


class Step(NamedTuple):
    """One evaluation that succeeded: where, its value, and what had asked for it."""

    x: Float[np.ndarray, "D"]
    value: float
    origin: Origin


class Region(NamedTuple):
    """Its center, by number, and its radius."""

    best: int
    radius: float


def follow(space: Space, steps: Sequence[Step]) -> Region:
    """Replay all evaluations, values to be minimised, and return the region around the best one."""
    best, radius = 0, _LARGEST
    for i, step in enumerate(steps[1:], start=1):
        better = step.value < steps[best].value
        apart = float(chords(space, step.x[None], steps[best].x)[0])
        if step.origin == "local":
            radius = _resized(space, radius, apart if better else None)
        elif better and apart > 2.0 * radius:
            radius = min(_LARGEST, 0.5 * apart)
        best = i if better else best
    return Region(best, radius)


def follow_rival(space: Space, steps: Sequence[Step], incumbent: Region) -> Region | None:
    """Return the region around the best point elsewhere, once the incumbent's has settled: it may be a decoy.

    When a rival settles without having won, the best point away from it and all earlier ones is next.
    """
    if incumbent.radius > _SETTLED:
        return None
    x, values = np.stack([step.x for step in steps]), np.array([step.value for step in steps])
    elsewhere = chords(space, x, x[incumbent.best]) > _ELSEWHERE
    radius = _RIVAL
    for i, step in enumerate(steps):
        before = np.flatnonzero(elsewhere[:i])
        if step.origin != "rival" or not before.size:
            continue
        best = int(before[np.argmin(values[before])])
        better = bool(elsewhere[i]) and step.value < values[best]
        radius = _resized(space, radius, float(chords(space, step.x[None], x[best])[0]) if better else None)
        if radius < _SETTLED:
            elsewhere &= chords(space, x, x[best]) > _ELSEWHERE
            radius = _RIVAL
    left = np.flatnonzero(elsewhere)
    return Region(int(left[np.argmin(values[left])]), radius) if left.size else None


def _resized(space: Space, radius: float, success: float | None) -> float:
    """Return the radius after a step inside: near twice the length of a success, smaller after a failure."""
    shrink = 0.5 ** (1.0 / (space.dim + 1.0))
    new = shrink * radius if success is None else np.clip(2.0 * success, 0.5 * radius, 2.0 * radius)
    return float(np.clip(new, _SMALLEST, _LARGEST))
