"""Quaternion algebra (w, x, y, z), used by the 3-sphere and by rotations."""

import jax.numpy as jnp
from jaxtyping import Array, Float


def quaternion_product(p: Float[Array, "*N 4"], q: Float[Array, "*N 4"]) -> Float[Array, "*N 4"]:
    """Multiply quaternions."""
    pw, px, py, pz = (p[..., i] for i in range(4))
    qw, qx, qy, qz = (q[..., i] for i in range(4))
    return jnp.stack(
        [
            pw * qw - px * qx - py * qy - pz * qz,
            pw * qx + px * qw + py * qz - pz * qy,
            pw * qy - px * qz + py * qw + pz * qx,
            pw * qz + px * qy - py * qx + pz * qw,
        ],
        axis=-1,
    )


def quaternion_frame(q: Float[Array, "*N 4"]) -> Float[Array, "*N 4 3"]:
    """Return the left-invariant frame (q i, q j, q k) as columns."""
    units = jnp.eye(4, dtype=q.dtype)[1:]
    return jnp.stack([quaternion_product(q, jnp.broadcast_to(unit, q.shape)) for unit in units], axis=-1)
