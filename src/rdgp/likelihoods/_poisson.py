"""Counts."""

import math
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, logsumexp
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import Parameter, register
from rdgp.likelihoods._likelihood import Likelihood, Support, variances
from rdgp.likelihoods._quadrature import hermite_rule

_COUNTS = Support("whole numbers of at least zero", lambda y: (y >= 0.0) & (y == np.floor(y)))
_NEWTON_STEPS = 6


@register("rdgp:Poisson")
class Poisson(Likelihood):
    """Counts of rate e^f in each coordinate."""

    support: ClassVar[Support] = _COUNTS
    parameters: dict[str, Parameter]

    def __init__(self) -> None:
        self.parameters = {}

    def log_density(self, y: Float[Array, "*#N q"], f: Float[Array, "*#N q"]) -> Float[Array, "*#N q"]:
        """Return y f - e^f - log y!."""
        return y * f - jnp.exp(f) - gammaln(y + 1.0)

    def conditional_moments(self, f: Float[Array, "*N q"]) -> tuple[Float[Array, "*N q"], Float[Array, "*N q"]]:
        """Return the rate twice."""
        return jnp.exp(f), jnp.exp(f)

    def expected_log_density(
        self, y: Float[Array, "N q"], mean: Float[Array, "*S N q"], covariance: Float[Array, "*S N q q"]
    ) -> Float[Array, "*S N"]:
        """Return y mean - e^(mean + variance/2) - log y!, summed over coordinates."""
        y = y.astype(mean.dtype)
        rate = jnp.exp(mean + variances(covariance) / 2.0)
        return jnp.sum(y * mean - rate - gammaln(y + 1.0), axis=-1)

    def log_predictive(
        self, y: Float[Array, "N q"], mean: Float[Array, "*S N q"], covariance: Float[Array, "*S N q q"]
    ) -> Float[Array, "*S N"]:
        """Return log ∫ N(f; mean, variance) e^(y f - e^f) df - log y!, summed over coordinates.

        A large count is narrower in f than the distance of Gauss-Hermite nodes, so these are moved to the mode of the
        integrand and scaled by its curvature there (Liu and Pierce, Biometrika 81, 1994).
        """
        y = jnp.broadcast_to(y.astype(mean.dtype), mean.shape)
        variance = jnp.maximum(variances(covariance), jnp.finfo(mean.dtype).eps ** 2)
        std = jnp.sqrt(variance)
        mode, curvature = jax.lax.stop_gradient(_mode_and_curvature(y, mean, variance))
        nodes, weights = hermite_rule(mean.dtype, mean.ndim)
        z = mode + nodes / jnp.sqrt(curvature)
        f = mean + std * z
        log_rate = jnp.minimum(f, 0.9 * math.log(jnp.finfo(f.dtype).max))  # no overflow, where nothing is added anyway
        log_terms = y * f - jnp.exp(log_rate) - 0.5 * jnp.square(z) + 0.5 * jnp.square(nodes) + jnp.log(weights)
        return jnp.sum(logsumexp(log_terms, axis=0) - 0.5 * jnp.log(curvature) - gammaln(y + 1.0), axis=-1)

    def observed_moments(
        self, mean: Float[Array, "*S N q"], covariance: Float[Array, "*S N q q"]
    ) -> tuple[Float[Array, "*S N q"], Float[Array, "*S N q q"]]:
        """Return r = e^(mean + variance/2), and diag r + r_i r_j (e^(covariance_ij) - 1)."""
        rate = jnp.exp(mean + variances(covariance) / 2.0)
        shared = rate[..., :, None] * rate[..., None, :] * jnp.expm1(covariance)
        return rate, shared + rate[..., None] * jnp.eye(mean.shape[-1], dtype=mean.dtype)

    def sample(self, f: Float[Array, "*S N q"], *, key: PRNGKeyArray) -> Float[Array, "*S N q"]:
        """Draw counts."""
        return jax.random.poisson(key, jnp.exp(f)).astype(f.dtype)


def _mode_and_curvature(
    y: Float[Array, "*S"], mean: Float[Array, "*S"], variance: Float[Array, "*S"]
) -> tuple[Float[Array, "*S"], Float[Array, "*S"]]:
    """Return mode and curvature of e^f - y f + z²/2 as a function of z, f = mean + σ z.

    At the mode w = σ² e^f solves w + log w = log σ² + mean + σ² y, and the curvature is 1 + w. Newton's method in
    log w starts above the root of a convex function, so it falls to it.
    """
    log_variance, std = jnp.log(variance), jnp.sqrt(variance)
    target = log_variance + mean + variance * y
    log_w = jnp.where(target > 1.0, jnp.log(jnp.maximum(target, 1.0)), target)
    for _ in range(_NEWTON_STEPS):
        w = jnp.exp(log_w)
        log_w = log_w - (w + log_w - target) / (w + 1.0)
    w = jnp.exp(log_w)
    by_log, by_difference = (log_w - log_variance - mean) / std, std * y - w / std
    return jnp.where(w > 1.0, by_log, by_difference), 1.0 + w  # whichever does not cancel
