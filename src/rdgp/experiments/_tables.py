"""Tables as figures, claims and the page need them: rows named by model, means over seeds."""

from typing import Any

from rdgp.core import require
from rdgp.experiments._store import Table

SCORES = ("nlpd", "mse")


def named(table: Table) -> Table:
    """Add a column `name` that says in words which model a row is of."""
    return table.assign(name=[_name(row) for row in table.to_dict("records")])


def _name(row: dict[str, Any]) -> str:
    if row.get("model") == "exact":
        return f"exact shallow, {int(row['output_levels'])} levels"
    if row.get("model") == "euclidean":
        return "Euclidean layers"
    if row.get("training") == "default":
        return f"default training{_bias(row)}"
    field = "shallow" if row["field"] == "none" else row["field"]
    name = f"{field} + {row['inducing']}"
    tail, more = _number(row.get("tail")), _number(row.get("more_levels"))
    if tail:
        name += ", K > M, " + ("D'" if row["tail_variances"] == "learned" else "no tail")
    if more:
        name += ", more levels"
    return name + _bias(row)


def _bias(row: dict[str, Any]) -> str:
    """Say how the bias of the map to the sphere was chosen, unless it is one."""
    bias = row.get("bias", "one")
    return f", b by {bias}" if isinstance(bias, str) and bias != "one" else ""


def _number(value: Any) -> float:
    """Return a number, 0 where a table has none."""
    return float(value) if value is not None and value == value else 0.0


def with_shallow(table: Table) -> Table:
    """Give every family its shallow start: without hidden layers all interdomain models are one, all others another."""
    table = named(table)
    shallow, deep = table[table["field"] == "none"], table[table["field"] != "none"]
    parts = [deep]
    for name, own in deep.groupby("name", sort=False):
        first = own.iloc[0]
        if first["training"] != "paper" or (own["layers"] == 1).any() or _number(first.get("tail")):
            continue
        kind = "locations" if first["model"] == "euclidean" else first["inducing"]
        parts.append(shallow[shallow["inducing"] == kind].assign(name=name))
    return require("pandas", "geo").concat(parts, ignore_index=True) if len(deep) else shallow


def means(table: Table, by: list[str], scores: tuple[str, ...] = SCORES) -> Table:
    """Return mean, deviation and number of runs of scores, a row for each combination of some columns."""
    grouped = table.groupby(by, sort=False, dropna=False)
    columns = {}
    for score in scores:
        columns[score] = grouped[score].mean()
        columns[f"{score}_deviation"] = grouped[score].std(ddof=0)
    columns["runs"] = grouped[scores[0]].count()
    return require("pandas", "geo").DataFrame(columns).reset_index()


def markdown(table: Table) -> str:
    """Return a table as Markdown; numbers with four digits."""
    lines = [f"| {' | '.join(map(str, table.columns))} |", f"|{'---|' * len(table.columns)}"]
    lines += [f"| {' | '.join(_text(value) for value in row)} |" for row in table.itertuples(index=False)]
    return "\n".join(lines)


def _text(value: Any) -> str:
    if isinstance(value, float):
        return "" if value != value else f"{value:.4g}"
    return str(value)


def pivot(table: Table, rows: list[str], column: str, score: str) -> Table:
    """Return mean ± deviation of a score as text: a row for each model, a column for each value of one setting."""
    summary = means(table, [*rows, column], (score,))
    digits = ".3f" if score == "nlpd" else ".2e"
    deviation = ".3f" if score == "nlpd" else ".0e"
    texts = [
        f"{mean:{digits}}" + (f" ± {spread:{deviation}}" if runs > 1 else "")
        for mean, spread, runs in zip(summary[score], summary[f"{score}_deviation"], summary["runs"], strict=True)
    ]
    wide = summary.assign(text=texts).pivot_table(
        index=rows, columns=column, values="text", aggfunc="first", sort=False
    )
    wide = wide[sorted(wide.columns)]
    wide.columns = [f"{column} {value}" for value in wide.columns]
    return wide.reset_index().fillna("")
