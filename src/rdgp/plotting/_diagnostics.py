"""Curves: training history and calibration."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float

from rdgp.core import Numbers
from rdgp.plotting._canvas import ACCENT, FAINT, INK, SECOND, SOFT, new_figure, styled

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

CURVES = (ACCENT, SECOND, "#6c4699", "#4a8f6a", "#b08a2e")


class Calibration(NamedTuple):
    """Probabilities of central intervals, how often they held, and the distribution function at each observation.

    `probabilities` and `coverage` [L], `pit` any number of values in 0..1, as `rdgp.metrics` computes them.
    """

    probabilities: Numbers
    coverage: Numbers
    pit: Numbers


def draw_history(history: Numbers | Mapping[str, Numbers], *, title: str | None = None) -> "Figure":
    """Draw the ELBO against the steps of training, one curve for each model, and return the figure."""
    curves = as_curves(history)
    with styled():
        figure = new_figure(5.6, 3.4)
        axes = figure.add_subplot()
        for color, (name, values) in zip(CURVES * len(curves), curves.items(), strict=False):
            steps = np.arange(1, values.size + 1)
            axes.plot(steps, values, color=color, linewidth=0.7, alpha=0.35 if values.size > 50 else 0.0)
            axes.plot(steps, smooth(values), color=color, linewidth=1.6, label=name)
        axes.set(xlabel="step", ylabel="ELBO", title=title or "Training", ylim=curve_limits(curves))
        axes.margins(x=0.01)
        axes.grid(axis="y")
        if len(curves) > 1:
            axes.legend(loc="lower right")
    return figure


def draw_calibration(calibration: Calibration | Mapping[str, Calibration], *, title: str | None = None) -> "Figure":
    """Draw coverage against nominal probability and the histogram of PIT values, and return the figure."""
    cases = as_cases(calibration)
    with styled():
        figure = new_figure(7.6, 3.7)
        left, right = figure.add_subplot(1, 2, 1), figure.add_subplot(1, 2, 2)
        left.plot([0, 1], [0, 1], color=FAINT, linewidth=1.2, dashes=(4, 3), zorder=1)
        for color, (name, case) in zip(CURVES * len(cases), cases.items(), strict=False):
            style = {"color": color, "linewidth": 1.6, "marker": "o", "markersize": 3.5, "label": name}
            left.plot(np.asarray(case.probabilities, float), np.asarray(case.coverage, float), **style)  # type: ignore[arg-type]
            _draw_pit(right, case, color, len(cases))
        left.set(
            xlabel="nominal probability",
            ylabel="share of observations inside",
            title="Coverage",
            xlim=(0, 1),
            ylim=(0, 1),
        )
        left.set_aspect("equal")
        right.axhline(1.0, color=SOFT, linewidth=1.0, dashes=(4, 3))
        right.set(xlabel="probability integral transform", ylabel="density", title="PIT histogram", xlim=(0, 1))
        right.set_ylim(bottom=0.0)
        for axes in (left, right):
            axes.grid()
        if len(cases) > 1:
            left.legend(loc="lower right")
        if title:
            figure.suptitle(title, fontsize=11, color=INK)
    return figure


def as_curves(history: Numbers | Mapping[str, Numbers]) -> dict[str, Float[np.ndarray, "_"]]:
    """Return curves by name."""
    named = history if isinstance(history, Mapping) else {"model": history}
    curves = {name: np.asarray(values, float) for name, values in named.items()}
    for name, values in curves.items():
        if values.ndim != 1 or not values.size:
            raise ValueError(f"the history of {name} must be one number for each step, got shape {values.shape}")
    return curves


def as_cases(calibration: Calibration | Mapping[str, Calibration]) -> dict[str, Calibration]:
    """Return calibrations by name."""
    cases = {"model": calibration} if isinstance(calibration, Calibration) else dict(calibration)
    for name, case in cases.items():
        if np.shape(case.probabilities) != np.shape(case.coverage) or np.ndim(case.probabilities) != 1:
            shapes = f"{np.shape(case.probabilities)} and {np.shape(case.coverage)}"
            raise ValueError(f"probabilities and coverage of {name} must be curves of the same length, got {shapes}")
    return cases


def smooth(values: Float[np.ndarray, "n"]) -> Float[np.ndarray, "n"]:
    """Return a running mean of the finite values, over fewer steps near the ends: the ELBO jumps."""
    finite, index = np.isfinite(values), np.arange(values.size)
    sums = np.concatenate([[0.0], np.cumsum(np.where(finite, values, 0.0))])
    counts = np.concatenate([[0], np.cumsum(finite)])
    width = np.minimum(index, min(values.size // 40, 12))
    low, high = index - width, np.minimum(index + width + 1, values.size)
    return np.where(finite, (sums[high] - sums[low]) / np.maximum(counts[high] - counts[low], 1), np.nan)


def curve_limits(curves: Mapping[str, Float[np.ndarray, "_"]]) -> tuple[float, float]:
    """Return a range that shows the ends of the curves, whatever the first steps were."""
    finite = [values[np.isfinite(values)] for values in curves.values()]
    finite = [values for values in finite if values.size] or [np.zeros(1)]
    low = min(float(np.quantile(values, 0.05)) for values in finite)
    high = max(float(values.max()) for values in finite)
    margin = 0.06 * (high - low) or 1.0
    return low - margin, high + margin


def pit_density(case: Calibration, bins: int = 20) -> Float[np.ndarray, "bins"]:
    """Return the heights of the PIT histogram; all ones is perfect."""
    values = np.asarray(case.pit, float).ravel()
    return np.histogram(values, bins=bins, range=(0.0, 1.0))[0] * bins / max(values.size, 1)


def _draw_pit(axes: "Axes", case: Calibration, color: str, cases: int) -> None:
    heights = pit_density(case)
    edges = np.linspace(0.0, 1.0, heights.size + 1)
    axes.stairs(heights, edges, fill=True, color=color, alpha=0.55 if cases == 1 else 0.22)
    axes.stairs(heights, edges, color=color, linewidth=1.1)
