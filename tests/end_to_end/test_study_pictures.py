"""Pictures of optimizations are drawn from tables, arrays and studies, and nothing is fitted for them."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import matplotlib
import numpy as np
import pandas
import pytest
from matplotlib.figure import Figure

from rdgp.plotting import (
    Surface,
    draw_coordinates,
    draw_progress,
    draw_regret,
    draw_surfaces,
    draw_surrogate,
    draw_trials,
    surface_points,
)
from rdgp.plotting._trials import lines_of, read_trials
from rdgp.spaces import Box, Circle, Euclidean, Product, Rotations, Space, Sphere, Torus
from tests.end_to_end.test_pictures import labels, num_colors, picture
from tests.pictures import made_up_trials

FLAT = [Torus(2), Product(Circle(), Box([0.0], [2.0]))]
SHAPE = (19, 36)


class Known:
    """What pictures ask of a study, without a study."""

    def __init__(self, space: Space, direction: str = "minimize") -> None:
        self.space, self.direction = space, direction

    def history(self) -> pandas.DataFrame:
        return made_up_trials(self.space)

    def predict(self, x: np.ndarray) -> Any:
        return SimpleNamespace(mean=x[:, 0], variance=1.0 + x[:, 1] ** 2)

    def acquisition_at(self, x: np.ndarray) -> np.ndarray:
        return np.where(x[:, 0] > 0.9, -np.inf, -50.0 * x[:, 0] ** 2)


@pytest.mark.parametrize(
    ("draw", "space"),
    [
        (draw_trials, Sphere(2)),
        (draw_trials, Torus(2)),
        (draw_coordinates, Product(Rotations(), Torus(1), Box([0.0], [2.0]))),
        (draw_progress, Circle()),
    ],
)
def test_trials_are_drawn_from_a_table_or_a_study(draw: Callable[..., Figure], space: Space) -> None:
    before = dict(matplotlib.rcParams)
    from_table = picture(draw(made_up_trials(space), space=space))
    assert np.any(from_table != picture(draw(Known(space, "maximize"))))
    assert len(np.unique(np.round(from_table * 31).reshape(-1, 3), axis=0)) > 8
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("space", [Sphere(2), *FLAT], ids=str)
def test_the_surrogate_and_its_acquisition_are_drawn(space: Space) -> None:
    x = surface_points(space, *SHAPE)
    assert np.all(space.contains(x))
    figure = draw_surrogate(Known(space), shape=SHAPE, title="Search")
    for title in ("Posterior mean", "Posterior standard deviation", "Log acquisition"):
        assert title in labels(figure)
    if space == Sphere(2):
        assert num_colors(figure) > 200


def test_surfaces_need_only_arrays() -> None:
    x = surface_points(Sphere(2), *SHAPE)
    surfaces = {"Height": x[:, 2], "Spread": Surface(1.0 - x[:, 2], "uncertainty", (0.0, 1.0))}
    marked = draw_surfaces(Sphere(2), surfaces, shape=SHAPE, trials=made_up_trials(Sphere(2)))
    assert "Height" in labels(marked)
    assert len(marked.axes[0].collections) > len(draw_surfaces(Sphere(2), surfaces, shape=SHAPE).axes[0].collections)


def test_rotations_are_drawn_as_angle_times_axis() -> None:
    turns = np.array(
        [[np.cos(0.2), np.sin(0.2), 0.0, 0.0], [-np.cos(0.2), 0.0, -np.sin(0.2), 0.0], [1.0, 0.0, 0.0, 0.0]]
    )
    table = pandas.DataFrame(dict(zip(("x0", "x1", "x2", "x3"), turns.T, strict=True)))
    axes = draw_coordinates(table.assign(y=[0.0, 1.0, 2.0], state="done"), space=Rotations()).axes[0]
    drawn = np.stack([segment[:3, 1] for segment in axes.collections[0].get_segments()])[::-1]  # the best is drawn last
    expected = np.rad2deg(0.4) * np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    np.testing.assert_allclose(360.0 * drawn - 180.0, expected, atol=1e-9)


def test_coordinates_without_limits_begin_and_end_with_the_trials() -> None:
    x = np.array([[1.0, -3.0], [4.0, 5.0], [2.0, 0.0]])
    assert [(line.low, line.high) for line in lines_of(Euclidean(2), x)] == [(1.0, 4.0), (-3.0, 5.0)]
    assert [line.label for line in lines_of(Product(Circle(), Box([0.0], [2.0]), Circle()))] == [
        "angle 1",
        "box",
        "angle 2",
    ]
    table = pandas.DataFrame({"x0": x[:, 0], "x1": x[:, 1], "y": [0.0, 1.0, 2.0], "state": "done"})
    assert num_colors(draw_trials(table, space=Euclidean(2))) > 8


def test_the_best_trial_is_one_with_a_value() -> None:
    table = made_up_trials(Sphere(2))
    least, most = read_trials(table, Sphere(2)), read_trials(table, Sphere(2), "maximize")
    assert least.y[least.best or 0] == np.nanmin(least.y)
    assert most.y[most.best or 0] == np.nanmax(most.y)
    none = read_trials(table.assign(state="failed"), Sphere(2))
    assert none.best is None
    assert "0 trials, 30 failed" in str(draw_trials(table.assign(state="failed"), space=Sphere(2)).get_suptitle())


def test_regret_is_the_best_so_far_by_quartiles() -> None:
    rng = np.random.default_rng(0)
    regret = {"deep": rng.uniform(size=(5, 40)), "random": [rng.uniform(size=40), rng.uniform(size=30)]}
    figure = draw_regret({"one": regret, "two": {"deep": regret["deep"]}}, references={"one": {"authors": -1.0}})
    assert [axes.get_title() for axes in figure.axes] == ["one", "two"]
    curve = next(line for line in figure.axes[0].get_lines() if line.get_label() == "deep")
    best = np.log10(np.minimum.accumulate(regret["deep"], axis=1))
    assert np.allclose(curve.get_ydata(), np.median(best, axis=0))
    assert num_colors(draw_regret(regret, initial=5, references={"bar": -2.0}, title="Regret")) > 10


def test_bad_input_is_named() -> None:
    table = made_up_trials(Sphere(2))
    cases: list[tuple[str, Callable[[], object]]] = [
        ("does not know its space; pass space=", lambda: draw_trials(table)),
        ("must have the columns x3", lambda: draw_trials(table, space=Sphere(3))),
        ("the study has no trials yet", lambda: draw_trials(table.iloc[:0], space=Sphere(2))),
        ("'minimize' or 'maximize', got 'up'", lambda: draw_trials(table, space=Sphere(2), direction="up")),
        ("surfaces are drawn on Sphere", lambda: surface_points(Rotations())),
        (r"each of 60 x 120 points .* got shape \(3,\)", lambda: draw_surfaces(Sphere(2), {"f": np.zeros(3)})),
        ("subtract the minimum", lambda: draw_regret({"deep": [[-1.0]]})),
        ("rows of numbers, one for each seed", lambda: draw_regret({"deep": [1.0, 2.0]})),
        ("no curves were given", lambda: draw_regret({})),
    ]
    for message, act in cases:
        with pytest.raises(ValueError, match=message):
            act()
