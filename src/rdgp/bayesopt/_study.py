"""Ask for points, tell their values, resume at any time."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, overload

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from rdgp.bayesopt._checks import check_names, check_noise, check_point, check_value
from rdgp.bayesopt._engine import Data, Engine, Fit, Memory, acquisition_at
from rdgp.bayesopt._file import (
    Lock,
    read_study,
    space_from_json,
    space_to_json,
    trial_from_json,
    trial_to_json,
    write_study,
)
from rdgp.bayesopt._inner import chords, has_walls, inner_space
from rdgp.bayesopt._options import AcquisitionName, FieldName, InducingName, PresetName, SurrogateName, preset_options
from rdgp.bayesopt._posterior import Posterior
from rdgp.bayesopt._region import Region, Step, follow
from rdgp.bayesopt._trial import Origin, Trial
from rdgp.core import Numbers, check_count, compiled, require
from rdgp.fields import check_points
from rdgp.models import Prediction
from rdgp.spaces import Space

_APART = 1e-6  # two evaluations are at least so far apart
_AWAY = 0.02  # and so far from failed ones
_SPREAD = 0.5  # of the mean distance of neighbors: so far are points of the acquisition from earlier ones
_NEGLIGIBLE = -6.9  # log of an improvement, over the spread of all values, that is not worth an evaluation early on
_NUM_INITIAL, _ATTEMPTS = 16, 20  # candidates for a random point, and how often to draw others
_LATE_FROM = 60  # observations from which points come from the late cycle instead of the early one
_EARLY: tuple[Origin, ...] = ("global", "explore", "rival", "local")
_LATE: tuple[Origin, ...] = ("global", "local", "rival", "local", "explore", "local", "rival", "local")
_COMPARE_FROM, _COMPARE_EVERY = 30, 10  # observations between comparisons of deep and shallow
_PAPER_SWITCH = 180

Direction = Literal["minimize", "maximize"]
Callback = Callable[["Study", Trial], bool | None]


class Study:
    """Search a space for the smallest or largest value of an expensive function.

    Every choice is a function of the seed, the trials and the parameters of the last fits, all of which are in the
    file: a study that was loaded asks for the same points as one that was never interrupted.
    """

    def __init__(
        self,
        space: Space,
        direction: Direction = "minimize",
        surrogate: SurrogateName = "auto",
        switch_at: int | None = None,
        acquisition: AcquisitionName | None = None,
        preset: PresetName | None = None,
        seed: int = 0,
        *,
        num_initial: int = 5,
        field: FieldName | None = None,
        inducing: InducingName | None = None,
        layers: int | None = None,
        path: str | Path | None = None,
    ) -> None:
        self._settings: dict[str, Any] = {
            "direction": direction,
            "surrogate": surrogate,
            "switch_at": switch_at,
            "acquisition": acquisition,
            "preset": preset,
            "seed": seed,
            "num_initial": num_initial,
            "field": field,
            "inducing": inducing,
            "layers": layers,
        }
        check_names(self._settings)
        self._inner = inner_space(space)
        self.space, self.direction = space, direction
        options = preset_options(preset, space.dim)
        chosen: dict[str, Any] = {"field": field, "inducing": inducing, "layers": layers}
        options = options._replace(**{name: value for name, value in chosen.items() if value is not None})
        if surrogate == "deep" and has_walls(space):
            raise ValueError(f'surrogate="deep" needs a space without walls, got {space}; use surrogate="shallow"')
        self.surrogate: SurrogateName = "shallow" if preset == "materngabo" and surrogate == "auto" else surrogate
        if preset == "paper" and switch_at is None:
            switch_at = _PAPER_SWITCH
        self.switch_at = switch_at
        default: AcquisitionName = "logei" if preset is None else "ei"
        self.acquisition: AcquisitionName = default if acquisition is None else acquisition
        self._engine = Engine(self._inner.space, options, self.acquisition, 1.0 if direction == "minimize" else -1.0)
        self._trials: list[Trial] = []
        self._memory = Memory()
        self._path: Path | None = None
        self._lock: Lock | None = None
        if path is not None:
            self._open(Path(path))

    def _open(self, path: Path) -> None:
        if path.exists():
            raise ValueError(f"{path} exists already; go on with it by Study.load(path), or choose another name")
        self._path, self._lock = path, Lock(path)
        self._write()

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All trials, in order of their numbers."""
        return tuple(self._trials)

    @overload
    def ask(self) -> Trial: ...

    @overload
    def ask(self, n: int) -> list[Trial]: ...

    def ask(self, n: int | None = None) -> Trial | list[Trial]:
        """Return the next point to evaluate, or a list of n; those that are pending are taken into account."""
        count = 1 if n is None else check_count(n, "n")
        asked = []
        for _ in range(count):
            x, origin = self._next_point()
            asked.append(Trial(len(self._trials), x, origin=origin))
            self._trials.append(asked[-1])
        self._write()
        return asked[0] if n is None else asked

    def tell(
        self,
        trial: Trial | Numbers,
        y: Numbers | None = None,
        *,
        noise_variance: Numbers | None = None,
        failed: bool = False,
    ) -> Trial:
        """Report the value of a trial or of any point; NaN, infinities and `failed` mark a failed evaluation."""
        if not failed and y is None:
            raise ValueError("tell needs a value y, or failed=True")
        value = None if failed else check_value(y)
        noise = check_noise(noise_variance)
        number = self._number_of(trial)
        if number is None:
            x = check_point(self.space, trial)  # type: ignore[arg-type]
            number = len(self._trials)
            self._trials.append(Trial(number, x))
        state: Literal["done", "failed"] = "failed" if value is None else "done"
        self._trials[number] = replace(self._trials[number], y=value, state=state, noise_variance=noise)
        self._write()
        return self._trials[number]

    def _number_of(self, trial: Trial | Numbers) -> int | None:
        """Return the number of a trial of this study, None for a bare point."""
        if not isinstance(trial, Trial):
            return None
        known = 0 <= trial.number < len(self._trials)
        if not known or not np.array_equal(self._trials[trial.number].x, trial.x):
            raise ValueError(f"trial {trial.number} is not of this study; tell its point instead: tell(trial.x, y)")
        if self._trials[trial.number].state != "pending":
            raise ValueError(f"trial {trial.number} has been told already; tell its point for another value")
        return trial.number

    def run(
        self,
        function: Callable[[Float[np.ndarray, "D"]], float],
        n: int,
        *,
        callbacks: Sequence[Callback] = (),
        timeout: float | None = None,
        catch: tuple[type[Exception], ...] = (),
    ) -> "Study":
        """Evaluate a function at n points; a callback that returns True stops, exceptions in `catch` are failures."""
        check_count(n, "n")
        start = time.monotonic()
        for _ in range(n):
            if timeout is not None and time.monotonic() - start > timeout:
                break
            trial = self.ask()
            try:
                value = function(trial.x)
            except catch:
                told = self.tell(trial, failed=True)
            else:
                told = self.tell(trial, value)
            stops = [callback(self, told) for callback in callbacks]
            if any(stops):
                break
        return self

    def best(self, by: Literal["observation", "posterior"] = "observation") -> Trial:
        """Return the trial with the best value or, with noise the better choice, the best posterior mean."""
        if by not in ("observation", "posterior"):
            raise ValueError(f'by must be "observation" or "posterior", got {by!r}')
        done = self._done()
        values = np.array([trial.y for trial in done])
        if by == "posterior":
            values = np.asarray(self.predict(np.stack([trial.x for trial in done])).mean)
        return done[int(np.argmin(self._engine.sign * values))]

    def _done(self) -> list[Trial]:
        done = [trial for trial in self._trials if trial.state == "done"]
        if not done:
            failed = sum(trial.state == "failed" for trial in self._trials)
            raise ValueError(f"no evaluation has succeeded yet ({failed} failed); tell at least one value first")
        return done

    def history(self) -> Any:
        """Return all trials as a pandas DataFrame: number, state, x0, x1, ..., y, noise_variance, best so far."""
        pandas = require("pandas", "geo")
        sign = self._engine.sign
        values = np.array([np.nan if trial.y is None else trial.y for trial in self._trials], float)
        best = sign * np.fmin.accumulate(sign * values)
        points = np.array([trial.x for trial in self._trials]).reshape(len(self._trials), -1)
        noise = [trial.noise_variance for trial in self._trials]
        columns = {"number": np.arange(len(self._trials)), "state": [trial.state for trial in self._trials]}
        columns |= {f"x{i}": points[:, i] for i in range(points.shape[1])}
        return pandas.DataFrame({**columns, "y": values, "noise_variance": np.array(noise, float), "best": best})

    def predict(self, x: Numbers) -> Prediction:
        """Return the surrogate's law of the function at points, in units of y."""
        points = check_points(self.space, x)
        fit = self._fit()
        posterior = self._engine.posterior(fit, self._key(len(self._trials)))
        inner = jnp.asarray(self._inner.inward(np.asarray(points, float)), float)
        moments = [np.asarray(part, float) for part in compiled(Posterior.mixture, posterior, inner)]
        mean, variance = fit.scaling.moments(*moments)
        return Prediction(jnp.asarray(mean)[..., None], jnp.asarray(variance)[..., None, None], None, None, True)

    def acquisition_at(self, x: Numbers) -> Float[np.ndarray, "N"]:
        """Return the log of expected improvement (times the probability of success) at points, up to a constant."""
        points = self._inner.inward(np.asarray(check_points(self.space, x), float))
        posterior = self._engine.posterior(self._fit(), self._key(len(self._trials)))
        votes = self._engine.votes(self._data())
        return np.asarray(acquisition_at(self._inner.space, posterior, votes, jnp.asarray(points, float)))

    def save(self, path: str | Path) -> None:
        """Write a copy of the study to a file."""
        write_study(Path(path), self._content())

    @classmethod
    def load(cls, path: str | Path, *, read_only: bool = False) -> "Study":
        """Return the study of a file, which it goes on writing unless it is `read_only`."""
        path = Path(path)
        read_study(path)  # what is wrong with the file comes before who holds it
        lock = None if read_only else Lock(path)
        content = read_study(path)
        try:
            space = space_from_json(content["space"])
            study = cls(space, **content["settings"])
            rows = enumerate(content["trials"])
            study._trials = [trial_from_json(row, i, space.ambient_dim) for i, row in rows]
            study._memory = Memory(dict(content["fits"]))
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            if lock is not None:
                lock.release()
            raise ValueError(f"cannot load {path}: its content is damaged ({error}); restore a copy") from None
        study._path, study._lock = (None, None) if read_only else (path, lock)
        return study

    def close(self) -> None:
        """Let go of the file; the study goes on in memory only."""
        if self._lock is not None:
            self._lock.release()
        self._path = self._lock = None

    def _content(self) -> dict[str, Any]:
        return {
            "space": space_to_json(self.space),
            "settings": self._settings,
            "fits": self._memory.content,
            "trials": [trial_to_json(trial) for trial in self._trials],
        }

    def _write(self) -> None:
        if self._path is not None:
            write_study(self._path, self._content())

    def _key(self, number: int) -> PRNGKeyArray:
        return jax.random.fold_in(jax.random.key(self._settings["seed"]), number)

    def _data(self) -> Data:
        """Return what is known, in the inner space."""

        def points(state: str) -> Float[np.ndarray, "n D"]:
            rows = [trial.x for trial in self._trials if trial.state == state]
            return self._inner.inward(np.array(rows, float).reshape(len(rows), self.space.ambient_dim))

        done = [trial for trial in self._trials if trial.state == "done"]
        y, noise = (np.array([getattr(t, name) or 0.0 for t in done], float) for name in ("y", "noise_variance"))
        local = np.array([trial.origin in ("local", "rival") for trial in done], bool)
        return Data(points("done"), y, noise, points("pending"), points("failed"), local)

    def _fit(self) -> Fit:
        """Return the surrogate given all data, without leaving a trace in what later fits start from."""
        self._done()
        memory = Memory(dict(self._memory.content))
        data, key = self._data(), self._key(len(self._trials))
        return self._engine.fit(data, memory, key, deep=self._is_deep(data, memory, key), whole=True)

    def _is_deep(self, data: Data, memory: Memory, key: PRNGKeyArray) -> bool:
        """Choose the surrogate: by name, by number of the trial, or by held-out observations every few of them."""
        if self.surrogate == "shallow" or has_walls(self.space):
            return False
        if self.switch_at is not None:
            return len(self._trials) >= self.switch_at
        if self.surrogate == "deep":
            return True
        count = len(data.y) // _COMPARE_EVERY * _COMPARE_EVERY
        if count < _COMPARE_FROM:
            return False
        if not memory.is_of("deep", count):
            memory.keep("deep", jnp.asarray([float(self._engine.prefers_deep(data, memory, key))]), count)
        return bool(memory.content["deep"]["parameters"][0])

    def _next_point(self) -> tuple[Float[np.ndarray, "D"], Origin]:
        number, data = len(self._trials), self._data()
        key = self._key(number)
        origin = self._origin(number, len(data.y))
        if origin == "initial":
            candidates = np.asarray(self._inner.space.random(_NUM_INITIAL, key=key), float)
        else:
            candidates, origin = self._candidates(origin, data, key)
        apart = _SPREAD * len(data.y) ** (-1.0 / self.space.dim) if origin == "global" and self._takes_turns else _APART
        x = self._inner.outward(self._untried(candidates, data, key, apart))
        return np.asarray(self.space.nearest(x), float), origin

    @property
    def _takes_turns(self) -> bool:
        """Whether points come from regions of trust and from far away between those of the acquisition."""
        return self._engine.options.local

    def _candidates(self, origin: Origin, data: Data, key: PRNGKeyArray) -> tuple[Float[np.ndarray, "R D"], Origin]:
        """Return candidates of a source, the best first; one that promises next to nothing gives its turn away."""
        regions = self._regions()
        if origin == "global":
            fit = self._engine.fit(data, self._memory, key, deep=self._is_deep(data, self._memory, key))
            return self._engine.propose(fit, data, data.x[regions[0].best], key), origin
        if origin in ("local", "rival"):
            chosen = regions[:1] if origin == "local" else [r for r in regions[1:] if not r.settled]
            found = [self._engine.propose_near(data, self._memory, *region, key) for region in chosen]
            candidates, promise = max(found, key=lambda pair: pair[1], default=(data.x, -np.inf))
            if promise > _NEGLIGIBLE or (origin == "local" and len(data.y) >= _LATE_FROM):
                return candidates, origin
        return self._engine.propose_far(data, key), "explore"

    def _origin(self, number: int, count: int) -> Origin:
        if number < self._settings["num_initial"] or count < 2:
            return "initial"
        if not self._takes_turns:
            return "global"
        return _EARLY[number % len(_EARLY)] if count < _LATE_FROM else _LATE[number % len(_LATE)]

    def _regions(self) -> list[Region]:
        """Return the regions of trust, centers by their numbers among the observations."""
        finished = [trial for trial in self._trials if trial.state == "done"]
        sign = self._engine.sign
        steps = [Step(self._inner.inward(t.x), sign * float(t.y or 0.0), t.origin) for t in finished]
        return follow(self._inner.space, steps)

    def _untried(
        self, candidates: Float[np.ndarray, "R D"], data: Data, key: PRNGKeyArray, apart: float
    ) -> Float[np.ndarray, "D"]:
        """Return the first candidate that is apart from earlier points and away from failures, else any such point."""
        space, tried = self._inner.space, np.concatenate([data.x, data.pending])
        for attempt in range(_ATTEMPTS):
            free = _apart(space, candidates, tried, apart) & _apart(space, candidates, data.failed, _AWAY)
            if free.any():
                break
            candidates = np.asarray(space.random(_NUM_INITIAL, key=jax.random.fold_in(key, attempt)), float)
        return candidates[int(np.argmax(free))]


def _apart(space: Space, rows: Float[np.ndarray, "R D"], others: Float[np.ndarray, "n D"], least: float) -> np.ndarray:
    """Tell which rows are at least so far from all other points, by straight distance."""
    free = np.ones(len(rows), bool)
    for other in others:
        free &= chords(space, rows, other) > least
    return free
