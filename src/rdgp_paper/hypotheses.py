"""Hypotheses, most of them statements of the paper, tested on a table of results: a verdict and the numbers."""

from collections.abc import Callable
from importlib import import_module
from typing import NamedTuple

from rdgp_paper.store import Table

EQUAL = 0.02  # within which two mean NLPDs in nats, or medians of log10 regret, count as equal
HODGE, EUCLIDEAN = "hodge + interdomain", "Euclidean layers"


class Hypothesis(NamedTuple):
    """A statement, whether it holds here (None: cannot be said), and the numbers."""

    statement: str
    holds: bool | None
    evidence: str

    def __str__(self) -> str:
        verdict = {True: "holds here", False: "**does not hold here**", None: ""}[self.holds]
        verdict = verdict if verdict or self.evidence else "not measured yet"
        return f"{self.statement}: {' — '.join(part for part in (verdict, self.evidence) if part)}"


Check = Callable[[Table], Hypothesis]


def check_hypotheses(experiment: str, table: Table) -> list[Hypothesis]:
    """Return the hypotheses of an experiment, tested on the table of its results."""
    checks: tuple[Check, ...] = import_module(f"rdgp_paper.experiments.{experiment}").HYPOTHESES
    return [check(table) for check in checks] if len(table) else []


def compare(statement: str, wide: Table, first: str, second: str) -> Hypothesis:
    """Return the hypothesis that one model is better than another.

    `wide` has a row for each combination of settings and a column of NLPDs for each model; `first` and `second` are
    the names of two columns.
    """
    if not {first, second} <= set(wide):
        return Hypothesis(statement, None, "")
    gain = (wide[second] - wide[first]).dropna()
    lines = [
        f"{', '.join(map(str, key))}: {wide[first][key]:.3f} against {wide[second][key]:.3f}" for key in gain.index
    ]
    return Hypothesis(
        statement, bool((gain > -EQUAL).all()), f"better in {(gain > 0).sum()} of {len(gain)} ({'; '.join(lines)})"
    )
