"""`rdgp plot` and `rdgp report`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rdgp.cli._models import latlon, observed, read_model, read_places, read_test
from rdgp.cli._options import (
    Debug,
    Force,
    Json,
    Model,
    NoiseStd,
    Output,
    PressureLevel,
    Time,
    as_names,
    as_numbers,
    as_time,
)
from rdgp.cli._output import OutputFile, check_output, tell

if TYPE_CHECKING:
    import numpy

    import rdgp.estimators
    import rdgp.plotting

PICTURES = (".png", ".pdf", ".svg", ".jpg")
_POINTS = 1000  # points that show what layers do to the sphere


def plot(
    prediction: Annotated[Path, typer.Argument(help="File that rdgp predict wrote.", show_default=False)],
    *,
    output: Output,
    globe: Annotated[bool, typer.Option("--globe", help="The globe instead of a flat map.")] = False,
    view: Annotated[str, typer.Option(help="Latitude,longitude above which the globe is seen.")] = "",
    color: Annotated[str | None, typer.Option(help="Variable, speed or difference (with --truth).")] = None,
    truth: Annotated[Path | None, typer.Option(help="File of the true field on the same grid.")] = None,
    observations: Annotated[Path | None, typer.Option(help="File whose places are drawn as dots.")] = None,
    pressure_level: PressureLevel = None,
    time: Time = None,
    title: Annotated[str | None, typer.Option(help="Title of the picture.")] = None,
    force: Force = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Draw a map or a globe: arrows of the mean, color of the uncertainty."""
    target = check_output(output, force, PICTURES, [prediction, truth, observations])
    where = as_numbers(view, "--view")
    if where and (len(where) != 2 or not globe):
        raise ValueError(f"--view must be latitude,longitude and needs --globe, got {view!r}")
    options: dict[str, Any] = {"color": color, "title": title}
    shown = _one_map(prediction, pressure_level, as_time(time))
    if truth is not None:
        options["truth"] = _one_map(truth, pressure_level, as_time(time))
    if observations is not None:
        options["observations"] = latlon(read_places(observations))
    from rdgp.plotting import draw_globe, draw_map

    figure = draw_globe(shown, view=(where[0], where[1]) if where else None, **options) if globe else None
    save_figure(figure or draw_map(shown, **options), target)
    tell(str(output), {"output": output}, as_json)


def _one_map(path: Path, pressure_level: str | None, when: str | int | None) -> Any:
    """Return the fields of a file at one pressure level and time."""
    from rdgp.cli._models import about
    from rdgp.datasets import select

    dataset = read_places(path)
    with about(path):
        chosen = pressure_level is not None or when is not None
        return select(dataset, pressure_level=pressure_level, time=when).squeeze() if chosen else dataset


def save_figure(figure: Any, output: OutputFile) -> None:
    """Write a picture whole or not at all."""
    with output.writing() as temporary:
        figure.savefig(temporary, dpi=150)


def report(
    model: Model,
    *,
    output: Output,
    test: Annotated[
        Path | None, typer.Option(help="File of held-out observations, for scores and calibration.")
    ] = None,
    compare: Annotated[list[Path] | None, typer.Option(help="Another model file, to compare with.")] = None,
    grid: Annotated[str, typer.Option(help="Spacing of the grid that is shown.")] = "2deg",
    variables: Annotated[str, typer.Option(help="Names in the test file, if not those of training.")] = "",
    noise_std: NoiseStd = "",
    pressure_level: PressureLevel = None,
    time: Time = None,
    title: Annotated[str, typer.Option(help="Title of the page.", show_default="by the variables")] = "",
    force: Force = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Write a report: one HTML file with a globe to turn, scores, calibration and what the layers do."""
    paths = [model, *(compare or [])]
    target = check_output(output, force, (".html", ".htm"), [*paths, test])
    alike = len({path.stem for path in paths}) < len(paths)
    models = {str(path) if alike else path.stem: read_model(path) for path in paths}
    chosen = next(iter(models.values()))
    names, errors = as_names(variables), as_names(noise_std)
    found = None if test is None else read_test(test, chosen, names, errors, pressure_level, as_time(time))
    from rdgp import geo
    from rdgp.plotting import write_report

    chosen.progress = True
    prediction = geo.predict(chosen, grid)
    heading = title or f"{', '.join(chosen.fitted_.names)}: posterior mean and uncertainty"
    content = report_content(heading, models, chosen, prediction, found)
    with target.writing() as temporary:
        write_report(temporary, content)
    tell(f"{output}: {observed(chosen)}", {"output": output, "scores": list(content.metrics)}, as_json)


def report_content(
    title: str,
    models: dict[str, "rdgp.estimators.DeepRegressor"],
    chosen: "rdgp.estimators.DeepRegressor",
    prediction: Any,
    test: Any,
) -> "rdgp.plotting.ReportContent":
    """Gather what the report of a model tells, compared with others if there is test data."""
    from rdgp.cli._scores import score
    from rdgp.plotting import ReportContent

    scores = {} if test is None else {name: score(estimator, test) for name, estimator in models.items()}
    histories = {name: estimator.history_ for name, estimator in models.items() if len(estimator.history_)}
    return ReportContent(
        title,
        prediction,
        chosen.fitted_.inputs,
        history=histories or None,
        calibration={name: scored.calibration for name, scored in scores.items()} or None,
        displacement=layer_points(chosen) if chosen.model_.hidden else None,
        metrics=[table_row(name, models[name], scored) for name, scored in scores.items()],
        settings=_settings(chosen),
    )


def table_row(name: str, estimator: "rdgp.estimators.DeepRegressor", scored: Any) -> dict[str, Any]:
    """Return the scores of a model as a row of a table, relative to the scale of training but for the RMSE."""
    units = estimator.fitted_.units[0]
    return {
        "model": name,
        "NLPD": scored.relative["nlpd"],
        "MSE": scored.relative["mse"],
        "90 % coverage": scored.relative["coverage"],
        "CRPS": scored.relative["crps"],
        f"RMSE ({units})" if units else "RMSE": scored.absolute["rmse"],
    }


def layer_points(estimator: "rdgp.estimators.DeepRegressor") -> list["numpy.ndarray"]:
    """Return points spread over the globe and where each hidden layer takes them in one draw."""
    import jax
    import jax.numpy as jnp
    import numpy as np

    from rdgp.datasets import fibonacci_sphere

    with estimator.precision():
        states = estimator.model_.states(jax.random.key(estimator.fitted_.seed), jnp.asarray(fibonacci_sphere(_POINTS)))
        return [np.asarray(state.x, np.float64) for state in states]


def _settings(estimator: "rdgp.estimators.DeepRegressor") -> dict[str, Any]:
    fitted = estimator.fitted_
    return {
        "layers": len(fitted.model.hidden) + 1,
        "observations": f"{len(fitted.inputs):,}",
        "steps": len(fitted.history),
        "training": f"{fitted.seconds:.0f} s, {fitted.status}",
        "learned noise": f"{float(estimator.noise_std_[0]):.3g} {fitted.units[0]}",
        "scores in units of": f"{float(estimator.scale_[0]):.4g} {fitted.units[0]}",
    }
