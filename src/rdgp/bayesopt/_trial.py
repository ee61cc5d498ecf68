"""Trials, and what they say: observations in units of order one, padded so that many sizes share one compilation."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from rdgp.bayesopt._scaling import Scaling
from rdgp.models import Data
from rdgp.spaces import UnitScaling

State = Literal["pending", "done", "failed"]
Origin = Literal["initial", "global", "local", "competing", "explore", "told"]

SMALLEST = 64  # points of the smallest bucket; the next ones are twice as large
_CLUSTER = 0.05  # points of trust regions nearer than this to a better one are left out elsewhere


@dataclass(frozen=True, eq=False)
class Trial:
    """A point, its value once it is known, and where the point came from."""

    number: int
    x: Float[np.ndarray, "D"]
    y: float | None = None
    state: State = "pending"
    noise_variance: float | None = None
    origin: Origin = "told"


class TrialData(NamedTuple):
    """What is known, at points in units of order one; values as the user gave them."""

    x: Float[np.ndarray, "n D"]
    y: Float[np.ndarray, "n"]
    noise: Float[np.ndarray, "n"]
    pending: Float[np.ndarray, "m D"]
    failed: Float[np.ndarray, "k D"]
    local: Bool[np.ndarray, "n"]  # asked for in a trust region

    @staticmethod
    def of(trials: Sequence[Trial], unit: UnitScaling) -> "TrialData":
        """Collect what trials say."""

        def points(state: State) -> Float[np.ndarray, "n D"]:
            rows = [trial.x for trial in trials if trial.state == state]
            return unit.to_unit(np.array(rows, float).reshape(len(rows), unit.space.ambient_dim))

        done = [trial for trial in trials if trial.state == "done"]
        y, noise = (np.array([getattr(t, name) or 0.0 for t in done], float) for name in ("y", "noise_variance"))
        local = np.array([trial.origin in ("local", "competing") for trial in done], bool)
        return TrialData(points("done"), y, noise, points("pending"), points("failed"), local)

    def thinned(self, sign: float) -> "TrialData":
        """Leave out the clusters of trust regions, but for their best points.

        A kernel with one lengthscale that has to follow them would call the rest of the space unknown.
        """
        kept = list(np.flatnonzero(~self.local))
        for i in sorted(np.flatnonzero(self.local), key=lambda i: sign * self.y[i]):
            if not kept or np.min(np.sum(np.square(self.x[kept] - self.x[i]), axis=1)) > _CLUSTER**2:
                kept.append(i)
        rows = np.sort(kept)
        return self._replace(x=self.x[rows], y=self.y[rows], noise=self.noise[rows], local=self.local[rows])

    def padded(self, scaling: Scaling, size: int | None = None) -> "Padded":
        """Scale the values and fill up to a size with copies of the first point, which do not count."""
        count, total = len(self.x), len(self.x) + len(self.pending)
        size = bucket(total) if size is None else size
        index, nothing = np.arange(size), np.zeros(size - count)
        z, noise = scaling.forward(self.y), self.noise * np.square(scaling.slope(self.y))
        data = Data(
            filled(np.concatenate([self.x, self.pending]), size),
            jnp.asarray(np.concatenate([z, nothing])[:, None], float),
            jnp.asarray(np.concatenate([noise, nothing]), float),
            jnp.asarray(index < count),
        )
        return Padded(data, jnp.asarray((index >= count) & (index < total)))


class Padded(NamedTuple):
    """Scaled data, of which the mask says what was observed; pending points have no value yet."""

    data: Data
    pending: Bool[Array, "N"]

    @property
    def observed(self) -> Bool[Array, "N"]:
        """Which rows are observations."""
        return jnp.ones(self.data.num_points, bool) if self.data.mask is None else self.data.mask

    def without(self, rows: Bool[Array, "N"]) -> "Padded":
        """Return the data without some observations."""
        data = self.data
        return Padded(Data(data.x, data.y, data.noise, self.observed & ~rows), self.pending)


def bucket(count: int) -> int:
    """Return the size to which so many points are padded."""
    size = SMALLEST
    while size < count:
        size *= 2
    return size


def filled(points: Float[np.ndarray, "n D"], size: int) -> Float[Array, "size D"]:
    """Append copies of the first point up to a size, so that data of many sizes share one compilation."""
    return jnp.asarray(np.concatenate([points, np.repeat(points[:1], size - len(points), axis=0)]), float)
