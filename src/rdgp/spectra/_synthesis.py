"""Vector fields on S_d as projections of ambient vectors of harmonics.

Every component of a gradient field ∇φ_k is a combination of harmonics of degree k - 1, every component of a curl field
one of degree k. So a sum of eigenfields is P_x (φ(x) W): scalar harmonics, one product, one projection. Evaluating
functions this way never forms the eigenfields.
"""

from functools import lru_cache

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rdgp.spectra._coexact import coexact_coefficients, derivative_matrices
from rdgp.spectra._generators import generator_matrices


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


def ambient_weights(
    terms: list[tuple[int, Float[np.ndarray, "_ _ D"]]],
    degrees: tuple[int, ...],
    coefficients: Float[Array, "*S M"],
) -> Float[Array, "*S m D"]:
    """Add up W, degree by degree, from (degree, B) of each level of each part, in the order of the features."""
    totals: dict[int, Float[Array, ...]] = {}
    start = 0
    for degree, matrix in terms:
        part = coefficients[..., start : start + matrix.shape[0]]
        start += matrix.shape[0]
        weight = jnp.einsum("...c,cld->...ld", part, jnp.asarray(matrix, coefficients.dtype))
        totals[degree] = totals[degree] + weight if degree in totals else weight
    return jnp.concatenate([totals[degree] for degree in degrees], axis=-2)
