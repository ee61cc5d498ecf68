"""Trust regions, one for each basin of the data: they grow with success, shrink with failure, and move downhill."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import Float, Int

from rdgp.bayesopt._trial import Origin
from rdgp.spaces import Space

_LARGEST, _SMALLEST = 0.5, 1e-6
_COMPETING = 0.25  # radius with which a region other than that of the best point begins
_SETTLED = 0.02  # a competing region so small has found its optimum
_APART = 0.3  # distance of a new region's center from all others
_SAME = 0.15  # a better point so near to a center takes its place
_MOST = 6


class Step(NamedTuple):
    """One evaluation that succeeded: where, its value, and what had asked for it."""

    x: Float[np.ndarray, "D"]
    value: float
    origin: Origin


class Region(NamedTuple):
    """Its center, by number, its radius, and how many steps in a row have failed."""

    best: int
    radius: float
    failures: int = 0

    @property
    def settled(self) -> bool:
        """Whether a region other than the first is too small to be of interest."""
        return self.radius < _SETTLED


def follow(space: Space, steps: Sequence[Step], *, noisy: bool = False) -> list[Region]:
    """Replay all evaluations, values to be minimised, and return the regions, that around the best point first.

    With noise, which makes steps fail however small the region is, one that has shrunk sixteenfold begins anew.
    """
    x, values = np.stack([step.x for step in steps]), np.array([step.value for step in steps])
    apart = np.stack([chordal_distance(space, x, point) for point in x])
    neighbors = _Neighbors(values, 2 * space.dim)
    regions = [Region(0, _LARGEST)]
    for i, step in enumerate(steps):
        if i and step.origin in ("local", "competing"):
            regions = _after_step(space, regions, i, values, apart, incumbent=step.origin == "local")
            regions = [_anew(space, region) for region in regions] if noisy else regions
        regions = [_moved(region, i, values, apart) for region in regions]
        neighbors.add(apart[i, :i])
        best = int(np.argmin(values[: i + 1]))
        regions = _distinct(regions, best, neighbors.minima(), values, apart)
    return regions


def chordal_distance(space: Space, rows: Float[np.ndarray, "R D"], x: Float[np.ndarray, "D"]) -> Float[np.ndarray, "R"]:
    """Return the straight distance of points to the nearest of the ambient vectors that stand for one point."""
    squares = [np.square(rows - image).sum(axis=1) for image in space.identifications @ x]
    return np.sqrt(np.min(squares, axis=0))


class _Neighbors:
    """The nearest neighbors of points that arrive one by one."""

    def __init__(self, values: Float[np.ndarray, "n"], most: int) -> None:
        self.values, self.count = values, 0
        self.index: Int[np.ndarray, "n k"] = np.tile(np.arange(len(values))[:, None], (1, most))
        self.distance: Float[np.ndarray, "n k"] = np.full((len(values), most), np.inf)

    def add(self, distance: Float[np.ndarray, "i"]) -> None:
        """Add the next point, at these distances from the earlier ones."""
        i = self.count
        nearest = np.argsort(distance, kind="stable")[: self.index.shape[1]]
        self.index[i, : nearest.size], self.distance[i, : nearest.size] = nearest, distance[nearest]
        farthest = np.argmax(self.distance[:i], axis=1)
        rows = np.flatnonzero(distance < self.distance[np.arange(i), farthest])
        self.index[rows, farthest[rows]], self.distance[rows, farthest[rows]] = i, distance[rows]
        self.count += 1

    def minima(self) -> Int[np.ndarray, "m"]:
        """Return the points without a better neighbor, the best first."""
        values = self.values[: self.count]
        lowest = np.all(self.values[self.index[: self.count]] >= values[:, None], axis=1)
        rows = np.flatnonzero(lowest)
        return rows[np.argsort(values[rows], kind="stable")]


def _after_step(
    space: Space,
    regions: list[Region],
    i: int,
    values: Float[np.ndarray, "n"],
    apart: Float[np.ndarray, "n n"],
    *,
    incumbent: bool,
) -> list[Region]:
    """Resize the region that had asked for a point: the first one, or the nearest of the others."""
    others = range(1, len(regions))
    which = 0 if incumbent or not others else min(others, key=lambda j: float(apart[i, regions[j].best]))
    best, radius, failures = regions[which]
    better = bool(values[i] < values[best])
    radius = _resized(space, radius, float(apart[i, best]) if better else None)
    region = Region(i, radius) if better else Region(best, radius, failures + 1)
    return [*regions[:which], region, *regions[which + 1 :]]


def _anew(space: Space, region: Region) -> Region:
    """Return a region with its first radius if it has shrunk sixteenfold since its last success."""
    return Region(region.best, _COMPETING) if region.failures >= 4 * (space.dim + 1) else region


def _moved(region: Region, i: int, values: Float[np.ndarray, "n"], apart: Float[np.ndarray, "n n"]) -> Region:
    """Return a region after a point that may be better than its center and near to it."""
    distance = float(apart[i, region.best])
    if values[i] >= values[region.best] or distance > _SAME:
        return region
    return Region(i, max(region.radius, distance) if distance > 2.0 * region.radius else region.radius)


def _distinct(
    regions: list[Region],
    best: int,
    minima: Int[np.ndarray, "m"],
    values: Float[np.ndarray, "n"],
    apart: Float[np.ndarray, "n n"],
) -> list[Region]:
    """Add regions where there are none yet, leave out the worse of two in one place, and sort by value."""
    if all(region.best != best for region in regions):
        regions = [Region(best, _LARGEST), *regions]
    for i in minima:
        if all(apart[i, region.best] >= _APART for region in regions):
            regions = [*regions, Region(int(i), _COMPETING)]
    kept: list[Region] = []
    for region in sorted(regions, key=lambda region: float(values[region.best])):
        if all(apart[region.best, other.best] >= _SAME for other in kept):
            kept.append(region)
    return kept[:_MOST]


def _resized(space: Space, radius: float, success: float | None) -> float:
    """Return the radius after a step inside: up to twice as large after a success, smaller after a failure."""
    shrink = 0.5 ** (1.0 / (space.dim + 1.0))
    new = shrink * radius if success is None else np.clip(2.0 * success, radius, 2.0 * radius)
    precision = float(np.finfo(jax.dtypes.canonicalize_dtype(float)).eps)
    return float(np.clip(new, max(_SMALLEST, precision**0.5), _LARGEST))
