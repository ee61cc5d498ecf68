"""Flat spaces: Euclidean space and boxes in it."""

import math
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import check_count, register, safe_norm, standard_normal
from rdgp.spaces._maps import Isometry, Readable, UnitScaling
from rdgp.spaces._space import Points, Space, Tangents

_UNIT = 2.0  # width of a box in units of order one: that of a sphere


class Flat(Space):
    """What Euclidean space and boxes share: straight lines and one frame for all points."""

    @property
    def ambient_dim(self) -> int:
        """Ambient dimension, equal to the intrinsic one."""
        return self.dim

    def _log(self, x: Points, y: Points) -> Tangents:
        return y - x

    def _project(self, x: Points, u: Float[Array, "*#N D"]) -> Tangents:
        return jnp.broadcast_to(u, jnp.broadcast_shapes(x.shape, u.shape))

    def _transport_along(self, x: Points, v: Tangents, u: Tangents) -> Tangents:
        return self._project(x, u)

    def _distance(self, x: Points, y: Points) -> Float[Array, "*#N"]:
        return safe_norm(y - x)

    def _log_volume_ratio(self, x: Points, y: Points) -> Float[Array, "*#N"]:
        return jnp.zeros_like(x[..., 0] + y[..., 0])

    def _frame(self, x: Points) -> Float[Array, "*#N D d"]:
        return jnp.broadcast_to(jnp.eye(self.dim, dtype=x.dtype), (*x.shape, self.dim))


@register("rdgp:Euclidean")
class Euclidean(Flat):
    """Euclidean space R^d."""

    d: int = eqx.field(static=True)

    def __init__(self, d: int) -> None:
        self.d = check_count(d, "the dimension of Euclidean space")

    def __str__(self) -> str:
        return f"Euclidean({self.d})"

    @property
    def dim(self) -> int:
        """Intrinsic dimension d."""
        return self.d

    @property
    def injectivity_radius(self) -> float:
        """Infinite: straight lines never meet again."""
        return math.inf

    @property
    def bounded(self) -> bool:
        """False."""
        return False

    def _random_isometry(self, key: PRNGKeyArray) -> Isometry:
        """Draw a rotation or reflection and a standard normal shift."""
        key_turn, key_shift = jax.random.split(key)
        return Isometry(jax.random.orthogonal(key_turn, self.d), standard_normal(key_shift, (self.d,)))

    def _exp(self, x: Points, v: Tangents) -> Points:
        return x + v

    def _nearest(self, x: Float[Array, "*#N D"]) -> Points:
        return x

    def _random(self, n: int, key: PRNGKeyArray) -> Float[Array, "N D"]:
        return standard_normal(key, (n, self.d))


@register("rdgp:Box")
class Box(Flat):
    """The box lower <= x <= upper in R^d.

    A geodesic that would leave it stops at the boundary, coordinate by coordinate.
    """

    lower: tuple[float, ...] = eqx.field(static=True)
    upper: tuple[float, ...] = eqx.field(static=True)

    def __init__(self, lower: Sequence[float], upper: Sequence[float]) -> None:
        low, high = np.atleast_1d(np.asarray(lower, float)), np.atleast_1d(np.asarray(upper, float))
        if low.ndim != 1 or low.shape != high.shape or low.size == 0:
            raise ValueError(f"lower and upper must be two lists of one length, got {lower} and {upper}")
        self.lower, self.upper = tuple(low.tolist()), tuple(high.tolist())

    def __check_init__(self) -> None:
        low, high = np.asarray(self.lower), np.asarray(self.upper)
        if not (np.all(np.isfinite(low) & np.isfinite(high)) and np.all(low < high)):
            lower, upper = list(self.lower), list(self.upper)
            raise ValueError(f"every lower bound must be finite and below its upper bound, got {lower} and {upper}")

    def __str__(self) -> str:
        return f"Box({list(self.lower)}, {list(self.upper)})"

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return len(self.lower)

    @property
    def injectivity_radius(self) -> float:
        """Zero, because of the boundary."""
        return 0.0

    @property
    def has_boundary(self) -> bool:
        """True."""
        return True

    def _random_isometry(self, key: PRNGKeyArray) -> Isometry:
        """Draw a mirroring of some coordinates about the middle of the box."""
        sign = jax.random.rademacher(key, (self.dim,), float)
        middle = (jnp.asarray(self.lower) + jnp.asarray(self.upper)) / 2.0
        return Isometry(jnp.diag(sign), middle * (1.0 - sign))

    def _exp(self, x: Points, v: Tangents) -> Points:
        return self._nearest(x + v)

    def _nearest(self, x: Float[Array, "*#N D"]) -> Points:
        return jnp.clip(x, jnp.asarray(self.lower, x.dtype), jnp.asarray(self.upper, x.dtype))

    def _random(self, n: int, key: PRNGKeyArray) -> Float[Array, "N D"]:
        low, high = jnp.asarray(self.lower), jnp.asarray(self.upper)
        return low + (high - low) * jax.random.uniform(key, (n, self.dim))

    def unit_scaled(self) -> UnitScaling:
        """Return the box from 0 to 2 in each coordinate, and the map from it."""
        low, high = np.asarray(self.lower), np.asarray(self.upper)
        return UnitScaling(Box([0.0] * self.dim, [_UNIT] * self.dim), low, (high - low) / _UNIT)

    def base_point(self) -> Float[np.ndarray, "d"]:
        """Return the middle of the box."""
        return (np.asarray(self.lower) + np.asarray(self.upper)) / 2.0

    def cut_fraction(self, u: Float[np.ndarray, "d"]) -> float:
        """Return how far u leads from the middle to the boundary."""
        return float(np.max(2.0 * np.abs(u) / (np.asarray(self.upper) - np.asarray(self.lower))))

    @property
    def readable(self) -> Readable:
        """The coordinates, between their bounds."""
        limits = tuple(zip(self.lower, self.upper, strict=True))
        return Readable(("box",) * self.dim, limits, (False,) * self.dim)
