"""What the command line writes: nothing over an input, nothing over what somebody made meanwhile."""

import secrets
import subprocess
from pathlib import Path

import numpy as np
import pytest

from rdgp.bayesopt import Study
from rdgp.cli import _demo, main
from rdgp.cli._output import check_output
from rdgp.estimators import load_estimator
from rdgp.spaces import Torus
from tests.end_to_end.test_geo import made

pytestmark = pytest.mark.xdist_group("estimators")  # which compile the same shapes
FIT = "fit winds.nc --variables uwnd,vwnd --layers 1 --num-output-levels 4 --steps 1"
COMMANDS = {
    "fit": (FIT, "out.rdgp"),
    "predict": ("predict model.rdgp --grid 60deg", "out.nc"),
    "predict a table": ("predict model.rdgp places.csv", "out.csv"),
    "plot": ("plot map.nc", "out.png"),
    "report": ("report model.rdgp --grid 60deg", "out.html"),
    "track": ("track --hours 1", "out.csv"),
    "cells under a track": ("track --hours 1 --data winds.nc --variables uwnd,vwnd", "out.nc"),
    "sample": ("data sample", "out.nc"),
    "study plot": ("study plot study.json --kind progress", "out.png"),
}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Return the contents of winds, places, a model, its map and a study."""
    path = tmp_path_factory.mktemp("inputs")
    made().to_netcdf(path / "winds.nc", engine="h5netcdf")
    (path / "places.csv").write_text("lat,lon\n10,20\n-45,359\n")
    study = Study(Torus(2))
    for angle in range(3):
        study.tell([np.cos(angle), np.sin(angle), 1.0, 0.0], float(angle))
    study.save(path / "study.json")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        assert main([*FIT.split(), "-o", "model.rdgp"]) == 0
        assert main(["predict", "model.rdgp", "--grid", "60deg", "-o", "map.nc"]) == 0
    return {file.name: file.read_bytes() for file in path.iterdir()}


@pytest.fixture
def folder(inputs: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Go to a folder with the inputs and return it."""
    for name, content in inputs.items():
        (tmp_path / name).write_bytes(content)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def somebody(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """Return the list of files that somebody makes just before the command line begins to write."""
    files: list[Path] = []
    token = secrets.token_hex

    def make(count: int) -> str:
        for file in files:
            file.parent.mkdir(exist_ok=True)
            file.write_text("somebody's")
        files.clear()
        return token(count)

    monkeypatch.setattr(secrets, "token_hex", make)
    return files


@pytest.mark.parametrize("name", COMMANDS)
def test_an_output_made_meanwhile_is_left_and_the_result_kept_beside_it(
    name: str, folder: Path, somebody: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    command, output = COMMANDS[name]
    made, kept = folder / output, folder / output.replace("out.", "out-2.")
    (folder / output.replace("out.", "out-1.")).write_text("another's")
    before = {path.name for path in folder.iterdir()}
    somebody.append(made)
    assert main([*command.split(), "-o", output]) == 2
    last = capsys.readouterr().err.splitlines()[-1]
    assert last == f"rdgp: {output} was made meanwhile and is left as it is; the result is in {kept}"
    assert made.read_text() == "somebody's"
    assert (folder / output.replace("out.", "out-1.")).read_text() == "another's"
    made.unlink()
    result = kept.read_bytes()
    kept.unlink()
    (folder / f"{output}.checkpoint").unlink(missing_ok=True)
    assert {path.name for path in folder.iterdir()} == before
    assert main([*command.split(), "-o", output]) == 0
    assert made.read_bytes()[:4] == result[:4]


def test_force_writes_over_what_was_made_meanwhile(folder: Path, somebody: list[Path]) -> None:
    somebody.append(folder / "out.rdgp")
    assert main([*FIT.split(), "-o", "out.rdgp", "--force"]) == 0
    assert load_estimator("out.rdgp").status_ == "ok"
    assert not list(folder.glob("out-*"))


def test_a_file_system_without_links(folder: Path, somebody: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("no links here")

    monkeypatch.setattr("os.link", refuse)
    assert main(["track", "--hours", "1", "-o", "free.csv"]) == 0
    somebody.append(folder / "taken.csv")
    assert main(["track", "--hours", "1", "-o", "taken.csv"]) == 2
    assert (folder / "taken.csv").read_text() == "somebody's"
    assert (folder / "taken-1.csv").read_bytes() == (folder / "free.csv").read_bytes()


def test_only_the_file_that_was_seen_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "model.rdgp"
    path.write_text("stopped")
    output = check_output(path, False, replace=True)
    with output.writing() as temporary:
        temporary.write_text("finished")
    assert path.read_text() == "finished"
    with pytest.raises(ValueError, match=r"made meanwhile and is left as it is; the result is in .*model-1\.rdgp"):  # noqa: SIM117
        with output.writing() as temporary:
            temporary.write_text("once more")
    assert [(tmp_path / name).read_text() for name in ("model.rdgp", "model-1.rdgp")] == ["finished", "once more"]


def test_a_study_made_meanwhile_is_left(folder: Path, somebody: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    somebody.append(folder / "new.json")
    assert main(["study", "new", "new.json", "--space", "rotations"]) == 2
    assert "new.json was made meanwhile and is left as it is" in capsys.readouterr().err
    assert (folder / "new.json").read_text() == "somebody's"


def test_a_folder_of_a_demonstration_filled_meanwhile_is_left(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = {"steps": 1, "num_levels": 2, "num_output_levels": 4, "train": 48, "num_test": 20, "thinning": 24}
    monkeypatch.setattr(_demo, "QUICK", _demo.Plan({"one": 1}, **small))
    draw = _demo._draw

    def late(*arguments: object) -> object:
        (folder / "demo").mkdir()
        (folder / "demo" / "report.html").write_text("somebody's")
        return draw(*arguments)

    monkeypatch.setattr(_demo, "_draw", late)
    assert main(["demo", "--quick", "-o", "demo"]) == 0
    assert f"the result is in {folder / 'demo-1'}" in capsys.readouterr().err
    assert [path.read_text() for path in (folder / "demo").iterdir()] == ["somebody's"]
    assert sorted(path.name for path in (folder / "demo-1").iterdir()) == sorted(_demo.FILES)


@pytest.mark.parametrize(
    "command",
    [
        "fit winds.nc --variables uwnd,vwnd -o winds.nc",
        "fit winds.nc --variables uwnd,vwnd -o ../{folder}/winds.nc",
        "fit link.rdgp.checkpoint --variables uwnd,vwnd -o link.rdgp",
        "predict model.rdgp places.csv -o places.csv",
        "predict link.nc --grid 60deg -o link.nc",
        "plot map.nc -o link.png",
        "plot map.nc --truth winds.nc -o winds.png",
        "plot map.nc --observations places.csv -o places.png",
        "report model.rdgp -o model.html",
        "report model.rdgp --compare link.nc -o model.html",
        "report model.rdgp --test winds.nc -o winds.html",
        "track --data winds.nc --variables uwnd,vwnd -o winds.nc",
        "track --data winds.nc --variables uwnd,vwnd -o cells.nc --test winds.nc",
        "track --data winds.nc --variables uwnd,vwnd -o cells.nc --test ./cells.nc",
        "track --tle places.csv -o places.csv",
        "study plot study.json -o study.png",
    ],
)
def test_an_input_is_never_written_over(
    command: str, folder: Path, inputs: dict[str, bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    links = {"link.rdgp.checkpoint": "winds.nc", "link.nc": "model.rdgp", "link.png": "map.nc", "winds.png": "winds.nc"}
    links |= {"places.png": "places.csv", "model.html": "model.rdgp", "winds.html": "winds.nc"}
    for link, target in (links | {"study.png": "study.json"}).items():
        (folder / link).symlink_to(target)
    assert main([*command.format(folder=folder.name).split(), "--force"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1
    assert " is also an input, " in lines[0]
    assert {name: (folder / name).read_bytes() for name in inputs} == inputs


def test_make_clean_deletes_only_its_own() -> None:
    root = Path(__file__).parents[2]
    command = ["make", "-n", "clean", "OUTPUT=precious"]
    printed = subprocess.run(command, cwd=root, check=True, capture_output=True, text=True, timeout=60).stdout
    assert "precious" not in printed
    assert "demo-output" in printed
