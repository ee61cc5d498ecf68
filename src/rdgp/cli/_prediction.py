"""`rdgp predict` and `rdgp evaluate`."""

from pathlib import Path
from typing import Annotated

import typer

from rdgp.cli._models import observed, read_model, read_places, read_test
from rdgp.cli._options import (
    Debug,
    Force,
    Json,
    Model,
    NoiseStd,
    Output,
    PressureLevel,
    Seed,
    Time,
    as_names,
    as_numbers,
    as_time,
)
from rdgp.cli._output import check_output, print_table, tell, write_dataset


def predict(
    model: Model,
    points: Annotated[
        Path | None, typer.Argument(help="File of places: a table or NetCDF with latitudes and longitudes.")
    ] = None,
    *,
    output: Output,
    grid: Annotated[str | None, typer.Option(help="Spacing of a grid over the globe, such as 2deg.")] = None,
    samples: Annotated[int, typer.Option(min=0, help="Functions to draw from the posterior.")] = 0,
    quantiles: Annotated[str, typer.Option(help="Quantiles of the latent value, such as 0.05,0.95.")] = "",
    seed: Seed = 0,
    force: Force = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Predict on a grid or at places: mean and standard deviation, on request samples and quantiles."""
    target = check_output(output, force, (".nc", ".csv"), [model, points])
    if (grid is None) == (points is None):
        raise ValueError("pass either --grid, such as --grid 2deg, or a file of places")
    asked = as_numbers(quantiles, "--quantiles")
    estimator = read_model(model)
    from rdgp import geo

    estimator.progress = True
    places = grid if points is None else read_places(points)
    result = geo.predict(estimator, places, samples=samples, quantiles=asked, seed=seed)
    write_dataset(result, target)
    shape = " x ".join(str(size) for size in result[estimator.fitted_.names[0]].shape)
    facts = {"output": output, "shape": list(result[estimator.fitted_.names[0]].shape), "variables": list(result)}
    tell(f"{output}: {', '.join(map(str, result))} at {shape} places", facts, as_json)


def evaluate(
    model: Model,
    test: Annotated[Path, typer.Argument(help="File of held-out observations.", show_default=False)],
    *,
    variables: Annotated[str, typer.Option(help="Names in the file, if not those of training.")] = "",
    noise_std: NoiseStd = "",
    pressure_level: PressureLevel = None,
    time: Time = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Score a model on held-out observations: NLPD, MSE, CRPS, energy score, coverage of 90 % intervals."""
    estimator = read_model(model)
    found = read_test(test, estimator, as_names(variables), as_names(noise_std), pressure_level, as_time(time))
    from rdgp.cli._scores import score

    estimator.progress = True
    scores = score(estimator, found)
    facts = {
        "model": model,
        "observations": len(found.latlon),
        "units": estimator.fitted_.units[0],
        "scale": float(estimator.scale_[0]),
        **scores.absolute,
        "relative": scores.relative,
    }
    if as_json:
        tell("", facts, as_json)
        return
    units = estimator.fitted_.units[0] or "units of the data"
    title = f"{len(found.latlon):,} held-out observations; {observed(estimator)}"
    relative = f"in {float(estimator.scale_[0]):.4g} {units}"
    rows = [
        {"score": _LABELS[name], relative: scores.relative.get(name), f"in {units}": scores.absolute[name]}
        for name in _LABELS
    ]
    print_table(rows, title)


_LABELS = {
    "nlpd": "NLPD",
    "mse": "MSE",
    "rmse": "RMSE",
    "crps": "CRPS",
    "energy_score": "energy score",
    "coverage": "90 % coverage",
}
