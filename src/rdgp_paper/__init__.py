"""The experiments of the paper, and benchmarks of how well models predict: a plug-in of the command line.

A plan is a TOML file in `plans`, a run one dictionary of plain settings, a result one small file. `runs` reads plans,
`workers` and `execution` do the runs, `store` keeps their results; `tables`, `hypotheses`, `figures` and `page` show
them. `experiments` has a module for each experiment, `benchmarks` one for each command of its own; `data` and `models`
are what they share. Models and training are those of the library, of which only public names are used.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import typer

__all__ = ["add_command"]

_PACKAGES = ("pandas", "matplotlib", "distributed")


def add_command(app: "typer.Typer") -> None:
    """Add `reproduce` to the application of the command line, or raise if a package of the extra `paper` is missing."""
    for name in _PACKAGES:
        if find_spec(name) is None:  # which imports nothing, so that the command line stays quick
            from rdgp.core import require

            require(name, "paper")
    from rdgp_paper.reproduce import reproduce

    app.command(epilog="Example: rdgp reproduce synthetic --preset quick --only n=400")(reproduce)
