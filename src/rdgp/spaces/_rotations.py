"""The rotations SO(3), as unit quaternions with antipodes identified."""

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import normalize, register
from rdgp.spaces._maps import Isometry, Readable
from rdgp.spaces._quaternions import quaternion_frame, quaternion_product
from rdgp.spaces._space import Points, Space, Tangents
from rdgp.spaces._sphere import Sphere, log_angle_over_sine

_COVER = Sphere(3)


@register("rdgp:Rotations")
class Rotations(Space):
    """Unit quaternions (w, x, y, z), where q and -q are the same point; distance is half the rotation angle.

    A tangent vector v at q is -v at -q: it is the same vector of SO(3), written at the other quaternion.
    """

    def __str__(self) -> str:
        return "Rotations()"

    @property
    def dim(self) -> int:
        """Intrinsic dimension 3."""
        return 3

    @property
    def ambient_dim(self) -> int:
        """Ambient dimension 4."""
        return 4

    @property
    def injectivity_radius(self) -> float:
        """Half the length of the shortest closed geodesic."""
        return math.pi / 2

    @property
    def identifications(self) -> Float[np.ndarray, "2 4 4"]:
        """The identity and x -> -x."""
        return np.stack([np.eye(4), -np.eye(4)])

    def _random_isometry(self, key: PRNGKeyArray) -> Isometry:
        """Draw a map q -> a q b with uniform rotations a and b."""
        a, b = _COVER.random(2, key=key)
        columns = [quaternion_product(quaternion_product(a, unit), b) for unit in jnp.eye(4, dtype=a.dtype)]
        return Isometry(jnp.stack(columns, axis=-1), jnp.zeros(4))

    def _exp(self, x: Points, v: Tangents) -> Points:
        return _COVER._exp(x, v)

    def _log(self, x: Points, y: Points) -> Tangents:
        return _COVER._log(x, _same_hemisphere(x, y))

    def _project(self, x: Points, u: Float[Array, "*#N D"]) -> Tangents:
        return _COVER._project(x, u)

    def _transport_along(self, x: Points, v: Tangents, u: Tangents) -> Tangents:
        return _COVER._transport_along(x, v, u)

    def _distance(self, x: Points, y: Points) -> Float[Array, "*#N"]:
        return _COVER._distance(x, _same_hemisphere(x, y))

    def _log_volume_ratio(self, x: Points, y: Points) -> Float[Array, "*#N"]:
        return -2.0 * log_angle_over_sine(x, _same_hemisphere(x, y))

    def _canonical(self, x: Points) -> Points:
        """Return the quaternion whose first number that is not zero is positive."""
        return x * _sign_of_first(x)

    def _frame(self, x: Points) -> Float[Array, "*#N D d"]:
        return quaternion_frame(x)

    def _nearest(self, x: Float[Array, "*#N D"]) -> Points:
        return normalize(x)

    def _random(self, n: int, key: PRNGKeyArray) -> Float[Array, "N D"]:
        return _COVER._random(n, key)

    @property
    def readable(self) -> Readable:
        """The rotation vector: axis times angle."""
        return Readable(tuple(f"turn about {axis}" for axis in "xyz"), ((-180.0, 180.0),) * 3, (False,) * 3)

    def read(self, x: Float[np.ndarray, "N 4"]) -> Float[np.ndarray, "N 3"]:
        """Return rotation vectors in degrees."""
        positive = np.where(x[:, :1] < 0.0, -x, x)
        sine = np.linalg.norm(positive[:, 1:], axis=1, keepdims=True)
        angle = 2.0 * np.arctan2(sine, positive[:, :1])
        return np.rad2deg(angle * positive[:, 1:] / np.maximum(sine, 1e-300))

    def from_readable(self, coordinates: Float[np.ndarray, "N 3"]) -> Float[np.ndarray, "N 4"]:
        """Return the rotations with given rotation vectors in degrees."""
        half = np.deg2rad(coordinates) / 2.0
        angle = np.linalg.norm(half, axis=1, keepdims=True)
        return np.concatenate([np.cos(angle), np.sinc(angle / np.pi) * half], axis=1)


def _same_hemisphere(x: Points, y: Points) -> Points:
    """Return the quaternion of y, of the two, that is nearer to x."""
    return jnp.where(jnp.sum(x * y, axis=-1, keepdims=True) < 0.0, -y, y)


def _sign_of_first(x: Points) -> Float[Array, "*#N 1"]:
    """Return the sign of the first number of each row that is not zero but for rounding."""
    nonzero = jnp.abs(x) > 4.0 * jnp.finfo(x.dtype).eps
    first = jnp.take_along_axis(x, jnp.argmax(nonzero, axis=-1)[..., None], axis=-1)
    return jnp.where(first < 0.0, -1.0, 1.0).astype(x.dtype)
