"""Smooth functions whose textbook formulas divide by zero: values and derivatives stay finite everywhere."""

import math

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

_NEAR = 0.25
_SERIES_TERMS = 8  # s^8 / 16! is below 1e-18 for s < 1/4


def stumpff(order: int, s: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return the Stumpff function c_n(s) = sum_k (-s)^k / (2k + n)! for n = 0, 1, 2.

    With θ = √s: c_0 = cos θ, c_1 = sin θ / θ, c_2 = (1 - cos θ) / θ². All are entire functions of s = θ², so a series
    near zero and the closed form elsewhere give finite derivatives of every order.
    """
    series = np.array([(-1) ** k / math.factorial(2 * k + order) for k in reversed(range(_SERIES_TERMS))])
    near = s < _NEAR
    small = jnp.where(near, s, 0.0)
    far = jnp.where(near, 1.0, s)
    theta = jnp.sqrt(far)
    closed = (jnp.cos(theta), jnp.sin(theta) / theta, 2.0 * jnp.square(jnp.sin(theta / 2.0)) / far)[order]
    return jnp.where(near, _polynomial(series, small), closed)


def _polynomial(coefficients: Float[np.ndarray, "n"], s: Float[Array, "..."]) -> Float[Array, "..."]:
    """Evaluate by Horner's rule, highest coefficient first."""
    value = jnp.full_like(s, coefficients[0])
    for coefficient in coefficients[1:]:
        value = value * s + float(coefficient)
    return value


_ARCSINE = np.array([math.comb(2 * k, k) / (4**k * (2 * k + 1)) for k in reversed(range(12))])


def angle_over_sine(cosine: Float[Array, "..."], sine_squared: Float[Array, "..."]) -> Float[Array, "..."]:
    """Return θ / sin θ for θ in [0, π), given cos θ and sin² θ; smooth at θ = 0."""
    near = (sine_squared < 0.03) & (cosine > 0.0)
    series = _polynomial(_ARCSINE, jnp.where(near, sine_squared, 0.0))
    floor = jnp.finfo(cosine.dtype).eps ** 2
    sine = jnp.sqrt(jnp.where(near | (sine_squared < floor), floor, sine_squared))
    return jnp.where(near, series, jnp.arctan2(sine, jnp.where(near, 1.0, cosine)) / sine)


def safe_norm(v: Float[Array, "*batch n"]) -> Float[Array, "*batch"]:
    """Return |v| along the last axis, with derivative zero at v = 0 (below eps^1.5 it counts as zero)."""
    squared = jnp.sum(v * v, axis=-1)
    positive = squared > jnp.finfo(v.dtype).eps ** 3
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, squared, 1.0)), 0.0)


def normalize(v: Float[Array, "*batch n"]) -> Float[Array, "*batch n"]:
    """Return v / |v|; a vector that counts as zero becomes the last unit vector."""
    norm = safe_norm(v)[..., None]
    last = jnp.zeros(v.shape[-1], v.dtype).at[-1].set(1.0)
    return jnp.where(norm > 0.0, v / jnp.where(norm > 0.0, norm, 1.0), last)
