"""Vector fields on S_d as projections of ambient vectors of harmonics.

Every component of a gradient field ∇φ_k is a combination of harmonics of degree k - 1, every component of a curl field
one of degree k. So a sum of eigenfields is P_x (φ(x) W): scalar harmonics, one product, one projection. Evaluating
functions this way never forms the eigenfields.
"""

from functools import lru_cache, partial

import jax
import jax.numpy as jnp
import numpy as np
from jax.custom_derivatives import SymbolicZero
from jaxtyping import Array, Float

from rdgp.spectra._coexact import coexact_coefficients, derivative_matrices
from rdgp.spectra._generators import generator_matrices
from rdgp.spectra._harmonics import num_harmonics

_DENSE = 100_000  # numbers of a matrix that is not worth cutting into blocks


@lru_cache(maxsize=256)
def gradient_matrices(d: int, degree: int) -> Float[np.ndarray, "C L D"]:
    """Return B with ∇φ_kc / √λ_k = P_x sum_l B[c, l] φ_{k-1,l}."""
    eigenvalue = degree * (degree + d - 1)
    return derivative_matrices(d, degree).transpose(1, 2, 0) / np.sqrt(eigenvalue)


@lru_cache(maxsize=256)
def curl_matrices(d: int, degree: int) -> Float[np.ndarray, "C L D"]:
    """Return B with the c-th curl field of degree k equal to sum_l B[c, l] φ_kl."""
    if d == 2:
        return generator_matrices(degree) / np.sqrt(degree * (degree + 1))
    return coexact_coefficients(d, degree).transpose(1, 2, 0)


def circle_matrix() -> Float[np.ndarray, "1 2 2"]:
    """Return B of the harmonic field (-x_2, x_1) of the circle, from the two functions of degree one."""
    return np.array([[[0.0, 1.0], [-1.0, 0.0]]]) / np.sqrt(2.0)


def sum_harmonics(
    rows: Float[Array, "*N m"], x: Float[Array, "*N D"], coefficients: Float[Array, "m q"], degrees: tuple[int, ...]
) -> Float[Array, "*N q"]:
    """Return φ(x) C for harmonics φ(x) of the given degrees, differentiable in x along the sphere and in C.

    The gradient of harmonics of degree k is a combination of those of degree k - 1. So where all degrees are there, a
    derivative of the sum is another sum of the same harmonics, and no derivative of harmonics is formed.
    """
    if degrees != tuple(range(len(degrees))):
        return rows @ coefficients
    return _closed_sum(jax.lax.stop_gradient(rows), x, coefficients, degrees)


@partial(jax.custom_jvp, nondiff_argnums=(3,))
def _closed_sum(
    rows: Float[Array, "*N m"], x: Float[Array, "*N D"], coefficients: Float[Array, "m q"], degrees: tuple[int, ...]
) -> Float[Array, "*N q"]:
    return rows @ coefficients


@partial(_closed_sum.defjvp, symbolic_zeros=True)
def _closed_sum_jvp(
    degrees: tuple[int, ...], primals: tuple[Array, ...], tangents: tuple[Array | SymbolicZero, ...]
) -> tuple[Float[Array, "*N q"], Float[Array, "*N q"]]:
    (rows, x, coefficients), (_, dx, change) = primals, tangents
    if isinstance(change, SymbolicZero):
        change = jnp.zeros_like(coefficients)
    if isinstance(dx, SymbolicZero):  # points of the data do not move
        return _closed_sum(rows, x, coefficients, degrees), _closed_sum(rows, x, change, degrees)
    (m, q), size = coefficients.shape, x.shape[-1]
    lowered = _lowered(coefficients, degrees, size).reshape(m, q * size)
    both = _closed_sum(rows, x, jnp.concatenate([coefficients, lowered], axis=1), degrees)
    along = dx - jnp.sum(x * dx, axis=-1, keepdims=True) * x
    slopes = both[..., q:].reshape(*both.shape[:-1], q, size)
    moved = jnp.sum(slopes * along[..., None, :], axis=-1)
    return both[..., :q], moved + _closed_sum(rows, x, change, degrees)


def _lowered(coefficients: Float[Array, "m q"], degrees: tuple[int, ...], size: int) -> Float[Array, "m q D"]:
    """Return the coefficients of the partial derivatives of φ C."""
    top = degrees[-1]
    last = jnp.zeros((num_harmonics(size - 1, top), coefficients.shape[1], size), coefficients.dtype)
    if top == 0:
        return last
    terms = [(k - 1, derivative_matrices(size - 1, k).transpose(1, 2, 0)) for k in degrees[1:]]
    lower = ambient_weights(terms, degrees[:-1], coefficients[1:].T)  # [q, m, D]
    return jnp.concatenate([jnp.swapaxes(lower, 0, 1), last])


def _whole(
    terms: list[tuple[int, Float[np.ndarray, "_ _ D"]]], degrees: tuple[int, ...], sizes: dict[int, int]
) -> Float[np.ndarray, "M w"]:
    """Put the matrices of all levels into one."""
    start = dict(zip(degrees, np.cumsum([0, *(sizes[degree] for degree in degrees)]), strict=False))
    rows = [np.zeros((m.shape[0], sum(sizes[k] for k in degrees), m.shape[2])) for _, m in terms]
    for row, (degree, matrix) in zip(rows, terms, strict=True):
        row[:, start[degree] : start[degree] + sizes[degree]] = matrix
    return np.concatenate(rows).reshape(sum(len(row) for row in rows), -1)


def ambient_weights(
    terms: list[tuple[int, Float[np.ndarray, "_ _ D"]]],
    degrees: tuple[int, ...],
    coefficients: Float[Array, "*S M"],
) -> Float[Array, "*S m D"]:
    """Add up W, degree by degree, from (degree, B) of each level of each part, in the order of the features.

    One product with all of B, zeros included, compiles in a fraction of the time and is as fast while B is small.
    """
    sizes = {degree: matrix.shape[1] for degree, matrix in terms}
    width, size = sum(sizes[degree] for degree in degrees), terms[0][1].shape[2]
    if coefficients.shape[-1] * width * size <= _DENSE:
        whole = jnp.asarray(_whole(terms, degrees, sizes), coefficients.dtype)
        return (coefficients @ whole).reshape(*coefficients.shape[:-1], width, size)
    totals: dict[int, Float[Array, ...]] = {}
    start = 0
    for degree, matrix in terms:
        part = coefficients[..., start : start + matrix.shape[0]]
        start += matrix.shape[0]
        weight = jnp.einsum("...c,cld->...ld", part, jnp.asarray(matrix, coefficients.dtype))
        totals[degree] = totals[degree] + weight if degree in totals else weight
    return jnp.concatenate([totals[degree] for degree in degrees], axis=-2)
