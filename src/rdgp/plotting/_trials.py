"""What pictures of an optimization show: the trials of a study, from the study itself or from its table."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from rdgp.core import Numbers
from rdgp.spaces import Box, Product, Rotations, Space, Sphere, Torus


class Trials(NamedTuple):
    """Points of a space and their values in the order of the trials; NaN where there is none."""

    space: Space
    x: Float[np.ndarray, "N D"]
    y: Float[np.ndarray, " N"]
    failed: Bool[np.ndarray, " N"]
    maximize: bool

    @property
    def done(self) -> Bool[np.ndarray, " N"]:
        """Which trials have a value."""
        return np.isfinite(self.y) & ~self.failed

    @property
    def best(self) -> int | None:
        """The number of the best value's row."""
        if not self.done.any():
            return None
        return int(np.nanargmax(np.where(self.done, self.y if self.maximize else -self.y, np.nan)))


def read_trials(study: Any, space: Space | None = None, direction: str | None = None) -> Trials:
    """Read a study, or the table that `study.history()` returns together with the space."""
    nothing = "there is nothing to draw: the study has no trials yet; ask and tell first"
    if hasattr(study, "trials") and not study.trials:
        raise ValueError(nothing)
    frame = study.history() if hasattr(study, "history") else study
    space = space or getattr(study, "space", None)
    direction = direction or getattr(study, "direction", "minimize")
    if space is None:
        raise ValueError("the table of a study does not know its space; pass space=, or the study itself")
    if direction not in ("minimize", "maximize"):
        raise ValueError(f"direction must be 'minimize' or 'maximize', got {direction!r}")
    names = [f"x{i}" for i in range(space.ambient_dim)]
    missing = [name for name in [*names, "y", "state"] if name not in frame]
    if missing:
        raise ValueError(f"the table of a study on {space} must have the columns {', '.join(missing)}")
    if not len(frame):
        raise ValueError(nothing)
    x = np.stack([np.asarray(frame[name], float) for name in names], axis=-1)
    y = np.array([np.nan if value is None else float(value) for value in frame["y"]])
    failed = np.asarray(frame["state"]) == "failed"
    return Trials(space, x, np.where(failed, np.nan, y), failed, direction == "maximize")


class Line(NamedTuple):
    """A coordinate on a straight line: what it is called, and where it begins and ends."""

    label: str
    low: float
    high: float


def lines_of(space: Space) -> list[Line]:
    """Return the coordinates in which points are drawn; angles are in degrees."""
    if isinstance(space, Product):
        return [line for factor in space.factors for line in lines_of(factor)]
    if isinstance(space, Torus) or space.dim == space.ambient_dim - 1 == 1:
        return [Line("angle", -180.0, 180.0)] * space.dim
    if isinstance(space, Box):
        return [Line("box", low, high) for low, high in zip(space.lower, space.upper, strict=True)]
    if isinstance(space, Rotations):
        return [Line(f"turn about {axis}", -180.0, 180.0) for axis in "xyz"]
    if isinstance(space, Sphere):
        return [Line(f"x{i}", -1.0, 1.0) for i in range(space.ambient_dim)]
    raise ValueError(f"trials are drawn on spheres, tori, rotations, boxes and products of them, got {space}")


def numbered(lines: list[Line]) -> list[Line]:
    """Return lines whose names differ: those that occur more than once get numbers."""
    names = [line.label for line in lines]
    ranks = [names[:i].count(name) + 1 for i, name in enumerate(names)]
    return [
        line._replace(label=f"{line.label} {rank}" if names.count(line.label) > 1 else line.label)
        for line, rank in zip(lines, ranks, strict=True)
    ]


def along_lines(space: Space, x: Float[np.ndarray, "N D"]) -> Float[np.ndarray, "N L"]:
    """Return the coordinates of `lines_of`."""
    if isinstance(space, Product):
        parts = zip(space.factors, space.slices, strict=True)
        return np.concatenate([along_lines(factor, x[:, part]) for factor, part in parts], axis=1)
    if isinstance(space, Torus) or space.dim == space.ambient_dim - 1 == 1:
        return np.rad2deg(np.arctan2(x[:, 1::2], x[:, ::2]))
    if isinstance(space, Rotations):
        positive = np.where(x[:, :1] < 0.0, -x, x)
        sine = np.linalg.norm(positive[:, 1:], axis=1, keepdims=True)
        angle = 2.0 * np.arctan2(sine, positive[:, :1])
        return np.rad2deg(angle * positive[:, 1:] / np.maximum(sine, 1e-300))
    return x


def is_flat(space: Space) -> bool:
    """Tell spaces of two coordinates that are angles or sides of a box: they are drawn as a rectangle."""
    factors = space.factors if isinstance(space, Product) else (space,)
    return space.dim == 2 and all(isinstance(factor, Torus | Box) or factor.dim == 1 for factor in factors)


def surface_points(space: Space, height: int = 60, width: int = 120) -> Float[np.ndarray, "N D"]:
    """Return the points, row by row, at which `draw_surfaces` wants values: a grid all over a two-dimensional space."""
    rows, columns = grid_axes(space, height, width)
    first, second = np.meshgrid(columns, rows)
    if space == Sphere(2):
        lat, lon = np.deg2rad(second.ravel()), np.deg2rad(first.ravel())
        return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=-1)
    parts: list[np.ndarray] = []
    for values, circle in zip((first.ravel(), second.ravel()), _circles(space), strict=True):
        parts += [np.cos(np.deg2rad(values)), np.sin(np.deg2rad(values))] if circle else [values]
    return np.stack(parts, axis=-1)


def grid_axes(space: Space, height: int, width: int) -> tuple[Float[np.ndarray, " H"], Float[np.ndarray, " W"]]:
    """Return the coordinates of rows and columns of a grid all over a two-dimensional space."""
    if space == Sphere(2):
        return np.linspace(-90.0, 90.0, height), np.linspace(-180.0, 180.0, width, endpoint=False)
    if not is_flat(space):
        raise ValueError(f"surfaces are drawn on Sphere(2), Torus(2) and boxes with two sides, got {space}")
    across, up = lines_of(space)
    return np.linspace(up.low, up.high, height), np.linspace(across.low, across.high, width)


def as_grid(values: Numbers, height: int, width: int, name: str) -> Float[np.ndarray, "H W"]:
    """Return values row by row as a grid, or raise."""
    array = np.asarray(values, float)
    if array.size != height * width:
        raise ValueError(
            f"{name} must be a value for each of {height} x {width} points of surface_points, got shape {array.shape}"
        )
    return array.reshape(height, width)


def _circles(space: Space) -> list[bool]:
    factors = space.factors if isinstance(space, Product) else (space,)
    return [not isinstance(factor, Box) for factor in factors for _ in range(factor.dim)]
