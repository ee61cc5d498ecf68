"""Two stylized tasks of a robot over the orientation of its tool."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rdgp.bayesopt.targets._target import Target, Values
from rdgp.core import check_count, normalize, safe_norm
from rdgp.spaces import Rotations, Space

_UPPER, _LOWER = 1.0, 0.8  # lengths of the upper arm and the forearm, whose shoulder is at the origin
_TOOL = (0.12, 0.05, 0.25)  # the tip in the frame of the hand, off the axis of its last joint
_TIP = (0.9, 0.3, 0.35)  # where the tip is held
_BEST_POSE = (0.3125159313149101, 0.3330678792055414, -0.889533138311349, -0.011418246882073683)
_BEST_VOLUME = -0.953568977520208
_TRUTH = (0.44, -0.62, 0.31, 0.57)


def manipulability() -> Target:
    """Return the loss of manipulability of a six-joint arm whose tip is held still, over the tool's orientation.

    A base that turns, a shoulder, an elbow and three joints that meet in the wrist c = tip - R tool. The volume of the
    velocities that unit joint speeds reach is |det J| = a b |sin elbow| (c's distance from the base axis) |sin wrist|;
    the loss is minus that. No joint limits; the elbow is up.
    """
    center = Rotations().nearest(jnp.asarray(_BEST_POSE, float))
    return Target("manipulability", Rotations(), _BEST_VOLUME, _lost_volume, center)


def registration(num_points: int = 24) -> Target:
    """Return the misfit of a turned closed curve of points to its original, over rotations.

    f(R) = mean_i min_j |R p_i - q_j|² with q_j = R₀ p_j: which point belongs to which is not known, so there are false
    fits; minimum 0 at R₀.
    """
    points = _curve(check_count(num_points, "num_points", 4))
    center = Rotations().nearest(jnp.asarray(_TRUTH, float))
    turned = points @ rotation_matrix(center).T
    return Target("registration", Rotations(), 0.0, _misfit, center, (points, turned))


def rotation_matrix(q: Float[Array, "*N 4"]) -> Float[Array, "*N 3 3"]:
    """Return the matrices of unit quaternions (w, x, y, z)."""
    w, x, y, z = (q[..., i] for i in range(4))
    rows = [
        [1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
        [2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x)],
        [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)],
    ]
    return jnp.stack([jnp.stack(row, axis=-1) for row in rows], axis=-2)


def _curve(num_points: int) -> Float[Array, "n 3"]:
    """Return points on a closed curve without any symmetry, about as large as the unit ball."""
    t = 2.0 * np.pi * np.arange(num_points) / num_points
    x, y = np.cos(t) + 0.3 * np.cos(2.0 * t + 0.5), 0.6 * np.sin(t) + 0.2 * np.sin(3.0 * t)
    return jnp.asarray(np.stack([x, y, 0.4 * np.sin(2.0 * t) + 0.25 * np.cos(t + 1.0)], axis=-1), float)


def _misfit(space: Space, q: Float[Array, "*N 4"], points: Float[Array, "n 3"], turned: Float[Array, "n 3"]) -> Values:
    moved = jnp.einsum("...ij,nj->...ni", rotation_matrix(q), points.astype(q.dtype))
    apart = moved[..., :, None, :] - turned.astype(q.dtype)
    return jnp.mean(jnp.min(jnp.sum(apart * apart, axis=-1), axis=-1), axis=-1)


def _lost_volume(space: Space, q: Float[Array, "*N 4"]) -> Values:
    hand = rotation_matrix(q)
    wrist = jnp.asarray(_TIP, q.dtype) - hand @ jnp.asarray(_TOOL, q.dtype)
    out = safe_norm(wrist[..., :2])
    away = normalize(wrist[..., :2])
    elbow = _elbow(out, wrist[..., 2])
    forearm = jnp.stack([out, wrist[..., 2]], axis=-1) - elbow
    in_space = jnp.concatenate([forearm[..., :1] * away, forearm[..., 1:]], axis=-1) / _LOWER
    bend = elbow[..., 0] * forearm[..., 1] - elbow[..., 1] * forearm[..., 0]  # a b sin of the elbow's angle
    return -jnp.abs(bend) * out * safe_norm(jnp.cross(in_space, hand[..., :, 2]))


def _elbow(out: Float[Array, "*N"], up: Float[Array, "*N"]) -> Float[Array, "*N 2"]:
    """Return the elbow, in the plane of the arm, by the law of cosines."""
    squared = out * out + up * up
    cosine = (_UPPER**2 + squared - _LOWER**2) / (2.0 * _UPPER * jnp.sqrt(squared))
    angle = jnp.arctan2(up, out) + jnp.arccos(cosine)
    return _UPPER * jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=-1)
