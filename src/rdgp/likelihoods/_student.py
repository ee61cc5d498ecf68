"""Noise with heavy tails, for data with outliers."""

import math
from collections.abc import Collection, Mapping
from typing import ClassVar

import jax
import jax.numpy as jnp
from jax.scipy.special import gammaln, logsumexp
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import Parameter, Prior, register
from rdgp.likelihoods._likelihood import REAL_NUMBERS, Likelihood, Support, single_numbers, variances
from rdgp.likelihoods._quadrature import trapezoid_rule

_NODES = 64
_TAIL = 36.0  # e^-36 is below the rounding error of double precision
_CUT = 18.0  # e^-18 is what is left out of an expected log density


@register("rdgp:StudentT")
class StudentT(Likelihood):
    """Observations y = f + s t in each coordinate, t independent Student variables of ν degrees of freedom.

    Gauss-Hermite nodes in f miss a density narrower than their distance, so f is integrated out in closed form and
    what remains, a scale, is integrated over its logarithm, where the trapezoid rule converges exponentially. Both
    numbers are learned unless in `fixed`; `prior` gives some of them a prior density, as for kernels.
    """

    support: ClassVar[Support] = REAL_NUMBERS
    parameters: dict[str, Parameter]

    def __init__(
        self,
        scale: float = 0.1,
        freedom: float = 4.0,
        *,
        fixed: Collection[str] = (),
        prior: Mapping[str, Prior] | None = None,
    ) -> None:
        self.parameters = single_numbers({"scale": scale, "freedom": freedom}, fixed, prior)

    @property
    def scale(self) -> Float[Array, ""]:
        """Scale s of the noise."""
        return self.parameters["scale"].value

    @property
    def freedom(self) -> Float[Array, ""]:
        """Degrees of freedom ν; the variance is finite above two."""
        return self.parameters["freedom"].value

    def log_density(self, y: Float[Array, "*#N q"], f: Float[Array, "*#N q"]) -> Float[Array, "*#N q"]:
        """Return c - (ν + 1)/2 log(1 + (y - f)² / (ν s²))."""
        scale, freedom = self._numbers(f)
        shrink = 1.0 / (freedom * jnp.square(scale))
        constant = gammaln((freedom + 1.0) / 2.0) - gammaln(freedom / 2.0) + 0.5 * jnp.log(shrink / jnp.pi)
        return constant - 0.5 * (freedom + 1.0) * jnp.log1p(jnp.square(y - f) * shrink)

    def conditional_moments(self, f: Float[Array, "*N q"]) -> tuple[Float[Array, "*N q"], Float[Array, "*N q"]]:
        """Return f and s² ν/(ν - 2), infinite unless ν > 2."""
        return f, jnp.full_like(f, self._noise(f))

    def expected_log_density(
        self, y: Float[Array, "N q"], mean: Float[Array, "*S N q"], covariance: Float[Array, "*S N q q"]
    ) -> Float[Array, "*S N"]:
        """Return E log p(y | f) = c - (ν + 1)/2 E log(1 + (y - f)² / (ν s²)), summed over coordinates."""
        scale, freedom = self._numbers(mean)
        shrink = 1.0 / (freedom * jnp.square(scale))
        squared = jnp.square(y.astype(mean.dtype) - mean)
        log_square = _expected_log1p(squared * shrink, jnp.maximum(variances(covariance), 0.0) * shrink)
        constant = gammaln((freedom + 1.0) / 2.0) - gammaln(freedom / 2.0) + 0.5 * jnp.log(shrink / jnp.pi)
        return jnp.sum(constant - 0.5 * (freedom + 1.0) * log_square, axis=-1)

    def log_predictive(
        self, y: Float[Array, "N q"], mean: Float[Array, "*S N q"], covariance: Float[Array, "*S N q q"]
    ) -> Float[Array, "*S N"]:
        """Return log ∫ N(y; mean, variance + s²/λ) Gamma(λ; ν/2, ν/2) dλ, summed over coordinates."""
        scale, freedom = self._numbers(mean)
        noise, half = jnp.square(scale), freedom / 2.0
        variance, squared = jnp.maximum(variances(covariance), 0.0), jnp.square(y.astype(mean.dtype) - mean)
        turn = jnp.log(noise / (noise + variance + squared))  # further down, the integrand falls like e^(u (ν + 1)/2)
        width = jnp.sqrt(4.0 * _TAIL / freedom)
        high = jnp.minimum(width, jnp.log1p(_TAIL / half) + 1.0)
        nodes, step = trapezoid_rule(turn - width - 2.0 * _TAIL / (freedom + 1.0), high, 2 * _NODES)
        total = variance + noise * jnp.exp(-nodes)
        log_normal = -0.5 * (squared / total + jnp.log(2.0 * jnp.pi * total))
        log_gamma = half * (nodes - jnp.exp(nodes) + jnp.log(half)) - gammaln(half)
        return jnp.sum(logsumexp(log_normal + log_gamma, axis=0) + jnp.log(step), axis=-1)

    def observed_moments(
        self, mean: Float[Array, "*S N q"], covariance: Float[Array, "*S N q q"]
    ) -> tuple[Float[Array, "*S N q"], Float[Array, "*S N q q"]]:
        """Return the mean, and the covariance + s² ν/(ν - 2) I: infinite variances unless ν > 2."""
        noisy = covariance + self._noise(mean)
        return mean, jnp.where(jnp.eye(mean.shape[-1], dtype=bool), noisy, covariance)

    def _noise(self, like: Float[Array, "..."]) -> Float[Array, ""]:
        scale, freedom = self._numbers(like)
        finite = freedom > 2.0
        return jnp.where(finite, jnp.square(scale) * freedom / jnp.where(finite, freedom - 2.0, 1.0), jnp.inf)

    def sample(self, f: Float[Array, "*S N q"], *, key: PRNGKeyArray) -> Float[Array, "*S N q"]:
        """Add noise."""
        scale, freedom = self._numbers(f)
        return f + scale * jax.random.t(key, freedom, f.shape, f.dtype)

    def _numbers(self, like: Float[Array, "..."]) -> tuple[Float[Array, ""], Float[Array, ""]]:
        return self.scale.astype(like.dtype), self.freedom.astype(like.dtype)


def _expected_log1p(squared: Float[Array, "*S"], variance: Float[Array, "*S"]) -> Float[Array, "*S"]:
    """Return E log(1 + r²), r normal with a given squared mean and variance.

    log(1 + x) = ∫ (1 - e^(-xt)) e^(-t) dt/t, and E e^(-t r²) = (1 + 2tv)^(-1/2) e^(-t m²/(1 + 2tv)).
    """
    low = -jnp.log1p(squared + variance) - _CUT
    nodes, step = trapezoid_rule(low, jnp.full_like(low, math.log(_TAIL)), _NODES)
    t = jnp.exp(nodes)
    spread = 2.0 * t * variance
    missing = -jnp.expm1(-0.5 * jnp.log1p(spread) - t * squared / (1.0 + spread))
    return step * jnp.sum(missing * jnp.exp(-t), axis=0)
