"""The paper's statements against tables of results: each a line with a verdict and the numbers."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rdgp.experiments._store import Table
from rdgp.experiments._tables import means, named, with_shallow

EQUAL = 0.02  # nats within which two mean NLPDs count as equal
_HODGE, _EUCLIDEAN = "hodge + interdomain", "Euclidean layers"
_CAUSES = {"n": "N", "inducing": "M", "layers": "layers", "samples": "samples"}


class Claim(NamedTuple):
    """A statement, whether it holds here (None: cannot be said), and the numbers."""

    statement: str
    holds: bool | None
    evidence: str

    def __str__(self) -> str:
        verdict = {True: "holds here", False: "**does not hold here**", None: ""}[self.holds]
        verdict = verdict if verdict or self.evidence else "not measured yet"
        return f"{self.statement}: {' — '.join(part for part in (verdict, self.evidence) if part)}"


def check_claims(experiment: str, table: Table) -> list[Claim]:
    """Return the claims of an experiment."""
    checks: dict[str, list[Callable[[Table], Claim]]] = {
        "synthetic": [
            *(_never_worse, _hodge_best, _interdomain_better, _tail),
            *(_paper_beats_exact, _default_beats_exact),
        ],
        "wind": [_surface, _irregular_winds, _baseline_winds],
        "uci": [_euclidean_accuracy, _closing],
        "timing": [_faster, _growth],
        "bayesopt": [_regret],
        "fields": [],
    }
    return [check(table) for check in checks[experiment]] if len(table) else []


def _families(table: Table, target: str = "released") -> Table:
    """Return mean scores of the paper's own models."""
    table = with_shallow(table[table["target"] == target])
    tail = table["tail"].fillna(0) if "tail" in table else 0
    own = table[(table["model"] != "exact") & (table["training"] == "paper") & (tail == 0)]
    return means(own, ["name", "n", "layers"])


def _never_worse(table: Table) -> Claim:
    statement = "Deep models are never worse than shallow ones"
    found = _families(table)
    shallow = found[found["layers"] == 1].set_index(["name", "n"])["nlpd"]
    deep = found[(found["layers"] > 1) & ~found["name"].str.startswith("Euclidean")]
    pairs = [
        (row, row["nlpd"] - shallow[row["name"], row["n"]])
        for row in deep.to_dict("records")
        if (row["name"], row["n"]) in shallow.index
    ]
    if not pairs:
        return Claim(statement, None, "")
    worst, loss = max(pairs, key=lambda pair: pair[1])
    worse = sum(difference > EQUAL for _, difference in pairs)
    evidence = (
        f"{len(pairs)} comparisons of mean NLPD (released target), worse by more than {EQUAL} in {worse}; "
        f"the largest difference is {loss:+.3f} ({worst['name']}, N = {worst['n']}, {worst['layers']} layers)"
    )
    return Claim(statement, worse == 0, evidence)


def _hodge_best(table: Table) -> Claim:
    statement = "Hodge fields with interdomain variables are the best of the paper's models"
    found = _families(table)
    found = found[found["layers"] > 1]
    if found["name"].nunique() < 2 or _HODGE not in set(found["name"]):
        return Claim(statement, None, "")
    lines, wins = [], 0
    for (n, layers), own in found.groupby(["n", "layers"]):
        scores = own.set_index("name")["nlpd"]
        wins += bool(scores.get(_HODGE, np.inf) <= scores.min() + EQUAL)
        lines.append(f"N = {n}, {layers} layers: {scores.idxmin()} ({scores.min():.3f})")
    evidence = f"best or within {EQUAL} of the best in {wins} of {len(lines)}; best are {'; '.join(lines)}"
    return Claim(statement, wins == len(lines), evidence)


def _interdomain_better(table: Table) -> Claim:
    statement = "Interdomain variables almost always improve over locations"
    found = _families(table)
    split = found["name"].str.split(" \\+ ", expand=True).reindex(columns=[0, 1])
    found = found.assign(field=split[0], inducing=split[1])
    found = found[found["layers"] > 1].dropna(subset=["inducing"])
    wide = found.pivot_table(index=["field", "n", "layers"], columns="inducing", values="nlpd")
    if not {"interdomain", "locations"} <= set(wide):
        return Claim(statement, None, "")
    gain = (wide["locations"] - wide["interdomain"]).dropna()
    better, worse = int((gain > EQUAL).sum()), int((gain < -EQUAL).sum())
    evidence = (
        f"of {len(gain)} pairs better in {better}, equal within {EQUAL} in {len(gain) - better - worse}, worse in "
        f"{worse}; mean gain {gain.mean():+.3f} nats"
    )
    return Claim(statement, better > 0 and worse <= 0.1 * len(gain), evidence)


