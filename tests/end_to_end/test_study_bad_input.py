"""Studies given nonsense: one clear line, and the file stays as it was."""

import json
from pathlib import Path

import numpy as np
import pytest

from rdgp.bayesopt import Study
from rdgp.spaces import Box, Euclidean, Sphere
from tests.end_to_end.untyped import assert_one_line, errors_of

SPACE = Sphere(2)
RANDOM = {"num_initial": 100, "surrogate": "shallow"}


def refused(match: str, action: object) -> None:
    with pytest.raises((ValueError, FileNotFoundError), match=match) as caught:
        action()
    assert "\n" not in str(caught.value)


def tree(tag: str, **fields: object) -> dict:
    """Return an object as the file of a study describes it."""
    return {"structure": {"class": tag, "fields": fields}, "arrays": {}}


def told(y: object = 1.0, x: object = (0.0, 0.0, 1.0), **options: object) -> object:
    return Study(SPACE, **RANDOM).tell(x, y, **options)


UNTYPED = {  # refused by the type checker of the tests already
    "direction": (lambda: Study(SPACE, direction="down"), "direction must be one of minimize, maximize, got 'down'"),
    "surrogate": (lambda: Study(SPACE, surrogate="forest"), "surrogate must be one of auto, shallow, deep"),
    "acquisition": (lambda: Study(SPACE, acquisition="ucb"), "acquisition must be one of"),
    "preset": (lambda: Study(SPACE, preset="best"), "preset must be one of"),
    "space": (lambda: Study("sphere"), "a study needs Sphere(d), Circle(), Torus(n), Rotations(), Box(lower, upper)"),
    "word for a point": (lambda: told(x="north"), "list of 3 numbers, got 'north'"),
    "word for a value": (lambda: told("3"), "y must be one number, got '3'"),
    "list for a value": (lambda: told([1.0, 2.0]), "y must be one number"),
    "complex value": (lambda: told(1j), "y must be one number"),
    "word for noise": (lambda: told(noise_variance="much"), "must be one number"),
    "by": (lambda: Study(SPACE, **RANDOM).best("luck"), 'by must be "observation" or "posterior"'),
    "budget": (lambda: Study(SPACE, **RANDOM).run(lambda x: 0.0, 1.5), "n must be a whole number of at least 1"),
}


@pytest.fixture(scope="module")
def errors() -> dict[str, str]:
    return errors_of(__name__)


@pytest.mark.parametrize("name", UNTYPED)
def test_wrong_types_and_names_are_explained_in_one_line(errors: dict[str, str], name: str) -> None:
    assert_one_line(errors[name], UNTYPED[name][1])


@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"num_initial": 0}, "num_initial must be a whole number of at least 2"),
        ({"seed": -1}, "seed must be a whole number"),
        ({"surrogate": "shallow", "switch_at": 180}, "switch_at needs"),
        ({"preset": "materngabo", "switch_at": 20}, "switch_at needs"),
        ({"layers": 1}, "layers must be a whole number of at least 2"),
    ],
)
def test_odd_options_are_refused(options: dict, match: str) -> None:
    refused(match, lambda: Study(SPACE, **options))


def test_unbounded_spaces_are_refused() -> None:
    refused(r"a study needs Sphere\(d\).*got Euclidean\(2\); give its coordinates bounds", lambda: Study(Euclidean(2)))
    refused("without boundary", lambda: Study(Box([0.0], [1.0]), surrogate="deep"))
    refused("without boundary", lambda: Study(Box([0.0], [1.0]), switch_at=20))


@pytest.mark.parametrize(
    ("x", "match"),
    [
        ([0.0, 0.0, 2.0], r"is not on Sphere\(2\); the nearest point is \[0.0, 0.0, 1.0\]"),
        ([0.0, 1.0], r"has 3 numbers, got shape \(2,\)"),
        ([[0.0, 0.0, 1.0]], r"has 3 numbers, got shape \(1, 3\)"),
        ([np.nan, 0.0, 1.0], "finite numbers"),
    ],
)
def test_points_off_the_space_are_refused(x: object, match: str) -> None:
    study = Study(SPACE, **RANDOM)
    refused(match, lambda: study.tell(x, 1.0))
    assert study.trials == ()


def test_odd_noise_and_missing_values_are_refused() -> None:
    study = Study(SPACE, **RANDOM)
    trial = study.ask()
    refused("needs a value y", lambda: study.tell(trial))
    for noise in (-1.0, np.nan):
        refused("noise_variance must be", lambda noise=noise: study.tell(trial, 1.0, noise_variance=noise))
    assert study.trials[0].state == "pending"


