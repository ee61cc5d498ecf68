"""Checks of what a study is told."""

from collections.abc import Mapping
from typing import Any, get_args

import jax
import numpy as np
from jaxtyping import Float

from rdgp.bayesopt._options import AcquisitionName, FieldName, InducingName, PresetName, SurrogateName, options_of
from rdgp.bayesopt._surrogates import can_be_deep
from rdgp.core import Numbers, check_count, check_unmasked, in_double
from rdgp.spaces import Space, UnitScaling

_NAMES = {
    "direction": ("minimize", "maximize"),
    "surrogate": get_args(SurrogateName),
    "acquisition": (None, *get_args(AcquisitionName)),
    "preset": (None, *get_args(PresetName)),
    "field": (None, *get_args(FieldName)),
    "inducing": (None, *get_args(InducingName)),
}
_COUNTS = {"num_initial": 2, "seed": 0, "switch_at": 2, "layers": 2}  # and the least of each
_OPTIONAL = ("switch_at", "layers")  # counts that may be None
_CLOSE = 1e-4  # how far off a space a point may be told, whose digits somebody rounded


def check_space(space: Space) -> UnitScaling:
    """Return the space in units of order one, or raise if it cannot be searched."""
    if isinstance(space, Space) and space.bounded:
        return space.unit_scaled()
    wanted = "Sphere(d), Circle(), Torus(n), Rotations(), Box(lower, upper), a Product of them or another bounded space"
    hint = "; give its coordinates bounds with Box" if isinstance(space, Space) else ""
    raise ValueError(f"a study needs {wanted}, got {space!r}{hint}")


def check_settings(space: Space, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return settings whose counts are plain integers, or raise unless each is one of its names or a proper number."""
    for name, known in _NAMES.items():
        if settings[name] not in known:
            raise ValueError(f"{name} must be one of {', '.join(map(str, known))}, got {settings[name]!r}")
    counts = {name: least for name, least in _COUNTS.items() if settings[name] is not None or name not in _OPTIONAL}
    counted = {**settings, **{name: check_count(settings[name], name, least) for name, least in counts.items()}}
    deep = can_be_deep(space, options_of(counted, space.dim).field)
    if settings["surrogate"] == "deep" and not deep:
        raise ValueError(f'surrogate="deep" needs a space without boundary, got {space}; use surrogate="shallow"')
    if settings["switch_at"] is not None and (named_surrogate(settings) == "shallow" or not deep):
        raise ValueError(
            'switch_at needs a deep surrogate to change to: surrogate="auto" or "deep" on a space without boundary, '
            'and not preset="materngabo"; leave it out'
        )
    return counted


def check_stored_settings(space: Space, settings: Any) -> dict[str, Any]:
    """Return the settings that a file holds, or raise unless they are those of a study and nothing else."""
    names = {*_NAMES, *_COUNTS}
    if not isinstance(settings, dict) or set(settings) != names:
        raise ValueError(f"its settings must be {', '.join(sorted(names))}")
    return check_settings(space, settings)


def named_surrogate(settings: Mapping[str, Any]) -> SurrogateName:
    """Return the surrogate that was named, by itself or by a preset."""
    surrogate: SurrogateName = settings["surrogate"]
    return "shallow" if settings["preset"] == "materngabo" and surrogate == "auto" else surrogate


def check_value(y: Any) -> float | None:
    """Return a value as a number, None if it is not finite, or raise if it is no number."""
    if isinstance(y, jax.Array):
        y = np.asarray(y)
    if isinstance(y, np.ndarray) and y.size == 1:
        y = y.reshape(()).item()
    if isinstance(y, bool | np.bool_) or not isinstance(y, int | float | np.integer | np.floating):
        raise ValueError(f"y must be one number, got {y!r}; use failed=True for a failed evaluation")
    value = float(y)
    return value if np.isfinite(value) else None


def check_noise(noise_variance: Numbers | None) -> float | None:
    """Return a known variance of noise, or raise."""
    if noise_variance is None:
        return None
    value = check_value(noise_variance)
    if value is None or value < 0.0:
        raise ValueError(
            f"noise_variance must be a number of at least 0, got {noise_variance!r}; leave it out to learn it"
        )
    return value


@in_double
def check_point(space: Space, x: Numbers) -> Float[np.ndarray, "D"]:
    """Return one point of a space, the nearest if its digits were rounded, or raise an error that offers that one."""
    check_unmasked(x, "a point")
    try:
        point = np.asarray(x, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"a point of {space} is a list of {space.ambient_dim} numbers, got {x!r}") from None
    if point.shape != (space.ambient_dim,):
        raise ValueError(f"a point of {space} has {space.ambient_dim} numbers, got shape {point.shape}")
    if not np.all(np.isfinite(point)):
        raise ValueError(f"a point of {space} has finite numbers, got {point.tolist()}")
    nearest = np.asarray(space.nearest(point), float)
    if not bool(space.contains(point, _CLOSE)):
        shown = [float(f"{value:.6g}") for value in nearest]
        raise ValueError(f"{point.tolist()} is not on {space}; the nearest point is {shown}, tell that if it is meant")
    return point if bool(space.contains(point)) else nearest
