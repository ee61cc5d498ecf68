"""The command line from a file of observations to a report, and its conventions."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray

from rdgp import Sphere, deep_gp
from rdgp.cli import _demo, main
from rdgp.cli._pictures import layer_points
from rdgp.cli._process import prepare_process
from rdgp.estimators import VectorFieldRegressor, load_estimator
from tests.end_to_end.test_cli_bad_input import unfitted
from tests.end_to_end.test_geo import made

pytestmark = pytest.mark.xdist_group("estimators")  # which compile the same shapes
TINY = ["--layers", "1", "--num-output-levels", "4", "--steps", "1"]
COMMANDS = [
    "demo",
    "fit",
    "predict",
    "evaluate",
    "plot",
    "report",
    "track",
    "data sample",
    "data era5",
    "data uci",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with winds, held-out winds, places and a model of the winds."""
    path = tmp_path_factory.mktemp("cli")
    made().to_netcdf(path / "winds.nc", engine="h5netcdf")
    test = made(np.array([-50.0, 10.0, 40.0]), np.arange(5.0, 360.0, 60.0))
    test.to_netcdf(path / "test.nc", engine="h5netcdf")
    (path / "places.csv").write_text("name,Latitude,Longitude\nhere,10,20\nthere,-45,359\n")
    assert main(["fit", f"{path}/winds.nc", "--variables", "uwnd,vwnd", *TINY, "-o", f"{path}/model.rdgp"]) == 0
    return path


