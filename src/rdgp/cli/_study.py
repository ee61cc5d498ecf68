"""`rdgp study`: an experiment outside Python asks for points and tells values, one evaluation at a time."""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from rdgp.cli._options import Debug, Force, Json, Output, Seed, as_numbers
from rdgp.cli._output import check_output
from rdgp.cli._output import tell as say
from rdgp.cli._pictures import PICTURES, save_figure
from rdgp.cli._spaces import GRAMMAR, as_space

if TYPE_CHECKING:
    from rdgp.bayesopt import Study, Trial

File = Annotated[Path, typer.Argument(help="Study file, made by rdgp study new.", show_default=False)]
Noise = Annotated[float | None, typer.Option("--noise-variance", help="Variance of the value's noise, if it is known.")]


class Direction(StrEnum):
    """Where better values lie."""

    minimize = "minimize"
    maximize = "maximize"


class Surrogate(StrEnum):
    """The model of the values."""

    auto = "auto"
    shallow = "shallow"
    deep = "deep"


class Acquisition(StrEnum):
    """What the next point makes large."""

    logei = "logei"
    ei = "ei"
    noisy_logei = "noisy_logei"
    thompson = "thompson"


class Preset(StrEnum):
    """Protocols of papers."""

    paper = "paper"
    materngabo = "materngabo"


class By(StrEnum):
    """What the best trial is best by."""

    observation = "observation"
    posterior = "posterior"


class Kind(StrEnum):
    """What a picture of a study shows."""

    trials = "trials"
    surrogate = "surrogate"
    coordinates = "coordinates"
    progress = "progress"


