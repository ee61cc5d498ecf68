"""Posteriors on S_2 as polynomials, which makes maps of many points cheap.

A field of finitely many levels has polynomials as sample functions, so its posterior mean and covariance at a point are
polynomials of at most the degree of the functions and twice that degree. They are known everywhere once they are known
at the points of a quadrature rule; a point then costs a sum of harmonics instead of a product with a large factor.
"""

from collections.abc import Callable
from functools import lru_cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rdgp.core import small_product
from rdgp.fields import Field, HodgeField, ProjectedField, ScalarField, StackedField, TangentField
from rdgp.spaces import Sphere
from rdgp.spectra import quadrature
from rdgp.spectra._harmonics import harmonics
from rdgp.spectra._orders import sum_by_orders

Basis = Float[Array, "N P q"] | None
Moments = Callable[[Float[Array, "N D"], Basis], tuple[Float[Array, "N q"], Float[Array, "N q q"]]]

_TILE = 128  # points whose harmonics are held at once
_PART = 1024  # points of the rule at which moments are taken at once
_COST_OF_HARMONIC = 16.0  # operations for each harmonic at a point, in which products are counted elsewhere


class Tabulated(eqx.Module):
    """Mean and covariance of a field's values at any point, as coefficients of harmonics."""

    coefficients: Float[Array, "H c"]
    degree: int = eqx.field(static=True)
    size: int = eqx.field(static=True)
    tangent: bool = eqx.field(static=True)

    def moments(self, x: Float[Array, "N D"], basis: Basis) -> tuple[Float[Array, "N q"], Float[Array, "N q q"]]:
        """Return mean and covariance of the coordinates in a basis, or of the values."""

        def at(tile: Float[Array, "t D"]) -> Float[Array, "t c"]:
            return sum_by_orders(tile, self.coefficients, self.degree)

        n = x.shape[0]
        padded = jnp.pad(x, ((0, -n % _TILE), (0, 0)), mode="edge").reshape(-1, _TILE, x.shape[1])
        numbers = jax.lax.map(at, padded).reshape(-1, self.coefficients.shape[1])[:n]
        mean, covariance = numbers[:, : self.size], numbers[:, self.size :][:, _square(self.size)]
        covariance = covariance.reshape(n, self.size, self.size)
        if basis is None or not self.tangent:
            return mean, covariance
        return jnp.einsum("npq,np->nq", basis, mean), small_product(basis, small_product(covariance, basis))


def worth_tabulating(field: Field, num_points: int, size: int | None) -> bool:
    """Tell whether so many points are cheaper by harmonics than by products with a square matrix of a size.

    None stands for the number of the field's features.
    """
    if not _is_polynomial(field):
        return False
    degree, size = _degree(field), field.scales().size if size is None else size
    nodes = (degree + 1) * (2 * degree + 1)
    return num_points > 2 * nodes and float(size) ** 2 > _COST_OF_HARMONIC * (degree + 1) ** 2


def tabulate(field: Field, moments: Moments, dtype: jnp.dtype) -> Tabulated:
    """Return the law of a field's values given what yields its moments at some points, in a basis for tangent ones."""
    degree, tangent = _degree(field), isinstance(field, TangentField)
    points, weights = _rule(degree)
    total = jnp.zeros(())
    for start in range(0, points.shape[0], _PART):
        x, w = jnp.asarray(points[start : start + _PART], dtype), jnp.asarray(weights[start : start + _PART], dtype)
        basis = field.basis(x) if tangent else None
        total = total + _project(x, w, basis, *moments(x, basis), degree)
    return Tabulated(total, degree, int(np.prod(field.value_shape(), dtype=int)), tangent)


@eqx.filter_jit
def _project(
    x: Float[Array, "N D"],
    weights: Float[Array, "N"],
    basis: Basis,
    mean: Float[Array, "N q"],
    covariance: Float[Array, "N q q"],
    degree: int,
) -> Float[Array, "H c"]:
    """Return the share of some points of the rule in all coefficients."""
    if basis is not None:
        mean = jnp.einsum("npq,nq->np", basis, mean)
        covariance = jnp.einsum("npq,nqr,nsr->nps", basis, covariance, basis)
    rows, columns = np.tril_indices(mean.shape[1])
    numbers = jnp.concatenate([mean, covariance[:, rows, columns]], axis=1)
    return harmonics(x, tuple(range(degree + 1))) @ (weights[:, None] * numbers)


@lru_cache(maxsize=8)
def _rule(degree: int) -> tuple[Float[np.ndarray, "G D"], Float[np.ndarray, "G"]]:
    """Return a rule exact for products with harmonics, filled up to whole parts by points without weight."""
    points, weights = quadrature(Sphere(2), 2 * degree)
    missing = -len(points) % _PART
    return np.concatenate([points, np.tile(points[:1], (missing, 1))]), np.concatenate([weights, np.zeros(missing)])


def _is_polynomial(field: Field) -> bool:
    known = isinstance(field, HodgeField | ProjectedField | ScalarField | StackedField)
    return bool(known and field.space == Sphere(2) and all(latent.spectral for latent in field.latents))


def _degree(field: Field) -> int:
    """Return twice the degree of the sample functions: projecting vectors onto tangent planes adds two."""
    highest = max(int(latent.levels().max()) for latent in field.latents)
    return 2 * (highest + 2 if isinstance(field, TangentField) else highest)


def _square(size: int) -> np.ndarray:
    """Return where each entry of a symmetric matrix stands among those of its lower triangle."""
    i, j = np.indices((size, size))
    low, high = np.minimum(i, j), np.maximum(i, j)
    return (high * (high + 1) // 2 + low).ravel()
