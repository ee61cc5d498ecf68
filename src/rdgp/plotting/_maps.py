"""Static maps and globes of a field: its mean as arrows or color, its uncertainty, its error, a sample."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from rdgp.plotting._canvas import (
    INK,
    SOFT,
    add_color_bar,
    arrow_length,
    count_arrows,
    draw_arrows,
    draw_base,
    draw_points,
    new_figure,
    paint,
    prepare,
    styled,
)
from rdgp.plotting._coastline import Lines, coast
from rdgp.plotting._grid import Grid, find_wind, middle_of_region, read_grid, read_places
from rdgp.plotting._panels import Panel, choose_panel, raise_powers, scalar_panels, wind_panels, with_units
from rdgp.plotting._projections import Projection, focus, orthographic, resolve

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_map(
    data: Mapping[str, Any],
    *,
    color: str | None = None,
    truth: Mapping[str, Any] | None = None,
    observations: Any = None,
    projection: Any = "equal_earth",
    center: float | None = None,
    limits: tuple[float, float] | None = None,
    arrows: bool = True,
    title: str | None = None,
    coastline: Lines | None = None,
    axes: "Axes | None" = None,
) -> "Figure":
    """Draw a flat map of a prediction and return the figure.

    `data` is an xarray Dataset of `rdgp.geo` or a mapping of arrays with "lat" and "lon". `color` names a variable, or
    is "speed" or (with `truth`) "difference"; by default the uncertainty of a wind, else the first variable.
    `projection` is "equal_earth", "plate_carree" or a projection of cartopy. A region fills the map.
    """
    grid = read_grid(data)
    sheet = _flat_sheet(grid, projection, center)
    return _draw_one(grid, sheet, color, truth, observations, limits, arrows, title, coastline, axes)


def draw_globe(
    data: Mapping[str, Any],
    *,
    view: tuple[float, float] | None = None,
    color: str | None = None,
    truth: Mapping[str, Any] | None = None,
    observations: Any = None,
    limits: tuple[float, float] | None = None,
    arrows: bool = True,
    title: str | None = None,
    coastline: Lines | None = None,
    axes: "Axes | None" = None,
) -> "Figure":
    """Draw the globe seen from above a (latitude, longitude) and return the figure; else like `draw_map`."""
    grid = read_grid(data)
    sheet = orthographic(*(view or middle_of_region(grid) or (20.0, 0.0)))
    return _draw_one(grid, sheet, color, truth, observations, limits, arrows, title, coastline, axes)


def draw_panels(
    prediction: Mapping[str, Any],
    *,
    truth: Mapping[str, Any] | None = None,
    observations: Any = None,
    variable: str | None = None,
    uncertainty: str | None = None,
    projection: Any = "equal_earth",
    center: float | None = None,
    title: str | None = None,
    coastline: Lines | None = None,
) -> "Figure":
    """Draw mean with uncertainty, truth, difference and a sample side by side, as far as they are there.

    For a wind the uncertainty is "wind_std" or "wind_frobenius"; for scalars `variable` says which one is drawn.
    """
    grid = read_grid(prediction)
    sheet = _flat_sheet(grid, projection, center)
    wind = None if variable else find_wind(grid)
    if wind:
        panels = wind_panels(grid, wind, truth, uncertainty or "wind_std")
    else:
        panels = scalar_panels(grid, variable or next(iter(grid.values)), truth)
    reference = _reference([panel for panel in panels if panel.ramp != "difference"])
    columns = min(2, len(panels))
    rows, lines = -(-len(panels) // columns), coast(coastline)
    with styled():
        figure = new_figure(5.6 * columns, 3.45 * rows)
        for index, panel in enumerate(panels):
            axes = figure.add_subplot(rows, columns, index + 1)
            shown, scale = observations if index == 0 else None, reference
            if panel.ramp == "difference":
                scale = _reference([panel])
            _draw_panel(axes, sheet, grid, panel, lines, shown, scale, 570)
        if title:
            figure.suptitle(title, fontsize=12, color=INK)
    return figure


def _flat_sheet(grid: Grid, projection: Any, center: float | None) -> Projection:
    """Return the map of the world, or the part of it that a region needs."""
    middle = middle_of_region(grid)
    if middle is None:
        return resolve(projection, center or 0.0)
    sheet = resolve(projection, middle[1] if center is None else center)
    return focus(sheet, np.stack(np.meshgrid(grid.lat, grid.lon), axis=-1).reshape(-1, 2))


def _draw_one(
    grid: Grid,
    sheet: Projection,
    color: str | None,
    truth: Mapping[str, Any] | None,
    observations: Any,
    limits: tuple[float, float] | None,
    arrows: bool,
    title: str | None,
    coastline: Lines | None,
    axes: "Axes | None",
) -> "Figure":
    panel = choose_panel(grid, color, truth, limits)
    panel = panel._replace(title=panel.title if title is None else title, wind=panel.wind if arrows else None)
    width, height = np.ptp(sheet.outline, axis=0)
    with styled():
        if axes is None:
            size = 9.0 if width > 1.4 * height else 6.2
            axes = new_figure(size, size * height / width + 0.95).add_subplot()
        _draw_panel(axes, sheet, grid, panel, coast(coastline), observations, _reference([panel]), 950)
    figure = axes.get_figure(root=True)
    assert figure is not None
    return figure


def _draw_panel(
    axes: "Axes",
    sheet: Projection,
    grid: Grid,
    panel: Panel,
    lines: Lines,
    observations: Any,
    reference: float,
    arrows_shown: int,
) -> None:
    """Draw a panel with about a number of arrows."""
    rim = prepare(axes, sheet)
    image = paint(axes, sheet, grid, panel.values, panel.ramp, panel.limits, rim)
    draw_base(axes, sheet, lines, rim)
    if observations is not None:
        draw_points(axes, sheet, read_places(observations), size=3.5 if arrows_shown > 800 else 1.2)
    if panel.wind is not None:
        num_arrows = count_arrows(sheet, arrows_shown)
        arrows = draw_arrows(axes, sheet, grid, panel.wind, reference, num_arrows, rim)
        _add_key(axes, sheet, arrows, reference, num_arrows, panel.units)
    axes.set_title(panel.title)
    figure = axes.get_figure(root=True)
    assert figure is not None
    add_color_bar(figure, axes, image, with_units(panel.label, panel.units), _extension(panel))


def _extension(panel: Panel) -> str:
    low, high = np.nanmin(panel.values) < panel.limits[0], np.nanmax(panel.values) > panel.limits[1]
    return {(False, False): "neither", (True, False): "min", (False, True): "max", (True, True): "both"}[
        (bool(low), bool(high))
    ]


def _reference(panels: list[Panel]) -> float:
    """Return a speed that few places exceed."""
    speeds = [float(np.nanquantile(np.hypot(*panel.wind), 0.95)) for panel in panels if panel.wind is not None]
    return max((speed for speed in speeds if speed > 0.0), default=1.0)


def _add_key(axes: "Axes", sheet: Projection, arrows: Any, reference: float, num_arrows: int, units: str) -> None:
    """Add an arrow of a round speed, in the corner that a map of the world leaves free, else above it."""
    power = 10.0 ** np.floor(np.log10(reference))
    speed = max(step for step in (1.0, 2.0, 5.0) if step * power <= reference * 1.0001) * power
    length = arrow_length(sheet, num_arrows) * speed / reference
    label = f"{speed:g} {raise_powers(units)}".strip()
    right = 0.99 - 0.5 * length / float(np.ptp(sheet.outline[:, 0]))
    corner = sheet.outline.min(axis=0) + [0.97, 0.97] * np.ptp(sheet.outline, axis=0)
    up = 1.04 if np.isfinite(sheet.inverse(corner[None])).all() else 0.97
    axes.quiverkey(arrows, right, up, length, label, labelpos="W", labelcolor=SOFT, fontproperties={"size": 8})
