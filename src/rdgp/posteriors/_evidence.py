"""Evidence and posterior of a linear Gaussian model, by features or by kernel, with gradients written by hand.

Given coordinates y [n, r] of r independent copies, the distribution is N(0, K + σ² I) with K = Ψ Ψᵀ for features
Ψ [n, m]. By features everything costs n m², by kernel n³; the gradients need one inverse and no differentiated
factorization.
"""

import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve
from jaxtyping import Array, Float

from rdgp.core import inverse_from_cholesky, jittered_cholesky

Residuals = tuple[Array, ...]


@jax.custom_vjp
def evidence_by_features(psi: Float[Array, "n m"], y: Float[Array, "n r"], noise: Float[Array, ""]) -> Float[Array, ""]:
    """Return log N(y; 0, Ψ Ψᵀ + σ² I)."""
    return _by_features(psi, y, noise)[0]


def _by_features(
    psi: Float[Array, "n m"], y: Float[Array, "n r"], noise: Float[Array, ""]
) -> tuple[Float[Array, ""], Residuals]:
    (n, m), r = psi.shape, y.shape[1]
    factor, solution = posterior_by_features(psi, y, noise)
    residual = y - psi @ solution  # yᵀ(K + σ²)⁻¹y = |y - Ψw|²/σ² + |w|², a sum without cancellation
    fit = jnp.sum(jnp.square(residual)) / noise + jnp.sum(jnp.square(solution))
    log_det = 2.0 * jnp.sum(jnp.log(jnp.diagonal(factor))) + (n - m) * jnp.log(noise)
    return -0.5 * (fit + r * (log_det + n * jnp.log(2.0 * jnp.pi))), (psi, y, noise, factor, solution)


def _by_features_gradient(residuals: Residuals, cotangent: Float[Array, ""]) -> Residuals:
    psi, y, noise, factor, solution = residuals
    (n, m), r = psi.shape, y.shape[1]
    alpha = (y - psi @ solution) / noise  # (K + σ²)⁻¹ y
    inverse = inverse_from_cholesky(factor)
    d_psi = alpha @ (alpha.T @ psi) - r * (psi @ inverse)
    trace = (n - m) / noise + jnp.trace(inverse)
    d_noise = 0.5 * (jnp.sum(alpha * alpha) - r * trace)
    return cotangent * d_psi, -cotangent * alpha, cotangent * d_noise


evidence_by_features.defvjp(_by_features, _by_features_gradient)


@jax.custom_vjp
def evidence_by_kernel(
    kernel: Float[Array, "n n"], y: Float[Array, "n r"], noise: Float[Array, ""]
) -> Float[Array, ""]:
    """Return log N(y; 0, K + σ² I)."""
    return _by_kernel(kernel, y, noise)[0]


def _by_kernel(
    kernel: Float[Array, "n n"], y: Float[Array, "n r"], noise: Float[Array, ""]
) -> tuple[Float[Array, ""], Residuals]:
    n, r = y.shape
    factor, solution = posterior_by_kernel(kernel, y, noise)
    log_det = 2.0 * jnp.sum(jnp.log(jnp.diagonal(factor)))
    return -0.5 * (jnp.sum(y * solution) + r * (log_det + n * jnp.log(2.0 * jnp.pi))), (factor, solution)


def _by_kernel_gradient(residuals: Residuals, cotangent: Float[Array, ""]) -> Residuals:
    factor, alpha = residuals
    d_kernel = 0.5 * cotangent * (alpha @ alpha.T - alpha.shape[1] * inverse_from_cholesky(factor))
    return d_kernel, -cotangent * alpha, jnp.trace(d_kernel)


evidence_by_kernel.defvjp(_by_kernel, _by_kernel_gradient)


def posterior_by_features(
    psi: Float[Array, "n m"], y: Float[Array, "n r"], noise: Float[Array, ""]
) -> tuple[Float[Array, "m m"], Float[Array, "m r"]]:
    """Return the factor of ΨᵀΨ + σ² I and the mean weights; the weights' covariance is σ² (ΨᵀΨ + σ² I)⁻¹."""
    precision = psi.T @ psi + noise * jnp.eye(psi.shape[1], dtype=psi.dtype)
    factor = jnp.linalg.cholesky(precision)
    return factor, cho_solve((factor, True), psi.T @ y)


def posterior_by_kernel(
    kernel: Float[Array, "n n"], y: Float[Array, "n r"], noise: Float[Array, ""]
) -> tuple[Float[Array, "n n"], Float[Array, "n r"]]:
    """Return the factor of K + σ² I, with rounding-sized jitter, and its solution for y."""
    factor = jittered_cholesky(kernel + noise * jnp.eye(kernel.shape[0], dtype=kernel.dtype))
    return factor, cho_solve((factor, True), y)
