"""Infinitesimal rotations of the harmonics on S_2.

x × ∇ maps the harmonics of one degree to themselves, two terms per component at most. So the curl fields on S_2 need no
derivative of anything, and neither do their derivatives.
"""

import math
from functools import lru_cache
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

Index = tuple[int, int, int]  # degree, order, and whether it is the sine


class _Terms(NamedTuple):
    """Row i of component a is sum over terms of coefficient[a, term, i] * rows[source[a, term, i]]."""

    source: Int[np.ndarray, "3 2 M"]
    coefficient: Float[np.ndarray, "3 2 M"]


def rotation_generators(rows: Float[Array, "M N"], degrees: tuple[int, ...]) -> list[Float[Array, "M N"]]:
    """Return the three components of x × ∇Y, from the harmonics Y of the given degrees themselves."""
    terms = _terms(degrees)
    coefficient = jnp.asarray(terms.coefficient, rows.dtype)[..., None]

    def term(component: int, which: int) -> Float[Array, "M N"]:
        source = terms.source[component, which]
        return coefficient[component, which] * rows.at[source].get(mode="promise_in_bounds")

    return [term(0, 0) + term(0, 1), term(1, 0) + term(1, 1), term(2, 0)]


@lru_cache(maxsize=64)
def generator_matrices(degree: int) -> Float[np.ndarray, "M M 3"]:
    """Return B with (x × ∇Y_c)_a = sum_l B[c, l, a] Y_l for the harmonics of one degree."""
    terms = _terms((degree,))
    size = 2 * degree + 1
    matrix = np.zeros((size, size, 3))
    for component in range(3):
        for which in range(2):
            for row, source in enumerate(terms.source[component, which]):
                matrix[row, source, component] += terms.coefficient[component, which, row]
    return matrix


@lru_cache(maxsize=64)
def _terms(degrees: tuple[int, ...]) -> _Terms:
    """Return the ladder: with Z_m = p(z) (x + i y)^m, (L_x ± i L_y) Z_m = -i √((k ∓ m)(k ± m + 1)) Z_{m ± 1}."""
    sizes = [2 * k + 1 for k in degrees]
    start = dict(zip(degrees, np.cumsum([0, *sizes[:-1]]), strict=True))
    source = np.zeros((3, 2, sum(sizes)), np.int32)
    coefficient = np.zeros((3, 2, sum(sizes)))

    def row(k: int, m: int, sine: int) -> int:
        return int(start[k]) + (0 if m == 0 else 2 * m - 1 + sine)

    def put(
        target: tuple[int, int, int], origin: tuple[int, int, int], component: int, term: int, c: float | np.floating
    ) -> None:
        if 0 <= origin[1] <= target[0] and origin[1] + (1 - origin[2]) > 0:  # there is no sine of order zero
            source[component, term, row(*target)] = row(*origin)
            coefficient[component, term, row(*target)] = c

    for k in degrees:
        for m in range(k + 1):
            up = 0.5 * math.sqrt((k - m) * (k + m + 1)) * (math.sqrt(2.0) if m == 0 else 1.0)
            down = 0.5 * math.sqrt((k - m + 1) * (k + m)) * (math.sqrt(2.0) if m == 1 else 1.0)
            for sine in (0, 1) if m else (0,):
                target, sign = (k, m, sine), 1 - 2 * sine
                put(target, (k, m + 1, 1 - sine), 0, 0, sign * up)
                put(target, (k, m - 1, 1 - sine), 0, 1, sign * down)
                put(target, (k, m + 1, sine), 1, 0, -up)
                put(target, (k, m - 1, sine), 1, 1, down)
                put(target, (k, m, 1 - sine), 2, 0, -float(sign * m))
    return _Terms(source, coefficient)
