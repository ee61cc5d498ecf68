"""A statement of the paper against a table of results: a verdict and the numbers."""

from typing import NamedTuple

from rdgp.experiments._store import Table

EQUAL = 0.02  # within which two mean NLPDs in nats, or medians of log10 regret, count as equal
HODGE, EUCLIDEAN = "hodge + interdomain", "Euclidean layers"


class Claim(NamedTuple):
    """A statement, whether it holds here (None: cannot be said), and the numbers."""

    statement: str
    holds: bool | None
    evidence: str

    def __str__(self) -> str:
        verdict = {True: "holds here", False: "**does not hold here**", None: ""}[self.holds]
        verdict = verdict if verdict or self.evidence else "not measured yet"
        return f"{self.statement}: {' — '.join(part for part in (verdict, self.evidence) if part)}"


def duel(statement: str, wide: Table, first: str, second: str) -> Claim:
    """Compare two models cell by cell."""
    if not {first, second} <= set(wide):
        return Claim(statement, None, "")
    gain = (wide[second] - wide[first]).dropna()
    lines = [
        f"{', '.join(map(str, key))}: {wide[first][key]:.3f} against {wide[second][key]:.3f}" for key in gain.index
    ]
    return Claim(
        statement, bool((gain > -EQUAL).all()), f"better in {(gain > 0).sum()} of {len(gain)} ({'; '.join(lines)})"
    )
