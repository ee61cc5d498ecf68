"""`rdgp demo`: real winds along a satellite track, a shallow and a deep model, numbers and pictures."""

import itertools
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from rdgp.cli._options import Debug, Force, Json, Seed
from rdgp.cli._output import OutputFile, print_table, tell, write_dataset

if TYPE_CHECKING:
    import xarray

    import rdgp.datasets
    import rdgp.estimators

FILES = ("map.png", "globe.png", "prediction.nc", "report.html")


class Plan(NamedTuple):
    """How much the demonstration computes; None leaves a number to the library."""

    layers: dict[str, int]
    steps: int | None = None
    num_levels: int | None = None
    num_output_levels: int | None = None
    train: int | None = None  # observations used, of 1368
    num_test: int = 5000  # of which 4224 cells are left
    thinning: int = 1  # of the grid that is drawn


FULL = Plan({"shallow": 1, "deep": 3}, thinning=2)
QUICK = Plan({"shallow": 1, "deep": 3}, steps=10, num_levels=2, num_output_levels=6, train=60, num_test=200, thinning=6)


def demo(
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the files.")] = Path("demo-output"),
    steps: Annotated[int | None, typer.Option(min=1, help="Training steps.", show_default="by the data")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Few points and steps: a trial of the machinery.")] = False,
    seed: Seed = 0,
    force: Force = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Fit July surface winds under a day of the satellite Aeolus, shallow and deep, and draw them."""
    plan = QUICK if quick else FULL
    plan = plan if steps is None else plan._replace(steps=steps)
    _check_folder(output, force)
    start = time.monotonic()
    wind, split = _data(plan)
    _say(f"{len(split.train.latlon):,} cells under the track to learn from, {len(split.test.latlon):,} to test with")
    models = {
        f"{name}, {count} layer{'s'[: count > 1]}": _train(split, plan, count, seed)
        for name, count in plan.layers.items()
    }
    rows, output = _draw(wind, split, models, plan, output, force)
    seconds = time.monotonic() - start
    if not as_json:
        print_table(rows, f"July surface winds; scores in units of the mean speed {_scale(models):.3g} m/s")
    text = f"{', '.join(FILES)} in {output}, after {seconds:.0f} s"
    facts = {"output": output, "files": FILES, "seconds": seconds, "models": rows, "train": len(split.train.latlon)}
    tell(text, {**facts, "test": len(split.test.latlon)}, as_json)


def _check_folder(folder: Path, force: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; choose the name of a folder")
    there = _there(folder)
    if there and not force:
        raise ValueError(f"{folder / there[0]} is there already; choose another folder or pass --force")
    if not folder.absolute().parent.is_dir():
        raise ValueError(f"cannot write to {folder}: there is no folder {folder.parent}; create it first")


def _there(folder: Path) -> list[str]:
    return [name for name in FILES if (folder / name).exists()]


def _free(folder: Path, force: bool) -> Path:
    """Return the folder, or another beside it if somebody has put such files there meanwhile."""
    if force or not _there(folder):
        return folder
    names = (folder.absolute().with_name(f"{folder.absolute().name}-{i}") for i in itertools.count(1))
    other = next(name for name in names if not name.exists())
    _say(f"{folder} was filled meanwhile and is left as it is; the result is in {other}")
    return other


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _scale(models: dict[str, "rdgp.estimators.DeepRegressor"]) -> float:
    return float(next(iter(models.values())).scale_[0])


def _data(plan: Plan) -> tuple["xarray.Dataset", "rdgp.datasets.TrackSplit"]:
    """Return the winds and the cells to train and test with."""
    from rdgp.datasets import along_track, ground_track, load_tle, load_wind

    wind = load_wind("surface", month=7)
    split = along_track(wind, ground_track(load_tle("aeolus")), ("u", "v"), num_test=plan.num_test)
    if plan.train is not None:
        train = split.train
        some = slice(0, None, len(train.latlon) // plan.train)
        latlon, values = train.latlon[some][: plan.train], train.values[some][: plan.train]
        split = split._replace(train=train._replace(latlon=latlon, values=values))
    return wind, split


def _train(split: "rdgp.datasets.TrackSplit", plan: Plan, layers: int, seed: int) -> "rdgp.estimators.DeepRegressor":
    from rdgp import geo

    _say(f"training {layers} layer{'s'[: layers > 1]} ...")
    (estimator,) = geo.fit(
        split.train,
        layers=layers,
        steps=plan.steps,
        num_levels=plan.num_levels,
        num_output_levels=plan.num_output_levels,
        batch_size=None,
        recipe="quick",
        seed=seed,
    )
    _say(f"  {len(estimator.history_)} steps in {estimator.fitted_.seconds:.0f} s, {estimator.status_}")
    return estimator


def _draw(
    wind: "xarray.Dataset",
    split: "rdgp.datasets.TrackSplit",
    models: dict[str, "rdgp.estimators.DeepRegressor"],
    plan: Plan,
    folder: Path,
    force: bool,
) -> tuple[list[dict[str, Any]], Path]:
    """Write all files and return the rows of the table and the folder of the files."""
    from rdgp import geo
    from rdgp.cli._pictures import report_content, save_figure
    from rdgp.plotting import draw_globe, draw_map, write_report

    deep = list(models.values())[-1]
    deep.progress = True
    truth: Any = wind.isel(lat=slice(None, None, plan.thinning), lon=slice(None, None, plan.thinning))
    prediction: Any = geo.predict(deep, truth)
    title = "July surface winds from a day of the Aeolus track"
    content = report_content(title, models, deep, prediction, split.test)
    shown: dict[str, Any] = {"observations": split.train, "title": title}
    flat, globe = draw_map(prediction, **shown), draw_globe(prediction, view=(35.0, -40.0), **shown)
    folder = _free(folder, force)
    folder.mkdir(exist_ok=True)
    files = {name: OutputFile(folder / name, force) for name in FILES}
    save_figure(flat, files["map.png"])
    save_figure(globe, files["globe.png"])
    write_dataset(prediction, files["prediction.nc"])
    with files["report.html"].writing() as temporary:
        write_report(temporary, content._replace(truth=truth))
    return [dict(row) for row in content.metrics], folder
