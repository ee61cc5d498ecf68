"""Curves of optimizations: regret over seeds, and the best value of one study."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from rdgp.core import Numbers
from rdgp.plotting._canvas import ACCENT, FAINT, INK, SECOND, SOFT, new_figure, styled
from rdgp.plotting._diagnostics import CURVES
from rdgp.plotting._trials import read_trials
from rdgp.spaces import Space

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FLOOR = 1e-12  # of regrets, whose logarithm is drawn
Curves = Mapping[str, Numbers | Sequence[Numbers]]


def draw_regret(
    curves: Curves | Mapping[str, Curves],
    *,
    initial: int = 0,
    references: Mapping[str, float] | Mapping[str, Mapping[str, float]] | None = None,
    title: str | None = None,
) -> "Figure":
    """Draw the median and the quartiles over seeds of log10 regret against evaluations, and return the figure.

    `curves` are regrets by method, one row for each seed (the value of each evaluation minus the minimum; of a row the
    best so far is drawn, and NaN is a failure), or such mappings by task: one panel each. `initial` evaluations are
    shaded; `references` are values of log10 regret to compare with, by name, or by task and name.
    """
    tasks: Mapping[str, Any] = curves if _has_tasks(curves) else {"": curves}
    read = {task: {name: read_regret(rows, name) for name, rows in own.items()} for task, own in tasks.items()}
    names = list(dict.fromkeys(name for own in read.values() for name in own))
    colors = dict(zip(names, [*CURVES, INK, SOFT] * len(names), strict=False))
    columns = min(2, len(read))
    rows = -(-len(read) // columns)
    with styled():
        figure = new_figure(4.6 * columns + 1.0, 3.5 * rows)
        for index, (task, own) in enumerate(read.items()):
            axes = figure.add_subplot(rows, columns, index + 1)
            _draw_curves(axes, own, colors, initial, _references(references or {}, task))
            axes.set(title=task, xlabel="evaluations", ylabel="log10 regret" if index % columns == 0 else "")
        drawn = {
            line.get_label(): line for axes in figure.axes for line in axes.get_lines() if line.get_label() in names
        }
        figure.legend([drawn[name] for name in names], names, loc="outside lower center", ncols=min(len(names), 6))
        if title:
            figure.suptitle(title, fontsize=11, color=INK)
    return figure


def read_regret(rows: Numbers | Sequence[Numbers], name: str) -> Float[np.ndarray, "S T"]:
    """Return log10 of the best regret so far, one row for each seed, cut to the shortest."""
    arrays = [np.asarray(row, float) for row in rows]  # type: ignore[union-attr]
    if not arrays or any(row.ndim != 1 or not row.size for row in arrays):
        shapes = ", ".join(str(row.shape) for row in arrays) or "none"
        raise ValueError(f"the regret of {name} must be rows of numbers, one for each seed, got shapes {shapes}")
    length = min(row.size for row in arrays)
    best = np.fmin.accumulate(np.stack([row[:length] for row in arrays]), axis=1)
    if np.nanmin(best, initial=0.0) < -1e-6:
        raise ValueError(
            f"the regret of {name} is negative ({np.nanmin(best):.3g}); subtract the minimum of the target"
        )
    return np.log10(np.maximum(best, FLOOR))


def _has_tasks(curves: Mapping[str, Any]) -> bool:
    if not curves:
        raise ValueError("there is nothing to draw: no curves were given")
    return isinstance(next(iter(curves.values())), Mapping)


def _references(references: Mapping[str, Any], task: str) -> Mapping[str, float]:
    return references.get(task, {}) if references and _has_tasks(references) else references


def _draw_curves(
    axes: "Axes",
    curves: Mapping[str, Float[np.ndarray, "_ _"]],
    colors: Mapping[str, str],
    initial: int,
    references: Mapping[str, float],
) -> None:
    if initial:
        axes.axvspan(0.5, initial + 0.5, color=FAINT, alpha=0.35, linewidth=0.0)
    for label, height in references.items():
        axes.axhline(height, color=SOFT, linewidth=1.0, dashes=(4, 3))
        axes.annotate(
            label, (1.0, height), (-2, 2), axes.get_yaxis_transform(), "offset points", ha="right", fontsize=7.5
        )
    for name, rows in curves.items():
        color, steps = colors[name], np.arange(1, rows.shape[1] + 1)
        known = np.isfinite(rows).any(axis=0)
        low, middle, high = np.nanquantile(rows[:, known], [0.25, 0.5, 0.75], axis=0)
        axes.fill_between(steps[known], low, high, color=color, alpha=0.16, linewidth=0.0)
        axes.plot(steps[known], middle, color=color, linewidth=1.7, label=name)
    axes.margins(x=0.01)
    axes.grid(axis="y")


def draw_progress(
    study: Any, *, space: Space | None = None, direction: str | None = None, title: str | None = None
) -> "Figure":
    """Draw the value of each trial and the best so far, failures as crosses at the foot, and return the figure."""
    trials = read_trials(study, space, direction)
    number = np.arange(len(trials.y))
    with styled():
        figure = new_figure(5.6, 3.4)
        axes = figure.add_subplot()
        axes.scatter(number[trials.done], trials.y[trials.done], s=12, color=SECOND, linewidths=0.0, alpha=0.75)
        best = (np.fmax if trials.maximize else np.fmin).accumulate(np.where(trials.done, trials.y, np.nan))
        axes.step(number, best, where="post", color=ACCENT, linewidth=1.6, label="best so far")
        foot = np.full(int(trials.failed.sum()), 0.03)
        axes.scatter(
            number[trials.failed],
            foot,
            s=22,
            marker="x",
            color=INK,
            transform=axes.get_xaxis_transform(),
            label="failed",
        )
        axes.set(xlabel="trial", ylabel="value", title=title or "Progress")
        axes.grid(axis="y")
        axes.legend(loc="upper right" if not trials.maximize else "lower right")
    return figure
