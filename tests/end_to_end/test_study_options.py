"""Studies ask good points with every acquisition and surrogate, and on products with walls."""

import jax
import numpy as np
import pytest

from rdgp.bayesopt import Study
from rdgp.spaces import Box, Circle, Product, Rotations, Space, Sphere

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


def test_products_with_walls_are_searched_near_and_far() -> None:
    space = Product(Rotations(), Box([-3.0, 5.0], [1.0, 6.0]))
    study = told(space, 11)  # with walls "auto" is shallow
    near, anywhere = study.ask(2)
    assert (near.origin, anywhere.origin) == ("local", "global")
    assert all(bool(space.contains(trial.x)) for trial in (near, anywhere))


def test_a_deep_surrogate_asks() -> None:
    study = told(Circle(), 12, surrogate="deep")
    trial = study.ask()
    assert trial.origin == "global"
    assert bool(Circle().contains(trial.x))
    assert study._turns.is_deep(study.trials, study._memory, jax.random.key(0))
    late = told(Circle(), 8, surrogate="auto", switch_at=12)
    assert not late._turns.is_deep(late.trials, late._memory, jax.random.key(0))
