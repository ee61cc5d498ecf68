"""Studies ask good points with every acquisition and surrogate, and on products with a boundary."""

from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdgp.bayesopt import Study
from rdgp.bayesopt._engine import Engine
from rdgp.bayesopt._region import Region
from rdgp.bayesopt._surrogates import parameters_of
from rdgp.bayesopt._trial import Padded
from rdgp.core import register
from rdgp.models import DeepGP
from rdgp.spaces import Box, Circle, Flat, Isometry, Product, Rotations, Space, Sphere, Torus

pytestmark = pytest.mark.xdist_group("study")


def told(space: Space, count: int, **options: object) -> Study:
    """Return a study that knows some random points; its next point comes from the global surrogate if 4 | count."""
    study = Study(space, num_initial=2, seed=1, **options)
    points = np.asarray(space.random(count + 1, key=jax.random.key(7)), float)
    for x in points[1:]:
        study.tell(x, float(np.sum((x - points[0]) ** 2)))
    return study


@pytest.mark.parametrize("acquisition", ["ei", "noisy_logei", "thompson"])
def test_every_acquisition_improves(acquisition: str) -> None:
    study = told(Sphere(2), 20, surrogate="shallow", acquisition=acquisition)
    trial = study.ask()
    assert trial.origin == "global"
    goal = np.asarray(Sphere(2).random(21, key=jax.random.key(7)))[0]
    assert np.sum((trial.x - goal) ** 2) < study.best().y


def test_products_with_a_boundary_are_searched_near_and_far() -> None:
    space = Product(Rotations(), Box([-3.0, 5.0], [1.0, 6.0]))
    study = told(space, 11)  # with a boundary "auto" is shallow
    near, anywhere = study.ask(2)
    assert (near.origin, anywhere.origin) == ("local", "global")
    assert all(bool(space.contains(trial.x)) for trial in (near, anywhere))


@register("tests:Disc")
class Disc(Flat):
    """The unit disc, a space that the library does not know."""

    dim = property(lambda _: 2)
    injectivity_radius = property(lambda _: 0.0)
    has_boundary = property(lambda _: True)

    def __str__(self) -> str:
        return "Disc()"

    def _random_isometry(self, key: jax.Array) -> Isometry:
        return Isometry(jax.random.orthogonal(key, 2), jnp.zeros(2))

    def _exp(self, x: jax.Array, v: jax.Array) -> jax.Array:
        return self._nearest(x + v)

    def _nearest(self, x: jax.Array) -> jax.Array:
        return x / jnp.maximum(jnp.sqrt(jnp.sum(x * x, axis=-1, keepdims=True) + 1e-30), 1.0)

    def _random(self, n: int, key: jax.Array) -> jax.Array:
        ball = jax.random.ball(key, 2, shape=(n,))
        return ball.astype(jnp.result_type(float))


def test_a_space_from_outside_is_searched_and_its_file_names_it_by_its_tag(tmp_path: Path) -> None:
    study = told(Disc(), 11)
    study.save(tmp_path / "disc.json")
    near, anywhere = study.ask(2)
    assert (near.origin, anywhere.origin) == ("local", "global")
    assert all(bool(Disc().contains(trial.x)) for trial in (near, anywhere))
    assert '"tests:Disc"' in (tmp_path / "disc.json").read_text()
    loaded = Study.load(tmp_path / "disc.json", read_only=True)
    assert loaded.space == Disc()
    np.testing.assert_array_equal(loaded.ask().x, near.x)


def test_factors_and_circles_have_lengthscales_of_their_own_up_to_one_frequency() -> None:
    def kernels(space: Space) -> list[int]:
        return [kernel.lengthscale.size for kernel in Study(space)._engine.shallow.field.prior.kernels]

    def levels(space: Space) -> list[int]:
        return [spectrum.eigenvalues.size for spectrum in Study(space)._engine.shallow.field.prior.spectra]

    assert kernels(Product(Torus(2), Box([0.0] * 3, [1.0] * 3))) == [1, 1, 3]
    assert [levels(space) for space in (Torus(2), Sphere(3), Rotations())] == [[64, 64], [64], [32]]


def test_a_deep_surrogate_asks() -> None:
    study = told(Circle(), 12, surrogate="deep")
    trial = study.ask()
    assert trial.origin == "global"
    assert bool(Circle().contains(trial.x))
    assert is_deep(study)


def is_deep(study: Study) -> bool:
    return study._schedule.is_deep(study.trials, study._memory, jax.random.key(0))


def test_the_surrogate_changes_at_a_trial() -> None:
    late = told(Circle(), 8, surrogate="auto", switch_at=12)
    assert not is_deep(late)
    for x in np.asarray(Circle().random(4, key=jax.random.key(8)), float):
        late.tell(x, 1.0)
    assert is_deep(late)


