"""Studies: ask and tell in any order, failures, files, and what a second process sees."""

import errno
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from jax._src import test_util

from rdgp.bayesopt import Study, Trial
from rdgp.bayesopt._engine import Memory
from rdgp.bayesopt._file import FileLock
from rdgp.bayesopt._mixture import Mixture
from rdgp.bayesopt._region import Region, Step, follow
from rdgp.bayesopt._trial import bucket
from rdgp.core import compiled
from rdgp.models import ExactGP
from rdgp.spaces import Box, Product, Rotations, Sphere, Torus

pytestmark = pytest.mark.xdist_group("study")  # one worker compiles what they share

SPACE = Sphere(2)
GOAL = np.array([0.48, 0.6, 0.64])
RANDOM = {"num_initial": 100, "surrogate": "shallow"}  # asks for random points only, which compiles nothing


def cone(x: np.ndarray) -> float:
    return float(np.linalg.norm(x - GOAL))


@pytest.fixture(scope="module")
def study() -> Study:
    return Study(SPACE, surrogate="shallow", seed=3).run(cone, 24)


def test_a_study_finds_the_minimum(study: Study) -> None:
    assert study.best().y < 0.02
    assert {trial.origin for trial in study.trials} == {"initial", "global", "explore", "local", "competing"}
    assert all(bool(SPACE.contains(trial.x)) for trial in study.trials)


def test_asking_on_compiles_nothing_new_and_never_repeats(study: Study) -> None:
    again = Study(SPACE, surrogate="shallow", seed=4).run(cone, 14)
    with test_util.count_jit_compilation_cache_miss() as misses:
        batch = again.ask(4)
        again.tell(batch[2], cone(batch[2].x))
        again.run(cone, 2)
    assert misses() == 0
    points = np.array([trial.x for trial in again.trials])
    apart = np.linalg.norm(points[:, None] - points[None], axis=-1) + np.eye(len(points))
    assert apart.min() > 1e-6
    assert [trial.state for trial in again.trials[14:18]] == ["pending", "pending", "done", "pending"]


def test_a_hundred_trials_take_two_sizes_of_data() -> None:
    assert {bucket(count) for count in range(1, 106)} == {64, 128}


def test_padding_changes_nothing(study: Study) -> None:
    engine, data = study._engine, study._schedule.observations(study.trials)
    fit = engine.fit(data, Memory(), jax.random.key(0), deep=False, whole=True)
    x = SPACE.random(768, key=jax.random.key(1))
    mean, variance = compiled(Mixture.moments, engine.mixture(fit, jax.random.key(0)), x)
    field, count = fit.model.field, len(data.y)
    exact = ExactGP(field, float(fit.model.noise_variance))
    offset = float(fit.model.mean.value)
    prediction = exact.condition(data.x, np.asarray(fit.padded.data.y)[:count, 0] - offset).predict(x)
    np.testing.assert_allclose(mean[0], prediction.mean + offset, atol=1e-6)
    np.testing.assert_allclose(variance[0], prediction.variance, atol=1e-6)


def test_prediction_is_in_units_of_y(study: Study) -> None:
    points = np.array([trial.x for trial in study.trials])
    prediction = study.predict(points)
    values = np.array([trial.y for trial in study.trials])
    np.testing.assert_allclose(prediction.mean, values, atol=0.1)
    assert study.best("posterior").y < 0.1
    other = Study(SPACE, direction="maximize", surrogate="shallow", seed=3)
    other._trials = [replace(trial, y=500.0 - 1000.0 * trial.y) for trial in study.trials]
    other._memory = study._memory.copy()
    scaled = other.predict(points)
    np.testing.assert_allclose(scaled.mean, 500.0 - 1000.0 * prediction.mean, rtol=1e-6)
    np.testing.assert_allclose(scaled.variance, 1e6 * prediction.variance, rtol=1e-4)


def test_the_acquisition_is_highest_where_the_best_values_are(study: Study) -> None:
    anywhere = np.asarray(SPACE.random(23, key=jax.random.key(2)))
    assert np.argmax(study.acquisition_at([*anywhere, GOAL])) == 23


