"""Expected improvement and its logarithm, and the probability that an evaluation succeeds; everything is minimised."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import log_ndtr, logsumexp, ndtr
from jaxtyping import Array, Bool, Float

from rdgp.spaces import Space

_LOG_ROOT = 0.5 * math.log(2.0 * math.pi)
_NEAR, _FAR = -1.0, -20.0  # between the formulas of log h


def log_improvement(z: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return log h(z), h(z) = φ(z) + z Φ(z), finite with finite derivative for every finite z.

    Directly for z > -1; by log(1 - |z| Φ/φ) down to -20; below by the series 1/z² (1 - 3/z² + 15/z⁴ - ...).
    """
    near, far = z > _NEAR, z < _FAR
    a = jnp.where(near, z, 0.0)
    direct = jnp.log(jnp.exp(-0.5 * a * a - _LOG_ROOT) + a * ndtr(a))
    b = jnp.where(near | far, _NEAR, z)
    ratio = jnp.log(-b) + log_ndtr(b) + 0.5 * b * b + _LOG_ROOT
    middle = -0.5 * b * b - _LOG_ROOT + jnp.log(-jnp.expm1(ratio))
    c = jnp.where(far, z, _FAR)
    u = 1.0 / jnp.square(c)
    tail = jnp.log1p(u * (-3.0 + u * (15.0 + u * (-105.0 + 945.0 * u))))
    series = -0.5 * c * c - _LOG_ROOT - 2.0 * jnp.log(-c) + tail
    return jnp.where(near, direct, jnp.where(far, series, middle))


def log_expected_improvement(
    mean: Float[Array, "S R"], variance: Float[Array, "S R"], best: Float[Array, "S 1"]
) -> Float[Array, "R"]:
    """Return the log of E[max(best - f, 0)] of a mixture of S equally likely Gaussians, each with its own best."""
    std = jnp.sqrt(variance)
    members = jnp.log(std) + log_improvement((best - mean) / std)
    return logsumexp(members, axis=0) - math.log(mean.shape[0])


class Feasibility(NamedTuple):
    """A feasibility model: points whose evaluation succeeded or failed, padded, and the bandwidth of their kernel."""

    x: Float[Array, "V D"]
    succeeded: Bool[Array, "V"]
    failed: Bool[Array, "V"]
    bandwidth: Float[Array, ""]

    def log_probability(self, space: Space, x: Float[Array, "R D"]) -> Float[Array, "R"]:
        """Return the log probability of success: the share of successes around each point, one more added to them."""
        apart = jax.vmap(lambda point: space.distance(jnp.broadcast_to(point, self.x.shape), self.x))(x)
        weight = jnp.exp(-0.5 * jnp.square(apart / self.bandwidth))
        yes = jnp.sum(jnp.where(self.succeeded, weight, 0.0), axis=1)
        no = jnp.sum(jnp.where(self.failed, weight, 0.0), axis=1)
        return jnp.log1p(yes) - jnp.log1p(yes + no)
