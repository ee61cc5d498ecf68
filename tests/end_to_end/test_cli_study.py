"""A study from the command line: new, ask, tell, best, plot, and what it says when something is wrong."""

import json
from pathlib import Path

import numpy as np
import pytest

from rdgp.bayesopt import Study
from rdgp.cli import main
from rdgp.cli._spaces import as_space
from rdgp.spaces import Box, Circle, Product, Rotations, Space, Sphere, Torus
from tests.end_to_end.test_cli import told

COMMANDS = ["new", "ask", "tell", "best", "plot"]
SPACES: dict[str, Space] = {
    "sphere:2": Sphere(2),
    "circle": Circle(),
    "rotations": Rotations(),
    "torus:3": Torus(3),
    "box:0,1;0,2": Box([0.0, 0.0], [1.0, 2.0]),
    "box:-1e-3,1": Box([-0.001], [1.0]),
    "rotations*box:0,1": Product(Rotations(), Box([0.0], [1.0])),
    "sphere:2 * torus:1": Product(Sphere(2), Torus(1)),
}


@pytest.mark.parametrize("text", SPACES)
def test_spaces_are_named_by_texts(text: str) -> None:
    assert as_space(text) == SPACES[text]


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["study", name, "--help"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert f"Example: rdgp study {name} " in printed
    assert "--json" in printed
    assert "--debug" in printed


def test_an_experiment_outside_of_python(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "study.json"
    made = told(capsys, "study", "new", file, "--space", "sphere:2", "--direction", "maximize", "--seed", "3")
    assert made["space"] == "Sphere(2)"
    asked = told(capsys, "study", "ask", file, "--count", "3")["trials"]
    assert [trial["number"] for trial in asked] == [0, 1, 2]
    assert np.allclose(np.linalg.norm([trial["x"] for trial in asked], axis=1), 1.0, atol=1e-5)
    assert told(capsys, "study", "tell", file, "1", "-2.5e-1", "--noise-variance", "0.01")["y"] == -0.25
    assert told(capsys, "study", "tell", file, "0", "--failed")["state"] == "failed"
    assert told(capsys, "study", "tell", file, "--x", "-0.6,0,0.8", "-0.125")["number"] == 3
    best = told(capsys, "study", "best", file)
    assert (best["number"], best["y"], best["x"]) == (3, -0.125, [-0.6, 0.0, 0.8])
    assert (best["done"], best["pending"], best["failed"]) == (2, 1, 1)
    study = Study.load(file, read_only=True)
    assert [trial.state for trial in study.trials] == ["failed", "done", "pending", "done"]
    assert study.trials[1].noise_variance == 0.01


def test_what_is_printed_can_be_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "study.json"
    assert main(["study", "new", str(file), "--space", "sphere:2"]) == 0
    assert capsys.readouterr().out == f"{file}: minimize on Sphere(2)\n"
    assert main(["study", "ask", str(file)]) == 0
    number, _, x = capsys.readouterr().out.strip().partition(": ")
    assert main(["study", "tell", str(file), "--x", x, "1"]) == 0
    assert main(["study", "tell", str(file), number, "-1"]) == 0
    capsys.readouterr()
    assert main(["study", "best", str(file)]) == 0
    assert capsys.readouterr().out == f"{number}: {x}\nvalue -1; 2 done\n"


def test_pictures_are_written_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, picture = tmp_path / "study.json", tmp_path / "study.png"
    study = Study(Torus(2))
    for angle in range(4):
        study.tell([np.cos(angle), np.sin(angle), 1.0, 0.0], float(angle))
    study.save(file)
    assert told(capsys, "study", "plot", file, "--kind", "progress", "-o", picture)["output"] == str(picture)
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert main(["study", "plot", str(file), "-o", str(picture)]) == 2
    assert "is there already" in capsys.readouterr().err


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("studies")
    study = Study(Sphere(2))
    study.save(path / "empty.json")
    study.ask(2)
    study.tell(study.trials[0], failed=True)
    study.save(path / "study.json")
    (path / "damaged.json").write_text((path / "study.json").read_text()[:-20])
    (path / "other.json").write_text("{}")
    newer = json.loads((path / "study.json").read_text()) | {"version": 99, "rdgp": "9.0"}
    (path / "newer.json").write_text(json.dumps(newer))
    return path


CASES: dict[str, tuple[str, str]] = {
    "no space": ("new out.json", "Missing option '--space'"),
    "unknown space": ("new out.json --space plane:2", "--space must be sphere:2, circle, torus:3"),
    "no dimension": ("new out.json --space sphere", "sphere needs a dimension of at least 1; write sphere:2"),
    "dimension zero": ("new out.json --space torus:0", "torus needs a dimension of at least 1; write torus:2"),
    "half a box": ("new out.json --space box:0,1;2", "a box needs lower,upper for each side"),
    "empty box": ("new out.json --space box:1,0", "every lower bound must be finite and below its upper bound"),
    "unknown surrogate": ("new out.json --space circle --surrogate best", "Invalid value for '--surrogate'"),
    "there already": (
        "new study.json --space circle",
        "study.json is there already; choose another name or pass --force",
    ),
    "no JSON": ("new study.txt --space circle", "study.txt must end in .json"),
    "no file": ("ask nothing.json", "cannot read nothing.json: there is no such file; rdgp study new makes one"),
    "budget zero": ("ask study.json --count 0", "Invalid value for '--count'"),
    "damaged": ("ask damaged.json", "cannot load damaged.json: the file is damaged"),
    "no study": ("best other.json", "cannot load other.json: it is not a study of rdgp"),
    "newer": ("tell newer.json 0 1", "cannot load newer.json: it was written by a newer rdgp (9.0"),
    "no value": ("tell study.json 1", "after the file NUMBER Y is expected, got 1"),
    "unknown option": ("tell study.json 1 --nosie 2", "after the file NUMBER Y is expected, got 1 --nosie 2"),
    "value and failed": ("tell study.json 1 2 --failed", "after the file NUMBER is expected, got 1 2"),
    "y not a number": ("tell study.json 1 high", "Y must be a number, got 'high'; say --failed"),
    "number not whole": ("tell study.json 1.5 2", "NUMBER must be the whole number of a trial, got '1.5'"),
    "no such trial": ("tell study.json 7 2", "there is no trial 7 in study.json; the last is 1"),
    "told already": ("tell study.json 0 2", "trial 0 has been told already"),
    "off the space": ("tell study.json --x 0,0,2 1", "is not on Sphere(2); the nearest point is [0.0, 0.0, 1.0]"),
    "wrong dimension": ("tell study.json --x 0,1 1", "--x must be 3 coordinates of a point on Sphere(2), got 2"),
    "x not numbers": ("tell study.json --x a,b,c 1", "--x must be numbers apart by commas, got 'a,b,c'"),
    "all failed": ("best study.json", "no evaluation has succeeded yet (1 failed)"),
    "nothing to draw": ("plot empty.json -o out.png", "the study has no trials yet"),
    "no picture": ("plot study.json -o out.txt", "out.txt must end in .png or .pdf"),
}


@pytest.mark.parametrize("name", CASES)
def test_one_line_and_nothing_written(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    before = {path: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")}
    command, text = CASES[name]
    assert main(["study", *command.split()]) == 2
    printed = capsys.readouterr()
    assert printed.err.count("\n") == 1, printed.err
    assert printed.err.startswith("rdgp: ")
    assert text in printed.err
    assert printed.out == ""
    assert {path: path.read_bytes() for path in folder.iterdir() if not path.name.startswith(".")} == before


def test_a_study_in_use_is_not_touched(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "study.json"
    study = Study(Sphere(2), path=file)
    before = file.read_bytes()
    for command in ("ask", "new"):
        more = ["--space", "circle", "--force"] if command == "new" else []
        assert main(["study", command, str(file), *more]) == 2
        assert "is in use by process" in capsys.readouterr().err
    assert file.read_bytes() == before
    study.close()
    assert main(["study", "ask", str(file)]) == 0