def test_a_loaded_study_goes_on_as_if_never_interrupted(tmp_path: Path) -> None:
    path = tmp_path / "study.json"
    whole = Study(SPACE, surrogate="shallow", seed=5).run(cone, 16)
    first = Study(SPACE, surrogate="shallow", seed=5, path=path).run(cone, 11)
    pending = first.ask()
    first.predict(SPACE.random(24, key=jax.random.key(0)))  # leaves no trace
    first.close()
    second = Study.load(path)
    second.tell(second.trials[pending.number], cone(pending.x))
    second.run(cone, 4)
    for ours, theirs in zip(second.trials, whole.trials, strict=True):
        np.testing.assert_array_equal(ours.x, theirs.x)
        assert (ours.y, ours.state, ours.origin) == (theirs.y, theirs.state, theirs.origin)


def test_maximizing_is_minimizing_the_negative(study: Study) -> None:
    other = Study(SPACE, direction="maximize", surrogate="shallow", seed=3).run(lambda x: -cone(x), 12)
    for ours, theirs in zip(other.trials, study.trials, strict=False):
        np.testing.assert_allclose(ours.x, theirs.x, atol=1e-6)
    assert other.best().y == max(trial.y for trial in other.trials)


def test_values_are_told_in_any_order_and_of_any_point() -> None:
    study = Study(SPACE, **RANDOM)
    a, b = study.ask(2)
    told = study.tell(b, 2)
    assert (told.number, told.y, told.state) == (1, 2.0, "done")
    own = study.tell(GOAL, np.float32(0.5), noise_variance=0.01)
    assert (own.number, own.origin, own.noise_variance) == (2, "told", 0.01)
    study.tell(a, np.array([1.0]))
    assert study.best().number == 2
    assert all(isinstance(trial, Trial) for trial in study.trials)


def test_failures_are_kept_and_never_become_numbers() -> None:
    study = Study(SPACE, **RANDOM)
    values = iter([np.nan, np.inf, None, 1.0])

    def sometimes(x: np.ndarray) -> float:
        value = next(values)
        if value is None:
            raise RuntimeError("the robot fell")
        return value

    study.run(sometimes, 4, catch=(RuntimeError,))
    study.tell(study.ask(), failed=True)
    assert [trial.state for trial in study.trials] == ["failed", "failed", "failed", "done", "failed"]
    assert [trial.y for trial in study.trials] == [None, None, None, 1.0, None]
    data = study._schedule.observations(study.trials)
    assert (len(data.y), len(data.failed), int(study._engine.feasibility(data).failed.sum())) == (1, 4, 4)
    with pytest.raises(RuntimeError, match="fell"):
        study.run(lambda _: (_ for _ in ()).throw(RuntimeError("the robot fell")), 1)
    assert study.trials[-1].state == "pending"


def test_failures_steer_the_search_away(study: Study) -> None:
    other = Study(SPACE, surrogate="shallow", seed=3)
    for trial in study.trials[:12]:
        other.tell(trial.x, trial.y)
    center = GOAL
    for angle in range(4):
        x = center + 0.03 * np.array([np.cos(angle), np.sin(angle), 0.0])
        other.tell(x / np.linalg.norm(x), failed=True)
    before = Study(SPACE, surrogate="shallow", seed=3)
    for trial in study.trials[:12]:
        before.tell(trial.x, trial.y)
    points = np.array([GOAL, -GOAL])
    change = other.acquisition_at(points) - before.acquisition_at(points)
    assert change[0] < -0.3
    assert abs(change[1]) < 0.05


def test_history_is_a_table() -> None:
    study = Study(SPACE, **RANDOM)
    assert study.history().shape == (0, 8)
    for value in (3.0, 1.0, 2.0):
        study.tell(study.ask(), value)
    study.tell(study.ask(), failed=True)
    study.ask()
    table = study.history()
    assert list(table.columns) == ["number", "state", "x0", "x1", "x2", "y", "noise_variance", "best"]
    assert table["best"].tolist() == [3.0, 1.0, 1.0, 1.0, 1.0]
    assert table["state"].tolist() == ["done"] * 3 + ["failed", "pending"]


