"""Variances of sums of fields on S_2, without evaluating the fields where the sum is wanted.

|V(x)|² of a field of degree k is a polynomial of degree 2k on the sphere. So the sum of any number of them is known
everywhere once it is known at the points of a quadrature rule that is exact for degree 4k.
"""

from functools import lru_cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rdgp.spaces import Sphere
from rdgp.spectra._harmonics import harmonics
from rdgp.spectra._quadrature import quadrature
from rdgp.spectra._spectrum import HodgeSpectrum, by_tiles
from rdgp.spectra._synthesis import sum_harmonics


class _Rule(NamedTuple):
    """Both components of all fields at the points of a rule, and what turns values there into coefficients."""

    fields: Float[np.ndarray, "_ M"]
    analysis: Float[np.ndarray, "H G"]


def variance_by_harmonics(
    spectrum: HodgeSpectrum, degree: int, x: Float[Array, "*N D"], factor: Float[Array, "M r"]
) -> Float[Array, "*N"]:
    """Return |F(x) A|² for the fields F [D, M] of at most a degree, through harmonics of twice that degree."""
    rule = _rule(spectrum, degree, jnp.result_type(float).name)
    half = jnp.asarray(rule.fields, x.dtype) @ factor.astype(x.dtype)
    on_rule = jnp.sum(jnp.square(half).reshape(rule.analysis.shape[1], -1), axis=1)
    coefficients = jnp.asarray(rule.analysis, x.dtype) @ on_rule
    rows = by_tiles(lambda tile: harmonics(tile, _degrees(degree)), x)
    return sum_harmonics(rows, x, coefficients[:, None], _degrees(degree))[..., 0]


@lru_cache(maxsize=32)
def _rule(spectrum: HodgeSpectrum, degree: int, precision: str) -> _Rule:
    points, weights = quadrature(Sphere(2), 4 * degree)
    with jax.ensure_compile_time_eval():
        x = jnp.asarray(points)
        rows = jnp.einsum("ndp,ndm->npm", Sphere(2).frame(x), spectrum.features(x))
        analysis = harmonics(x, _degrees(degree)) * jnp.asarray(weights)
        return _Rule(np.asarray(rows).reshape(-1, rows.shape[-1]), np.asarray(analysis))


def _degrees(degree: int) -> tuple[int, ...]:
    return tuple(range(2 * degree + 1))
