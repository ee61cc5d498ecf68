"""The strokes of a map: colored field, lines, arrows, points, on plain axes of matplotlib."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from rdgp.core import require
from rdgp.plotting._colors import colormap
from rdgp.plotting._grid import Grid, sample, sample_tangents
from rdgp.plotting._projections import Projection, graticule, project_lines
from rdgp.plotting._sphere import lattice, to_latlon

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

INK, SOFT, FAINT, ACCENT, SECOND = "#22303c", "#5d6b78", "#c9d0d6", "#c4573a", "#22668f"
DPI = 150
_STYLE = {
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.titlepad": 7.0,
    "axes.titlecolor": INK,
    "axes.labelcolor": SOFT,
    "axes.edgecolor": FAINT,
    "axes.linewidth": 0.8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "text.color": INK,
    "xtick.color": SOFT,
    "ytick.color": SOFT,
    "xtick.major.size": 3.0,
    "ytick.major.size": 3.0,
    "xtick.labelsize": 8.0,
    "ytick.labelsize": 8.0,
    "grid.color": "#e8ebee",
    "grid.linewidth": 0.7,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "figure.dpi": DPI,
    "savefig.dpi": DPI,
}


@contextmanager
def styled() -> Iterator[None]:
    """Set the style of figures for a while; nothing of the user's settings changes."""
    with require("matplotlib", "plot").rc_context(_STYLE):
        yield


def new_figure(width: float, height: float) -> "Figure":
    """Return a figure that belongs to nobody's window manager."""
    figure = require("matplotlib.figure", "plot").Figure(figsize=(width, height), dpi=DPI, layout="constrained")
    figure.get_layout_engine().set(w_pad=0.1, h_pad=0.1)
    return figure


def prepare(axes: "Axes", projection: Projection) -> Any:
    """Turn axes into the sheet of a map and return its rim, which clips what is drawn."""
    patches = require("matplotlib.patches", "plot")
    low, high = projection.outline.min(axis=0), projection.outline.max(axis=0)
    margin = 0.012 * (high - low)
    axes.set(xlim=(low[0] - margin[0], high[0] + margin[0]), ylim=(low[1] - margin[1], high[1] + margin[1]))
    axes.set_aspect("equal")
    axes.axis("off")
    axes.add_patch(patches.Polygon(projection.outline, facecolor="#f6f7f8", edgecolor="none", zorder=0))
    rim = patches.Polygon(projection.outline, facecolor="none", edgecolor=SOFT, linewidth=0.8, zorder=6)
    axes.add_patch(rim)
    return rim


def paint(
    axes: "Axes",
    projection: Projection,
    grid: Grid,
    values: Float[np.ndarray, "H W"],
    ramp: str,
    limits: tuple[float, float],
    rim: Any,
) -> "ScalarMappable":
    """Color the map by values, looked up for every pixel: no seam, no gap, the same for all projections."""
    (left, bottom), (right, top) = projection.outline.min(axis=0), projection.outline.max(axis=0)
    width = 1000
    height = max(2, round(width * (top - bottom) / (right - left)))
    x, y = _centers(left, right, width), _centers(bottom, top, height)
    page = np.stack(np.meshgrid(x, y), axis=-1)
    pixels = np.ma.masked_invalid(sample(grid, values, projection.inverse(page)))
    image = axes.imshow(
        pixels,
        extent=(left, right, bottom, top),
        origin="lower",
        cmap=colormap(ramp),
        vmin=limits[0],
        vmax=limits[1],
        interpolation="antialiased",
        zorder=1,
    )
    image.set_clip_path(rim)
    axes.set_aspect("equal")
    return image


def draw_lines(axes: "Axes", projection: Projection, lines: Sequence[Any], rim: Any, **style: Any) -> None:
    """Draw lines of (latitude, longitude)."""
    collections = require("matplotlib.collections", "plot")
    drawn = collections.LineCollection(project_lines(projection, lines), **{"capstyle": "round", **style})
    axes.add_collection(drawn, autolim=False)
    drawn.set_clip_path(rim)


def draw_base(axes: "Axes", projection: Projection, lines: Sequence[Any], rim: Any) -> None:
    """Draw the graticule and the coasts."""
    draw_lines(axes, projection, graticule(), rim, colors=INK, linewidths=0.35, alpha=0.16, zorder=2)
    draw_lines(axes, projection, lines, rim, colors=INK, linewidths=0.6, alpha=0.75, zorder=3)


def draw_arrows(
    axes: "Axes",
    projection: Projection,
    grid: Grid,
    wind: tuple[Float[np.ndarray, "H W"], Float[np.ndarray, "H W"]],
    reference: float,
    num_arrows: int,
    rim: Any,
) -> Any:
    """Draw arrows, equally dense on the globe, as long as `arrow_length` says."""
    places = lattice(num_arrows)
    x, tangent = sample_tangents(grid, *wind, places)
    kept = np.isfinite(tangent).all(axis=-1)
    places, x, tangent = places[kept], x[kept], tangent[kept]
    speed = np.linalg.norm(tangent, axis=-1)
    step = 1e-3 * tangent / np.maximum(speed, 1e-12)[:, None]
    start, shift = projection.forward(places), projection.forward(to_latlon(x + step)) - projection.forward(places)
    long = np.hypot(*shift.T)
    length = arrow_length(projection, num_arrows) * np.minimum(speed / reference, 1.8)
    length *= long / (1e-3 * projection.radian) if projection.foreshortens else 1.0
    shift = shift / np.maximum(long, 1e-300)[:, None] * length[:, None]
    shown = np.isfinite(shift).all(axis=-1) & (long < 0.1 * projection.radian) & (speed > 0.02 * reference)
    arrows = axes.quiver(
        *(*start[shown].T, *shift[shown].T),
        angles="xy",
        scale_units="xy",
        scale=1.0,
        pivot="mid",
        color=INK,
        alpha=0.9,
        width=0.0013 if not projection.foreshortens else 0.0021,
        headwidth=4.0,
        headlength=4.5,
        headaxislength=4.0,
        minlength=0.5,
        zorder=5,
    )
    arrows.set_clip_path(rim)
    return arrows


def count_arrows(projection: Projection, shown: int) -> int:
    """Return how many arrows the whole globe has where about so many lie in the part that is shown."""
    width, height = np.ptp(projection.outline, axis=0) / projection.radian
    return max(shown, round(shown * 14.0 / (width * height))) if not projection.foreshortens else shown


def arrow_length(projection: Projection, num_arrows: int) -> float:
    """Return the length on the page of an arrow of the reference speed: a little more than their spacing."""
    return 1.3 * float(np.sqrt(4.0 * np.pi / num_arrows)) * projection.radian


def draw_points(axes: "Axes", projection: Projection, places: Float[np.ndarray, "n 2"], size: float) -> None:
    """Mark where observations are."""
    page = projection.forward(places)
    axes.scatter(*page.T, s=size, color=SECOND, linewidths=0.0, zorder=4)


def add_color_bar(figure: "Figure", axes: "Axes", image: "ScalarMappable", label: str, extend: str) -> None:
    """Add a slim labeled color bar under a map."""
    bar = figure.colorbar(image, ax=axes, orientation="horizontal", extend=extend, shrink=0.55, aspect=38, pad=0.02)
    bar.outline.set_visible(False)
    bar.ax.tick_params(length=2.5, width=0.6)
    bar.set_label(label, fontsize=8.5)


def _centers(low: float, high: float, count: int) -> Float[np.ndarray, "n"]:
    edges = np.linspace(low, high, count + 1)
    return (edges[1:] + edges[:-1]) / 2.0