def test_callbacks_and_the_clock_stop_a_run() -> None:
    study = Study(SPACE, **RANDOM).run(cone, 10, callbacks=[lambda _, trial: trial.number >= 2])
    assert len(study.trials) == 3
    assert len(study.run(cone, 10, timeout=0.0).trials) <= 4


def test_a_killed_process_loses_at_most_the_trial_in_flight(tmp_path: Path) -> None:
    path = tmp_path / "study.json"
    code = (
        "import os, sys; from rdgp.bayesopt import Study; from rdgp.spaces import Sphere\n"
        f"study = Study(Sphere(2), num_initial=100, path={str(path)!r})\n"
        "study.run(lambda x: float(x[0]), 3)\n"
        "study.run(lambda x: os.kill(os.getpid(), 9), 1)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, timeout=300)
    assert done.returncode == -9
    study = Study.load(path)  # the dead process holds no lock
    assert [trial.state for trial in study.trials] == ["done", "done", "done", "pending"]
    assert not list(tmp_path.glob("*.tmp"))


def test_a_write_that_fails_leaves_the_study_as_its_file_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "no space left on device")

    path, whole = tmp_path / "study.json", Study(SPACE, surrogate="shallow", seed=6, num_initial=3).run(cone, 6)
    study = Study(SPACE, surrogate="shallow", seed=6, num_initial=3, path=path).run(cone, 4)
    pending, written = study.ask(), path.read_text()
    for attempt in (lambda: study.tell(pending, 1.0), lambda: study.tell(GOAL, 2.0), lambda: study.ask(2)):
        fits = dict(study._memory.content)
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(OSError, match="no space left"):
                attempt()
        assert path.read_text() == written
        assert [trial.state for trial in study.trials] == ["done"] * 4 + ["pending"]
        assert study._memory.content == fits
    study.tell(pending, cone(pending.x))
    study.run(cone, 1)
    for same in (study, Study.load(path, read_only=True)):
        assert [trial.y for trial in same.trials] == [trial.y for trial in whole.trials]


def test_an_error_of_a_run_carries_the_value_that_was_not_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = Study(SPACE, path=tmp_path / "study.json", **RANDOM)

    def evaluate(_: np.ndarray) -> float:
        monkeypatch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError("no space left")))
        return 1.25

    with pytest.raises(OSError, match="no space left") as caught:
        study.run(evaluate, 1)
    assert caught.value.__notes__ == ["trial 0 is pending, its value is 1.25; tell it once this is mended"]
    monkeypatch.undo()
    study.tell(study.trials[0], 1.25)
    assert Study.load(tmp_path / "study.json", read_only=True).best().y == 1.25