def new(
    study: Annotated[Path, typer.Argument(help="Study file to make, ending in .json.", show_default=False)],
    *,
    space: Annotated[str, typer.Option(help=f"{GRAMMAR}.", show_default=False)],
    direction: Annotated[Direction, typer.Option(help="Where better values lie.")] = Direction.minimize,
    surrogate: Annotated[Surrogate, typer.Option(help="Model of the values.")] = Surrogate.auto,
    switch_at: Annotated[int | None, typer.Option(min=1, help="Trial from which on the model is deep.")] = None,
    acquisition: Annotated[
        Acquisition | None,
        typer.Option(help="What the next point makes large.", show_default="logei; ei with a preset"),
    ] = None,
    preset: Annotated[Preset | None, typer.Option(help="Protocol of a paper.")] = None,
    seed: Seed = 0,
    force: Force = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Begin a study: a space to search, and how."""
    target = check_output(study, force, (".json",))
    chosen = as_space(space)
    from rdgp.bayesopt import FileLock, Study

    made = Study(
        chosen,
        direction.value,
        surrogate.value,
        switch_at,
        None if acquisition is None else acquisition.value,
        None if preset is None else preset.value,
        seed,
    )
    lock = FileLock(study)
    try:
        with target.writing() as temporary:
            made.save(temporary)
    finally:
        lock.release()
    options = {"direction": made.direction, "surrogate": made.surrogate, "acquisition": made.acquisition, "seed": seed}
    say(f"{study}: {direction.value} on {chosen}", {"study": study, "space": str(chosen), **options}, as_json)


def ask(
    study: File,
    *,
    count: Annotated[int, typer.Option(min=1, help="How many points, for experiments at the same time.")] = 1,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Print the number and the coordinates of the next points; they are pending until they are told."""
    opened = _open(study)
    trials = opened.ask(count)
    facts = [{"number": trial.number, "x": [float(own) for own in trial.x]} for trial in trials]
    say("\n".join(map(_line, trials)), {"study": study, "space": str(opened.space), "trials": facts}, as_json)


def tell(
    study: File,
    values: Annotated[
        list[str] | None, typer.Argument(metavar="[NUMBER] [Y]", help="Number of the trial (not with --x), and value.")
    ] = None,
    *,
    x: Annotated[str | None, typer.Option("--x", help="Coordinates that nobody asked for, apart by commas.")] = None,
    noise_variance: Noise = None,
    failed: Annotated[bool, typer.Option("--failed", help="The evaluation failed; there is no value.")] = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Tell the value of a trial, or that it failed."""
    given = values or []
    wanted = (["NUMBER"] if x is None else []) + ([] if failed else ["Y"])
    if len(given) != len(wanted):
        shown = f"{' '.join(wanted)}" if wanted else "nothing"
        raise ValueError(
            f"after the file {shown} is expected, got {' '.join(given) or 'nothing'}; "
            "write NUMBER Y, --x COORDINATES Y, or --failed instead of Y"
        )
    y = None if failed else _as_number(given[-1])
    number = _as_trial(given[0]) if x is None else None
    point = None if x is None else as_numbers(x, "--x")
    opened = _open(study)
    subject = _find(opened, number, study) if number is not None else _as_point(opened, point or [])
    told = opened.tell(subject, y, noise_variance=noise_variance, failed=failed)
    facts = {"study": study, "number": told.number, "state": told.state, "y": told.y}
    say(f"{told.number}: {'failed' if told.state == 'failed' else f'{told.y:.10g}'}", facts, as_json)


def best(
    study: File,
    *,
    by: Annotated[By, typer.Option(help="Told value, or mean of the model.")] = By.observation,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Print the best trial so far."""
    opened = _open(study, read_only=True)
    found = opened.best(by.value)
    counts = {state: sum(trial.state == state for trial in opened.trials) for state in ("done", "pending", "failed")}
    facts = {"study": study, "number": found.number, "x": [float(own) for own in found.x], "y": found.y, **counts}
    told = ", ".join(f"{number} {state}" for state, number in counts.items() if number)
    say(f"{_line(found)}\nvalue {found.y:.10g}; {told}", facts, as_json)


def plot(
    study: File,
    *,
    output: Output,
    kind: Annotated[
        Kind, typer.Option(help="Points, model and acquisition, lines over coordinates, or best.")
    ] = Kind.trials,
    title: Annotated[str | None, typer.Option(help="Title of the picture.")] = None,
    force: Force = False,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Draw where a study has looked, what its model believes, or how the best value came down."""
    target = check_output(output, force, PICTURES, [study])
    opened = _open(study, read_only=True)
    from rdgp.plotting import draw_coordinates, draw_progress, draw_surrogate, draw_trials

    draw: Any = {
        Kind.trials: draw_trials,
        Kind.surrogate: draw_surrogate,
        Kind.coordinates: draw_coordinates,
        Kind.progress: draw_progress,
    }[kind]
    save_figure(draw(opened, title=title), target)
    say(str(output), {"output": output}, as_json)


def _open(path: Path, read_only: bool = False) -> "Study":
    from rdgp.bayesopt import Study

    if not path.is_file():
        raise ValueError(f"cannot read {path}: there is no such file; rdgp study new makes one")
    return Study.load(path, read_only=read_only)


def _line(trial: "Trial") -> str:
    """Return the number and the coordinates of a trial, in all digits, as --x takes them."""
    return f"{trial.number}: {','.join(repr(float(own)) for own in trial.x)}"


def _as_number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"Y must be a number, got {text!r}; say --failed if there is none") from None


def _as_trial(text: str) -> int:
    if not text.isdigit():
        raise ValueError(f"NUMBER must be the whole number of a trial, got {text!r}; --x takes coordinates")
    return int(text)


def _as_point(study: "Study", point: Sequence[float]) -> Any:
    import numpy as np

    dimension = study.space.ambient_dim
    if len(point) != dimension:
        raise ValueError(f"--x must be {dimension} coordinates of a point on {study.space}, got {len(point)}")
    return np.asarray(point, float)


def _find(study: "Study", number: int, path: Path) -> "Trial":
    if number >= len(study.trials):
        known = f"the last is {study.trials[-1].number}" if study.trials else "ask first"
        raise ValueError(f"there is no trial {number} in {path}; {known}")
    return study.trials[number]
