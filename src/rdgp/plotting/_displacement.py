"""The displacement of the sphere, layer by layer: where do hidden layers move its points."""

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from rdgp.core import Numbers, require
from rdgp.plotting._canvas import FAINT, INK, add_color_bar, draw_lines, new_figure, prepare, styled
from rdgp.plotting._coastline import Lines, Pieces, coast
from rdgp.plotting._colors import colormap
from rdgp.plotting._projections import Projection, graticule, orthographic
from rdgp.plotting._sphere import to_latlon, to_vectors

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure

Points = Float[np.ndarray, "N 3"]
MOST_POINTS = 1200  # of those given, so that the smooth kernel stays cheap


def draw_displacement(
    points: Sequence[Numbers],
    *,
    views: Sequence[tuple[float, float]] = ((20.0, 0.0), (20.0, 180.0)),
    title: str | None = None,
    coastline: Lines | None = None,
) -> "Figure":
    """Draw how each hidden layer bends the coasts and the graticule, and return the figure.

    `points` are x, h1(x), h2(h1(x)), ...: unit vectors [N, 3] or (latitude, longitude) [N, 2], best spread all over
    the globe. Columns are layers, rows are sides of the globe; colors tell how far this layer moves a point.
    """
    layers = read_layers(points)
    top = max(float(np.quantile(angles(a, b), 0.997)) for a, b in pairwise(layers)) or 1.0
    lines, mesh = coast(coastline), graticule(15.0)
    bent = _bend(layers, mesh, lines)
    with styled():
        figure = new_figure(3.3 * (len(layers) - 1), 3.2 * len(views) + 0.7)
        grid = figure.subplots(len(views), len(layers) - 1, squeeze=False)
        for row, view in enumerate(views):
            for layer in range(1, len(layers)):
                axes, sheet = grid[row, layer - 1], orthographic(*view)
                image = _draw_layer(axes, sheet, [mesh, lines], bent, layer, top)
                axes.set_title(f"Layer {layer}" if row == 0 else "")
        add_color_bar(figure, list(grid.flat), image, "distance moved by the layer (degrees)", "max")  # type: ignore[arg-type]
        if title:
            figure.suptitle(title, fontsize=12, color=INK)
    return figure


def read_layers(points: Sequence[Numbers]) -> list[Points]:
    """Return the points of every layer as unit vectors, or raise."""
    arrays = [np.asarray(layer, float) for layer in points]
    if len(arrays) < 2 or any(array.shape != arrays[0].shape for array in arrays) or arrays[0].ndim != 2:
        shapes = ", ".join(str(array.shape) for array in arrays)
        raise ValueError(f"points must be the inputs and the points after each layer, of one shape, got {shapes}")
    if arrays[0].shape[1] not in (2, 3):
        raise ValueError(f"points must be unit vectors [N, 3] or (latitude, longitude) [N, 2], got {arrays[0].shape}")
    if arrays[0].shape[1] == 2:
        return [to_vectors(array) for array in arrays]
    return [array / np.linalg.norm(array, axis=-1, keepdims=True) for array in arrays]


def carry(places: Float[np.ndarray, "n 3"], layers: list[Points]) -> list[Float[np.ndarray, "n 3"]]:
    """Return where every layer takes places between the points: displacements interpolated by a smooth kernel."""
    thin = -(-len(layers[0]) // MOST_POINTS)
    start = layers[0][::thin]
    bandwidth = 3.0 * np.sqrt(4.0 * np.pi / len(start))
    kernel = np.exp((start @ start.T - 1.0) / bandwidth**2) + 1e-6 * np.eye(len(start))
    shifts = np.concatenate([layer[::thin] - start for layer in layers], axis=-1)
    shifts = np.exp((places @ start.T - 1.0) / bandwidth**2) @ np.linalg.solve(kernel, shifts)
    moved = [places + shift for shift in np.split(shifts, len(layers), axis=-1)]
    return [layer / np.linalg.norm(layer, axis=-1, keepdims=True) for layer in moved]


def angles(start: Float[np.ndarray, "n 3"], end: Float[np.ndarray, "n 3"]) -> Float[np.ndarray, "n"]:
    """Return distances on the globe in degrees."""
    return np.rad2deg(2.0 * np.arcsin(np.clip(np.linalg.norm(end - start, axis=-1) / 2.0, 0.0, 1.0)))


def _draw_layer(
    axes: "Axes", sheet: Projection, still: list[Pieces], bent: "Bent", layer: int, top: float
) -> "ScalarMappable":
    rim = prepare(axes, sheet)
    for lines in still:
        draw_lines(axes, sheet, lines, rim, colors=FAINT, linewidths=0.5, zorder=1)
    here, there = bent.places[layer - 1], bent.places[layer]
    page = sheet.forward(to_latlon(there))
    segments = np.stack([page[:-1], page[1:]], axis=1)
    shown = bent.joined & np.isfinite(segments).all(axis=(1, 2))
    drawn = require("matplotlib.collections", "plot").LineCollection(
        list(segments[shown]), cmap=_dark_ramp(), linewidths=bent.widths[shown], capstyle="round", zorder=3
    )
    amounts = angles(here, there)
    drawn.set_array(((amounts[:-1] + amounts[1:]) / 2.0)[shown])
    drawn.set_clim(0.0, top)
    axes.add_collection(drawn, autolim=False)
    drawn.set_clip_path(rim)
    return drawn


class Bent(NamedTuple):
    """Vertices of all lines after each layer, one after the other, which neighbors are joined, and how thickly."""

    places: list[Float[np.ndarray, "n 3"]]
    joined: Bool[np.ndarray, "m"]
    widths: Float[np.ndarray, "m"]


def _bend(layers: list[Points], mesh: Pieces, lines: Pieces) -> Bent:
    every = [*mesh, *lines]
    joined = np.concatenate([np.arange(len(line)) < len(line) - 1 for line in every])[:-1]
    widths = np.concatenate([np.full(len(line), 0.5 if k < len(mesh) else 1.0) for k, line in enumerate(every)])[:-1]
    return Bent(carry(to_vectors(np.concatenate(every)), layers), joined, widths)


def _dark_ramp() -> "object":
    """Return a ramp whose pale end is still visible as a thin line on white."""
    colors = require("matplotlib.colors", "plot")
    return colors.ListedColormap(colormap("scalar")(np.linspace(0.0, 0.86, 256)))
