"""The commands by name, each with an example, and those of other packages."""

from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Annotated, Any

import typer

import rdgp
from rdgp.cli import _study
from rdgp.cli._demo import demo
from rdgp.cli._pictures import plot, report
from rdgp.cli._prediction import evaluate, predict
from rdgp.cli._sources import era5, sample, track, uci
from rdgp.cli._training import fit

_PLAIN = {"add_completion": False, "no_args_is_help": True, "pretty_exceptions_enable": False}

app = typer.Typer(
    help="Fields on the globe with calibrated error bars, from files to maps.",
    epilog="Example: rdgp demo",
    **_PLAIN,  # type: ignore[arg-type]
)
data = typer.Typer(help="Get data.", epilog="Example: rdgp data sample -o wind.nc", **_PLAIN)  # type: ignore[arg-type]
study = typer.Typer(
    help="Optimize an experiment on a manifold: ask where to look, tell what came out.",
    epilog="Example: rdgp study new study.json --space rotations",
    **_PLAIN,  # type: ignore[arg-type]
)

_EXAMPLES: dict[Callable[..., Any], str] = {
    demo: "rdgp demo --output demo-output",
    fit: "rdgp fit winds.nc --variables u,v --pressure-level 850 --time 2010-07 -o model.rdgp",
    predict: "rdgp predict model.rdgp --grid 2deg --quantiles 0.05,0.95 -o map.nc",
    evaluate: "rdgp evaluate model.rdgp test.nc",
    plot: "rdgp plot map.nc --globe --view 40,-30 -o globe.png",
    report: "rdgp report model.rdgp --test test.nc --compare shallow.rdgp -o report.html",
    track: "rdgp track --tle aeolus --start 2021-06-02T18:00 --hours 24 -o track.csv",
}
_DATA_EXAMPLES: dict[Callable[..., Any], str] = {
    sample: "rdgp data sample --month 7 -o wind.nc",
    era5: "rdgp data era5 --year 2010 --pressure-levels 500,850,1000 -o era5.nc",
    uci: "rdgp data uci yacht -o yacht.csv",
}
_STUDY_EXAMPLES: dict[Callable[..., Any], str] = {
    _study.new: 'rdgp study new study.json --space "rotations*box:0,1" --direction maximize',
    _study.ask: "rdgp study ask study.json --count 4",
    _study.tell: "rdgp study tell study.json 0 -1.25 --noise-variance 0.01",
    _study.best: "rdgp study best study.json",
    _study.plot: "rdgp study plot study.json -o study.png",
}

for _function, _example in _EXAMPLES.items():
    app.command(epilog=f"Example: {_example}")(_function)
for _function, _example in _DATA_EXAMPLES.items():
    data.command(epilog=f"Example: {_example}")(_function)
for _function, _example in _STUDY_EXAMPLES.items():
    # a negative value is no option
    _settings = {"ignore_unknown_options": True} if _function is _study.tell else None
    study.command(epilog=f"Example: {_example}", context_settings=_settings)(_function)
app.add_typer(data, name="data")
app.add_typer(study, name="study")


def _add_plugins() -> None:
    """Let the entry points of the group `rdgp.commands` add their commands; one that fails breaks no other."""
    for point in entry_points(group="rdgp.commands"):
        try:
            point.load()(app)
        except Exception as error:
            _add_unavailable(point.name, error)


def _add_unavailable(name: str, error: Exception) -> None:
    """Add a command that answers with what kept it from being added; it is not listed."""
    anything = {"ignore_unknown_options": True, "allow_extra_args": True}

    @app.command(name, hidden=True, add_help_option=False, context_settings=anything)
    def _unavailable() -> None:
        raise error


_add_plugins()


def _print_version(asked: bool) -> bool:
    if asked:
        print(f"rdgp {rdgp.__version__}")
        raise typer.Exit
    return asked


@app.callback()
def _start(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass
