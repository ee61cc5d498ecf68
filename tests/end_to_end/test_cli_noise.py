"""Observations whose errors are known, from the command line: `rdgp fit --noise-std` and what follows from it."""

from pathlib import Path

import numpy as np
import pytest

from rdgp.estimators import load_estimator
from tests.end_to_end.test_cli import told

pytestmark = pytest.mark.xdist_group("estimators")
FIT = "--layers 1 --num-output-levels 6 --steps 60"
QUIET, NOISY = 0.05, 4.0


def write(path: Path, seed: int, noisy: np.ndarray) -> None:
    """Write temperatures and winds, some of them noisy, each with the standard deviation of its error."""
    rng, count = np.random.default_rng(seed), len(noisy)
    lat, lon = np.arcsin(rng.uniform(-0.99, 0.99, count)), rng.uniform(-np.pi, np.pi, count)
    heat = 2.0 * np.sin(lat) + np.cos(lat) * np.cos(lon - 0.5)
    truth = np.stack([heat, np.sin(lat) * np.cos(lon), -np.sin(lon)], axis=-1)  # the wind is that of a turning globe
    std = np.where(noisy, NOISY, QUIET)[:, None] * np.ones(3)
    values = truth + std * rng.normal(size=truth.shape)
    rows = np.column_stack([np.rad2deg(lat), np.rad2deg(lon), values, std])
    np.savetxt(path, rows, delimiter=",", header="lat,lon,t,u,v,t_err,u_err,v_err", comments="")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with observations of which every other one is noisy, and quiet and noisy held-out ones."""
    path = tmp_path_factory.mktemp("noise")
    write(path / "train.csv", 0, np.arange(96) % 2 == 1)
    write(path / "quiet.csv", 1, np.zeros(64, bool))
    write(path / "noisy.csv", 2, np.ones(64, bool))
    return path


@pytest.mark.parametrize(("variables", "errors"), [("t", "t_err"), ("u,v", "u_err,v_err"), ("v,u", "v_err,u_err")])
def test_a_noisy_half_does_little_harm_where_its_errors_are_known(
    variables: str, errors: str, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    known, unknown = tmp_path / "known.rdgp", tmp_path / "unknown.rdgp"
    data = [folder / "train.csv", "--variables", variables]
    facts = told(capsys, "fit", *data, "--noise-std", errors, *FIT.split(), "-o", known)
    told(capsys, "fit", *data, *FIT.split(), "-o", unknown)
    assert max(facts["noise_std"]) < 0.5  # what is left to learn, of errors of 4
    with_errors, without = (told(capsys, "evaluate", model, folder / "quiet.csv")["rmse"] for model in (known, unknown))
    assert with_errors < 0.2
    assert with_errors < 0.3 * without
    held = load_estimator(known).fitted_.noise_variance
    variances = held if held.ndim == 1 else np.diagonal(held, axis1=1, axis2=2)
    np.testing.assert_allclose(np.unique(np.round(variances, 9)), [QUIET**2, NOISY**2])


def test_errors_of_held_out_observations_belong_to_their_scores(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, test, errors = tmp_path / "model.rdgp", folder / "noisy.csv", ["--noise-std", "t_err"]
    told(capsys, "fit", folder / "train.csv", "--variables", "t", *errors, *FIT.split(), "-o", model)
    known, unknown = (told(capsys, "evaluate", model, test, *options) for options in (errors, []))
    assert 0.8 < known["coverage"] < 0.98
    assert unknown["coverage"] < 0.3
    assert known["nlpd"] < 0.5 * np.log(2.0 * np.pi * np.e * NOISY**2) + 0.3  # the entropy of the errors
    assert known["rmse"] == pytest.approx(unknown["rmse"])
    report = told(capsys, "report", model, "--test", test, *errors, "--grid", "60deg", "-o", tmp_path / "report.html")
    assert report["scores"][0]["NLPD"] == pytest.approx(known["relative"]["nlpd"])
