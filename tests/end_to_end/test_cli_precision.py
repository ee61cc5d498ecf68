"""The command line on data without noise: models in double precision from a process that starts in single."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import numpy as np
import pytest
import xarray

from rdgp.cli import main
from rdgp.cli._training import _Lines
from rdgp.estimators import load_estimator
from rdgp.io import needs_double
from tests.end_to_end.test_geo import turning_globe

pytestmark = pytest.mark.xdist_group("estimators")
TINY = ["--num-levels", "2", "--num-output-levels", "4", "--steps", "1"]


def write_winds(path: Path, seed: int, count: int) -> None:
    rng = np.random.default_rng(seed)
    lat, lon = np.rad2deg(np.arcsin(rng.uniform(-1.0, 1.0, count))), rng.uniform(-180.0, 180.0, count)
    rows = np.stack([lat, lon, *turning_globe(lat, lon)], axis=1)
    np.savetxt(path, rows, fmt="%.6f", delimiter=",", header="lat,lon,u,v", comments="")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with winds and held-out winds, both without noise but for their six decimals."""
    write_winds(tmp_path / "train.csv", 0, 40)
    write_winds(tmp_path / "test.csv", 1, 12)
    return tmp_path


def run(folder: Path, command: str) -> dict:
    """Run a command in a process that knows no variable of JAX, and return what it tells machines."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("JAX_")}
    done = subprocess.run(
        [sys.executable, "-m", "rdgp.cli", *command.split(), "--json"],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        cwd=folder,
        env={**environment, "XDG_CACHE_HOME": str(folder)},
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_winds_without_noise_go_from_fit_to_report(folder: Path) -> None:
    run(folder, f"fit train.csv --variables u,v --layers 2 -o model.rdgp {' '.join(TINY)}")
    assert needs_double(folder / "model.rdgp")
    run(folder, "predict model.rdgp test.csv -o field.csv")
    run(folder, "predict model.rdgp --grid 60deg -o field.nc")
    run(folder, "plot field.nc -o map.png")
    scores = run(folder, "evaluate model.rdgp test.csv")
    report = run(folder, "report model.rdgp --test test.csv --grid 60deg -o report.html")
    predicted, truth = (np.genfromtxt(folder / name, delimiter=",", names=True) for name in ("field.csv", "test.csv"))
    for name in ("u", "v"):
        np.testing.assert_allclose(predicted[name], truth[name], atol=0.1)  # of up to 10 m/s
    assert xarray.load_dataset(folder / "field.nc", engine="h5netcdf").u.shape == (4, 6)
    assert (folder / "map.png").read_bytes().startswith(b"\x89PNG")
    assert report["scores"][0]["NLPD"] == scores["relative"]["nlpd"]
    assert "Training" in (folder / "report.html").read_text()


def test_scores_have_the_precision_of_the_model(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Errors here are below what single precision resolves."""
    run(folder, f"fit train.csv --variables u,v --layers 1 -o model.rdgp {' '.join(TINY)}")
    scores = run(folder, "evaluate model.rdgp test.csv")["relative"]
    capsys.readouterr()
    assert main(["evaluate", f"{folder}/model.rdgp", f"{folder}/test.csv", "--json"]) == 0  # all in double precision
    expected = json.loads(capsys.readouterr().out)["relative"]
    assert expected["mse"] < np.finfo(np.float32).eps ** 2
    np.testing.assert_allclose(list(scores.values()), list(expected.values()), rtol=0.05)


@pytest.mark.filterwarnings("default::rdgp.inference.PrecisionWarning")
def test_data_without_noise_are_fitted_once_in_a_process_in_double_precision(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    steps: list[int] = []
    monkeypatch.setattr(_Lines, "say", lambda _, step, elbo: steps.append(step))
    arguments = ["fit", f"{folder}/train.csv", "--variables", "u,v", *TINY, "--layers", "1"]
    assert main([*arguments, "-o", f"{folder}/model.rdgp"]) == 0
    assert len(steps) == len(set(steps)) > 0
    assert "rdgp: warning: the observations look free of noise" in capsys.readouterr().err


@pytest.mark.filterwarnings("default::rdgp.inference.PrecisionWarning")
def test_a_stopped_fit_without_noise_goes_on(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    output = folder / "model.rdgp"
    arguments = ["fit", f"{folder}/train.csv", "--variables", "u,v", *TINY, "--steps", "26", "--layers", "1"]
    with jax.enable_x64(False):
        monkeypatch.setattr(_Lines, "say", lambda *_: True)
        assert main([*arguments, "-o", str(output)]) == 130
        monkeypatch.undo()
        assert main([*arguments, "-o", str(output), "--resume"]) == 0
    assert load_estimator(output).history_.size == 26