def test_a_trial_is_told_once_and_to_its_study() -> None:
    study, other = Study(SPACE, **RANDOM), Study(SPACE, seed=1, **RANDOM)
    trial = study.ask()
    study.tell(trial, 1.0)
    refused("told already", lambda: study.tell(trial, 2.0))
    other.ask()
    refused("not of this study", lambda: other.tell(trial, 2.0))


def test_a_budget_of_zero_is_refused() -> None:
    study = Study(SPACE, **RANDOM)
    refused("n must be a whole number of at least 1, got 0", lambda: study.run(lambda x: 0.0, 0))
    refused("n must be a whole number of at least 1, got 0", lambda: study.ask(0))


def test_without_success_there_is_no_best_and_no_prediction() -> None:
    study = Study(SPACE, **RANDOM)
    for _ in range(3):
        study.tell(study.ask(), failed=True)
    refused(r"no evaluation has succeeded yet \(3 failed\)", study.best)
    refused("no evaluation has succeeded", lambda: study.predict([[0.0, 0.0, 1.0]]))
    assert study.ask().state == "pending"


def test_damaged_newer_and_foreign_files_are_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "study.json"
    study = Study(SPACE, path=path, **RANDOM)
    study.tell(study.ask(), 1.0)
    study.close()
    good = path.read_text()
    content = json.loads(good)
    broken = {
        "damaged": good[: len(good) // 2],
        "every lower bound must be": json.dumps(
            {**content, "space": tree("rdgp:Box", lower={"tuple": [1.0]}, upper={"tuple": [0.0]})}
        ),
        "in format 1, .*begin a new study": json.dumps({**content, "version": 1}),
        "newer rdgp .*upgrade": json.dumps({**content, "version": 99}),
        "not a study": json.dumps({"a": 1}),
        "names the class other:Klein; import": json.dumps({**content, "space": tree("other:Klein")}),
        "names Gamma, which is not a space": json.dumps({**content, "space": tree("rdgp:Gamma", shape=1.0, rate=1.0)}),
        "trial 0 has no proper state": json.dumps({**content, "trials": [{**content["trials"][0], "y": None}]}),
        "trial 0 has no proper point": json.dumps({**content, "trials": [{**content["trials"][0], "x": [1.0]}]}),
        "y must be one number": json.dumps({**content, "trials": [{**content["trials"][0], "noise_variance": "1"}]}),
        "fit 'local' has no proper": json.dumps({**content, "fits": {"local": {"observations": 3, "parameters": 1}}}),
        "content is damaged": json.dumps({key: value for key, value in content.items() if key != "trials"}),
    }
    for match, text in broken.items():
        path.write_text(text)
        refused(match, lambda: Study.load(path))
        assert path.read_text() == text
    path.write_text(good)
    assert Study.load(path).best().y == 1.0


@pytest.mark.parametrize(
    ("name", "value", "match"),
    [
        ("path", "elsewhere.json", "its settings must be acquisition, direction, "),
        ("seed", None, "seed must be a whole number of at least 0, got None"),
        ("seed", "3", "seed must be a whole number of at least 0, got '3'"),
        ("num_initial", 2.5, "num_initial must be a whole number of at least 2, got 2.5"),
        ("direction", ["minimize"], "direction must be one of minimize, maximize, got"),
        ("layers", True, "layers must be a whole number of at least 2, got True"),
    ],
)
def test_settings_of_a_file_are_only_those_of_a_study(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: object, match: str
) -> None:
    monkeypatch.chdir(tmp_path)
    Study(SPACE, **RANDOM).save("study.json")
    content = json.loads(Path("study.json").read_text())
    content["settings"][name] = value
    Path("study.json").write_text(json.dumps(content))
    refused(f"cannot load study.json: its content is damaged .{match}", lambda: Study.load("study.json"))
    assert {path.name for path in tmp_path.iterdir()} <= {"study.json", ".study.json.lock"}


def test_files_that_are_not_there_or_should_not_be(tmp_path: Path) -> None:
    refused("there is no study at", lambda: Study.load(tmp_path / "none.json"))
    refused("there is no folder", lambda: Study(SPACE, path=tmp_path / "no" / "study.json"))
    (tmp_path / "study.json").write_text("mine")
    refused("exists already", lambda: Study(SPACE, path=tmp_path / "study.json"))
    assert (tmp_path / "study.json").read_text() == "mine"
