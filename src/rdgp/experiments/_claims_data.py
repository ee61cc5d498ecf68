"""Claims of the experiments on winds and on tables of UCI."""

import numpy as np

from rdgp.experiments._claim import EQUAL, EUCLIDEAN, HODGE, Claim, duel
from rdgp.experiments._store import Table
from rdgp.experiments._tables import means, named, with_places, with_shallow


def _hodge_winds(table: Table) -> Table:
    found = with_places(with_shallow(table))
    return found[found["name"] == HODGE]


def surface(table: Table) -> Claim:
    """Compare gains near the surface with those aloft."""
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


def irregular_winds(table: Table) -> Claim:
    """Compare how spreads rank with irregularity and with errors."""
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


def baseline_winds(table: Table) -> Claim:
    """Compare residual and Euclidean hidden layers, month by month."""
    statement = "Residual layers are better than Euclidean ones on winds"
    found = means(with_places(with_shallow(table)), ["name", "place", "month", "layers"])
    wide = found[found["layers"] > 1].pivot_table(index=["place", "month", "layers"], columns="name", values="nlpd")
    return duel(statement, wide, HODGE, EUCLIDEAN)


def euclidean_accuracy(table: Table) -> Claim:
    """Compare Euclidean models with the paper's, table by table."""
    statement = "Euclidean deep GPs predict the tables better than residual ones with b = 1"
    found = means(named(table), ["name", "data", "layers"])
    wide = found.pivot_table(index=["data", "layers"], columns="name", values="nlpd")
    return duel(statement, wide, EUCLIDEAN, "projected + interdomain")


def closing(table: Table) -> Claim:
    """Compare all other models with the Euclidean ones."""
    statement = "Other training, levels or maps close the gap to Euclidean models (not in the paper)"
    found = means(named(table), ["name", "data", "layers"])
    wide = found.pivot_table(index=["data", "layers"], columns="name", values="nlpd")
    others = [name for name in wide if name not in (EUCLIDEAN, "projected + interdomain")]
    if EUCLIDEAN not in wide or not others:
        return Claim(statement, None, "")
    lines, closed = [], []
    for name in others:
        pairs = wide[[EUCLIDEAN, name]].dropna()
        closed.append(len(pairs) > 0 and bool((pairs[name] <= pairs[EUCLIDEAN] + EQUAL).all()))
        scores = [f"{d}, {k}: {row[name]:.3f} against {row[EUCLIDEAN]:.3f}" for (d, k), row in pairs.iterrows()]
        lines.append(f"{name} ({'; '.join(scores)})")
    return Claim(statement, any(closed), "; ".join(lines))
