"""Divergence-free eigenfields on S_d for d > 2, as constant combinations of harmonics.

A field V(x) = sum_ij c_ij e_i φ_kj(x) of harmonics of degree k is tangent, and then divergence-free, exactly when c is
orthogonal to two kinds of such fields: gradients ∇φ of harmonics of degree k + 1, and the degree-k parts of x ψ with ψ
of degree k - 1. Both are known through the matrices of ∂_i between neighbouring degrees; the rest is their complement.
"""

import math
from functools import lru_cache

import numpy as np
from jaxtyping import Float

from rdgp.spectra._harmonics import num_harmonics

_MAX_COLUMNS = 6000
_BLOCK = 64
_DEPENDENT = 1e-8  # squared length below which a column counts as dependent on those before it


def num_coexact(d: int, degree: int) -> int:
    """Return the number of divergence-free eigenfields of one degree on S_d."""
    return (d + 1) * num_harmonics(d, degree) - num_harmonics(d, degree + 1) - num_harmonics(d, degree - 1)


def check_basis_size(d: int, degree: int) -> None:
    """Raise if the basis of one degree is too large to build."""
    columns = (d + 1) * num_harmonics(d, degree)
    if columns > _MAX_COLUMNS:
        raise ValueError(
            f"curl features of degree {degree} on Sphere({d}) need a {columns}-column basis (limit {_MAX_COLUMNS}); "
            "use fewer levels or ProjectedField, or only the covariance, which has no such limit"
        )


@lru_cache(maxsize=64)
def coexact_coefficients(d: int, degree: int) -> Float[np.ndarray, "D C M"]:
    """Return orthonormal c with V_a(x) = sum_ij c[i, a, j] e_i φ_kj(x) divergence-free.

    The complement's projector is unique; its columns orthonormalised in their order make the basis the same everywhere.
    """
    check_basis_size(d, degree)
    columns = (d + 1) * num_harmonics(d, degree)
    gradients = derivative_matrices(d, degree + 1).transpose(0, 2, 1) / np.sqrt((degree + 1) * (2 * degree + d + 1))
    norm = (2 * degree + d - 1) * np.sqrt((degree + d - 2) / (2 * degree + d - 3))
    radial = derivative_matrices(d, degree) / norm
    taken = np.concatenate([gradients.reshape(columns, -1), radial.reshape(columns, -1)], axis=1)
    basis = _orthonormal_columns(np.eye(columns) - taken @ taken.T, num_coexact(d, degree))
    return basis.T.reshape(-1, d + 1, num_harmonics(d, degree)).transpose(1, 0, 2)


@lru_cache(maxsize=128)
def derivative_matrices(d: int, degree: int) -> Float[np.ndarray, "D M L"]:
    """Return A with ∂_i φ_kj = sum_l A[i, j, l] φ_{k-1,l} for the solid harmonics of `harmonics`, by their recursion.

    The last coordinate keeps the order j of a harmonic; the others move it to j - 1 and j + 1, through the derivatives
    in one coordinate less.
    """
    if d == 1:
        turn = np.array([[[1.0, 0.0], [0.0, 1.0]], [[0.0, -1.0], [1.0, 0.0]]])
        return degree * turn if degree > 1 else np.sqrt(2.0) * turn[:, :, :1]
    matrices = np.zeros((d + 1, num_harmonics(d, degree), num_harmonics(d, degree - 1)))
    start = np.cumsum([0, *(num_harmonics(d - 1, j) for j in range(degree + 1))])
    for j in range(degree + 1):
        rows = slice(start[j], start[j + 1])
        if j < degree:
            matrices[d, rows, rows] = _same_order(d, degree, j) * np.eye(start[j + 1] - start[j])
        if j > 0:
            matrices[:d, rows, start[j - 1] : start[j]] = _lower_order(d, degree, j) * derivative_matrices(d - 1, j)
        if j + 1 < degree:
            above = derivative_matrices(d - 1, j + 1).transpose(0, 2, 1)
            matrices[:d, rows, start[j + 1] : start[j + 2]] = _higher_order(d, degree, j) * above
    return matrices


def _same_order(d: int, k: int, j: int) -> float:
    return math.sqrt((k - j) * (k + j + d - 2) * (2 * k + d - 1) / (2 * k + d - 3))


def _lower_order(d: int, k: int, j: int) -> float:
    """Return p_m of order j over p_m of order j - 1, both at one, m = k - j."""

    def log_value(order: int) -> float:
        m, alpha = k - j, order + (d - 1) / 2
        log_norm = (math.lgamma(m + 2 * alpha) - math.lgamma(m + 1) + math.log(m + alpha)) / 2
        return log_norm - math.lgamma(2 * alpha) + math.lgamma(alpha) + alpha * math.log(2.0)

    return math.exp(log_value(j) - log_value(j - 1))


def _higher_order(d: int, k: int, j: int) -> float:
    m, alpha = k - j, j + (d - 1) / 2
    return -math.sqrt(m * (m - 1) * (m + alpha) / (m + alpha - 1)) / (2 * j + d)


def _orthonormal_columns(projector: Float[np.ndarray, "n n"], rank: int) -> Float[np.ndarray, "n r"]:
    """Orthonormalise a projector's columns in their order, skipping those that depend on earlier ones.

    What a column of a projector P has beyond vectors Q of its range is a column of P - Q Qᵀ, so blocks of columns are
    orthonormalised one by one and taken out of the rest by one product.
    """
    rest, found = projector.copy(), []
    for start in range(0, rest.shape[0], _BLOCK):
        block: list[np.ndarray] = []
        for column in range(start, min(start + _BLOCK, rest.shape[0])):
            vector = rest[:, column] - sum(q * q[column] for q in block)
            if vector[column] > _DEPENDENT:
                vector -= sum(q * (q @ vector) for q in block)
                block.append(vector / np.linalg.norm(vector))
        if block:
            stacked = np.stack(block, axis=1)
            rest[:, start + _BLOCK :] -= stacked @ stacked[start + _BLOCK :].T
            found.append(stacked)
    basis = np.concatenate(found, axis=1)
    if basis.shape[1] != rank:
        raise RuntimeError(f"found {basis.shape[1]} divergence-free fields where {rank} exist")
    return basis
