"""Flat spaces: Euclidean space and boxes in it."""

import math
from collections.abc import Sequence

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import check_count, safe_norm, standard_normal
from rdgp.spaces._space import Isometry, Points, Space, Tangents


class _Flat(Space):
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

    def _frame(self, x: Points) -> Float[Array, "*#N D d"]:
        return jnp.broadcast_to(jnp.eye(self.dim, dtype=x.dtype), (*x.shape, self.dim))


class Euclidean(_Flat):
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


class Box(_Flat):
    """The box lower <= x <= upper in R^d. A walk that would leave it stops at the wall, coordinate by coordinate."""

    lower: tuple[float, ...] = eqx.field(static=True)
    upper: tuple[float, ...] = eqx.field(static=True)

    def __init__(self, lower: Sequence[float], upper: Sequence[float]) -> None:
        low, high = np.atleast_1d(np.asarray(lower, float)), np.atleast_1d(np.asarray(upper, float))
        if low.ndim != 1 or low.shape != high.shape or low.size == 0:
            raise ValueError(f"lower and upper must be two lists of one length, got {lower} and {upper}")
        if not (np.all(np.isfinite(low) & np.isfinite(high)) and np.all(low < high)):
            raise ValueError(f"every lower bound must be finite and below its upper bound, got {lower} and {upper}")
        self.lower, self.upper = tuple(low.tolist()), tuple(high.tolist())

    def __str__(self) -> str:
        return f"Box({list(self.lower)}, {list(self.upper)})"

    @property
    def dim(self) -> int:
        """Number of coordinates."""
        return len(self.lower)

    @property
    def injectivity_radius(self) -> float:
        """Zero, because of the walls."""
        return 0.0

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