def told(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict:
    """Run a command and return what it tells machines."""
    capsys.readouterr()
    assert main([*map(str, arguments), "--json"]) == 0
    printed = capsys.readouterr().out
    assert printed.count("\n") == 1
    return json.loads(printed)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_shows_an_example(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*name.split(), "--help"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert f"Example: rdgp {name} " in printed
    assert "--json" in printed
    assert "--debug" in printed


def test_help_is_light() -> None:
    run = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "rdgp.cli", "--help"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    loaded = {line.split("|")[-1].strip() for line in run.stderr.splitlines()}
    assert "rdgp.cli._app" in loaded
    assert not loaded & {"jax", "numpy", "xarray", "sklearn", "matplotlib", "rdgp.core"}


def test_the_process_is_prepared_only_before_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rdgp.cli._process.version", lambda _: "0.10.1")
    least = "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"
    for name in ("XLA_FLAGS", "JAX_COMPILATION_CACHE_DIR", "TF_CPP_MIN_LOG_LEVEL", "OPENBLAS_NUM_THREADS", least):
        monkeypatch.setenv(name, "before")  # so that it is restored
        monkeypatch.delenv(name)
    prepare_process()
    assert "XLA_FLAGS" not in os.environ
    monkeypatch.delitem(sys.modules, "jax")
    prepare_process()
    assert os.environ["XLA_FLAGS"] == "--xla_cpu_enable_concurrency_optimized_scheduler=false"
    assert os.environ["OPENBLAS_NUM_THREADS"] == "1"
    assert "compiled-" in os.environ["JAX_COMPILATION_CACHE_DIR"]


def test_without_typer_the_extra_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name in [name for name in sys.modules if name.startswith("rdgp.cli._")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "typer", None)
    assert main(["--help"]) == 2
    assert capsys.readouterr().err == "rdgp: the command line needs typer; run: pip install 'rdgp[cli]'\n"


def test_predictions_as_netcdf_and_table(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = folder / "model.rdgp"
    facts = told(capsys, "predict", model, "--grid", "60deg", "-o", tmp_path / "map.nc", "--samples", 2)
    assert facts["shape"] == [4, 6]
    result = xarray.load_dataset(tmp_path / "map.nc", engine="h5netcdf")
    assert {"uwnd", "vwnd_std", "wind_std", "wind_frobenius", "uwnd_sample"} <= set(result)
    assert result.uwnd.attrs["units"] == "m s-1"
    told(capsys, "predict", model, folder / "places.csv", "-o", tmp_path / "at.csv", "--quantiles", "0.1,0.9")
    header, *rows = (tmp_path / "at.csv").read_text().splitlines()
    assert header.startswith("lat,lon,uwnd,uwnd_std,uwnd_quantile_0.1,uwnd_quantile_0.9,vwnd,")
    numbers = np.array([[float(cell) for cell in row.split(",")] for row in rows])
    assert numbers[:, :2].tolist() == [[10.0, 20.0], [-45.0, 359.0]]
    assert (numbers[:, 4] < numbers[:, 2]).all()
    assert (numbers[:, 2] < numbers[:, 5]).all()


def test_scores_pictures_and_report(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, test = folder / "model.rdgp", folder / "test.nc"
    scores = told(capsys, "evaluate", model, test)
    assert scores["observations"] == 18
    assert scores["rmse"] < 1.0
    np.testing.assert_allclose(scores["nlpd"], scores["relative"]["nlpd"] + 2 * np.log(scores["scale"]), rtol=1e-6)
    assert main(["evaluate", str(model), str(test)]) == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in ("NLPD", "MSE", "CRPS", "energy score", "90 % coverage", "m s-1"))
    told(capsys, "predict", model, "--grid", "60deg", "-o", tmp_path / "map.nc")
    told(capsys, "plot", tmp_path / "map.nc", "-o", tmp_path / "map.png", "--observations", folder / "places.csv")
    told(capsys, "plot", tmp_path / "map.nc", "-o", tmp_path / "globe.svg", "--globe", "--view", "40,-30")
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")
    assert "<svg" in (tmp_path / "globe.svg").read_text()
    facts = told(capsys, "report", model, "--test", test, "--grid", "60deg", "-o", tmp_path / "report.html")
    np.testing.assert_allclose(facts["scores"][0]["NLPD"], scores["relative"]["nlpd"], rtol=1e-6)
    page = (tmp_path / "report.html").read_text()
    assert all(text in page for text in ("PIT histogram", "48 observations", "Training"))


def test_a_report_compares_models_of_the_same_name(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "model.rdgp"
    told(capsys, "fit", folder / "winds.nc", "--variables", "uwnd,vwnd", *TINY, "--layers", 2, "-o", other)
    options = ["--compare", other, "--test", folder / "test.nc", "--grid", "60deg", "-o", tmp_path / "report.html"]
    facts = told(capsys, "report", folder / "model.rdgp", *options)
    assert [row["model"] for row in facts["scores"]] == [str(folder / "model.rdgp"), str(other)]
    alone = told(capsys, "evaluate", folder / "model.rdgp", folder / "test.nc")["relative"]["nlpd"]
    np.testing.assert_allclose(facts["scores"][0]["NLPD"], alone, rtol=1e-6)


def test_nothing_is_overwritten_without_force(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (folder / "model.rdgp").read_bytes()
    arguments = ["fit", f"{folder}/winds.nc", "--variables", "t", *TINY, "-o", f"{folder}/model.rdgp"]
    assert main(arguments) == 2
    assert "model.rdgp is there already; choose another name or pass --force" in capsys.readouterr().err
    assert (folder / "model.rdgp").read_bytes() == before
    (folder / "track.csv").write_text("old")
    assert told(capsys, "track", "-o", folder / "track.csv", "--hours", 1, "--force")["minutes"] == 60
    assert (folder / "track.csv").read_text().startswith("time_utc,lat_deg,lon_deg\n2021-06-02T18:00:00Z,")
    assert not list(folder.glob(".rdgp*"))


def test_sample_track_and_tables(tmp_path: Path, data_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wind, train, test = tmp_path / "wind.nc", tmp_path / "train.csv", tmp_path / "test.nc"
    assert told(capsys, "data", "sample", "-o", wind)["shape"] == [73, 144]
    facts = told(capsys, "track", "--data", wind, "-o", train, "--test", test)
    assert (facts["cells"], facts["test_cells"]) == (1368, 4224)
    assert xarray.load_dataset(test, engine="h5netcdf").u.attrs["units"] == "m s-1"
    assert len(train.read_text().splitlines()) == 1369
    facts = told(capsys, "data", "uci", "yacht", "-o", tmp_path / "yacht.csv")
    assert (facts["rows"], facts["inputs"]) == (308, 6)


@pytest.mark.filterwarnings("default::rdgp.datasets.TrackWarning")
def test_warnings_are_one_line_each(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["track", "--start", "2019-01-01T09:00", "--hours", "1", "-o", f"{tmp_path}/track.csv"]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert all(line.startswith("rdgp: warning: ") for line in lines)


def test_the_demonstration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    small = {"steps": 1, "num_levels": 2, "num_output_levels": 4, "train": 48, "num_test": 20, "thinning": 24}
    monkeypatch.setattr(_demo, "QUICK", _demo.Plan({"one": 1, "other": 1}, **small))
    facts = told(capsys, "demo", "--quick", "-o", tmp_path / "demo")
    assert facts["train"] == 48
    assert [row["model"] for row in facts["models"]] == ["one, 1 layer", "other, 1 layer"]
    assert sorted(path.name for path in (tmp_path / "demo").iterdir()) == sorted(_demo.FILES)
    assert "Deep against shallow" in (tmp_path / "demo" / "report.html").read_text()
    assert main(["demo", "--quick", "-o", f"{tmp_path}/demo"]) == 2
    assert "pass --force" in capsys.readouterr().err


def test_the_report_shows_where_layers_move_points() -> None:
    model = deep_gp(Sphere(2), 3, output="tangent", num_levels=2)
    points = layer_points(unfitted(VectorFieldRegressor(layers=3), model))
    assert [layer.shape for layer in points] == [(1000, 3)] * 3
    np.testing.assert_allclose(np.linalg.norm(points[-1], axis=-1), 1.0)
    moved = np.linalg.norm(np.diff(points, axis=0), axis=-1)
    assert (moved.max(axis=1) > 1e-4).all()
    for layer, key, start, end in zip(
        model.hidden, jax.random.split(jax.random.key(0)), points[:-1], points[1:], strict=True
    ):
        expected = Sphere(2).exp(start, layer.draw(key=key)(jnp.asarray(start)))
        np.testing.assert_allclose(end, expected, atol=1e-12)


@pytest.fixture
def listening() -> Iterator[None]:
    """Let processes started here listen to Ctrl-C, even where this one was told not to."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("listening")
def test_an_interrupted_fit_goes_on(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "model.rdgp"
    arguments = ["fit", str(folder / "winds.nc"), "--variables", "t", "--layers", "1", "--num-output-levels", "3"]
    arguments += ["--steps", "1500", "-o", str(output)]
    command = [sys.executable, "-m", "rdgp.cli", *arguments, "--json"]
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path), "JAX_ENABLE_X64": "1"}
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, env=environment) as process:
        assert process.stderr is not None
        while not (line := process.stderr.readline()).startswith("step "):
            assert line
        process.send_signal(signal.SIGINT)
        printed, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    facts, stopped = json.loads(printed), load_estimator(output)
    assert facts["status"] == stopped.status_ == "stopped"
    assert 0 < facts["steps"] < 1500
    assert Path(f"{output}.checkpoint").exists()
    facts = told(capsys, *arguments, "--resume")
    assert (facts["status"], facts["steps"]) == ("ok", 1500)
    history = load_estimator(output).history_
    assert len(history) == 1500
    np.testing.assert_array_equal(history[: len(stopped.history_)], stopped.history_)
    assert not Path(f"{output}.checkpoint").exists()
