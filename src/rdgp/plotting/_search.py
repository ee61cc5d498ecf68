"""Where a study has looked, and what its surrogate believes: the sphere, the torus, parallel coordinates."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float

from rdgp.core import Numbers, require
from rdgp.plotting._canvas import ACCENT, FAINT, INK, SOFT, add_color_bar, draw_base, new_figure, paint, prepare, styled
from rdgp.plotting._colors import colormap
from rdgp.plotting._grid import read_grid
from rdgp.plotting._projections import Projection, equal_earth, orthographic
from rdgp.plotting._sphere import to_latlon
from rdgp.plotting._trials import (
    Trials,
    as_grid,
    grid_axes,
    is_flat,
    is_globe,
    lines_of,
    read_trials,
    surface_points,
)
from rdgp.spaces import Space

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

_HEIGHT, _WIDTH = 60, 120
_SPAN = 25.0  # of a logarithm of the acquisition: what lies farther below its top looks alike


class Surface(NamedTuple):
    """Values on the grid of `surface_points`, and how they are colored."""

    values: Numbers
    ramp: str = "scalar"
    limits: tuple[float, float] | None = None


def draw_trials(
    study: Any,
    *,
    space: Space | None = None,
    direction: str | None = None,
    view: tuple[float, float] | None = None,
    title: str | None = None,
) -> "Figure":
    """Draw the points of a study and return the figure: color is value, a line the order, a star the best.

    `study` is a Study, or its history together with `space`. Failures are crosses, pending points rings. On the
    2-sphere both sides of the globe are drawn, the first seen from `view` or from above the best point; two angles or
    sides of a box make a rectangle; anything else is drawn by `draw_coordinates`.
    """
    trials = read_trials(study, space, direction)
    if not is_globe(trials.space) and not is_flat(trials.space):
        return draw_coordinates(study, space=space, direction=direction, title=title)
    with styled():
        if is_globe(trials.space):
            figure = new_figure(7.4, 4.3)
            panels = list(figure.subplots(1, 2))
            front, back = _two_sides(trials, view)
            image = _draw_globe(panels[0], trials, front)
            _draw_globe(panels[1], trials, back)
        else:
            figure = new_figure(5.2, 5.2)
            panels = [figure.add_subplot()]
            _prepare_rectangle(panels[0], trials.space)
            image = _draw_points(panels[0], trials.space.read(trials.x), trials)
        add_color_bar(figure, panels, image, "value", "neither")  # type: ignore[arg-type]
        figure.suptitle(title or _summary(trials), fontsize=10, color=INK)
    return figure


def draw_surfaces(
    space: Space,
    surfaces: Mapping[str, Surface | Numbers],
    *,
    trials: Any = None,
    direction: str | None = None,
    shape: tuple[int, int] = (_HEIGHT, _WIDTH),
    title: str | None = None,
) -> "Figure":
    """Draw functions on the 2-sphere or a rectangle side by side, with the trials of a study, and return the figure.

    Values are those at `surface_points(space, *shape)`.
    """
    shown = None if trials is None else read_trials(trials, space, direction)
    across, up = (3.9, 2.7) if is_globe(space) else (3.6, 3.9)
    with styled():
        figure = new_figure(across * len(surfaces), up)
        for index, (name, surface) in enumerate(surfaces.items()):
            axes = figure.add_subplot(1, len(surfaces), index + 1)
            made = surface if isinstance(surface, Surface) else Surface(surface)
            values = as_grid(made.values, *shape, name)
            limits = made.limits or (float(np.nanmin(values)), float(np.nanmax(values)))
            image = _draw_surface(axes, space, values, made.ramp, limits, shown)
            axes.set_title(name)
            add_color_bar(figure, axes, image, "", "min" if np.nanmin(values) < limits[0] else "neither")
        if title:
            figure.suptitle(title, fontsize=11, color=INK)
    return figure


def draw_surrogate(study: Any, *, shape: tuple[int, int] = (_HEIGHT, _WIDTH), title: str | None = None) -> "Figure":
    """Draw posterior mean, standard deviation and log acquisition of a study on a two-dimensional space.

    `shape` are the numbers of rows and columns of the grid.
    """
    x = surface_points(study.space, *shape)
    prediction = study.predict(x)
    gain = np.asarray(study.acquisition_at(x), float)
    top = float(np.max(gain[np.isfinite(gain)], initial=-np.inf))
    low = float(np.min(gain[np.isfinite(gain)], initial=np.inf))
    if not np.isfinite(top):
        raise ValueError("the acquisition is nowhere finite, so there is nothing to draw; tell more trials first")
    bottom = max(low, top - _SPAN)
    gain = np.maximum(gain, bottom - 1.0)  # colors have no place for minus infinity
    surfaces = {
        "Posterior mean": Surface(prediction.mean),
        "Posterior standard deviation": Surface(np.sqrt(np.asarray(prediction.variance, float)), "uncertainty"),
        "Log acquisition": Surface(gain, "speed", (bottom, top if top > bottom else bottom + 1.0)),
    }
    return draw_surfaces(study.space, surfaces, trials=study, shape=shape, title=title)


def draw_coordinates(
    study: Any, *, space: Space | None = None, direction: str | None = None, title: str | None = None
) -> "Figure":
    """Draw each trial as a line over its coordinates and its value (parallel coordinates), and return the figure.

    Circles are angles in degrees, rotations the angle times the axis, also in degrees; the best trial is thick.
    """
    trials = read_trials(study, space, direction)
    lines = lines_of(trials.space, trials.x)
    low, high = (np.array([getattr(line, name) for line in lines]) for name in ("low", "high"))
    heights = (trials.space.read(trials.x) - low) / (high - low)
    bottom, top = _range(trials)
    heights = np.concatenate([heights, ((trials.y - bottom) / (top - bottom))[:, None]], axis=1)
    labels = [*(line.label for line in lines), "value"]
    ends = [*((line.low, line.high) for line in lines), (bottom, top)]
    with styled():
        figure = new_figure(min(1.6 + 1.05 * len(labels), 14.0), 3.9)
        axes = figure.add_subplot()
        image = _draw_lines(axes, heights, trials)
        for place, ((least, most), label) in enumerate(zip(ends, labels, strict=True)):
            axes.plot([place, place], [0.0, 1.0], color=SOFT, linewidth=0.9, zorder=4)
            for y, number, side in ((-0.02, least, "top"), (1.02, most, "bottom")):
                axes.text(place, y, f"{number:.4g}", ha="center", va=side, fontsize=7.5, color=SOFT)
            axes.text(place, 1.1, label, ha="center", va="bottom", fontsize=8.5)
        axes.set(xlim=(-0.4, len(labels) - 0.6), ylim=(-0.1, 1.2))
        axes.axis("off")
        add_color_bar(figure, axes, image, "value", "neither")
        figure.suptitle(title or _summary(trials), fontsize=10, color=INK)
    return figure


def _range(trials: Trials) -> tuple[float, float]:
    values = trials.y[trials.done]
    if not values.size:
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _summary(trials: Trials) -> str:
    parts = [f"{int(trials.done.sum())} trials"]
    failed, pending = int(trials.failed.sum()), int((~trials.done & ~trials.failed).sum())
    parts += [f"{failed} failed"] * (failed > 0) + [f"{pending} pending"] * (pending > 0)
    best = trials.best
    return ", ".join(parts) + ("" if best is None else f"; best {trials.y[best]:.5g} at number {best}")


def _two_sides(trials: Trials, view: tuple[float, float] | None) -> tuple[Projection, Projection]:
    best = 0 if trials.best is None else trials.best
    lat, lon = view or tuple(to_latlon(trials.x[best]).tolist())
    return orthographic(lat, lon), orthographic(-lat, lon + 180.0)


def _draw_globe(axes: "Axes", trials: Trials, sheet: Projection) -> "ScalarMappable":
    rim = prepare(axes, sheet)
    draw_base(axes, sheet, [], rim)
    page = sheet.forward(to_latlon(trials.x))
    axes.plot(*page.T, color=SOFT, linewidth=0.4, alpha=0.45, zorder=4)
    return _draw_points(axes, page, trials)


def _prepare_rectangle(axes: "Axes", space: Space) -> None:
    across, up = lines_of(space)
    degrees = [" (degrees)" if line.periodic else "" for line in (across, up)]
    axes.set(xlim=(across.low, across.high), ylim=(up.low, up.high))
    axes.set(xlabel=across.label + degrees[0], ylabel=up.label + degrees[1])
    if all(degrees):
        ticks = np.arange(-180.0, 181.0, 90.0)
        axes.set(xticks=ticks, yticks=ticks)
        axes.set_aspect("equal")
    else:
        axes.set_box_aspect(1.0)


def _draw_surface(
    axes: "Axes",
    space: Space,
    values: Float[np.ndarray, "H W"],
    ramp: str,
    limits: tuple[float, float],
    trials: Trials | None,
) -> "ScalarMappable":
    rows, columns = grid_axes(space, *values.shape)
    if is_globe(space):
        sheet = equal_earth()
        rim = prepare(axes, sheet)
        grid = read_grid({"lat": rows, "lon": columns, "values": values})
        image = paint(axes, sheet, grid, grid.values["values"], ramp, limits, rim)
        draw_base(axes, sheet, [], rim)
        page = None if trials is None else sheet.forward(to_latlon(trials.x))
    else:
        style: dict[str, Any] = {"cmap": colormap(ramp), "vmin": limits[0], "vmax": limits[1], "shading": "gouraud"}
        image = axes.pcolormesh(columns, rows, values, zorder=1, **style)
        _prepare_rectangle(axes, space)
        page = None if trials is None else space.read(trials.x)
    if trials is not None and page is not None:
        _draw_points(axes, page, trials, small=True)
    return image


def _draw_points(axes: "Axes", page: Float[np.ndarray, "N 2"], trials: Trials, small: bool = False) -> "ScalarMappable":
    """Draw trials; small ones, on a colored ground, carry no color of their own."""
    low, high = _range(trials)
    done, failed, best = trials.done, trials.failed, trials.best
    style: dict[str, Any] = {"edgecolors": "white", "linewidths": 0.5, "zorder": 7}
    if small:
        image = axes.scatter(*page[done].T, s=9, color=INK, **style)
    else:
        color: dict[str, Any] = {"c": trials.y[done], "cmap": colormap("scalar"), "vmin": low, "vmax": high}
        image = axes.scatter(*page[done].T, s=26, **color, **style)
    axes.scatter(*page[failed].T, s=14 if small else 30, marker="x", color=INK, linewidths=1.2, zorder=7)
    waiting = page[~done & ~failed]
    axes.scatter(*waiting.T, s=16 if small else 34, facecolors="none", edgecolors=INK, linewidths=1.2, zorder=7)
    if best is not None:
        axes.scatter(*page[best], s=70 if small else 150, marker="*", color=ACCENT, **style | {"zorder": 8})
    return image


def _draw_lines(axes: "Axes", heights: Float[np.ndarray, "N L"], trials: Trials) -> "ScalarMappable":
    collections = require("matplotlib.collections", "plot")
    places = np.arange(heights.shape[1])
    segments = [np.stack([places, row], axis=-1) for row in heights]
    order = np.argsort(trials.y if trials.maximize else -trials.y)
    kept = [index for index in order if trials.done[index]]
    low, high = _range(trials)
    drawn = collections.LineCollection(
        [segments[index] for index in kept], cmap=colormap("scalar"), linewidths=0.9, alpha=0.8, zorder=2
    )
    drawn.set_array(trials.y[kept])
    drawn.set_clim(low, high)
    axes.add_collection(drawn, autolim=False)
    lost = [segments[index][:-1] for index in np.flatnonzero(~trials.done)]
    axes.add_collection(collections.LineCollection(lost, colors=FAINT, linewidths=0.8, linestyles=":", zorder=1))
    if trials.best is not None:
        axes.plot(places, heights[trials.best], color=ACCENT, linewidth=2.2, zorder=3)
    return drawn
