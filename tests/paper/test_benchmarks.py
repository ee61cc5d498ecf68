"""Benchmarks of prediction: their data, their models on winds that are known, and runs that are kept."""

from collections.abc import Callable
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from rdgp import metrics
from rdgp.datasets import fibonacci_sphere
from rdgp.spaces import sphere_to_latlon
from rdgp_paper.benchmarks import depth, quality, winds
from rdgp_paper.data import Winds

DOCS = Path(__file__).parents[2] / "docs"


def test_depth_has_the_data_sets_of_the_documentation(data_folder: Path) -> None:
    every = dict(depth.data_sets())
    page = (DOCS / "deep.md").read_text()
    assert len(every) == 20
    assert all(f"| {name} |" in page for name in every)
    sizes = {"released target, N = 200": (200, 3), "printed target, N = 400": (400, 3), "UCI kin8nm": (2000, 9)}
    sizes["winds, surface, 7"] = (1368 // 3, 3)
    for name, size in sizes.items():
        space, _, output, _, split = every[name]()
        assert split.x.shape == size
        assert np.linalg.norm(split.x, axis=1) == pytest.approx(1.0, abs=1e-6)
        assert space.ambient_dim == size[1]
        assert split.y.shape == (size if output == "tangent" else size[:1])


def rotating(points: int, test_points: int) -> Winds:
    """Return winds of a rotation about the axis, the most of them along u."""
    arrays = []
    for count in (points, test_points):
        latlon = np.asarray(sphere_to_latlon(fibonacci_sphere(count)))
        u = np.cos(np.radians(latlon[:, 0]))
        arrays += [latlon, np.stack([u, np.zeros_like(u)], axis=1)]
    return Winds(*arrays, scale=1.0)


@pytest.mark.filterwarnings("ignore:The optimal value found")  # by scikit-learn, of a field without noise ...
@pytest.mark.filterwarnings("ignore:the observations look free of noise")  # ... and by `fit`
@pytest.mark.parametrize("fit", [winds.residual(1, num_output_levels=2), winds.scikit], ids=["Hodge", "scikit-learn"])
def test_models_of_winds_predict_east_and_north(fit: Callable[[Winds], winds.Fitted]) -> None:
    data = rotating(60, 40)
    prediction, noise = fit(data)
    assert metrics.mse(prediction, data.test_uv) < 1e-3  # with u and v exchanged it is 0.67
    assert noise < 0.1


def test_finished_runs_are_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[tuple[str, str | int, str]] = []

    def compute(pressure_level: str, when: str | int, model: str) -> dict[str, str]:
        done.append((pressure_level, when, model))
        return {"pressure_level": pressure_level, "data": str(when), "model": model, "nlpd": "0.5"}

    monkeypatch.setattr(winds, "compute", compute)
    monkeypatch.setattr(winds, "DATA", {"surface": (7, 1), "850": ("eraint-jan",)})
    path = tmp_path / "new" / "winds.csv"
    winds.run(["surface"], ["scikit-learn GP"], path)
    assert done == [("surface", 7, "scikit-learn GP"), ("surface", 1, "scikit-learn GP")]
    winds.run(["surface", "850"], ["scikit-learn GP"], path)
    assert done[2:] == [("850", "eraint-jan", "scikit-learn GP")]
    assert [row["data"] for row in winds.finished(path)] == ["7", "1", "eraint-jan"]


def test_the_twist_turns_about_the_axis() -> None:
    x = jnp.asarray([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0, 0.6, 0.8]])
    expected = [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [-0.6 * np.sin(1.6), 0.6 * np.cos(1.6), 0.8]]
    assert np.asarray(quality.twist(x)) == pytest.approx(np.array(expected))


def test_all_is_done_without_arguments(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(depth, "data_sets", lambda: [("first", lambda: "1"), ("second", lambda: "2")])
    monkeypatch.setattr(depth, "compare", lambda name, data: (name, data))
    depth.main([])
    assert capsys.readouterr().out.endswith("| first | 1 |\n| second | 2 |\n")
    depth.main(["1"])
    assert "first" not in capsys.readouterr().out
    monkeypatch.setattr(quality, "_TABLES", {"default": lambda: [("a",)], "points": lambda: [("b",)]})
    quality.main([])
    printed = capsys.readouterr().out
    assert "five draws of the noise: default" in printed
    assert "A twist of the sphere" in printed
    with pytest.raises(SystemExit):
        quality.main(["nothing"])
    assert "must be one of default, points, got 'nothing'" in capsys.readouterr().err
