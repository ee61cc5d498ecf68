"""Expansion of posteriors on S_2 in harmonics, which makes maps of many points cheap.

A field of finitely many levels has polynomials as sample functions, so its posterior mean and covariance at a point are
polynomials of at most the degree of the functions and twice that degree. They are known everywhere once they are known
at the points of a quadrature rule; a point then costs a sum of harmonics instead of a product with a large factor.
"""

from functools import lru_cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from rdgp.core import compiled, register
from rdgp.fields import Frame
from rdgp.posteriors._posterior import Marginals, Moments, Posterior
from rdgp.spaces import Space
from rdgp.spectra import harmonics, quadrature, sum_all_harmonics

_TILE = 128  # points whose harmonics are held at once
_PART = 1024  # points of the rule at which moments are taken at once
_COST_OF_HARMONIC = 16.0  # operations for each harmonic at a point, in which products are counted elsewhere


@register("rdgp:HarmonicExpansion")
class HarmonicExpansion(Marginals):
    """Mean and covariance of a field's values at any point, as coefficients of harmonics."""

    coefficients: Float[Array, "H c"]
    degree: int = eqx.field(static=True)
    size: int = eqx.field(static=True)

    def coordinate_moments(self, x: Float[Array, "N D"], frame: Frame) -> Moments:
        """Sum the harmonics."""

        def at(tile: Float[Array, "t D"]) -> Float[Array, "t c"]:
            return sum_all_harmonics(tile, self.coefficients, self.degree)

        n = x.shape[0]
        padded = jnp.pad(x, ((0, -n % _TILE), (0, 0)), mode="edge").reshape(-1, _TILE, x.shape[1])
        numbers = jax.lax.map(at, padded).reshape(-1, self.coefficients.shape[1])[:n]
        mean, covariance = numbers[:, : self.size], numbers[:, self.size :][:, _square(self.size)]
        covariance = covariance.reshape(n, self.size, self.size)
        by_rows = frame.coordinates(jnp.moveaxis(covariance, 1, 0).reshape(self.size, n, *frame.value_shape))
        return frame.coordinates(mean.reshape(n, *frame.value_shape)), _in_frame(frame, by_rows)


def _in_frame(frame: Frame, by_rows: Float[Array, "P N q"]) -> Float[Array, "N q q"]:
    columns = jnp.moveaxis(by_rows, (0, 2), (2, 0))  # [q, N, P]
    both = frame.coordinates(columns.reshape(*columns.shape[:2], *frame.value_shape))  # [q, N, q]
    return jnp.moveaxis(both, 0, 1)


def worth_expanding(posterior: Posterior, num_points: int) -> bool:
    """Tell whether so many points are cheaper by harmonics than by products with the posterior's matrix."""
    if posterior.field.degree is None:
        return False
    degree = 2 * posterior.field.degree
    nodes = (degree + 1) * (2 * degree + 1)
    return num_points > 2 * nodes and float(posterior.size) ** 2 > _COST_OF_HARMONIC * (degree + 1) ** 2


def expand(posterior: Posterior) -> HarmonicExpansion:
    """Return the moments of a posterior's values as sums of harmonics."""
    field = posterior.field
    if field.degree is None:
        raise ValueError(f"only fields on Sphere(2) expand in harmonics, got one on {field.space}")
    degree = 2 * field.degree
    points, weights = _rule(field.space, degree)
    dtype = jax.tree.leaves(eqx.filter(posterior, eqx.is_inexact_array))[0].dtype
    total = jnp.zeros(())
    for start in range(0, points.shape[0], _PART):
        x, w = jnp.asarray(points[start : start + _PART], dtype), jnp.asarray(weights[start : start + _PART], dtype)
        total = total + compiled(_project, posterior, x, w, degree)
    return HarmonicExpansion(total, degree, int(np.prod(field.bundle.value_shape, dtype=int)))


def _project(
    posterior: Posterior, x: Float[Array, "N D"], weights: Float[Array, "N"], degree: int
) -> Float[Array, "H c"]:
    """Return the share of some points of the rule in all coefficients."""
    frame = posterior.field.bundle.frame(x)
    mean, covariance = posterior.coordinate_moments(x, frame)
    values, n = frame.values(mean).reshape(x.shape[0], -1), x.shape[0]
    size = values.shape[1]
    rows, columns = np.tril_indices(size)
    entries = frame.covariance(covariance).reshape(n, size, size)[:, rows, columns]
    numbers = jnp.concatenate([values, entries], axis=1)
    return harmonics(x, tuple(range(degree + 1))) @ (weights[:, None] * numbers)


@lru_cache(maxsize=8)
def _rule(space: Space, degree: int) -> tuple[Float[np.ndarray, "G D"], Float[np.ndarray, "G"]]:
    """Return a rule exact for products with harmonics, filled up to whole parts by points without weight."""
    points, weights = quadrature(space, 2 * degree)
    missing = -len(points) % _PART
    return np.concatenate([points, np.tile(points[:1], (missing, 1))]), np.concatenate([weights, np.zeros(missing)])


def _square(size: int) -> Int[np.ndarray, "k"]:
    """Return where each entry of a symmetric matrix stands among those of its lower triangle."""
    i, j = np.indices((size, size))
    low, high = np.minimum(i, j), np.maximum(i, j)
    return (high * (high + 1) // 2 + low).ravel()
