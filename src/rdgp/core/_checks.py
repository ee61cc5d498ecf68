"""Checks of input at the doors: one line that says what was expected, what came, and what to do."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Shaped

from rdgp.core._types import Numbers


def is_concrete(x: object) -> bool:
    """Tell whether values can be looked at (they cannot inside a trace)."""
    return not isinstance(x, jax.core.Tracer)


def as_float_array(x: Numbers, name: str) -> Shaped[Array, "..."]:
    """Convert to a floating array, keeping its floating dtype."""
    array = x if isinstance(x, jax.Array) else jnp.asarray(x)
    if jnp.issubdtype(array.dtype, jnp.floating):
        return array
    if jnp.issubdtype(array.dtype, jnp.integer) or array.dtype == bool:
        return array.astype(float)
    raise ValueError(f"{name} must hold real numbers, got dtype {array.dtype}; convert it first")


def check_last_axis(x: Shaped[Array, "..."], size: int, name: str, owner: str) -> None:
    """Raise unless the last axis has the given size."""
    if x.ndim == 0 or x.shape[-1] != size:
        raise ValueError(f"{name} must have {size} numbers along its last axis for {owner}, got shape {x.shape}")


def check_same_shape(x: Shaped[Array, "..."], y: Shaped[Array, "..."], names: str, *, owner: str) -> None:
    """Raise unless two shapes agree up to broadcasting over the leading axes."""
    try:
        np.broadcast_shapes(x.shape, y.shape)
    except ValueError:
        raise ValueError(
            f"{names} must have matching shapes for {owner}, got {x.shape} and {y.shape}; pass one row for each row"
        ) from None


def check_finite(x: Shaped[Array, "..."], name: str) -> None:
    """Raise if concrete values hold NaN or infinities, saying how many and where the first is."""
    if not is_concrete(x):
        return
    bad = ~np.isfinite(np.asarray(x))
    if bad.any():
        first = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(
            f"{name} must be finite, got {int(bad.sum())} NaN or infinite values of {bad.size}, "
            f"the first at index {first}; drop or fill them"
        )


def check_unmasked(x: Any, name: str) -> None:
    """Raise if an array of NumPy, or one within lists, has masked values: as plain numbers they would count."""
    count = _num_masked(x)
    if count:
        raise ValueError(f"{name} must have no masked values, got {count} of {np.size(x)}; drop or fill them first")


def _num_masked(x: object) -> int:
    if isinstance(x, list | tuple):
        return sum(map(_num_masked, x))
    return int(np.ma.count_masked(x)) if isinstance(x, np.ma.MaskedArray) else 0


def check_size(x: Shaped[Array, "..."], dtype: jnp.dtype, name: str) -> None:
    """Raise if concrete values are so large or small that sums of their squares leave the range of a dtype."""
    if not is_concrete(x) or not x.size:
        return
    largest, limits = float(np.max(np.abs(np.asarray(x)))), jnp.finfo(dtype)
    low, high = 1e3 * float(limits.tiny) ** 0.5, 1e-3 * float(limits.max) ** 0.5
    if largest and not low < largest < high:
        raise ValueError(
            f"{name} must be zero or between {low:.0e} and {high:.0e} in size to be squared in {limits.dtype}, "
            f"got {largest:.3g}; change its unit or use float64"
        )


def check_count(value: object, name: str, minimum: int = 1) -> int:
    """Return the value as an int, or raise unless it is a whole number of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < minimum:
        raise ValueError(f"{name} must be a whole number of at least {minimum}, got {value!r}")
    return int(value)