def test_counts_may_be_integers_of_numpy(tmp_path: Path) -> None:
    path = tmp_path / "study.json"
    code = (  # in a process without the type checker of the tests
        "import numpy as np; from rdgp.bayesopt import Study; from rdgp.spaces import Sphere\n"
        f"Study(Sphere(2), seed=np.int64(3), num_initial=np.int64(4), path={str(path)!r})\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)
    assert Study.load(path)._settings["seed"] == 3


def test_a_point_with_rounded_digits_is_taken_for_the_nearest() -> None:
    study = Study(SPACE, **RANDOM)
    rounded = [0.26726, 0.53452, 0.80178]
    told = [study.tell(x, y) for x, y in ((rounded, 1.0), ([0.0, 0.0, 1.0], 2.0), ([0.0, 1.0, 0.0], 3.0))]
    assert not np.array_equal(told[0].x, rounded)
    np.testing.assert_allclose(told[0].x, rounded, atol=1e-5)
    assert study.best("posterior").number == 0


def test_a_file_that_somebody_made_meanwhile_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "study.json"

    def slow_lock(own: Path) -> FileLock:
        path.write_text("somebody's")
        return FileLock(own)

    monkeypatch.setattr("rdgp.bayesopt._study.FileLock", slow_lock)
    with pytest.raises(ValueError, match="exists already"):
        Study(SPACE, path=path, **RANDOM)
    assert path.read_text() == "somebody's"


def test_a_file_is_open_once(tmp_path: Path) -> None:
    path = tmp_path / "study.json"
    study = Study(SPACE, path=path, **RANDOM)
    study.tell(study.ask(), 1.0)
    with pytest.raises(ValueError, match=r"in use by process \d+"):
        Study.load(path)
    looked = Study.load(path, read_only=True)
    looked.tell(looked.ask(), 2.0)
    study.close()
    assert len(Study.load(path).trials) == 1


def test_saved_equals_loaded_on_every_space(tmp_path: Path) -> None:
    for i, space in enumerate([Torus(2), Rotations(), Product(Sphere(3), Box([0.0, -1.0], [10.0, 1.0]))]):
        study = Study(space, direction="maximize", seed=i, **RANDOM)
        study.tell(study.ask(), 1.0, noise_variance=0.1)
        study.save(tmp_path / f"{i}.json")
        loaded = Study.load(tmp_path / f"{i}.json")
        assert (loaded.space, loaded.direction) == (space, "maximize")
        np.testing.assert_array_equal(loaded.trials[0].x, study.trials[0].x)
        np.testing.assert_array_equal(loaded.ask().x, study.ask().x)


def test_points_travel_to_the_unit_cube_and_back() -> None:
    space = Product(Rotations(), Box([-3.0, 5.0], [1.0, 6.0]))
    unit = space.unit_scaled()
    x = np.asarray(space.random(5, key=jax.random.key(0)))
    assert np.all(unit.space.contains(unit.to_unit(x)))
    np.testing.assert_allclose(unit.from_unit(unit.to_unit(x)), x, atol=1e-12)


def test_a_trust_region_shrinks_grows_and_moves() -> None:
    near, far = np.array([0.0, 0.0, 1.0]), np.array([1.0, 0.0, 0.0])
    steps = [Step(near, 1.0, "initial"), Step(near, 2.0, "local"), Step(near, 2.0, "local")]
    small = follow(SPACE, steps)[0]
    assert (small.best, small.radius) == (0, pytest.approx(0.5 * 0.5 ** (2.0 / 3.0)))
    step = np.array([np.sin(0.3), 0.0, np.cos(0.3)])
    assert follow(SPACE, [*steps, Step(step, 0.5, "local")])[0].radius == pytest.approx(0.5)
    assert follow(SPACE, [*steps * 4, Step(far, 0.0, "global")])[0][:2] == (12, 0.5)
    failed = [steps[0], *[Step(near, 2.0, "local")] * 12]
    assert follow(SPACE, failed)[0].radius == pytest.approx(0.5 / 16)
    assert follow(SPACE, failed, noisy=True)[0].radius == pytest.approx(0.25)
    assert follow(SPACE, failed[:-1], noisy=True) == follow(SPACE, failed[:-1])


def test_every_basin_of_the_data_has_a_region() -> None:
    grid = np.asarray(SPACE.random(200, key=jax.random.key(0)))
    deep, other = np.eye(3)[:2]
    depth = sum(-a * np.exp(-4.0 * np.sum((grid - c) ** 2, axis=1)) for a, c in ((1.0, deep), (0.5, other)))
    steps = [Step(x, float(y), "explore") for x, y in zip(grid, depth, strict=True)]
    first = follow(SPACE, steps)[0]
    assert first.best == np.argmin(depth)
    assert np.linalg.norm(grid[first.best] - deep) < 0.3

    def competing(steps: list[Step]) -> list[Region]:
        return [region for region in follow(SPACE, steps)[1:] if np.linalg.norm(grid[region.best] - other) < 0.3]

    assert [region.radius for region in competing(steps)] == [0.25]
    lost = [*steps, *[Step(other, 1.0, "competing")] * 12]
    assert [region.settled for region in competing(lost)] == [True]
