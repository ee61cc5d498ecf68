"""Claims of the experiments on the time of a step and on searches."""

import numpy as np

from rdgp.experiments._claim import EQUAL, Claim
from rdgp.experiments._store import Table
from rdgp.experiments._tables import named_searches

_CAUSES = {"n": "N", "inducing": "M", "layers": "layers", "samples": "samples"}


def faster(table: Table) -> Claim:
    """Compare steps of both kinds of models on the data sets."""
    statement = "A training step of residual models is faster than one of Euclidean models, more so with more layers"
    sets = table[table["data"] != "random"]
    wide = sets.pivot_table(index=["data", "layers"], columns="model", values="cpu_ms")
    if not {"euclidean", "residual"} <= set(wide):
        return Claim(statement, None, "")
    ratio = (wide["euclidean"] / wide["residual"]).dropna()
    lines = [
        f"{data}, {layers} layer{'s'[: layers != 1]}: {value:.1f} times" for (data, layers), value in ratio.items()
    ]
    grows = [bool(own.iloc[-1] > own.iloc[0]) for _, own in ratio.sort_index().groupby(level="data") if len(own) > 1]
    return Claim(statement, bool((ratio > 1.0).all()) and all(grows), f"Euclidean takes {'; '.join(lines)}")


def growth(table: Table) -> dict[tuple[str, str], tuple[list[float], list[float], float]]:
    """Return, by what grows and by model, its values, CPU milliseconds of a step, and the fitted exponent.

    Of the cells on random points those count for a cause that differ from the most common values in nothing else.
    """
    found: dict[tuple[str, str], tuple[list[float], list[float], float]] = {}
    usual = {name: table[name].mode().iloc[0] for name in ("n", "layers", "samples")}
    for model, own in table.groupby("model", sort=False):
        inducing = own["inducing_variables"].mode().iloc[0]
        for column, cause in _CAUSES.items():
            column = "inducing_variables" if column == "inducing" else column
            others = {**usual, "inducing_variables": inducing}
            others.pop(column)
            same = own[np.logical_and.reduce([own[name] == value for name, value in others.items()])]
            same = same.groupby(column)["cpu_ms"].mean()
            if len(same) > 1:
                x, y = same.index.astype(float).tolist(), same.tolist()
                name = "Euclidean" if model == "euclidean" else "residual"
                found[cause, name] = x, y, float(np.polyfit(np.log(x), np.log(y), 1)[0])
    return found


def power_laws(table: Table) -> Claim:
    """Tell how the time of a step grows."""
    statement = "Growth of the CPU time of a step, as a power (not in the paper)"
    found = growth(table[table["data"] == "random"]) if (table["data"] == "random").any() else {}
    lines = [
        f"{name} {cause}^{power:.2f} over {min(x):g}..{max(x):g}" for (cause, name), (x, _, power) in found.items()
    ]
    return Claim(statement, None, "; ".join(lines))


def regret(table: Table) -> Claim:
    """Compare the change to a deep surrogate with the shallow one, for each target under the same options."""
    statement = "A deep surrogate in the last steps finds a better minimum of the irregular function"
    wide = _medians(table, "irregular")
    pairs = [(name, name.replace("shallow then deep", "shallow")) for name in wide.index if "shallow then deep" in name]
    pairs = [(deep, shallow) for deep, shallow in pairs if shallow in wide.index]
    lines = [f"{deep}: median log10 regret {wide[deep]:.2f}, {shallow}: {wide[shallow]:.2f}" for deep, shallow in pairs]
    holds = all(wide[deep] < wide[shallow] - EQUAL for deep, shallow in pairs) if pairs else None
    return Claim(statement, holds, "; ".join(lines))


def opponents(table: Table) -> Claim:
    """Compare every method of this library with random search and with BoTorch, task by task."""
    statement = "Studies find better minima than random search and BoTorch (not in the paper)"
    lines, holds = [], []
    for task in dict.fromkeys(named_searches(table)["task"]):
        wide = _medians(table, task)
        theirs = wide[[name == "random" or name.startswith("BoTorch") for name in wide.index]]
        ours = wide.drop(theirs.index)
        if len(ours) and len(theirs):
            holds.append(bool(ours.max() < theirs.min()))
            best, worst = theirs.idxmin(), ours.idxmax()
            lines.append(
                f"{task}: ours at worst {ours.max():.2f} ({worst}), theirs at best {theirs.min():.2f} ({best})"
            )
    return Claim(statement, all(holds) if holds else None, "; ".join(lines))


def _medians(table: Table, task: str) -> Table:
    """Return the median log10 regret of each method."""
    found = named_searches(table)
    return found[found["task"] == task].groupby("name", sort=False)["log10_regret"].median()
