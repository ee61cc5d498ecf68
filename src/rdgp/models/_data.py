"""What a model learns from: points, observations as coordinates, known noise, and rows that only fill up."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from rdgp.core import Numbers, as_float_array, check_finite, is_concrete, register
from rdgp.fields import Frame


@register("rdgp:Data")
class Data(eqx.Module):
    """Points and coordinates of observations (points of the space for a manifold-valued model).

    `noise` is known of each observation: a variance of its coordinates, or a covariance matrix. Where `mask` is false a
    row only fills up the arrays. A batch stands for `total` points.
    """

    x: Float[Array, "N D"]
    y: Float[Array, "N q"]
    noise: Float[Array, "N ..."] | None = None
    mask: Bool[Array, "N"] | None = None
    total: int | None = eqx.field(static=True, default=None)

    @property
    def num_points(self) -> int:
        """Number of rows."""
        return self.x.shape[0]

    @property
    def share(self) -> float:
        """How many points each row stands for."""
        return 1.0 if self.total is None else self.total / self.num_points

    def rows(self, index: Int[Array, "..."] | slice, total: int | None = None) -> "Data":
        """Return some rows, which stand for `total` points."""
        x, y, noise, mask = jax.tree.map(lambda leaf: leaf[index], (self.x, self.y, self.noise, self.mask))
        return Data(x, y, noise, mask, total)

    def minus(self, offset: Float[Array, "..."]) -> "Data":
        """Return the data with a constant subtracted from the observations."""
        return Data(self.x, self.y - offset.astype(self.y.dtype), self.noise, self.mask, self.total)


def known_noise(noise_variance: Numbers, frame: Frame, x: Float[Array, "N D"]) -> Float[Array, "N ..."]:
    """Return known noise in coordinates, [N] or [N, q, q], or raise.

    One number for each point is the variance of every coordinate; [N, P] are variances of several outputs; [N, P, P]
    are covariance matrices of the values, ambient ones for tangent vectors.
    """
    noise, n, shape = as_float_array(noise_variance, "noise_variance"), x.shape[0], frame.value_shape
    check_finite(noise, "noise_variance")
    several = [(n,), *([(n, *shape, *shape)] if shape else []), *([(n, *shape)] if not frame.tangent else [])]
    if noise.shape not in several:
        wanted = " or ".join(map(str, dict.fromkeys(several)))
        raise ValueError(f"noise_variance must have shape {wanted} for {n} points, got {noise.shape}")
    variances = jnp.diagonal(noise, axis1=-2, axis2=-1) if noise.ndim == 3 else noise
    if is_concrete(noise) and bool(np.any(np.asarray(variances) < 0.0)):
        raise ValueError("noise_variance must not be negative; pass variances, the squares of standard deviations")
    noise = noise.astype(x.dtype)
    if noise.ndim == 1:
        return noise
    if noise.ndim == 2:
        return noise[..., None] * jnp.eye(noise.shape[-1], dtype=noise.dtype)
    return frame.coordinate_covariance(noise)
