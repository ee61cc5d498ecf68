"""The sphere S_d of unit vectors in R^(d+1)."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import angle_over_sine, check_count, normalize, register, safe_norm, standard_normal, stumpff
from rdgp.spaces._maps import Isometry, Readable
from rdgp.spaces._quaternions import quaternion_frame
from rdgp.spaces._space import Points, Space, Tangents


def _dot(a: Float[Array, "*#N D"], b: Float[Array, "*#N D"]) -> Float[Array, "*#N 1"]:
    return jnp.sum(a * b, axis=-1, keepdims=True)


@register("rdgp:Sphere")
class Sphere(Space):
    """Unit vectors in R^(d+1), d >= 1, with the angle between them as distance.

    >>> round(float(Sphere(2).distance([1.0, 0.0, 0.0], [0.0, 0.0, 1.0])), 3)
    1.571
    """

    d: int = eqx.field(static=True)

    def __init__(self, d: int) -> None:
        self.d = check_count(d, "the dimension of a sphere")

    def __str__(self) -> str:
        return f"Sphere({self.d})"

    @property
    def dim(self) -> int:
        """Intrinsic dimension d."""
        return self.d

    @property
    def ambient_dim(self) -> int:
        """Ambient dimension d + 1."""
        return self.d + 1

    @property
    def injectivity_radius(self) -> float:
        """Half the length of a great circle."""
        return math.pi

    def _random_isometry(self, key: PRNGKeyArray) -> Isometry:
        """Draw a rotation or reflection uniformly."""
        size = self.ambient_dim
        return Isometry(jax.random.orthogonal(key, size), jnp.zeros(size))

    def _exp(self, x: Points, v: Tangents) -> Points:
        squared = _dot(v, v)
        return normalize(stumpff(0, squared) * x + stumpff(1, squared) * v)

    def _log(self, x: Points, y: Points) -> Tangents:
        cosine = _dot(x, y)
        across = self._project(x, y - cosine * x)  # twice, or a norm of x off by rounding leaves a part along x
        squared = _dot(across, across)
        opposite = (cosine < 0.0) & (squared < jnp.finfo(x.dtype).eps ** 2)
        direct = angle_over_sine(cosine, jnp.where(opposite, 1.0, squared)) * across
        return jnp.where(opposite, math.pi * self._frame(x + 0.0 * y)[..., 0], direct)

    def _project(self, x: Points, u: Float[Array, "*#N D"]) -> Tangents:
        return u - _dot(x, u) * x

    def _transport_along(self, x: Points, v: Tangents, u: Tangents) -> Tangents:
        squared = _dot(v, v)
        return u - _dot(v, u) * (stumpff(1, squared) * x + stumpff(2, squared) * v)

    def _distance(self, x: Points, y: Points) -> Float[Array, "*#N"]:
        return 2.0 * jnp.arctan2(safe_norm(x - y), safe_norm(x + y))

    def _log_volume_ratio(self, x: Points, y: Points) -> Float[Array, "*#N"]:
        return -(self.d - 1) * log_angle_over_sine(x, y)

    def _frame(self, x: Points) -> Float[Array, "*#N D d"]:
        if self.d == 1:
            return jnp.stack([-x[..., 1], x[..., 0]], axis=-1)[..., None]
        if self.d == 3:
            return quaternion_frame(x)
        return _reflected_frame(x)

    @property
    def frame_names(self) -> tuple[str, ...]:
        """Also "east_north" on S_2: the unit vectors to the east and to the north."""
        return ("default", "east_north") if self.d == 2 else ("default",)

    def _named_frame(self, x: Points, name: str) -> Float[Array, "*#N D d"]:
        return east_north_frame(x) if name == "east_north" else self._frame(x)

    def _nearest(self, x: Float[Array, "*#N D"]) -> Points:
        return normalize(x)

    def _random(self, n: int, key: PRNGKeyArray) -> Float[Array, "N D"]:
        return normalize(standard_normal(key, (n, self.ambient_dim)))

    @property
    def readable(self) -> Readable:
        """The angle on a circle, ambient coordinates elsewhere."""
        if self.d == 1:
            return Readable(("angle",), ((-180.0, 180.0),), (True,))
        return super().readable._replace(limits=((-1.0, 1.0),) * self.ambient_dim)

    def read(self, x: Float[np.ndarray, "N D"]) -> Float[np.ndarray, "N R"]:
        """Return the angle in degrees, or the ambient coordinates."""
        return np.rad2deg(np.arctan2(x[:, 1:], x[:, :1])) if self.d == 1 else super().read(x)

    def from_readable(self, coordinates: Float[np.ndarray, "N R"]) -> Float[np.ndarray, "N D"]:
        """Return the points with given angles in degrees, or with given ambient coordinates."""
        if self.d > 1:
            return super().from_readable(coordinates)
        angles = np.deg2rad(coordinates)
        return np.concatenate([np.cos(angles), np.sin(angles)], axis=1)


def Circle() -> Sphere:  # noqa: N802 - reads as the name of a space
    """Return the circle, Sphere(1)."""
    return Sphere(1)


def log_angle_over_sine(x: Points, y: Points) -> Float[Array, "*#N"]:
    """Return log(θ / sin θ) for the angle θ between unit vectors."""
    cosine = _dot(x, y)
    across = y - cosine * x
    return jnp.log(angle_over_sine(cosine, _dot(across, across)))[..., 0]


def _reflected_frame(x: Points) -> Float[Array, "*#N D d"]:
    """Return e_i - x_i / (1 + x_D) (x + e_D), i < D: smooth except at -e_D, where a fixed frame is returned.

    In the lower half 1 + x_D is taken as r² / (1 - x_D), r² = sum of the other squares, which does not cancel.
    """
    head, last = x[..., :-1], x[..., -1:]
    r_squared = _dot(head, head)
    below = last < 0.0
    regular = r_squared > jnp.finfo(x.dtype).eps ** 3
    inverse_below = jnp.where(regular, (1.0 - last) / jnp.where(below & regular, r_squared, 1.0), 0.0)
    inverse = jnp.where(below, inverse_below, 1.0 / (1.0 + jnp.where(below, 0.0, last)))
    upper = jnp.eye(head.shape[-1], dtype=x.dtype) - inverse[..., None] * head[..., :, None] * head[..., None, :]
    return jnp.concatenate([upper, -head[..., None, :]], axis=-2)


def east_north_frame(x: Float[Array, "*N 3"]) -> Float[Array, "*N 3 2"]:
    """Return the unit vectors to the east and to the north, as columns; at the poles those of longitude 0."""
    rho, cosine, sine = longitude(x)
    return east_north(x[..., 2], rho, cosine, sine)


def longitude(x: Float[Array, "*N 3"]) -> tuple[Float[Array, "*N"], Float[Array, "*N"], Float[Array, "*N"]]:
    """Return the distance from the axis, and cosine and sine of the longitude (1 and 0 at the poles)."""
    rho = safe_norm(x[..., :2])
    safe = jnp.where(rho > 0.0, rho, 1.0)
    return rho, jnp.where(rho > 0.0, x[..., 0] / safe, 1.0), jnp.where(rho > 0.0, x[..., 1] / safe, 0.0)


def east_north(
    sin_lat: Float[Array, "*N"], cos_lat: Float[Array, "*N"], cos_lon: Float[Array, "*N"], sin_lon: Float[Array, "*N"]
) -> Float[Array, "*N 3 2"]:
    """Return the unit vectors to the east and to the north of places given by their sines and cosines."""
    east = jnp.stack([-sin_lon, cos_lon, jnp.zeros_like(sin_lon)], axis=-1)
    north = jnp.stack([-sin_lat * cos_lon, -sin_lat * sin_lon, cos_lat], axis=-1)
    return jnp.stack([east, north], axis=-1)
