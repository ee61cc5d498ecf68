"""The report: one HTML file that opens anywhere, without a network."""

import json
import os
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any, NamedTuple

import numpy as np

from rdgp.core import Numbers
from rdgp.io import write_atomically
from rdgp.plotting._coastline import Lines, coast
from rdgp.plotting._diagnostics import Calibration, as_cases, as_curves
from rdgp.plotting._grid import read_places
from rdgp.plotting._payload import field_content, layer_distances, layers_content
from rdgp.plotting._svg import coverage_chart, history_chart, legend, pit_chart

_LOWER_IS_BETTER = ("nlpd", "mse", "rmse", "crps", "mae", "energy")


class ReportContent(NamedTuple):
    """What the report tells; whatever is left out is left out of the page.

    `prediction` and `truth` are Datasets (or mappings of arrays) on one grid, `observations` has `latlon` or is an
    array [N, 2], `history` and `calibration` may be given by name for several models, `displacement` holds the points
    x, h1(x), h2(h1(x)), ..., `metrics` one mapping for each row of the table, `settings` names and values.
    """

    title: str
    prediction: Mapping[str, Any]
    observations: Any = None
    truth: Mapping[str, Any] | None = None
    history: Numbers | Mapping[str, Numbers] | None = None
    calibration: Calibration | Mapping[str, Calibration] | None = None
    displacement: Sequence[Numbers] | None = None
    metrics: Sequence[Mapping[str, Any]] = ()
    settings: Mapping[str, Any] = {}
    coastline: Lines | None = None


def write_report(path: str | os.PathLike[str], content: ReportContent) -> Path:
    """Write the report, whole or not at all, and return its path."""
    write_atomically(Path(path), render_report(content).encode())
    return Path(path)


def render_report(content: ReportContent) -> str:
    """Return the report as the text of a page."""
    lines = coast(content.coastline)
    data = field_content(content.prediction, content.truth, content.observations, lines)
    if content.displacement is not None:
        data["layers"] = layers_content(content.displacement, lines)
    page = files("rdgp.plotting") / "page"
    scripts = [(page / name).read_text() for name in ("globe.js", "field.js", "layers.js", "report.js")]
    return Template((page / "report.html").read_text()).substitute(
        title=escape(content.title),
        summary=_summary(content),
        style=(page / "report.css").read_text(),
        sections="\n".join(section for section in _sections(content) if section),
        footer="Made with rdgp, residual deep Gaussian processes on manifolds.",
        content=json.dumps(data, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c"),
        script='"use strict";\n(() => {\n' + "\n".join(scripts) + "})();",
    )


def _summary(content: ReportContent) -> str:
    parts = ["Posterior mean and uncertainty of the field"]
    if content.observations is not None:
        parts.append(f"from {len(read_places(content.observations)):,} observations")
    return escape(" ".join(parts)) + "."


def _sections(content: ReportContent) -> list[str]:
    return [
        _scores(content.metrics),
        _layers(content.displacement) if content.displacement is not None else "",
        _charts(content),
        _settings(content.settings),
    ]


def _charts(content: ReportContent) -> str:
    cards = []
    if content.calibration is not None:
        cases = as_cases(content.calibration)
        note = "How often observations fell into central intervals; on the dashed line the error bars are calibrated."
        cards.append(_card("Coverage", note, legend(list(cases)) + coverage_chart(cases)))
        note = "Where observations fell in the predictive distributions; flat at one is perfect, a hump too cautious."
        cards.append(_card("PIT histogram", note, legend(list(cases)) + pit_chart(cases)))
    if content.history is not None:
        curves = as_curves(content.history)
        note = "The evidence lower bound (ELBO) that training maximizes; thin lines are its estimates, step by step."
        cards.append(_card("Training", note, legend(list(curves)) + history_chart(curves)))
    return f'<div class="pair">{"".join(cards)}</div>' if cards else ""


def _layers(points: Sequence[Numbers]) -> str:
    moves = layer_distances(points)
    told = [f"layer {k + 1} median {middle:.2g}°, at most {most:.2g}°" for k, (middle, most) in enumerate(moves)]
    stops = "".join(f"<span>{'start' if k == 0 else f'layer {k}'}</span>" for k in range(len(moves) + 1))
    return f"""<section class="card layers">
<div><h3>What the layers do to the sphere</h3>
<p class="note">Each hidden layer moves every point of the sphere before the next one looks at it; coasts and graticule
show where to. Distances moved: {"; ".join(told)}.</p>
<input type="range" id="layer" min="0" max="{len(moves)}" value="{len(moves)}" step="0.01" aria-label="Layer">
<div class="stops">{stops}</div>
<div class="scale"><canvas id="layer-bar" class="bar" height="1" width="256"></canvas><div class="ticks"></div>
<p class="caption">distance from the start (degrees)</p></div>
<button id="play" type="button">Play</button></div>
<div class="globe"><canvas id="layers" tabindex="0" role="img" aria-label="Globe bent by the layers"></canvas></div>
</section>"""


def _scores(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the table of metrics, the best of each column marked."""
    if not rows:
        return ""
    names = list(dict.fromkeys(name for row in rows for name in row))
    best = {name: _best([row.get(name) for row in rows], name) for name in names}
    head = "".join(f"<th>{escape(str(name))}</th>" for name in names)
    body = "".join(f"<tr>{''.join(_cell(row.get(name), best[name]) for name in names)}</tr>" for row in rows)
    table = f'<table class="scores"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
    return _card("Deep against shallow", "Scores on held-out observations.", f'<div class="wide">{table}</div>')


def _best(values: list[Any], name: str) -> float | None:
    """Return the least score of a column whose scores are better the lower they are."""
    scores = [float(value) for value in values if _is_score(value)]
    scored = any(word in str(name).lower() for word in _LOWER_IS_BETTER)
    return min(scores) if scored and len(scores) > 1 else None


def _cell(value: Any, best: float | None) -> str:
    if not _is_score(value):
        return f"<td>{'' if value is None else escape(str(value))}</td>"
    mark = ' class="best"' if best is not None and float(value) == best else ""
    return f"<td{mark}>{float(value):.4g}</td>"


def _is_score(value: Any) -> bool:
    number = np.asarray(value)
    return number.ndim == 0 and number.dtype.kind == "f" and bool(np.isfinite(number))


def _settings(settings: Mapping[str, Any]) -> str:
    if not settings:
        return ""
    rows = [(escape(str(name)), escape(str(value))) for name, value in settings.items()]
    pairs = "".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in rows)
    return f'<section class="card"><h3>Settings</h3><dl>{pairs}</dl></section>'


def _card(title: str, note: str, inside: str) -> str:
    return f'<section class="card"><h3>{escape(title)}</h3><p class="note">{escape(note)}</p>{inside}</section>'
