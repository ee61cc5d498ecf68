"""What a map shows: a colored field, its arrows, their names, units and ranges."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from rdgp.plotting._grid import Grid, find_wind, pick, read_grid

Field = Float[np.ndarray, "H W"]


class Panel(NamedTuple):
    """One map: what is colored, what the arrows show, and how it is called."""

    title: str
    values: Field
    ramp: str
    label: str
    units: str
    limits: tuple[float, float]
    wind: tuple[Field, Field] | None


def choose_panel(
    grid: Grid, color: str | None, truth: Mapping[str, Any] | None, limits: tuple[float, float] | None = None
) -> Panel:
    """Return the panel that colors a map by a variable, by "speed", or by "difference" from the truth."""
    wind = find_wind(grid)
    color = color or ("wind_std" if "wind_std" in grid.values else next(iter(grid.values)))
    pair = (pick(grid, wind[0]), pick(grid, wind[1])) if wind else None
    if color == "speed" and pair and wind:
        panel = _panel("Mean wind", np.hypot(*pair), "speed", "wind speed", grid.units[wind[0]], pair)
    elif color == "difference":
        if truth is None:
            raise ValueError("the difference needs the truth; pass truth= with the same grid")
        name = wind[0] if wind else next(iter(grid.values))
        panel = _difference(grid, wind or (name,), truth)
    else:
        panel = _panel("", pick(grid, color), _ramp(color), describe(grid, color), grid.units[color], pair)
    return panel._replace(limits=limits) if limits else panel


def wind_panels(grid: Grid, wind: tuple[str, str], truth: Mapping[str, Any] | None, uncertainty: str) -> list[Panel]:
    u, v = wind
    units, mean = grid.units[u], (pick(grid, u), pick(grid, v))
    spread = pick(grid, uncertainty)
    first = _panel(
        "Mean and uncertainty", spread, "uncertainty", describe(grid, uncertainty), grid.units[uncertainty], mean
    )
    panels = [first]
    if truth is not None:
        exact = read_grid(truth)
        true = (_like(grid, exact, u), _like(grid, exact, v))
        panels += [_panel("Truth", np.hypot(*true), "speed", "wind speed", units, true), _difference(grid, wind, truth)]
    if f"{u}_sample" in grid.values and f"{v}_sample" in grid.values:
        drawn = (pick(grid, f"{u}_sample"), pick(grid, f"{v}_sample"))
        panels.append(_panel("A sample of the posterior", np.hypot(*drawn), "speed", "wind speed", units, drawn))
    return _share_limits(panels, "speed")


def scalar_panels(grid: Grid, name: str, truth: Mapping[str, Any] | None) -> list[Panel]:
    units, label = grid.units.get(name, ""), describe(grid, name)
    panels = [_panel("Mean", pick(grid, name), "scalar", label, units)]
    if f"{name}_std" in grid.values:
        spread = pick(grid, f"{name}_std")
        panels.append(_panel("Uncertainty", spread, "uncertainty", f"standard deviation of {label}", units))
    if truth is not None:
        panels.append(_panel("Truth", _like(grid, read_grid(truth), name), "scalar", label, units))
        panels.append(_difference(grid, (name,), truth))
    if f"{name}_sample" in grid.values:
        panels.append(_panel("A sample of the posterior", pick(grid, f"{name}_sample"), "scalar", label, units))
    return _share_limits(panels, "scalar")


def describe(grid: Grid, name: str) -> str:
    """Return words for a variable."""
    known = {"wind_std": "standard deviation of the wind", "wind_frobenius": "Frobenius norm of the wind's covariance"}
    if name in known or name in grid.labels:
        return known.get(name) or grid.labels[name]
    return f"standard deviation of {describe(grid, name[:-4])}" if name.endswith("_std") else name.replace("_", " ")


def with_units(label: str, units: str) -> str:
    """Return a label with its units."""
    return f"{label} ({raise_powers(units)})" if units and units != "1" else label


def raise_powers(units: str) -> str:
    """Return units with powers raised: m s-1 becomes m s⁻¹, degC becomes °C."""
    units = re.sub(r"\b(degC|[Cc]elsius|degrees?_[Cc]elsius)\b", "°C", units)
    raised = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
    return re.sub(r"(?<=[A-Za-z])(?:\*\*|\^)?(-?\d+)", lambda power: power[1].translate(raised), units)


def robust_limits(fields: list[Field], ramp: str) -> tuple[float, float]:
    """Return the range of colors: from zero for sizes, symmetric for differences, without the outermost values."""
    finite = np.concatenate([field[np.isfinite(field)] for field in fields])
    if not finite.size:
        raise ValueError("there is nothing to draw: every value is missing")
    low, high = np.quantile(finite, [0.003, 0.997])
    if ramp == "signed":
        high = max(abs(low), abs(high))
        low = -high
    elif ramp in ("speed", "difference"):
        low = 0.0
    return float(low), float(high) if high > low else float(low) + 1.0


def _difference(grid: Grid, names: tuple[str, ...], truth: Mapping[str, Any]) -> Panel:
    """Return the error of the mean: signed for a scalar, arrows and their length for a wind."""
    exact, units = read_grid(truth), grid.units[names[0]]
    errors = [pick(grid, name) - _like(grid, exact, name) for name in names]
    if len(errors) == 1:
        return _panel("Mean minus truth", errors[0], "signed", "difference", units)
    pair = (errors[0], errors[1])
    return _panel("Mean minus truth", np.hypot(*pair), "difference", "length of the difference", units, pair)


def _like(grid: Grid, other: Grid, name: str) -> Field:
    values = pick(other, name)
    if values.shape != (grid.lat.size, grid.lon.size) or not np.allclose(other.lat, grid.lat, atol=1e-3):
        raise ValueError(f"the truth must lie on the grid of the prediction, got {values.shape}; interpolate it first")
    return values


def _panel(
    title: str, values: Field, ramp: str, label: str, units: str, wind: tuple[Field, Field] | None = None
) -> Panel:
    return Panel(title, values, ramp, label, units, robust_limits([values], ramp), wind)


def _share_limits(panels: list[Panel], ramp: str) -> list[Panel]:
    same = [panel.values for panel in panels if panel.ramp == ramp]
    limits = robust_limits(same, ramp) if same else (0.0, 1.0)
    return [panel._replace(limits=limits) if panel.ramp == ramp else panel for panel in panels]


def _ramp(name: str) -> str:
    return "uncertainty" if name.endswith(("_std", "_frobenius")) else "scalar"
