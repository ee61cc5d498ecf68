"""Ask for points, tell their values, resume at any time."""

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, overload

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.bayesopt._checks import (
    check_noise,
    check_point,
    check_settings,
    check_space,
    check_stored_settings,
    check_value,
    named_surrogate,
)
from rdgp.bayesopt._engine import Engine, Fit, Memory, acquisition_at
from rdgp.bayesopt._file import (
    FileLock,
    check_new,
    fits_from_json,
    read_study,
    space_from_json,
    space_to_json,
    trial_from_json,
    trial_to_json,
    write_study,
)
from rdgp.bayesopt._mixture import Mixture
from rdgp.bayesopt._options import AcquisitionName, FieldName, InducingName, PresetName, SurrogateName, options_of
from rdgp.bayesopt._schedule import Schedule
from rdgp.bayesopt._surrogates import can_be_deep
from rdgp.bayesopt._trial import Trial
from rdgp.core import Numbers, check_count, compiled, in_double, require
from rdgp.fields import NumberFrame, check_points
from rdgp.models import Prediction
from rdgp.spaces import Space

_PAPER_SWITCH = 180

Direction = Literal["minimize", "maximize"]
Callback = Callable[["Study", Trial], bool | None]


class Study:
    """Search a space for the smallest or largest value of an expensive function.

    Every choice is a function of the seed, the trials and the parameters of the last fits, all of which are in the
    file: a study that was loaded asks for the same points as one that was never interrupted. Surrogates are computed in
    double precision, whatever the process is set to.
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
        settings: dict[str, Any] = {
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
        self._unit = check_space(space)
        self._settings = settings = check_settings(space, settings)
        self.space, self.direction = space, direction
        options = options_of(settings, space.dim)
        self.surrogate = named_surrogate(settings)
        self.switch_at: int | None = settings["switch_at"]
        if preset == "paper" and surrogate == "auto" and self.switch_at is None and can_be_deep(space, options.field):
            self.switch_at = _PAPER_SWITCH
        default: AcquisitionName = "logei" if preset is None else "ei"
        self.acquisition: AcquisitionName = default if acquisition is None else acquisition
        sign = 1.0 if direction == "minimize" else -1.0
        with jax.enable_x64(True):
            self._engine = Engine(self._unit.space, options, self.acquisition, sign)
        self._schedule = Schedule(self._unit, self._engine, self.surrogate, self.switch_at, settings["num_initial"])
        self._trials: list[Trial] = []
        self._memory = Memory()
        self._path: Path | None = None
        self._lock: FileLock | None = None
        if path is not None:
            self._open(Path(path))

    def _open(self, path: Path) -> None:
        check_new(path)
        lock = FileLock(path)
        try:
            check_new(path)  # somebody may have made it since
        except ValueError:
            lock.release()
            raise
        self._path, self._lock = path, lock
        self._adopt(self._trials, self._memory)

    @property
    def trials(self) -> tuple[Trial, ...]:
        """All trials, in order of their numbers."""
        return tuple(self._trials)

    @overload
    def ask(self) -> Trial: ...

    @overload
    def ask(self, n: int) -> list[Trial]: ...

    @in_double
    def ask(self, n: int | None = None) -> Trial | list[Trial]:
        """Return the next point to evaluate, or a list of n; those that are pending are taken into account."""
        count = 1 if n is None else check_count(n, "n")
        trials, memory = list(self._trials), self._memory.copy()
        for number in range(len(trials), len(trials) + count):
            point, origin = self._schedule.next_point(trials, memory, self._key(number))
            x = np.asarray(self.space.nearest(self._unit.from_unit(point)), float)
            trials.append(Trial(number, x, origin=origin))
        self._adopt(trials, memory)
        return trials[-1] if n is None else trials[-count:]

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
        number, trials = self._number_of(trial), list(self._trials)
        if number is None:
            x = check_point(self.space, trial)  # type: ignore[arg-type]
            number = len(trials)
            trials.append(Trial(number, x))
        state: Literal["done", "failed"] = "failed" if value is None else "done"
        trials[number] = replace(trials[number], y=value, state=state, noise_variance=noise)
        self._adopt(trials, self._memory)
        return trials[number]

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
                told = self._tell_or_note(trial, value)
            stops = [callback(self, told) for callback in callbacks]
            if any(stops):
                break
        return self

    def _tell_or_note(self, trial: Trial, value: float) -> Trial:
        """Tell a value; an error that keeps it from being told carries it."""
        try:
            return self.tell(trial, value)
        except Exception as error:
            error.add_note(f"trial {trial.number} is pending, its value is {value!r}; tell it once this is mended")
            raise

    @in_double
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
        points = np.array([trial.x for trial in self._trials]).reshape(len(self._trials), self.space.ambient_dim)
        noise = [trial.noise_variance for trial in self._trials]
        columns = {"number": np.arange(len(self._trials)), "state": [trial.state for trial in self._trials]}
        columns |= {f"x{i}": points[:, i] for i in range(points.shape[1])}
        return pandas.DataFrame({**columns, "y": values, "noise_variance": np.array(noise, float), "best": best})

    @in_double
    def predict(self, x: Numbers) -> Prediction:
        """Return the surrogate's predictive distribution of the function at points, in units of y."""
        points = self._unit_points(x)
        fit = self._fit()
        mixture = self._engine.mixture(fit, self._key(len(self._trials)))
        moments = [np.asarray(part, float) for part in compiled(Mixture.moments, mixture, points)]
        mean, variance = fit.scaling.moments(*moments)
        means, covariances = jnp.asarray(mean)[..., None], jnp.asarray(variance)[..., None, None]
        return Prediction(means, covariances, None, NumberFrame(()))

    @in_double
    def acquisition_at(self, x: Numbers) -> Float[np.ndarray, "N"]:
        """Return the log of expected improvement (times the probability of success) at points, up to a constant."""
        points = self._unit_points(x)
        mixture = self._engine.mixture(self._fit(), self._key(len(self._trials)))
        feasibility = self._engine.feasibility(self._schedule.observations(self._trials))
        return np.asarray(acquisition_at(self._unit.space, mixture, feasibility, points))

    def _unit_points(self, x: Numbers) -> Float[Array, "N D"]:
        points = np.asarray(check_points(self.space, x), float)
        return jnp.asarray(self._unit.to_unit(points), float)

    def save(self, path: str | Path) -> None:
        """Write a copy of the study to a file."""
        self._write(Path(path), self._trials, self._memory)

    @classmethod
    def load(cls, path: str | Path, *, read_only: bool = False) -> "Study":
        """Return the study of a file, which it goes on writing unless it is `read_only`."""
        path = Path(path)
        read_study(path)  # what is wrong with the file comes before who holds it
        lock = None if read_only else FileLock(path)
        content = read_study(path)
        try:
            space = space_from_json(content["space"])
            study = cls(space, **check_stored_settings(space, content["settings"]))
            rows = enumerate(content["trials"])
            study._trials = [trial_from_json(row, i, space) for i, row in rows]
            study._memory = Memory(fits_from_json(content["fits"]))
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

    def _adopt(self, trials: list[Trial], memory: Memory) -> None:
        """Write trials and memory, then make them the study's: a write that fails leaves it as the file is."""
        if self._path is not None:
            self._write(self._path, trials, memory)
        self._trials, self._memory = trials, memory

    def _write(self, path: Path, trials: list[Trial], memory: Memory) -> None:
        content = {
            "space": space_to_json(self.space),
            "settings": self._settings,
            "fits": memory.content,
            "trials": [trial_to_json(trial) for trial in trials],
        }
        write_study(path, content)

    def _key(self, number: int) -> PRNGKeyArray:
        return jax.random.fold_in(jax.random.key(self._settings["seed"]), number)

    def _fit(self) -> Fit:
        """Return the surrogate given all data, without leaving a trace in what later fits start from."""
        self._done()
        memory, key = self._memory.copy(), self._key(len(self._trials))
        deep = self._schedule.is_deep(self._trials, memory, key)
        return self._engine.fit(self._schedule.observations(self._trials), memory, key, deep=deep, whole=True)