def _tail(table: Table) -> Claim:
    statement = "More levels in the kernel than in the variational family (K > M) hurt without the tail and not with it"
    if "tail" not in table or not (table["tail"].fillna(0) > 0).any():
        return Claim(statement, None, "")
    keys = ["target", "n", "layers", "field"]
    found = table.assign(tail=table["tail"].fillna(0))
    found = found[
        (found["training"] == "paper") & (found["inducing"] == "interdomain") & (found["model"] == "residual")
    ]
    kinds = np.where(found["tail"] == 0, "K = M", np.where(found["tail_variances"] == "fixed", "none", "learned"))
    wide = found.assign(kind=kinds).pivot_table(index=keys, columns="kind", values="nlpd").dropna()
    if not len(wide):
        return Claim(statement, None, "")
    lines = [
        f"N = {key[1]}, {key[2]} layers: {row['K = M']:.3f} with K = M, {row['none']:.3f} without the tail, "
        f"{row['learned']:.3f} with D'"
        for key, row in wide.iterrows()
    ]
    hurts = (wide["none"] > wide["K = M"] + EQUAL).all()
    cured = (wide["learned"] <= wide["K = M"] + EQUAL).all()
    return Claim(statement, bool(hurts and cured), "; ".join(lines))


def _paper_beats_exact(table: Table) -> Claim:
    statement = "Deep Hodge models trained as in the paper beat the converged shallow GP (not in the paper)"
    return _beats_exact(statement, table[table["training"] == "paper"], table, _HODGE)


def _default_beats_exact(table: Table) -> Claim:
    statement = "Deep models with default training beat the converged shallow GP (not in the paper)"
    return _beats_exact(statement, table[table["training"] == "default"], table, "default training")


def _beats_exact(statement: str, deep: Table, table: Table, name: str) -> Claim:
    """Compare every number of layers with the exact shallow GP of the same data."""
    exact = table[table["model"] == "exact"].groupby(["target", "n"])["nlpd"].mean()
    found = named(deep[deep["layers"] > 1]) if len(deep) else deep
    found = means(found[found["name"] == name], ["target", "n", "layers"]) if len(found) else found
    pairs = [(row, exact[key]) for row in found.to_dict("records") if (key := (row["target"], row["n"])) in exact.index]
    lines = [
        f"{row['target']}, N = {row['n']}, {row['layers']} layers: {row['nlpd']:.3f} against {shallow:.3f}"
        for row, shallow in pairs
    ]
    if not pairs:
        return Claim(statement, None, "")
    wins = sum(row["nlpd"] < shallow - EQUAL for row, shallow in pairs)
    return Claim(statement, wins == len(pairs), f"by more than {EQUAL} in {wins} of {len(pairs)} ({'; '.join(lines)})")


def _level(table: Table) -> Table:
    return table.assign(place=table["level"].astype(str) + ", " + table["source"])


def _hodge_winds(table: Table) -> Table:
    found = _level(with_shallow(table))
    return found[found["name"] == _HODGE]


def _surface(table: Table) -> Claim:
    statement = "Deep models improve on shallow Hodge fields, most near the surface"
    found = means(_hodge_winds(table), ["place", "layers"])
    shallow = found[found["layers"] == 1].set_index("place")["nlpd"]
    deep = [row for row in found.to_dict("records") if row["layers"] > 1 and row["place"] in shallow.index]
    if not deep:
        return Claim(statement, None, "")
    near: list[float] = []
    aloft: list[float] = []
    lines = []
    for row in deep:
        gain = shallow[row["place"]] - row["nlpd"]
        (near if row["place"].startswith(("surface", "1000")) else aloft).append(gain)
        lines.append(f"{row['place']}, {row['layers']} layers: gain {gain:+.3f} nats on {shallow[row['place']]:.3f}")
    most = not aloft or not near or np.mean(near) >= np.mean(aloft)
    return Claim(statement, bool(min([*near, *aloft]) > EQUAL and most), "; ".join(lines))


