"""Which point comes next: the source that the schedule names, and the first of its candidates that is new."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from rdgp.bayesopt._engine import Engine, Memory
from rdgp.bayesopt._options import SurrogateName
from rdgp.bayesopt._region import Region, Step, chordal_distance, follow
from rdgp.bayesopt._surrogates import can_be_deep
from rdgp.bayesopt._trial import Origin, Trial, TrialData
from rdgp.spaces import Space, UnitScaling

_APART = 1e-6  # two evaluations are at least so far apart
_AWAY = 0.02  # and so far from failed ones
_SPREAD = 0.5  # of the mean distance of neighbors: so far are points of the acquisition from earlier ones
_NEGLIGIBLE = -6.9  # log of an improvement, over the spread of all values, that is hardly worth an evaluation
_NUM_INITIAL, _ATTEMPTS = 16, 20  # candidates for a random point, and how often to draw others
_LATE_FROM = 60  # observations from which points come from the late cycle instead of the early one ...
_STANDS_OUT = 6.0  # ... or how far the best is below the median, over the spread of points not asked for by a region
_EARLY: tuple[Origin, ...] = ("global", "explore", "competing", "local")
_LATE: tuple[Origin, ...] = ("global", "local", "competing", "local", "explore", "local", "competing", "local")
_COMPARE_FROM, _COMPARE_EVERY = 30, 10  # observations between comparisons of deep and shallow


class Schedule(NamedTuple):
    """The rules by which a study chooses points; all that it remembers is in the trials and the memory of fits."""

    unit: UnitScaling
    engine: Engine
    surrogate: SurrogateName
    switch_at: int | None
    num_initial: int

    def observations(self, trials: Sequence[Trial]) -> TrialData:
        """Return what is known, in units of order one."""
        return TrialData.of(trials, self.unit)

    def is_deep(self, trials: Sequence[Trial], memory: Memory, key: PRNGKeyArray) -> bool:
        """Choose the surrogate: by name, by number of the trial, or by held-out observations every few of them."""
        if self.surrogate == "shallow" or not can_be_deep(self.unit.space, self.engine.options.field):
            return False
        if self.switch_at is not None:
            return len(trials) >= self.switch_at
        if self.surrogate == "deep":
            return True
        observations = self.observations(trials)
        count = len(observations.y) // _COMPARE_EVERY * _COMPARE_EVERY
        if count < _COMPARE_FROM:
            return False
        if not memory.is_of("deep", count):
            memory.keep("deep", jnp.asarray([float(self.engine.prefers_deep(observations, memory, key))]), count)
        return bool(memory.content["deep"]["parameters"][0])

    def next_point(
        self, trials: Sequence[Trial], memory: Memory, key: PRNGKeyArray
    ) -> tuple[Float[np.ndarray, "D"], Origin]:
        """Return a point in units of order one, and where it comes from."""
        observations = self.observations(trials)
        origin = self._origin(len(trials), observations)
        if origin == "initial":
            candidates = np.asarray(self.unit.space.random(_NUM_INITIAL, key=key), float)
        else:
            candidates, origin = self._candidates(origin, trials, memory, key)
        spread = _SPREAD * max(len(observations.y), 1) ** (-1.0 / self.unit.space.dim)
        apart = spread if origin == "global" and self._several else _APART
        point, is_candidate = self._untried(candidates, observations, key, apart)
        return point, origin if is_candidate or origin == "initial" else "explore"

    @property
    def _several(self) -> bool:
        """Whether points come from trust regions and from far away between those of the acquisition."""
        return self.engine.options.local

    def _origin(self, number: int, observations: TrialData) -> Origin:
        if number < self.num_initial or len(observations.y) < 2:
            return "initial"
        if not self._several:
            return "global"
        cycle = _LATE if self._is_late(observations) else _EARLY
        return cycle[number % len(cycle)]

    def _is_late(self, observations: TrialData) -> bool:
        """Tell whether to refine rather than to explore: after many observations, or once one stands out from all."""
        y = observations.y
        scaling = self.engine.scaling(observations._replace(y=y[~observations.local]))
        depth = scaling.center - float(np.min(self.engine.sign * y))
        return len(y) >= _LATE_FROM or depth > _STANDS_OUT * scaling.scale

    def _candidates(
        self, origin: Origin, trials: Sequence[Trial], memory: Memory, key: PRNGKeyArray
    ) -> tuple[Float[np.ndarray, "R D"], Origin]:
        """Return candidates of a source, the best first.

        One that promises next to nothing gives its turn away: competing regions late in the search to the best region,
        the best region late in the search every second time, and all others to exploration.
        """
        observations = self.observations(trials)
        regions = self._regions(trials, noisy=self.engine.is_noisy(observations, memory))
        if origin == "global":
            fit = self.engine.fit(observations, memory, key, deep=self.is_deep(trials, memory, key))
            return self.engine.propose(fit, observations, observations.x[regions[0].best], key), origin
        late = self._is_late(observations)
        if origin == "competing":
            competing = [region for region in regions[1:] if not region.settled]
            found = [self.engine.propose_near(observations, memory, region, key) for region in competing]
            candidates, promise = max(found, key=lambda pair: pair[1], default=(observations.x, -np.inf))
            if promise > _NEGLIGIBLE:
                return candidates, origin
        if origin == "local" or (origin == "competing" and late):
            candidates, promise = self.engine.propose_near(observations, memory, regions[0], key)
            if promise > _NEGLIGIBLE or (late and trials[-1].origin != "local"):
                return candidates, "local"
        return self.engine.propose_far(observations, key), "explore"

    def _regions(self, trials: Sequence[Trial], *, noisy: bool) -> list[Region]:
        """Return the trust regions, centers by their numbers among the observations."""
        done, sign = [trial for trial in trials if trial.state == "done"], self.engine.sign
        steps = [Step(self.unit.to_unit(t.x), sign * float(t.y or 0.0), t.origin) for t in done]
        return follow(self.unit.space, steps, noisy=noisy)

    def _untried(
        self, candidates: Float[np.ndarray, "R D"], observations: TrialData, key: PRNGKeyArray, apart: float
    ) -> tuple[Float[np.ndarray, "D"], bool]:
        """Return the first candidate apart from earlier points and away from failures, else a random such point.

        Also tell whether it is one of the candidates.
        """
        space, tried = self.unit.space, np.concatenate([observations.x, observations.pending])
        for attempt in range(_ATTEMPTS):
            free = _apart(space, candidates, tried, apart) & _apart(space, candidates, observations.failed, _AWAY)
            if free.any():
                break
            candidates = np.asarray(space.random(_NUM_INITIAL, key=jax.random.fold_in(key, attempt)), float)
        return candidates[int(np.argmax(free))], attempt == 0


def _apart(space: Space, rows: Float[np.ndarray, "R D"], others: Float[np.ndarray, "n D"], least: float) -> np.ndarray:
    """Tell which rows are at least so far from all other points, by chordal distance."""
    free = np.ones(len(rows), bool)
    for other in others:
        free &= chordal_distance(space, rows, other) > least
    return free
