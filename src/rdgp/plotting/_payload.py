"""The data of the report as small JSON: numbers packed into sixteen bits, bytes written in base 64."""

import base64
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from jaxtyping import Float, Shaped

from rdgp.core import Numbers
from rdgp.plotting._coastline import Pieces
from rdgp.plotting._colors import RAMPS, color_table
from rdgp.plotting._displacement import angles, carry, read_layers
from rdgp.plotting._grid import Grid, find_wind, middle_of_region, pick, read_grid, read_places, thin
from rdgp.plotting._panels import Panel, choose_panel, describe, raise_powers
from rdgp.plotting._projections import graticule
from rdgp.plotting._sphere import to_vectors

MOST_NODES = 70_000  # of the grid in the page: one degree, some hundred kilobytes for each field
MOST_DOTS = 20_000
_MISSING = 65535


def field_content(
    prediction: Mapping[str, Any], truth: Mapping[str, Any] | None, observations: Any, lines: Pieces
) -> dict[str, Any]:
    """Return what the globe of the field needs."""
    grid = read_grid(prediction)
    wind = find_wind(grid)
    panels = _panels(grid, wind, truth)
    size = grid.lat.size, grid.lon.size
    fields = _components(grid, wind) + [_colored(key, short, panel) for key, (short, panel) in panels.items()]
    rows, columns, lon = thin(grid, MOST_NODES)
    for field in fields:
        field.update(_pack(field.pop("values").reshape(size)[np.ix_(rows, columns)]))
    dots = read_places(observations) if observations is not None else np.zeros((0, 2))
    dots = dots[:: -(-len(dots) // MOST_DOTS) or 1]
    return {
        "grid": {"lat": _encode(grid.lat[rows], "<f4"), "lon": _encode(lon, "<f4"), "fields": fields},
        "wind": {"u": wind[0], "v": wind[1], "reference": _reference(grid, wind)} if wind else None,
        "first": "wind_std" if "wind_std" in panels else next(iter(panels)),
        "coastline": _lines(lines),
        "graticule": _lines(graticule()),
        "observations": _vectors(to_vectors(dots)),
        "view": _view(grid),
        "ramps": {
            name: {"light": _encode(color_table(name), "u1"), "dark": _encode(color_table(name, dark=True), "u1")}
            for name in RAMPS
        },
    }


def layers_content(points: Sequence[Numbers], lines: Pieces) -> dict[str, Any]:
    """Return what the globe of the layers needs: coasts and graticule as every layer bends them."""
    layers, mesh = read_layers(points), graticule(15.0)
    every = [*mesh, *lines]
    bent = carry(to_vectors(np.concatenate(every)), layers)
    top = max(float(np.quantile(angles(layers[0], layer), 0.99)) for layer in layers[1:])
    return {
        "places": [_vectors(layer) for layer in bent],
        "lengths": [len(line) for line in every],
        "meshLines": len(mesh),
        "top": max(top, 1e-3),
    }


def layer_distances(points: Sequence[Numbers]) -> list[tuple[float, float]]:
    """Return median and largest distance in degrees by which each layer moves the points."""
    moves = [angles(before, after) for before, after in pairwise(read_layers(points))]
    return [(float(np.median(move)), float(move.max())) for move in moves]


def _panels(grid: Grid, wind: tuple[str, str] | None, truth: Mapping[str, Any] | None) -> dict[str, tuple[str, Panel]]:
    """Return what can be colored, with a short name each."""
    name = wind[0] if wind else next(iter(grid.values))
    names = {"wind_std": "Std", "wind_frobenius": "Frobenius"} if wind else {name: "Mean", f"{name}_std": "Std"}
    panels = {"speed": ("Mean speed", choose_panel(grid, "speed", None))} if wind else {}
    panels |= {key: (short, choose_panel(grid, key, None)) for key, short in names.items() if key in grid.values}
    if truth is not None:
        panels["difference"] = ("Difference", choose_panel(grid, "difference", truth))
    if not wind and f"{name}_sample" in grid.values:
        panels[f"{name}_sample"] = ("Sample", choose_panel(grid, f"{name}_sample", None))
    return panels


def _components(grid: Grid, wind: tuple[str, str] | None) -> list[dict[str, Any]]:
    return [
        {"key": name, "short": name, "label": describe(grid, name), "values": pick(grid, name), "ramp": None}
        | {"units": raise_powers(grid.units[name])}
        for name in wind or ()
    ]


def _colored(key: str, short: str, panel: Panel) -> dict[str, Any]:
    look = {"ramp": panel.ramp, "limits": panel.limits, "units": raise_powers(panel.units), "label": panel.label}
    return {"key": key, "short": short, "values": panel.values, **look}


def _reference(grid: Grid, wind: tuple[str, str]) -> float:
    speed = np.hypot(pick(grid, wind[0]), pick(grid, wind[1]))
    return max(float(np.nanquantile(speed, 0.95)), 1e-12)


def _view(grid: Grid) -> dict[str, float]:
    """Return where the globe starts: over the middle of a region, else over the Atlantic."""
    middle = middle_of_region(grid)
    if middle is None:
        return {"lat": 22.0, "lon": -25.0, "zoom": 1.0}
    zoom = min(8.0, max(1.0, 100.0 / max(float(np.ptp(grid.lat)), 0.6 * float(np.ptp(grid.lon)))))
    return {"lat": middle[0], "lon": middle[1], "zoom": zoom}


def _pack(values: Float[np.ndarray, "H W"]) -> dict[str, Any]:
    """Return values as sixteen-bit steps between their extremes; the last code means missing."""
    finite = np.isfinite(values)
    low = float(values[finite].min()) if finite.any() else 0.0
    step = (float(values[finite].max()) - low) / (_MISSING - 1) if finite.any() else 0.0
    codes = np.where(finite, np.round((values - low) / (step or 1.0)), _MISSING)
    return {"offset": low, "scale": step, "data": _encode(codes, "<u2")}


def _lines(lines: Pieces) -> dict[str, Any]:
    points = np.concatenate(lines) if lines else np.zeros((0, 2))
    return {"points": _vectors(to_vectors(points)), "lengths": [len(line) for line in lines]}


def _vectors(x: Float[np.ndarray, "n 3"]) -> str:
    return _encode(np.round(32767.0 * x), "<i2")


def _encode(array: Shaped[np.ndarray, "..."], dtype: str) -> str:
    return base64.b64encode(np.ascontiguousarray(array).astype(dtype).tobytes()).decode("ascii")