def test_the_papers_protocol_changes_at_180_unless_a_surrogate_is_named() -> None:
    assert Study(Sphere(2), preset="paper").switch_at == 180
    assert Study(Sphere(2), preset="paper", switch_at=20).switch_at == 20
    assert is_deep(told(Circle(), 8, preset="paper", surrogate="deep"))
    assert not is_deep(told(Circle(), 8, preset="paper", surrogate="shallow"))
    assert Study(Box([0.0], [1.0]), preset="paper").switch_at is None
    assert told(Circle(), 8, preset="materngabo").ask().origin == "global"


@pytest.mark.parametrize("deep_is_better", [True, False])
def test_auto_takes_the_surrogate_that_predicts_better(deep_is_better: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    study, counts = told(Circle(), 30), []

    def held_out(model: DeepGP, training: Padded, held: jax.Array, *_: object) -> float:
        seen = np.asarray(training.data.mask)
        counts.append((bool(model.hidden), int(seen.sum()), int(held.sum()), int((seen & np.asarray(held)).sum())))
        return float(bool(model.hidden) == deep_is_better)

    monkeypatch.setattr("rdgp.bayesopt._engine._held_out", held_out)
    assert is_deep(study) == deep_is_better
    assert sorted(counts) == [(False, 24, 6, 0), (True, 24, 6, 0)]
    for x in np.asarray(Circle().random(9, key=jax.random.key(8)), float):
        study.tell(x, 1.0)
    assert is_deep(study) == deep_is_better  # it holds for ten observations
    assert len(counts) == 2


def test_a_point_out_of_turn_is_not_booked_as_a_step_of_its_region(monkeypatch: pytest.MonkeyPatch) -> None:
    study = told(Circle(), 7, surrogate="shallow")
    crowded = study.tell(study.trials[0].x, failed=True).x
    candidates = np.tile(crowded, (3, 1))  # nothing is asked where an evaluation failed
    monkeypatch.setattr(type(study._schedule), "_candidates", lambda *_: (candidates, "local"))
    assert study.ask().origin == "explore"


@pytest.mark.parametrize(("count", "origin"), [(58, "explore"), (66, "local")])
def test_idle_competing_regions_give_their_turn_away(count: int, origin: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Early on to exploration, later to the region of the best point, however little that promises."""
    study = told(Circle(), count, surrogate="shallow")
    asked = []

    def propose_near(_: object, __: object, ___: object, region: Region, *____: object) -> tuple[np.ndarray, float]:
        asked.append(region.best)
        return np.array([[0.6, 0.8]]), -20.0

    monkeypatch.setattr(Engine, "propose_near", propose_near)
    assert study.ask().origin == origin
    assert (int(np.argmin([trial.y for trial in study.trials[:count]])) in asked) == (origin == "local")


def test_a_best_region_that_promises_nothing_shares_its_turns_with_exploration(monkeypatch: pytest.MonkeyPatch) -> None:
    study = told(Circle(), 65, surrogate="shallow")
    rows = iter(np.asarray(Circle().random(40, key=jax.random.key(9)), float))
    monkeypatch.setattr(Engine, "propose_near", lambda *_: (next(rows)[None], -20.0))
    monkeypatch.setattr(Engine, "propose", lambda *_: next(rows)[None])
    origins = []
    for _ in range(16):
        trial = study.ask()
        study.tell(trial, 5.0)
        origins.append(trial.origin)
    assert origins == ["local", "explore"] * 7 + ["local", "global"]


@pytest.mark.parametrize(("depth", "late"), [(3.0, False), (9.0, True)])
def test_a_point_that_stands_out_ends_the_early_cycle(depth: float, late: bool) -> None:
    study = told(Sphere(2), 20, surrogate="shallow")
    values = np.array([trial.y for trial in study.trials])
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    best = middle - depth * (high - low) / 1.35
    data = study._schedule.observations(study.trials)
    assert not study._schedule._is_late(data)
    cluster = 30  # points of a trust region do not count among the others
    clustered = data._replace(y=np.append(values, [best] * cluster), local=np.append(data.local, [True] * cluster))
    assert study._schedule._is_late(clustered) == late


@pytest.mark.parametrize(("noise", "count"), [(0.0, 12), (0.05, 48)])
def test_trust_regions_see_more_points_of_noisy_values(noise: float, count: int) -> None:
    study = told(Sphere(2), 20, surrogate="shallow")
    data = study._schedule.observations(study.trials)
    engine, memory = study._engine, study._memory
    assert engine.neighbors(data._replace(noise=np.full(20, noise)), memory) == count


@pytest.mark.parametrize(
    ("name", "variance", "noisy"), [("shallow", 0.02, True), ("local", 0.02, False), ("local", 0.5, True)]
)
def test_noise_nobody_told_is_found_by_the_last_fits(name: str, variance: float, noisy: bool) -> None:
    study = told(Sphere(2), 20, surrogate="shallow")
    engine = study._engine
    model = engine.shallow if name == "shallow" else engine.local
    moved = eqx.tree_at(lambda m: m.likelihood, model, model.likelihood.with_values(noise_variance=variance))
    study._memory.keep(name, parameters_of(moved), 20)
    assert engine.is_noisy(study._schedule.observations(study.trials), study._memory) == noisy
