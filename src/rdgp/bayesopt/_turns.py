"""Which point comes next: the source whose turn it is, and the first of its candidates that is new."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from rdgp.bayesopt._engine import Data, Engine, Memory
from rdgp.bayesopt._inner import Inner, chords, has_walls
from rdgp.bayesopt._options import SurrogateName
from rdgp.bayesopt._region import Region, Step, follow
from rdgp.bayesopt._trial import Origin, Trial
from rdgp.spaces import Space

_APART = 1e-6  # two evaluations are at least so far apart
_AWAY = 0.02  # and so far from failed ones
_SPREAD = 0.5  # of the mean distance of neighbors: so far are points of the acquisition from earlier ones
_NEGLIGIBLE = -6.9  # log of an improvement, over the spread of all values, that is hardly worth an evaluation
_NUM_INITIAL, _ATTEMPTS = 16, 20  # candidates for a random point, and how often to draw others
_LATE_FROM = 60  # observations from which points come from the late cycle instead of the early one ...
_STANDS_OUT = 6.0  # ... or how far the best is below the median, over the spread of points not asked for by a region
_EARLY: tuple[Origin, ...] = ("global", "explore", "rival", "local")
_LATE: tuple[Origin, ...] = ("global", "local", "rival", "local", "explore", "local", "rival", "local")
_COMPARE_FROM, _COMPARE_EVERY = 30, 10  # observations between comparisons of deep and shallow


class Turns(NamedTuple):
    """The rules by which a study chooses points; all that it remembers is in the trials and the memory of fits."""

    inner: Inner
    engine: Engine
    surrogate: SurrogateName
    switch_at: int | None
    num_initial: int

    def data(self, trials: Sequence[Trial]) -> Data:
        """Return what is known, in the inner space."""

        def points(state: str) -> Float[np.ndarray, "n D"]:
            rows = [trial.x for trial in trials if trial.state == state]
            return self.inner.inward(np.array(rows, float).reshape(len(rows), self.inner.space.ambient_dim))

        done = [trial for trial in trials if trial.state == "done"]
        y, noise = (np.array([getattr(t, name) or 0.0 for t in done], float) for name in ("y", "noise_variance"))
        local = np.array([trial.origin in ("local", "rival") for trial in done], bool)
        return Data(points("done"), y, noise, points("pending"), points("failed"), local)

    def is_deep(self, trials: Sequence[Trial], memory: Memory, key: PRNGKeyArray) -> bool:
        """Choose the surrogate: by name, by number of the trial, or by held-out observations every few of them."""
        if self.surrogate == "shallow" or has_walls(self.inner.space):
            return False
        if self.switch_at is not None:
            return len(trials) >= self.switch_at
        if self.surrogate == "deep":
            return True
        data = self.data(trials)
        count = len(data.y) // _COMPARE_EVERY * _COMPARE_EVERY
        if count < _COMPARE_FROM:
            return False
        if not memory.is_of("deep", count):
            memory.keep("deep", jnp.asarray([float(self.engine.prefers_deep(data, memory, key))]), count)
        return bool(memory.content["deep"]["parameters"][0])

    def next_point(
        self, trials: Sequence[Trial], memory: Memory, key: PRNGKeyArray
    ) -> tuple[Float[np.ndarray, "D"], Origin]:
        """Return a point of the inner space and where it comes from."""
        data = self.data(trials)
        origin = self._origin(len(trials), data)
        if origin == "initial":
            candidates = np.asarray(self.inner.space.random(_NUM_INITIAL, key=key), float)
        else:
            candidates, origin = self._candidates(origin, trials, memory, key)
        spread = _SPREAD * max(len(data.y), 1) ** (-1.0 / self.inner.space.dim)
        apart = spread if origin == "global" and self._several else _APART
        point, is_candidate = self._untried(candidates, data, key, apart)
        return point, origin if is_candidate or origin == "initial" else "explore"

    @property
    def _several(self) -> bool:
        """Whether points come from regions of trust and from far away between those of the acquisition."""
        return self.engine.options.local

    def _origin(self, number: int, data: Data) -> Origin:
        if number < self.num_initial or len(data.y) < 2:
            return "initial"
        if not self._several:
            return "global"
        cycle = _LATE if self._is_late(data) else _EARLY
        return cycle[number % len(cycle)]

    def _is_late(self, data: Data) -> bool:
        """Tell whether to refine rather than to explore: after many observations, or once one stands out from all."""
        scaling = self.engine.scaling(data._replace(y=data.y[~data.local]))
        depth = scaling.center - float(np.min(self.engine.sign * data.y))
        return len(data.y) >= _LATE_FROM or depth > _STANDS_OUT * scaling.scale

    def _candidates(
        self, origin: Origin, trials: Sequence[Trial], memory: Memory, key: PRNGKeyArray
    ) -> tuple[Float[np.ndarray, "R D"], Origin]:
        """Return candidates of a source, the best first.

        One that promises next to nothing gives its turn away: rivals late in the search to the best region, the best
        region late in the search every second time, and all others to exploration.
        """
        data = self.data(trials)
        regions = self._regions(trials, noisy=self.engine.is_noisy(data, memory))
        if origin == "global":
            fit = self.engine.fit(data, memory, key, deep=self.is_deep(trials, memory, key))
            return self.engine.propose(fit, data, data.x[regions[0].best], key), origin
        late = self._is_late(data)
        if origin == "rival":
            rivals = [region for region in regions[1:] if not region.settled]
            found = [self.engine.propose_near(data, memory, region, key) for region in rivals]
            candidates, promise = max(found, key=lambda pair: pair[1], default=(data.x, -np.inf))
            if promise > _NEGLIGIBLE:
                return candidates, origin
        if origin == "local" or (origin == "rival" and late):
            candidates, promise = self.engine.propose_near(data, memory, regions[0], key)
            if promise > _NEGLIGIBLE or (late and trials[-1].origin != "local"):
                return candidates, "local"
        return self.engine.propose_far(data, key), "explore"

    def _regions(self, trials: Sequence[Trial], *, noisy: bool) -> list[Region]:
        """Return the regions of trust, centers by their numbers among the observations."""
        done, sign = [trial for trial in trials if trial.state == "done"], self.engine.sign
        steps = [Step(self.inner.inward(t.x), sign * float(t.y or 0.0), t.origin) for t in done]
        return follow(self.inner.space, steps, noisy=noisy)

    def _untried(
        self, candidates: Float[np.ndarray, "R D"], data: Data, key: PRNGKeyArray, apart: float
    ) -> tuple[Float[np.ndarray, "D"], bool]:
        """Return the first candidate apart from earlier points and away from failures, else a random such point.

        Also tell whether it is one of the candidates.
        """
        space, tried = self.inner.space, np.concatenate([data.x, data.pending])
        for attempt in range(_ATTEMPTS):
            free = _apart(space, candidates, tried, apart) & _apart(space, candidates, data.failed, _AWAY)
            if free.any():
                break
            candidates = np.asarray(space.random(_NUM_INITIAL, key=jax.random.fold_in(key, attempt)), float)
        return candidates[int(np.argmax(free))], attempt == 0


def _apart(space: Space, rows: Float[np.ndarray, "R D"], others: Float[np.ndarray, "n D"], least: float) -> np.ndarray:
    """Tell which rows are at least so far from all other points, by straight distance."""
    free = np.ones(len(rows), bool)
    for other in others:
        free &= chords(space, rows, other) > least
    return free