def _irregular_winds(table: Table) -> Claim:
    statement = "The uncertainty of deep models follows irregular winds, that of shallow ones cannot"
    found = _hodge_winds(table)
    if not len(found) or found["layers"].max() == 1:
        return Claim(statement, None, "")
    columns = ["spread_and_irregularity", "spread_and_error"]
    rows = found.assign(deep=found["layers"] > 1).groupby(["place", "deep"], sort=False)[columns].mean()
    lines, holds = [], True
    for place in dict.fromkeys(found["place"]):
        if (place, True) in rows.index and (place, False) in rows.index:
            deep, shallow = rows.loc[(place, True)], rows.loc[(place, False)]
            holds &= bool(deep[columns[0]] > shallow[columns[0]] + 0.05)
            lines.append(
                f"{place}: rank correlation with irregularity {deep[columns[0]]:.2f} deep, {shallow[columns[0]]:.2f} "
                f"shallow, with errors {deep[columns[1]]:.2f} and {shallow[columns[1]]:.2f}"
            )
    return Claim(statement, holds if lines else None, "; ".join(lines))


def _baseline_winds(table: Table) -> Claim:
    statement = "Residual layers are better than Euclidean ones on winds"
    found = means(_level(with_shallow(table)), ["name", "place", "layers"])
    wide = found[found["layers"] > 1].pivot_table(index=["place", "layers"], columns="name", values="nlpd")
    return _duel(statement, wide, _HODGE, _EUCLIDEAN)


def _euclidean_accuracy(table: Table) -> Claim:
    statement = "Euclidean deep GPs predict the tables better than residual ones with b = 1"
    found = means(named(table), ["name", "data", "layers"])
    wide = found.pivot_table(index=["data", "layers"], columns="name", values="nlpd")
    return _duel(statement, wide, _EUCLIDEAN, "projected + interdomain")


def _duel(statement: str, wide: Table, first: str, second: str) -> Claim:
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


def _closing(table: Table) -> Claim:
    statement = "Other training, levels or maps close the gap to Euclidean models (not in the paper)"
    found = means(named(table), ["name", "data", "layers"])
    wide = found.pivot_table(index=["data", "layers"], columns="name", values="nlpd")
    others = [name for name in wide if name not in (_EUCLIDEAN, "projected + interdomain")]
    if _EUCLIDEAN not in wide or not others:
        return Claim(statement, None, "")
    lines, closed = [], []
    for name in others:
        pairs = wide[[_EUCLIDEAN, name]].dropna()
        closed.append(len(pairs) > 0 and bool((pairs[name] <= pairs[_EUCLIDEAN] + EQUAL).all()))
        scores = [f"{d}, {k}: {row[name]:.3f} against {row[_EUCLIDEAN]:.3f}" for (d, k), row in pairs.iterrows()]
        lines.append(f"{name} ({'; '.join(scores)})")
    return Claim(statement, any(closed), "; ".join(lines))


def _faster(table: Table) -> Claim:
    statement = "A training step of residual models is faster than one of Euclidean models, more so with more layers"
    sets = table[table["data"] != "random"]
    wide = sets.pivot_table(index=["data", "layers"], columns="model", values="cpu_ms")
    if not {"euclidean", "residual"} <= set(wide):
        return Claim(statement, None, "")
    ratio = (wide["euclidean"] / wide["residual"]).dropna()
    lines = [
        f"{data}, {layers} layer{'s'[: layers != 1]}: {value:.1f} times" for (data, layers), value in ratio.items()
    ]
    return Claim(statement, bool((ratio > 1.0).all()), f"Euclidean takes {'; '.join(lines)}")


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


def _growth(table: Table) -> Claim:
    statement = "Growth of the CPU time of a step, as a power (not in the paper)"
    found = growth(table[table["data"] == "random"]) if (table["data"] == "random").any() else {}
    lines = [
        f"{name} {cause}^{power:.2f} over {min(x):g}..{max(x):g}" for (cause, name), (x, _, power) in found.items()
    ]
    return Claim(statement, None, "; ".join(lines))


def _regret(table: Table) -> Claim:
    statement = "A deep surrogate in the last steps finds a better minimum of the irregular function"
    last = table.groupby(["target", "surrogate"])["log10_regret"].agg(["median", "count"])
    lines = [
        f"{target}, {name}: median log10 regret {row['median']:.2f} of {int(row['count'])} runs"
        for (target, name), row in last.iterrows()
    ]
    pairs = [("irregular", name) for name in ("shallow then deep", "shallow")]
    if not all(pair in last.index for pair in pairs):
        return Claim(statement, None, "")
    deep, shallow = (float(last.loc[pair, "median"]) for pair in pairs)
    return Claim(statement, deep < shallow, "; ".join(lines))
