"""Yes-or-no observations."""

from typing import ClassVar

import jax.numpy as jnp
from jax.scipy.stats import norm
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import Parameter, register, standard_normal
from rdgp.likelihoods._likelihood import Likelihood, Support, variances

_BINARY = Support("zeros and ones", lambda y: (y == 0.0) | (y == 1.0))


@register("rdgp:Bernoulli")
class Bernoulli(Likelihood):
    """Observations of zero or one with the probit link, p(y = 1 | f) = Φ(f) in each coordinate."""

    support: ClassVar[Support] = _BINARY
    parameters: dict[str, Parameter]

    def __init__(self) -> None:
        self.parameters = {}

    def log_density(self, y: Float[Array, "*#N q"], f: Float[Array, "*#N q"]) -> Float[Array, "*#N q"]:
        """Return log Φ(±f)."""
        return norm.logcdf((2.0 * y - 1.0) * f)

    def conditional_moments(self, f: Float[Array, "*N q"]) -> tuple[Float[Array, "*N q"], Float[Array, "*N q"]]:
        """Return p and p (1 - p)."""
        return norm.cdf(f), norm.cdf(f) * norm.cdf(-f)

    def log_predictive(
        self, y: Float[Array, "N q"], mean: Float[Array, "*S N q"], covariance: Float[Array, "*S N q q"]
    ) -> Float[Array, "*S N"]:
        """Return log Φ(±mean / √(1 + variance)), summed over coordinates."""
        sign = 2.0 * y.astype(mean.dtype) - 1.0
        return jnp.sum(norm.logcdf(sign * mean / jnp.sqrt(1.0 + variances(covariance))), axis=-1)

    def observed_moments(
        self, mean: Float[Array, "*S N q"], covariance: Float[Array, "*S N q q"]
    ) -> tuple[Float[Array, "*S N q"], Float[Array, "*S N q q"]]:
        """Return p and the diagonal of p (1 - p); covariances between coordinates are left out."""
        ratio = mean / jnp.sqrt(1.0 + variances(covariance))
        variance = norm.cdf(ratio) * norm.cdf(-ratio)
        return norm.cdf(ratio), variance[..., None] * jnp.eye(mean.shape[-1], dtype=mean.dtype)

    def sample(self, f: Float[Array, "*S N q"], *, key: PRNGKeyArray) -> Float[Array, "*S N q"]:
        """Draw zeros and ones."""
        return (f + standard_normal(key, f.shape, f.dtype) > 0.0).astype(f.dtype)
