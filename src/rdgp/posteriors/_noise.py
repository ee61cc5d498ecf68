"""Gaussian observation noise: a variance for all, known noise of each observation, and rows that do not count."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from rdgp.core import register, standard_normal

Known = Float[Array, "N"] | Float[Array, "N q q"]


@register("rdgp:Noise")
class Noise(eqx.Module):
    """Noise of variance σ² in every coordinate, plus what is known of each observation.

    `known` holds a variance for each point, or a covariance matrix of its coordinates. Where `mask` is false a row only
    fills up an array and carries no information.
    """

    variance: Float[Array, ""]
    known: Known | None = None
    mask: Bool[Array, "N"] | None = None

    @property
    def uniform(self) -> bool:
        """Whether all observations have the same noise and all count."""
        return self.known is None and self.mask is None

    @property
    def couples(self) -> bool:
        """Whether the noise of coordinates differs or is correlated, so that they are not independent copies."""
        return self.known is not None and self.known.ndim == 3

    def counts(self, n: int) -> Bool[Array, "N"]:
        """Return which of n rows count."""
        return jnp.ones(n, bool) if self.mask is None else self.mask

    def averaged(self) -> "Noise":
        """Return the noise with one variance for each point, the mean over its coordinates."""
        if self.known is None or not self.couples:
            return self
        return Noise(self.variance, jnp.trace(self.known, axis1=1, axis2=2) / self.known.shape[-1], self.mask)

    def covariances(self, n: int, p: int, dtype: jnp.dtype) -> Float[Array, "N p p"]:
        """Return the covariance of the p correlated numbers of each point."""
        eye = jnp.eye(p, dtype=dtype)
        total = jnp.broadcast_to(self.variance.astype(dtype) * eye, (n, p, p))
        if self.known is None:
            return total
        known = self.known.astype(dtype)
        return total + (known if self.couples else known[:, None, None] * eye)

    def whiten(self, values: Float[Array, "N p m"]) -> Float[Array, "N p m"]:
        """Return values whose noise has the unit covariance; rows that do not count are zero."""
        n, p, _ = values.shape
        factor = jnp.linalg.cholesky(self.covariances(n, p, values.dtype))
        whitened = values / factor[:, :1, :1] if p == 1 else solve_triangular(factor, values, lower=True)
        return jnp.where(self.counts(n)[:, None, None], whitened, 0.0)

    def log_det(self, n: int, p: int, dtype: jnp.dtype) -> Float[Array, ""]:
        """Return the log determinant of the noise of all rows that count."""
        factor = jnp.linalg.cholesky(self.covariances(n, p, dtype))
        each = 2.0 * jnp.sum(jnp.log(jnp.diagonal(factor, axis1=1, axis2=2)), axis=1)
        return jnp.sum(jnp.where(self.counts(n), each, 0.0))

    def matrix(self, n: int, p: int, filler: Float[Array, ""]) -> Float[Array, "k k"]:
        """Return the covariance of the noise of all points, the first numbers of all points first, k = p n.

        Rows that do not count have a variance `filler`.
        """
        dtype = filler.dtype
        alone = filler * jnp.eye(p, dtype=dtype)
        blocks = jnp.where(self.counts(n)[:, None, None], self.covariances(n, p, dtype), alone)
        if p == 1:
            return jnp.diag(blocks[:, 0, 0])
        points = np.arange(n)
        full = jnp.zeros((p, n, p, n), dtype).at[:, points, :, points].set(blocks)
        return full.reshape(p * n, p * n)

    def sample(self, shape: tuple[int, ...], dtype: jnp.dtype, *, key: PRNGKeyArray) -> Float[Array, "N p r"]:
        """Draw the noise of r copies."""
        normal = standard_normal(key, shape, dtype)
        if self.uniform:
            return jnp.sqrt(self.variance).astype(dtype) * normal
        return jnp.linalg.cholesky(self.covariances(shape[0], shape[1], dtype)) @ normal
