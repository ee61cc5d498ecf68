"""A Gaussian over whitened inducing variables."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rdgp.core import Parameter, register


@register("rdgp:WhitenedGaussian")
class WhitenedGaussian(eqx.Module):
    """q(u) = N(m, C Cᵀ) for each of r independent copies, where the prior is N(0, I).

    C is lower-triangular; its diagonal is kept by logarithms in the diagonal of `raw`.
    """

    _mean: Parameter
    _raw: Parameter

    def __init__(self, copies: int, size: int, std: float = 1.0) -> None:
        self._mean = Parameter(np.zeros((copies, size)), "real", name="mean")
        raw = np.broadcast_to(np.log(std) * np.eye(size), (copies, size, size))
        self._raw = Parameter(raw, "real", name="factor")

    @property
    def mean(self) -> Float[Array, "r m"]:
        """Mean of each copy."""
        return self._mean.value

    @property
    def factor(self) -> Float[Array, "r m m"]:
        """Factor C of the covariance of each copy."""
        raw = self._raw.value
        return jnp.tril(raw, -1) + jnp.exp(self._log_diagonal)[..., None] * jnp.eye(raw.shape[-1], dtype=raw.dtype)

    @property
    def _log_diagonal(self) -> Float[Array, "r m"]:
        return jnp.diagonal(self._raw.value, axis1=-2, axis2=-1)

    def kl(self) -> Float[Array, ""]:
        """Return KL(q || N(0, I)) = (|C|² + |m|² - M)/2 - sum log C_ii, which needs no factorization."""
        squares = jnp.sum(jnp.square(jnp.tril(self._raw.value, -1))) + jnp.sum(jnp.exp(2.0 * self._log_diagonal))
        return 0.5 * (squares + jnp.sum(jnp.square(self.mean)) - self.mean.size) - jnp.sum(self._log_diagonal)

    def sample(self, normal: Float[Array, "*S r m"]) -> Float[Array, "*S r m"]:
        """Turn standard normal numbers into draws."""
        return self.mean + jnp.einsum("rij,...rj->...ri", self.factor, normal)

    def with_moments(self, mean: Float[Array, "r m"], factor: Float[Array, "r m m"]) -> "WhitenedGaussian":
        """Return the Gaussian with another mean and factor."""
        diagonal = jnp.log(jnp.diagonal(factor, axis1=-2, axis2=-1))
        raw = jnp.tril(factor, -1) + diagonal[..., None] * jnp.eye(factor.shape[-1], dtype=factor.dtype)
        return eqx.tree_at(lambda q: (q._mean.raw, q._raw.raw), self, (mean, raw))
