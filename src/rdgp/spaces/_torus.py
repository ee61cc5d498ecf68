"""The flat torus: n circles, each a (cos, sin) pair."""

import math
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import block_diag
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import check_count, register, safe_norm
from rdgp.spaces._maps import Isometry, Readable
from rdgp.spaces._space import Points, Space, Tangents
from rdgp.spaces._sphere import Sphere

_CIRCLE = Sphere(1)


@register("rdgp:Torus")
class Torus(Space):
    """The product of n unit circles in R^(2n), ordered (cos θ_1, sin θ_1, cos θ_2, ...)."""

    n: int = eqx.field(static=True)

    def __init__(self, n: int) -> None:
        self.n = check_count(n, "the dimension of a torus")

    def __str__(self) -> str:
        return f"Torus({self.n})"

    @property
    def dim(self) -> int:
        """Intrinsic dimension n."""
        return self.n

    @property
    def ambient_dim(self) -> int:
        """Ambient dimension 2n."""
        return 2 * self.n

    @property
    def injectivity_radius(self) -> float:
        """Half the length of one circle."""
        return math.pi

    @property
    def irreducible_factors(self) -> tuple[Space, ...]:
        """The circles."""
        return (_CIRCLE,) * self.n

    def _random_isometry(self, key: PRNGKeyArray) -> Isometry:
        """Draw a rotation or reflection of each circle."""
        turns = jax.random.orthogonal(key, 2, (self.n,))
        return Isometry(block_diag(*turns), jnp.zeros(self.ambient_dim))

    def _circles(self, method: Callable[..., Array], *arrays: Float[Array, "*#N D"]) -> Array:
        return method(*(array.reshape(*array.shape[:-1], self.n, 2) for array in arrays))

    def _pairs(self, method: Callable[..., Array], *arrays: Float[Array, "*#N D"]) -> Float[Array, "*#N D"]:
        result = self._circles(method, *arrays)
        return result.reshape(*result.shape[:-2], self.ambient_dim)

    def _exp(self, x: Points, v: Tangents) -> Points:
        return self._pairs(_CIRCLE._exp, x, v)

    def _log(self, x: Points, y: Points) -> Tangents:
        return self._pairs(_CIRCLE._log, x, y)

    def _project(self, x: Points, u: Float[Array, "*#N D"]) -> Tangents:
        return self._pairs(_CIRCLE._project, x, u)

    def _transport_along(self, x: Points, v: Tangents, u: Tangents) -> Tangents:
        return self._pairs(_CIRCLE._transport_along, x, v, u)

    def _distance(self, x: Points, y: Points) -> Float[Array, "*#N"]:
        return safe_norm(self._circles(_CIRCLE._distance, x, y))

    def _log_volume_ratio(self, x: Points, y: Points) -> Float[Array, "*#N"]:
        return jnp.zeros_like(x[..., 0] + y[..., 0])

    def _frame(self, x: Points) -> Float[Array, "*#N D d"]:
        columns = self._circles(_CIRCLE._frame, x)  # [..., n, 2, 1]
        blocks = columns * jnp.eye(self.n, dtype=x.dtype)[:, None, :]
        return blocks.reshape(*x.shape, self.n)

    def _nearest(self, x: Float[Array, "*#N D"]) -> Points:
        return self._pairs(_CIRCLE._nearest, x)

    def _random(self, n: int, key: PRNGKeyArray) -> Float[Array, "N D"]:
        return _CIRCLE._random(n * self.n, key).reshape(n, self.ambient_dim)

    def base_point(self) -> Float[np.ndarray, "D"]:
        """Return the point whose angles are zero."""
        return np.tile([1.0, 0.0], self.n)

    def cut_fraction(self, u: Float[np.ndarray, "n"]) -> float:
        """Return the largest angle over π."""
        return float(np.max(np.abs(u)) / np.pi)

    @property
    def readable(self) -> Readable:
        """The angles."""
        return Readable(("angle",) * self.n, ((-180.0, 180.0),) * self.n, (True,) * self.n)

    def read(self, x: Float[np.ndarray, "N D"]) -> Float[np.ndarray, "N n"]:
        """Return the angles in degrees."""
        return np.rad2deg(np.arctan2(x[:, 1::2], x[:, ::2]))

    def from_readable(self, coordinates: Float[np.ndarray, "N n"]) -> Float[np.ndarray, "N D"]:
        """Return the points with given angles in degrees."""
        angles = np.deg2rad(coordinates)
        return np.stack([np.cos(angles), np.sin(angles)], axis=-1).reshape(len(angles), self.ambient_dim)
