"""Small linear algebra: a Cholesky factor that survives rounding, solves with it, outer products."""

from collections.abc import Sequence
from functools import reduce

import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular
from jaxtyping import Array, Float


def jittered_cholesky(matrix: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Factor a covariance after adding rounding-sized jitter, relative to its diagonal.

    Each variance gets its own share: what is large says nothing of the rounding of what is small.
    """
    n, eps, variances = matrix.shape[-1], jnp.finfo(matrix.dtype).eps, jnp.diagonal(matrix)
    jitter = 4.0 * n * eps * jnp.maximum(variances, eps * jnp.mean(variances))
    return jnp.linalg.cholesky(matrix + jnp.diag(jitter))


def solve_lower(factor: Float[Array, "n n"], right: Float[Array, "n m"]) -> Float[Array, "n m"]:
    """Solve L z = b for a lower-triangular L."""
    return solve_triangular(factor, right, lower=True)


def as_matrix(covariance: Float[Array, "N p L q"]) -> Float[Array, "n l"]:
    """View a covariance between p numbers at each of N points and q at each of L as a matrix, n = N p, l = L q."""
    n, p, m, q = covariance.shape
    return covariance.reshape(n * p, m * q)


def inverse_from_cholesky(factor: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Return (L Lᵀ)⁻¹, by halves: half the work of solving for the unit matrix, nearly all of it in products."""
    inverse = _invert_lower(factor)
    return _gram_of_lower(inverse)


_SMALL = 256  # below this size halving gains nothing


def _invert_lower(factor: Float[Array, "n n"]) -> Float[Array, "n n"]:
    n = factor.shape[0]
    if n <= _SMALL:
        return solve_lower(factor, jnp.eye(n, dtype=factor.dtype))
    h = n // 2
    first, second = _invert_lower(factor[:h, :h]), _invert_lower(factor[h:, h:])
    corner = -second @ (factor[h:, :h] @ first)
    return jnp.block([[first, jnp.zeros((h, n - h), factor.dtype)], [corner, second]])


def _gram_of_lower(lower: Float[Array, "n n"]) -> Float[Array, "n n"]:
    """Return LᵀL of a lower-triangular L."""
    n = lower.shape[0]
    if n <= _SMALL:
        return lower.T @ lower
    h = n // 2
    corner, last = lower[h:, :h], lower[h:, h:]
    cross = corner.T @ last
    return jnp.block([[_gram_of_lower(lower[:h, :h]) + corner.T @ corner, cross], [cross.T, _gram_of_lower(last)]])


def orthogonal_complement(vector: Float[np.ndarray, "n"]) -> Float[np.ndarray, "n m"]:
    """Return an orthonormal basis of what is orthogonal to a vector: columns of the reflection that maps it to ±e_1."""
    mirror = vector / np.linalg.norm(vector)
    mirror[0] += np.copysign(1.0, mirror[0])
    reflection = np.eye(vector.size) - 2.0 * np.outer(mirror, mirror) / (mirror @ mirror)
    return reflection[:, 1:]


def outer_last_axis(arrays: Sequence[Float[Array, "..."]]) -> Float[Array, "..."]:
    """Multiply the last axes of arrays into one long axis, the others elementwise."""

    def two(a: Float[Array, "..."], b: Float[Array, "..."]) -> Float[Array, "..."]:
        both = a[..., :, None] * b[..., None, :]
        return both.reshape(*both.shape[:-2], -1)

    return reduce(two, arrays)


def small_product(a: Float[Array, "*S d p"], b: Float[Array, "*S d m"]) -> Float[Array, "*S p m"]:
    """Return aᵀ b for batches of matrices with few rows: one fused pass, where CPUs do a loop of tiny products."""
    terms = [a[..., i, :, None] * b[..., i, None, :] for i in range(a.shape[-2])]
    return reduce(jnp.add, terms)


def square_root(matrix: Float[Array, "*S p p"]) -> Float[Array, "*S p p"]:
    """Return A with A Aᵀ a covariance matrix; singular ones are welcome, and zero gives zero.

    For p = 2 the symmetric root (C + s I) / t, s = √det C, t = √(tr C + 2 s), smooth and free of factorizations. The
    determinant cancels, hence its floor relative to the trace.
    """
    size = matrix.shape[-1]
    eye = jnp.eye(size, dtype=matrix.dtype)
    if size == 1:
        return _safe_root(matrix)
    if size == 2:
        trace = matrix[..., 0, 0] + matrix[..., 1, 1]
        determinant = matrix[..., 0, 0] * matrix[..., 1, 1] - matrix[..., 0, 1] * matrix[..., 1, 0]
        floor = jnp.square(jnp.finfo(matrix.dtype).eps * trace)
        s = _safe_root(jnp.maximum(determinant, floor))
        t = _safe_root(trace + 2.0 * s)
        positive = t > 0.0
        inverse = jnp.where(positive, 1.0 / jnp.where(positive, t, 1.0), 0.0)
        return (matrix + s[..., None, None] * eye) * inverse[..., None, None]
    jitter = 8.0 * size * jnp.finfo(matrix.dtype).eps * jnp.trace(matrix, axis1=-2, axis2=-1)
    return jnp.linalg.cholesky(matrix + (jitter + jnp.finfo(matrix.dtype).tiny)[..., None, None] * eye)


def _safe_root(x: Float[Array, "..."]) -> Float[Array, "..."]:
    positive = x > 0.0
    return jnp.where(positive, jnp.sqrt(jnp.where(positive, x, 1.0)), 0.0)
