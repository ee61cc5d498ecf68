"""What pictures of an optimization show: the trials of a study, from the study itself or from its table."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from rdgp.core import Numbers
from rdgp.plotting._sphere import to_vectors
from rdgp.spaces import Space


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
    """A coordinate on a straight line: what it is called, where it begins and ends, and whether it is an angle."""

    label: str
    low: float
    high: float
    periodic: bool = False


def lines_of(space: Space, x: Float[np.ndarray, "N D"] | None = None) -> list[Line]:
    """Return the coordinates in which a space is read, by names that differ; angles are in degrees.

    A coordinate without limits begins and ends where the points do.
    """
    names, limits, periodic = space.readable
    low, high = np.transpose(limits)
    if x is not None:
        read = space.read(x)
        low = np.where(np.isfinite(low), low, read.min(axis=0))
        high = np.where(np.isfinite(high), high, read.max(axis=0))
        high = np.where(high > low, high, low + 1.0)
    labels = [f"{name} {names[: i + 1].count(name)}" if names.count(name) > 1 else name for i, name in enumerate(names)]
    return [Line(*line) for line in zip(labels, low.tolist(), high.tolist(), periodic, strict=True)]


def is_globe(space: Space) -> bool:
    """Tell spaces of unit vectors in R^3 that have an east and a north: they are drawn by latitude and longitude."""
    return space.ambient_dim == 3 and "east_north" in space.frame_names


def is_flat(space: Space) -> bool:
    """Tell spaces of two coordinates between limits, angles or sides of a box: they are drawn as a rectangle."""
    _, limits, _ = space.readable
    return space.dim == len(limits) == 2 and bool(np.isfinite(limits).all())


def surface_points(space: Space, height: int = 60, width: int = 120) -> Float[np.ndarray, "N D"]:
    """Return the points, row by row, at which `draw_surfaces` wants values: a grid all over a two-dimensional space."""
    rows, columns = grid_axes(space, height, width)
    across, up = (part.ravel() for part in np.meshgrid(columns, rows))
    if is_globe(space):
        return to_vectors(np.stack([up, across], axis=-1))
    return space.from_readable(np.stack([across, up], axis=-1))


def grid_axes(space: Space, height: int, width: int) -> tuple[Float[np.ndarray, " H"], Float[np.ndarray, " W"]]:
    """Return the coordinates of rows and columns of a grid all over a two-dimensional space."""
    if is_globe(space):
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
