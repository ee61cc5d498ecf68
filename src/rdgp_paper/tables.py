"""Tables as figures, hypotheses and the page need them: rows named by model, means over seeds."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from rdgp.core import require
from rdgp_paper.store import Table

SCORES = ("nlpd", "mse")
_OPTIONS = {"default": "", "paper": ", paper's options"}


def named(table: Table) -> Table:
    """Add a column `name` that says in words which model a row is of."""
    return table.assign(name=[_name(row) for row in table.to_dict("records")])


def _name(row: dict[str, Any]) -> str:
    if row.get("model") == "exact":
        return f"exact shallow, {int(row['num_output_levels'])} levels"
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
        kind = "points" if first["model"] == "euclidean" else first["inducing"]
        parts.append(shallow[shallow["inducing"] == kind].assign(name=name))
    return require("pandas", "paper").concat(parts, ignore_index=True) if len(deep) else shallow


def with_places(table: Table) -> Table:
    """Add a column `place` that says at what height and from which data winds are."""
    return table.assign(place=[_place(row) for row in table.to_dict("records")])


def _place(row: dict[str, Any]) -> str:
    level = str(row["pressure_level"])
    return f"{level if level == 'surface' else f'{float(level):g} hPa'}, {row['source']}"


def with_kinds(table: Table) -> Table:
    """Add a column `name` that tells residual from Euclidean layers."""
    return table.assign(name=np.where(table["model"] == "euclidean", "Euclidean layers", "residual layers"))


def steps(table: Table) -> Table:
    """Return a row for each data set and depth: milliseconds of a step, by processor and by clock."""
    sets = with_kinds(table[table["data"] != "random"])
    rows = []
    for (data, layers), own in sets.groupby(["data", "layers"], sort=False):
        times = own.groupby("name")[["cpu_ms", "wall_ms"]].mean()
        texts = {f"{name}, CPU (wall) ms": f"{cpu:.0f} ({wall:.0f})" for name, cpu, wall in times.itertuples()}
        rows.append({"data": data, "layers": layers, **texts})
    return require("pandas", "paper").DataFrame(rows).fillna("")


def named_searches(table: Table) -> Table:
    """Add columns to results of searches: `noise`, `task` (target and noise) and `name` (surrogate and options)."""
    noise = table["noise"].fillna(0.0) if "noise" in table else 0.0
    found = table.assign(noise=noise)
    rows = found.to_dict("records")
    tasks = [f"{row['target']}, noise {row['noise']:g}" if row["noise"] else row["target"] for row in rows]
    names = [row["surrogate"] + _OPTIONS.get(row["options"], f", {row['options']}") for row in rows]
    return found.assign(task=tasks, name=names)


def searches(table: Table) -> Table:
    """Return a row for each task and method: median and quartiles of log10 regret, stuck runs, time of an ask."""
    found = named_searches(table)
    rows = []
    for (task, name), own in found.groupby(["task", "name"], sort=False):
        curves = np.log10(np.stack(own["regret"].tolist()))
        steps = sorted({step for step in (55, 105, 185, curves.shape[1]) if step <= curves.shape[1]})
        row = {"task": task, "method": name, "runs": len(own)}
        row |= {f"after {step}": _quartiles(curves[:, step - 1]) for step in steps}
        row |= {"of the best observed": _quartiles(own["log10_regret_of_observed_best"])}
        row |= {"stuck": int(own["stuck"].sum()) if own["target"].iloc[0] == "irregular" else ""}
        late = own["ask_seconds"].median() if "ask_seconds" in own else np.nan
        rows.append({**row, "CPU s of a late ask": f"{late:.2f}" if late == late else ""})
    return require("pandas", "paper").DataFrame(rows).fillna("")


def _quartiles(values: Any) -> str:
    low, middle, high = np.quantile(np.asarray(values, float), [0.25, 0.5, 0.75])
    return f"{middle:.2f} ({low:.2f}, {high:.2f})"


def means(table: Table, by: list[str], scores: tuple[str, ...] = SCORES) -> Table:
    """Return mean, standard deviation and number of runs of scores, a row for each combination of the columns `by`."""
    grouped = table.groupby(by, sort=False, dropna=False)
    columns = {}
    for score in scores:
        columns[score] = grouped[score].mean()
        columns[f"{score}_std"] = grouped[score].std(ddof=0)
    columns["runs"] = grouped[scores[0]].count()
    return require("pandas", "paper").DataFrame(columns).reset_index()


def markdown(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table as Markdown; numbers with four digits."""
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    lines += [f"| {' | '.join(_text(value) for value in row)} |" for row in rows]
    return "\n".join(lines)


def print_table(title: str, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print a table as Markdown under a title."""
    print(f"\n## {title}\n\n{markdown(header, rows)}")


def _text(value: Any) -> str:
    if isinstance(value, float):
        return "" if value != value else f"{value:.4g}"
    return str(value)


def pivot(table: Table, rows: list[str], column: str, score: str) -> Table:
    """Return mean ± standard deviation of a score as text.

    There is a row for each combination of the columns `rows`, a column for each value of `column`.
    """
    summary = means(table, [*rows, column], (score,))
    mean_form, std_form = (".3f", ".3f") if score == "nlpd" else (".2e", ".0e")
    texts = [
        f"{mean:{mean_form}}" + (f" ± {std:{std_form}}" if runs > 1 else "")
        for mean, std, runs in zip(summary[score], summary[f"{score}_std"], summary["runs"], strict=True)
    ]
    wide = summary.assign(text=texts).pivot_table(
        index=rows, columns=column, values="text", aggfunc="first", sort=False
    )
    wide = wide[sorted(wide.columns)]
    wide.columns = [f"{column} {value}" for value in wide.columns]
    return wide.reset_index().fillna("")
