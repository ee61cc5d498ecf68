"""Wrong use and wrong data on the command line: one clear line, exit code 2, nothing written."""
# ruff: noqa: E501 - one case a line reads as a table

import json
from pathlib import Path

import jax
import numpy as np
import pytest
import safetensors.numpy
import xarray

from rdgp import DeepGP, Interdomain, Matern, ScalarField, Sphere, Torus, deep_gp, save
from rdgp.cli import main
from rdgp.estimators import DeepRegressor, Fitted, SphereRegressor, VectorFieldRegressor
from tests.end_to_end.test_datasets import layers, make

FIT = "-o out.rdgp --layers 1 --num-output-levels 2 --steps 1"


def as_file(dataset: xarray.Dataset, path: Path) -> None:
    dataset.to_netcdf(path, engine="h5netcdf")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with one file for each thing that can be wrong."""
    path = tmp_path_factory.mktemp("wrong")
    as_file(make(), path / "good.nc")
    as_file(layers(), path / "layers.nc")
    as_file(make() * np.nan, path / "missing.nc")
    as_file(make().rename(lat="a", lon="b").drop_vars(["a", "b"]), path / "nowhere.nc")
    as_file(make().assign_coords(lat=("lat", np.linspace(-1.5, 1.5, 5), {"units": "radians"})), path / "radians.nc")
    as_file(xarray.Dataset({"u": make().u, "v": make().v.isel(lat=0, drop=True)}), path / "unlike.nc")
    holes = make()
    holes["u"][:2], holes["v"][2:] = np.nan, np.nan
    as_file(holes, path / "masked.nc")
    as_file(make().rename(u="t", v="q"), path / "scalars.nc")
    (path / "text.nc").write_text("hello")
    (path / "points.csv").write_text("lat,lon\n1,2\n")
    (path / "radians.csv").write_text("lat_rad,lon\n1,2\n")
    (path / "empty.csv").write_text("")
    (path / "winds.csv").write_text("lat,lon,u,v,err\n1,2,3,4,0.5\n5,6,7,8,-0.5\n")
    (path / "folder").mkdir()
    winds = deep_gp(Sphere(2), 1, output="tangent", num_output_levels=2)
    unfitted(VectorFieldRegressor(layers=1), winds).save(path / "model.rdgp")
    circle = deep_gp(Sphere(1), 1, num_output_levels=2)
    unfitted(SphereRegressor(1, "ambient"), circle).save(path / "circle.rdgp")
    save(DeepGP(output=Interdomain(ScalarField(Torus(2), Matern(), num_levels=2))), path / "torus.rdgp")
    (path / "damaged.rdgp").write_bytes((path / "model.rdgp").read_bytes()[:-20])
    (path / "newer.rdgp").write_bytes(newer((path / "model.rdgp").read_bytes()))
    return path


def unfitted(estimator: DeepRegressor, model: DeepGP) -> DeepRegressor:
    """Return an estimator that can be saved, without the work of training."""
    names = ("u", "v") if isinstance(estimator, VectorFieldRegressor) else ("y",)
    estimator.fitted_ = Fitted(
        estimator=type(estimator).__name__,
        parameters=estimator.get_params(deep=False),
        model=model,
        offset=np.zeros(len(names)),
        scale=np.ones(len(names)),
        seed=0,
        history=np.zeros(1),
        status="ok",
        seconds=0.0,
        inputs=np.zeros((1, 2)),
        targets=np.zeros((1, len(names))),
        feature_names=None,
        names=names,
        units=("",) * len(names),
        attributes=({},) * len(names),
    )
    return estimator


def newer(data: bytes) -> bytes:
    """Return a file as a later version might write it."""
    size = int.from_bytes(data[:8], "little")
    header = json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["rdgp"])
    header |= {"version": 99, "rdgp": "9.0"}
    return safetensors.numpy.save(safetensors.numpy.load(data), {"rdgp": json.dumps(header)})


CASES: dict[str, tuple[str, str]] = {
    "no file": (f"fit nothing.nc --variables u,v {FIT}", "cannot read nothing.nc: there is no such file"),
    "a folder": (f"fit folder --variables u,v {FIT}", "cannot read folder: there is no such file"),
    "not NetCDF": (f"fit text.nc --variables u,v {FIT}", "text.nc: it is not a NetCDF file"),
    "empty table": (f"fit empty.csv --variables u,v {FIT}", "empty.csv: the table cannot be read"),
    "no such variable": (f"fit good.nc --variables u,w {FIT}", "good.nc: no variable w; there are u, v"),
    "level not there": (f"fit layers.nc --variables u,v --pressure-level 700 --time 2010-01 {FIT}", "no level 700 in level; there are 1000, 500"),
    "time not there": (f"fit layers.nc --variables u,v --pressure-level 500 --time 7 {FIT}", "no time 7 in time; there are 2010-01"),
    "level not chosen": (f"fit layers.nc --variables u,v --time 1 {FIT}", "choose a pressure_level: there are 1000, 500"),
    "all missing": (f"fit missing.nc --variables u,v {FIT}", "missing.nc: all 30 values of u are missing"),
    "no places": (f"fit nowhere.nc --variables u,v {FIT}", "nowhere.nc: no latitude found"),
    "radians": (f"fit radians.nc --variables u,v {FIT}", "radians.nc: lat is in radians, degrees are expected"),
    "unlike shapes": (f"fit unlike.nc --variables u,v {FIT}", "unlike.nc: u and v must have one shape"),
    "empty after masking": (f"fit masked.nc --variables u,v {FIT}", "masked.nc: nothing is left of u, v"),
    "no wind": (f"fit scalars.nc --variables t,q {FIT}", "t, q are not the components of a wind"),
    "no such error": (f"fit good.nc --variables u,v --noise-std u_err,v_err {FIT}", "good.nc: no variable u_err; there are u, v"),
    "no such column of errors": (f"fit winds.csv --variables u,v --noise-std err,v_err {FIT}", "winds.csv: no variable v_err; there are u, v, err"),
    "an error too few": (f"fit winds.csv --variables u,v --noise-std err {FIT}", "winds.csv: noise_std must name a variable of standard deviations for each of u, v, got err"),
    "negative error": (f"fit winds.csv --variables u --noise-std err {FIT}", "winds.csv: err must hold a standard deviation of each observation of u, got 1 negative of 2"),
    "no such error to score with": ("evaluate model.rdgp winds.csv --noise-std err,v_err", "winds.csv: no variable v_err; there are u, v, err"),
    "batch size": (f"fit good.nc --variables u --batch-size some {FIT}", "--batch-size must be auto, all or a whole number"),
    "no folder": ("fit good.nc --variables u -o not/there.rdgp", "cannot write not/there.rdgp: there is no folder not"),
    "into a folder": ("fit good.nc --variables u -o folder", "folder is a folder; add the name of a file"),
    "nothing to resume": (f"fit good.nc --variables u --resume {FIT}", "nothing to resume: there is no out.rdgp.checkpoint"),
    "no layers": ("fit good.nc --variables u -o out.rdgp --layers 0", "Invalid value for '--layers'"),
    "no output": ("fit good.nc --variables u", "Missing option '--output' / '-o'; see rdgp fit --help"),
    "no such option": ("fit good.nc --wrong", "No such option: --wrong"),
    "no such command": ("guess", "No such command 'guess'; see rdgp --help"),
    "too fine": ("predict model.rdgp --grid 0.001 -o out.nc", "180001 x 360000 points needs about"),
    "odd spacing": ("predict model.rdgp --grid 7deg -o out.nc", "grid spacing must divide 180 degrees, got '7deg'"),
    "no targets": ("predict model.rdgp -o out.nc", "pass either --grid, such as --grid 2deg, or a file of places"),
    "both targets": ("predict model.rdgp points.csv --grid 2deg -o out.nc", "pass either --grid"),
    "quantile": ("predict model.rdgp --grid 60deg --quantiles 5 -o out.nc", "quantiles must lie between 0 and 1, got 5"),
    "quantiles": ("predict model.rdgp --grid 60deg --quantiles few -o out.nc", "--quantiles must be numbers apart by commas, got 'few'"),
    "places in radians": ("predict model.rdgp radians.csv -o out.nc", "radians.csv: lat_rad is in radians"),
    "ending": ("predict model.rdgp --grid 60deg -o out.txt", "out.txt must end in .nc or .csv"),
    "no model": ("predict nothing.rdgp --grid 60deg -o out.nc", "cannot load nothing.rdgp: there is no such file"),
    "newer model": ("predict newer.rdgp --grid 60deg -o out.nc", "it was written by a newer rdgp (9.0, format 99;"),
    "damaged model": ("predict damaged.rdgp --grid 60deg -o out.nc", "the file is truncated or damaged"),
    "data as model": ("predict good.nc --grid 60deg -o out.nc", "good.nc: it is not a file of rdgp"),
    "model on the torus": ("predict torus.rdgp --grid 60deg -o out.nc", "torus.rdgp holds a bare model on Torus(2)"),
    "model on the circle": ("evaluate circle.rdgp good.nc", "circle.rdgp is a model on Sphere(1) of ambient coordinates"),
    "other variables": ("evaluate model.rdgp scalars.nc", "scalars.nc: no variable u; there are t, q"),
    "fewer variables": ("evaluate model.rdgp good.nc --variables u", "the model predicts u, v, got --variables u"),
    "nothing to draw": ("plot nothing.nc -o out.png", "cannot read nothing.nc"),
    "no such color": ("plot good.nc --color w -o out.png", "there is no variable 'w'; there are u, v"),
    "view of a map": ("plot good.nc --view 1,2 -o out.png", "--view must be latitude,longitude and needs --globe"),
    "picture ending": ("plot good.nc -o out.nc", "out.nc must end in .png or"),
    "report ending": ("report model.rdgp -o out.pdf", "out.pdf must end in .html"),
    "report without data": ("report model.rdgp --test nothing.nc -o out.html", "cannot read nothing.nc"),
    "no elements": ("track --tle nothing.tle -o out.csv", "cannot read nothing.tle: there is no such file of orbit elements"),
    "start": ("track --start yesterday -o out.csv", "start must be a UTC time such as"),
    "hours": ("track --hours 0 -o out.csv", "hours must be a positive number"),
    "test without data": ("track -o out.csv --test test.csv", "--test needs --data"),
    "ERA5 level": ("data era5 --year 2010 --pressure-levels 510 -o out.nc", "pressure_levels must be among those of ERA5"),
    "ERA5 account": ("data era5 --year 2010 -o out.nc", "downloading ERA5 needs an account"),
    "no such table": ("data uci house -o out.csv", "no table 'house'; there are yacht, energy"),
    "month": ("data sample --month 13 -o out.nc", "month must be a whole number from 1 to 12, got 13"),
    "demo in a file": ("demo -o points.csv", "points.csv is a file; choose the name of a folder"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_one_line_and_nothing_written(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    monkeypatch.setenv("CDSAPI_RC", str(folder / "none"))
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*")}
    command, text = CASES[name]
    assert main(command.split()) == 2
    printed = capsys.readouterr()
    lines = [line for line in printed.err.splitlines() if "observations of" not in line]
    assert len(lines) == 1, printed.err
    assert lines[0].startswith("rdgp: ")
    assert text in lines[0]
    assert printed.out == ""
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("*")} == before


def test_a_left_checkpoint_is_not_thrown_away(folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "out.rdgp.checkpoint").write_text("state")
    arguments = ["fit", f"{folder}/good.nc", "--variables", "u", "-o", f"{tmp_path}/out.rdgp"]
    assert main(arguments) == 2
    assert "--resume goes on, --force begins again" in capsys.readouterr().err
    assert (tmp_path / "out.rdgp.checkpoint").read_text() == "state"


def test_debug_shows_where(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["predict", f"{folder}/newer.rdgp", "--grid", "60deg", "-o", f"{folder}/out.nc", "--debug"]) == 2
    assert "Traceback" in capsys.readouterr().err


def test_interrupts_and_surprises(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    def stumble(*_: object, **__: object) -> None:
        raise jax.errors.JaxRuntimeError("inside")

    arguments = ["predict", f"{folder}/model.rdgp", "--grid", "60deg", "-o", f"{folder}/out.nc"]
    for failure, code, text in ((interrupt, 130, "rdgp: interrupted\n"), (stumble, 1, "rdgp: unexpected JaxRuntime")):
        monkeypatch.setattr("rdgp.geo.predict", failure)
        assert main(arguments) == code
        assert text in capsys.readouterr().err
    assert not (folder / "out.nc").exists()
