"""Figures of the experiments, drawn from tables of results alone."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from rdgp.plotting import CURVES, draw_displacement, draw_globe, draw_map, draw_regret, new_figure, styled
from rdgp_paper.store import Table
from rdgp_paper.tables import means, named, named_searches, with_kinds, with_places, with_shallow

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_COLORS = (*CURVES, "#22303c", "#3aa0a8", "#a05a9c", "#5d6b78")
_LABELS = {"nlpd": "NLPD", "mse": "MSE", "cpu_ms": "CPU milliseconds of a step"}
_LOGARITHMIC = ("mse", "cpu_ms")


def draw_figures(experiment: str, table: Table) -> dict[str, "Figure"]:
    """Return the figures of an experiment by name."""
    drawers: dict[str, Callable[[Table], dict[str, Figure]]] = {
        "synthetic": _synthetic,
        "wind": _wind,
        "uci": _uci,
        "timing": _timing,
        "bayesopt": _bayesopt,
        "fields": _fields,
    }
    return drawers[experiment](table) if len(table) else {}


def _synthetic(table: Table) -> dict[str, "Figure"]:
    table = with_shallow(table)
    return {
        f"{target}-{score}": _grid(own, score, panel="n", x="layers", title=f"{target.capitalize()} target")
        for target, own in table.groupby("target", sort=False)
        for score in ("nlpd", "mse")
    }


def _wind(table: Table) -> dict[str, "Figure"]:
    table = with_places(with_shallow(table))
    figures = {
        score: _grid(table, score, panel="place", x="layers", title="Winds under a satellite's track")
        for score in ("nlpd", "mse")
    }
    hodge = table[table["name"] == "hodge + interdomain"].sort_values("layers", kind="stable")
    if len(hodge):
        layers = [f"{count} layer{'s'[: count != 1]}" for count in hodge["layers"]]
        months = hodge.assign(name=layers, month=hodge["month"].astype(str))
        title = "Hodge fields, interdomain variables, month by month"
        figures["months"] = _grid(months, "nlpd", panel="place", x="month", title=title)
    return figures


def _uci(table: Table) -> dict[str, "Figure"]:
    table = named(table)
    figures = {}
    for score in ("nlpd", "mse"):
        figures[score] = _grid(table, score, panel="data", x="layers", title="Tables of UCI, standardized values")
    return figures


def _timing(table: Table) -> dict[str, "Figure"]:
    table = with_kinds(table)
    figures = {}
    sets = table[table["data"] != "random"]
    if len(sets):
        panels = [
            f"{d}, d = {k}, B = {b}" for d, k, b in zip(sets["data"], sets["inputs"], sets["points"], strict=True)
        ]
        title = "A training step"
        figures["steps"] = _grid(sets.assign(panel=panels), "cpu_ms", panel="panel", x="layers", title=title)
    growth = table[table["data"] == "random"]
    if len(growth):
        figures["growth"] = _draw_growth(growth)
    return figures


def _draw_growth(table: Table) -> "Figure":
    from rdgp_paper.experiments.timing import growth

    curves = growth(table)
    causes = list(dict.fromkeys(cause for cause, _ in curves))
    with styled():
        figure = new_figure(3.1 * max(len(causes), 1), 3.1)
        for index, cause in enumerate(causes):
            axes = figure.add_subplot(1, len(causes), index + 1)
            for (own, name), (x, y, exponent) in curves.items():
                if own == cause:
                    color = _COLORS[name.startswith("Euclidean")]
                    axes.loglog(x, y, "o-", color=color, markersize=3.5, label=f"{name}: {cause}^{exponent:.2f}")
            axes.set(xlabel=cause, ylabel=_LABELS["cpu_ms"] if index == 0 else "")
            axes.minorticks_off()
            axes.set_xticks(sorted({value for (own, _), (x, _, _) in curves.items() if own == cause for value in x}))
            axes.xaxis.set_major_formatter("{x:.0f}")
            axes.grid()
            axes.legend(fontsize=7)
        figure.suptitle("Growth of the time of a step", fontsize=11)
    return figure


def _bayesopt(table: Table) -> dict[str, "Figure"]:
    curves = {
        str(task): {str(name): list(rows["regret"]) for name, rows in own.groupby("name", sort=False)}
        for task, own in named_searches(table).groupby("task", sort=False)
    }
    return {"regret": draw_regret(curves, initial=5)}


def _fields(table: Table) -> dict[str, "Figure"]:
    rows = {row["picture"]: row for row in table.to_dict("records")}
    figures = {}
    vectors = [name for name in ("projected", "frame", "hodge") if name in rows]
    if vectors:
        with styled():
            figure = new_figure(3.6 * len(vectors), 4.1)
            for index, name in enumerate(vectors):
                axes, data = figure.add_subplot(1, len(vectors), index + 1), _gridded(rows[name], ("u", "v"))
                draw_globe(data, color="speed", view=(35.0, 20.0), title=name, coastline=[], axes=axes)
            figures["vectors"] = figure
    for row in table[table["picture"] == "irregular"].to_dict("records"):
        name = "irregular" if row["target"] == "released" else f"irregular-{row['target']}"
        title, data = f"The irregular function, as {row['target']}", _gridded(row, ("value",))
        figures[name] = draw_globe(data, color="value", view=(30.0, 60.0), title=title, coastline=[])
    if "layers" in rows:
        points = _points(rows["layers"])
        figures["layers"] = draw_displacement(points, title="Layers of one draw of a deep prior")
    if "sample" in rows:
        figures["sample"] = _draw_sample(_gridded(rows["sample"], ("shallow", "deep")))
    return figures


def _draw_sample(data: dict[str, Any]) -> "Figure":
    with styled():
        figure = new_figure(9.6, 3.4)
        for index, name in enumerate(("shallow", "deep")):
            title = "Output layer alone" if name == "shallow" else "After the hidden layers"
            axes = figure.add_subplot(1, 2, index + 1)
            draw_map(data, color=name, title=title, coastline=[], axes=axes)
    return figure


def _gridded(row: dict[str, Any], names: Sequence[str]) -> dict[str, Any]:
    lat, lon = np.unique(row["lat"]), np.unique(row["lon"])
    return {"lat": lat, "lon": lon, **{name: np.reshape(row[name], (lat.size, lon.size)) for name in names}}


def _points(row: dict[str, Any]) -> list[np.ndarray]:
    count = sum(isinstance(row.get(f"x{i}_x"), list) for i in range(10))
    return [np.stack([row[f"x{i}_{axis}"] for axis in "xyz"], axis=-1) for i in range(count)]


def _grid(table: Table, score: str, *, panel: str, x: str, title: str) -> "Figure":
    """Draw means and a band of one standard deviation: a panel for each value of a column, a curve for each model."""
    values = list(dict.fromkeys(table[panel].sort_values() if panel == "n" else table[panel]))
    names = list(dict.fromkeys(table["name"]))
    styles = {name: (_COLORS[i % len(_COLORS)], "o--" if i >= len(_COLORS) else "o-") for i, name in enumerate(names)}
    ticks = sorted(set(table[x]), key=lambda value: (len(str(value)), value))
    columns = min(len(values), 5)
    rows = -(-len(values) // columns)
    with styled():
        figure = new_figure(2.75 * columns + 0.8, 2.7 * rows + 0.35 * (-(-len(names) // 3)))
        for index, value in enumerate(values):
            axes = figure.add_subplot(rows, columns, index + 1)
            own = table[table[panel] == value]
            for name in names:
                _draw_curve(axes, own[own["name"] == name], score, x, ticks, styles[name], name)
            axes.set(title=f"N = {value}" if panel == "n" else str(value), xlabel=x)
            axes.set_ylabel(_LABELS[score] if index % columns == 0 else "")
            axes.set_xticks(range(len(ticks)), [str(tick) for tick in ticks], rotation=45 if x == "month" else 0)
            if score in _LOGARITHMIC:
                axes.set_yscale("log")
            axes.grid(axis="y")
        drawn = {line.get_label(): line for axes in figure.axes for line in axes.get_lines()}
        figure.legend(
            [drawn[n] for n in names if n in drawn], names, loc="outside lower center", ncols=min(3, len(names))
        )
        figure.suptitle(title, fontsize=11)
    return figure


def _draw_curve(
    axes: Any, table: Table, score: str, x: str, ticks: list[Any], style: tuple[str, str], name: str
) -> None:
    if not len(table):
        return
    color, line = style
    summary = means(table, [x], (score,))
    places = np.array([ticks.index(value) for value in summary[x]])
    order = np.argsort(places)
    places, mean = places[order], summary[score].to_numpy()[order]
    std = summary[f"{score}_std"].to_numpy()[order]
    if name.startswith("exact"):
        axes.axhline(mean.mean(), color=color, linewidth=1.2, dashes=(4, 3), label=name)
        return
    axes.plot(places, mean, line, color=color, markersize=3.5, linewidth=1.5, label=name)
    axes.fill_between(places, mean - std, mean + std, color=color, alpha=0.15, linewidth=0.0)
