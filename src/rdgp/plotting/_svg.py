"""Small charts as SVG text; colors come from the page's style sheet, so they follow light and dark."""

from collections.abc import Mapping
from html import escape

import numpy as np
from jaxtyping import Float

from rdgp.plotting._diagnostics import Calibration, curve_limits, pit_density, smooth

WIDTH, HEIGHT = 340, 250
_LEFT, _RIGHT, _TOP, _BOTTOM = 50, 8, 8, 38
_MOST_POINTS = 400
Range = tuple[float, float]


def history_chart(curves: Mapping[str, Float[np.ndarray, "_"]]) -> str:
    """Return the training curves, smoothed over the raw ones."""
    steps = max(values.size for values in curves.values())
    frame = _Frame((1.0, max(float(steps), 2.0)), curve_limits(curves))
    marks = []
    for index, (name, values) in enumerate(curves.items()):
        kept = np.unique(np.linspace(0, values.size - 1, min(values.size, _MOST_POINTS)).astype(int))
        x = kept + 1.0
        marks.append(frame.line(x, values[kept], f"raw c{index % 4}", ""))
        marks.append(frame.line(x, smooth(values)[kept], f"curve c{index % 4}", name))
    return frame.chart(marks, "step", "ELBO", "ELBO against steps of training")


def coverage_chart(cases: Mapping[str, Calibration]) -> str:
    """Return the coverage of central intervals against their nominal probability."""
    frame = _Frame((0.0, 1.0), (0.0, 1.0))
    marks = [frame.line(np.array([0.0, 1.0]), np.array([0.0, 1.0]), "ideal", "perfect calibration")]
    for index, (name, case) in enumerate(cases.items()):
        nominal, shares = np.asarray(case.probabilities, float), np.asarray(case.coverage, float)
        marks.append(frame.line(nominal, shares, f"curve c{index % 4}", name))
        for probability, share in zip(nominal, shares, strict=True):
            told = f"{name}: {100 * share:.1f} % inside the {100 * probability:.0f} % interval"
            marks.append(frame.dot(probability, share, f"c{index % 4}", told))
    title = "Coverage against nominal probability"
    return frame.chart(marks, "nominal probability", "share of observations inside", title)


def pit_chart(cases: Mapping[str, Calibration]) -> str:
    """Return histograms of PIT values; flat at one is perfect."""
    heights = {name: pit_density(case) for name, case in cases.items()}
    top = max(1.4, 1.08 * max(float(values.max()) for values in heights.values()))
    frame = _Frame((0.0, 1.0), (0.0, top))
    marks = []
    for index, (name, values) in enumerate(heights.items()):
        x = np.repeat(np.linspace(0.0, 1.0, values.size + 1), 2)
        y = np.concatenate([[0.0], np.repeat(values, 2), [0.0]])
        marks.append(frame.line(x, y, f"block c{index % 4}", name))
        marks.append(frame.line(x[1:-1], y[1:-1], f"curve c{index % 4}", name))
    marks.append(frame.line(np.array([0.0, 1.0]), np.array([1.0, 1.0]), "ideal", "perfect calibration"))
    return frame.chart(marks, "probability integral transform", "density", "Histogram of PIT values")


def legend(names: list[str]) -> str:
    """Return the names of curves with their colors, or nothing for a single one."""
    if len(names) < 2:
        return ""
    entries = "".join(f'<span><i class="c{index % 4}"></i>{escape(name)}</span>' for index, name in enumerate(names))
    return f'<div class="legend">{entries}</div>'


def ticks(low: float, high: float) -> list[float]:
    """Return about five round numbers in a range."""
    rough = (high - low) / 5.0
    power = 10.0 ** np.floor(np.log10(rough))
    step = next(k * power for k in (1.0, 2.0, 5.0, 10.0) if k * power >= rough * 0.999)
    first, last = int(np.ceil(low / step - 1e-9)), int(np.floor(high / step + 1e-9))
    return [round(k * step, 12) for k in range(first, last + 1)]


class _Frame:
    """Axes of a chart: numbers to places on the page."""

    def __init__(self, x: Range, y: Range) -> None:
        self.x, self.y = x, y

    def _place(self, x: float, y: float) -> tuple[float, float]:
        right, down = (x - self.x[0]) / (self.x[1] - self.x[0]), (y - self.y[0]) / (self.y[1] - self.y[0])
        return _LEFT + right * (WIDTH - _LEFT - _RIGHT), HEIGHT - _BOTTOM - down * (HEIGHT - _TOP - _BOTTOM)

    def line(self, x: Float[np.ndarray, "n"], y: Float[np.ndarray, "n"], style: str, title: str) -> str:
        shown = np.isfinite(y) & (y >= self.y[0]) & (y <= self.y[1])
        places = [self._place(float(a), float(b)) for a, b in zip(x[shown], y[shown], strict=True)]
        told = f"<title>{escape(title)}</title>" if title else ""
        return f'<polyline class="{style}" points="{" ".join(f"{a:.1f},{b:.1f}" for a, b in places)}">{told}</polyline>'

    def dot(self, x: float, y: float, style: str, title: str) -> str:
        a, b = self._place(x, y)
        return f'<circle class="{style}" cx="{a:.1f}" cy="{b:.1f}" r="2.6"><title>{escape(title)}</title></circle>'

    def chart(self, marks: list[str], x_label: str, y_label: str, title: str) -> str:
        lines = []
        bottom, middle = HEIGHT - _BOTTOM, (HEIGHT - _BOTTOM + _TOP) / 2
        for value in ticks(*self.y):
            _, b = self._place(self.x[0], value)
            lines.append(f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{b:.1f}" y2="{b:.1f}"/>')
            lines.append(f'<text x="{_LEFT - 8}" y="{b + 4:.1f}" text-anchor="end">{value:g}</text>')
        for value in ticks(*self.x):
            a, _ = self._place(value, self.y[0])
            lines.append(f'<text x="{a:.1f}" y="{bottom + 17}" text-anchor="middle">{value:g}</text>')
        lines.append(f'<line class="axis" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{bottom}" y2="{bottom}"/>')
        lines.append(f'<text x="{(WIDTH + _LEFT) / 2}" y="{HEIGHT - 4}" text-anchor="middle">{escape(x_label)}</text>')
        turn = f"translate(12 {middle}) rotate(-90)"
        lines.append(f'<text transform="{turn}" text-anchor="middle">{escape(y_label)}</text>')
        start = f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title)}">'
        return start + "".join(lines + marks) + "</svg>"
