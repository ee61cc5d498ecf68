"""Claims of the experiment on the irregular function."""

import numpy as np

from rdgp.experiments._claim import EQUAL, HODGE, Claim
from rdgp.experiments._store import Table
from rdgp.experiments._tables import means, named, with_shallow


def _families(table: Table, target: str = "released") -> Table:
    """Return mean scores of the paper's own models."""
    table = with_shallow(table[table["target"] == target])
    tail = table["tail"].fillna(0) if "tail" in table else 0
    own = table[(table["model"] != "exact") & (table["training"] == "paper") & (tail == 0)]
    return means(own, ["name", "n", "layers"])


def never_worse(table: Table) -> Claim:
    """Compare every depth with the shallow model of its family."""
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


def hodge_best(table: Table) -> Claim:
    """Compare the paper's families at each size and depth."""
    statement = "Hodge fields with interdomain variables are the best of the paper's models"
    found = _families(table)
    found = found[found["layers"] > 1]
    if found["name"].nunique() < 2 or HODGE not in set(found["name"]):
        return Claim(statement, None, "")
    lines, wins = [], 0
    for (n, layers), own in found.groupby(["n", "layers"]):
        scores = own.set_index("name")["nlpd"]
        wins += bool(scores.get(HODGE, np.inf) <= scores.min() + EQUAL)
        lines.append(f"N = {n}, {layers} layers: {scores.idxmin()} ({scores.min():.3f})")
    evidence = f"best or within {EQUAL} of the best in {wins} of {len(lines)}; best are {'; '.join(lines)}"
    return Claim(statement, wins == len(lines), evidence)


def interdomain_better(table: Table) -> Claim:
    """Compare both kinds of inducing variables, pair by pair."""
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


def tail(table: Table) -> Claim:
    """Compare kernels of more levels than the family, with and without the tail."""
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
    if not len(wide) or not {"K = M", "none", "learned"} <= set(wide):
        return Claim(statement, None, "")
    lines = [
        f"N = {key[1]}, {key[2]} layers: {row['K = M']:.3f} with K = M, {row['none']:.3f} without the tail, "
        f"{row['learned']:.3f} with D'"
        for key, row in wide.iterrows()
    ]
    hurts = (wide["none"] > wide["K = M"] + EQUAL).all()
    cured = (wide["learned"] <= wide["K = M"] + EQUAL).all()
    return Claim(statement, bool(hurts and cured), "; ".join(lines))


def paper_beats_exact(table: Table) -> Claim:
    """Compare the paper's training with the exact shallow GP."""
    statement = "Deep Hodge models trained as in the paper beat the converged shallow GP (not in the paper)"
    return _beats_exact(statement, table[table["training"] == "paper"], table, HODGE)


def default_beats_exact(table: Table) -> Claim:
    """Compare default training with the exact shallow GP."""
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
