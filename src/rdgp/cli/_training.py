"""`rdgp fit`: from a file of observations to a model file."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rdgp.cli._models import observed, read_model
from rdgp.cli._options import (
    Debug,
    Force,
    Json,
    NoiseStd,
    Output,
    PressureLevel,
    Seed,
    Time,
    as_batch_size,
    as_names,
    as_time,
)
from rdgp.cli._output import OutputFile, check_output, tell

if TYPE_CHECKING:
    import rdgp.datasets
    import rdgp.estimators

_SECONDS = 30.0  # between lines where nobody watches


def fit(
    data: Annotated[Path, typer.Argument(help="NetCDF, CSV or Parquet file of observations.", show_default=False)],
    *,
    variables: Annotated[str, typer.Option(help="A wind (east,north) or one scalar.", show_default=False)],
    output: Output,
    noise_std: NoiseStd = "",
    pressure_level: PressureLevel = None,
    time: Time = None,
    layers: Annotated[int, typer.Option(min=1, help="Layers, the output one included; 1 is a plain GP.")] = 3,
    steps: Annotated[int | None, typer.Option(min=1, help="Training steps.", show_default="by the data")] = None,
    num_levels: Annotated[
        int | None, typer.Option(min=1, help="Eigenvalues of hidden layers.", show_default="by the space")
    ] = None,
    num_output_levels: Annotated[
        int | None, typer.Option(min=1, help="Eigenvalues of the output layer.", show_default="by the data")
    ] = None,
    batch_size: Annotated[str, typer.Option(help="Points in a step: auto, all or a number.")] = "auto",
    seed: Seed = 0,
    resume: Annotated[bool, typer.Option("--resume", help="Go on where a fit with the same options stopped.")] = False,
    force: Force = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Fit a model to observations.

    Ctrl-C stops training: the model so far is kept in the output file, the state of training beside it for --resume.
    """
    options = {
        "layers": layers,
        "steps": steps,
        "num_levels": num_levels,
        "num_output_levels": num_output_levels,
        "batch_size": as_batch_size(batch_size),
        "seed": seed,
    }
    checkpoint = Path(f"{output}.checkpoint")
    target = _check_files(data, output, checkpoint, resume, force)
    found = _read(data, as_names(variables), as_names(noise_std), pressure_level, as_time(time))
    if force and not resume:
        checkpoint.unlink(missing_ok=True)
    estimator = _train(found, options, checkpoint)
    with target.writing() as temporary:
        estimator.save(temporary)
    if estimator.status_ != "stopped":
        checkpoint.unlink(missing_ok=True)
    _tell(estimator, output, checkpoint, as_json)
    codes = {"ok": 0, "stopped": 130}
    raise typer.Exit(codes.get(estimator.status_, 1))


def _check_files(data: Path, output: Path, checkpoint: Path, resume: bool, force: bool) -> OutputFile:
    """Return the file of the model, which --resume writes over if it holds the fit that was stopped."""
    if resume and not checkpoint.is_file():
        raise ValueError(f"nothing to resume: there is no {checkpoint}; leave out --resume")
    unfinished = resume and output.is_file() and read_model(output).status_ == "stopped"
    target = check_output(output, force, inputs=[data], replace=unfinished)
    check_output(checkpoint, True, inputs=[data])
    if checkpoint.exists() and not (resume or force):
        raise ValueError(f"{checkpoint} is left of a fit that was stopped; --resume goes on, --force begins again")
    return target


def _read(
    path: Path, names: tuple[str, ...], noise_std: tuple[str, ...], pressure_level: str | None, when: str | int | None
) -> "rdgp.datasets.Observations":
    """Return the observations to fit, checked before anything is computed."""
    from rdgp.datasets import is_wind, read_observations

    found = read_observations(path, names, noise_std=noise_std or None, pressure_level=pressure_level, time=when)
    if len(names) > 1 and not (is_wind(found, names) or is_wind(found, names[::-1])):
        raise ValueError(
            f"{', '.join(names)} are not the components of a wind (u..., v..., or eastward and northward by "
            "standard_name); fit other variables one at a time, each to its own file"
        )
    errors = f", errors {', '.join(noise_std)}" if noise_std else ""
    print(f"{path}: {len(found.latlon):,} observations of {', '.join(names)}{errors}", file=sys.stderr)
    return found


def _train(
    found: "rdgp.datasets.Observations", options: dict[str, Any], checkpoint: Path
) -> "rdgp.estimators.DeepRegressor":
    from rdgp import geo

    watched = sys.stderr.isatty()
    callback = None if watched else _Lines().say
    (estimator,) = geo.fit(found, progress=watched, checkpoint=checkpoint, callback=callback, **options)
    return estimator


class _Lines:
    """Lines for log files: the first steps, then one every half minute."""

    def __init__(self) -> None:
        self.last = -_SECONDS

    def say(self, step: int, elbo: float) -> None:
        """Print how far training is, if it is time to."""
        if time.monotonic() - self.last >= _SECONDS:
            self.last = time.monotonic()
            print(f"step {step}, ELBO {elbo:.5g}", file=sys.stderr, flush=True)


def _tell(estimator: "rdgp.estimators.DeepRegressor", output: Path, checkpoint: Path, as_json: bool) -> None:
    fitted = estimator.fitted_
    steps, stopped = len(fitted.history), fitted.status == "stopped"
    elbo = float(fitted.history[-1]) if steps else None
    text = f"{output}: {observed(estimator)}; {steps} steps in {fitted.seconds:.0f} s"
    text += "" if elbo is None else f", ELBO {elbo:.5g}"
    if stopped:
        text += f"; stopped, {checkpoint} keeps the state: the same command with --resume goes on"
    elif fitted.status != "ok":
        text += f"; training ended with status {fitted.status}, the last good parameters are kept"
    facts = {
        "output": output,
        "status": fitted.status,
        "variables": fitted.names,
        "observations": len(fitted.inputs),
        "layers": len(fitted.model.hidden) + 1,
        "steps": steps,
        "elbo": elbo,
        "noise_std": [float(value) for value in estimator.noise_std_],
        "seconds": fitted.seconds,
        "checkpoint": checkpoint if stopped else None,
    }
    tell(text, facts, as_json)
