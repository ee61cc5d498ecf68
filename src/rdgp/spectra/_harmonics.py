"""Real spherical harmonics of every dimension as Cartesian polynomials.

The basis is built one coordinate at a time: a harmonic of degree k in x_1..x_n is

    Y(x) = p_{k-j}(x_n, s) H_j(x_1, ..., x_{n-1}),      s = x_1² + ... + x_n²,

with H_j a harmonic of degree j in one coordinate less and p_m the homogenised Gegenbauer polynomial of parameter
j + (n - 2)/2. No angles and no divisions occur, so the poles are ordinary points; all harmonics are orthonormal under
the uniform probability measure. Arrays are laid out [harmonics, points], the fast layout on CPUs. On the last
coordinate s = 1 is used, so off the sphere the functions are polynomials that agree with the harmonics on it.
"""

from functools import lru_cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int
from scipy.special import betaln


def num_harmonics(d: int, degree: int) -> int:
    """Return the number of harmonics of one degree on S_d (d >= 0; S_0 is two points)."""
    if degree < 0:
        return 0
    return _binomial(degree + d, d) - _binomial(degree + d - 2, d)


def _binomial(n: int, k: int) -> int:
    result = 1
    for i in range(k):
        result = result * (n - i) // (i + 1)
    return result if n >= k else 0


def harmonics(x: Float[Array, "N D"], degrees: tuple[int, ...]) -> Float[Array, "M N"]:
    """Evaluate all harmonics of the given degrees, sorted by degree."""
    top = max(degrees)
    rows = _circle_rows(x[:, 0], x[:, 1], top)
    if x.shape[1] == 2:
        return _take(rows, _circle_selection(degrees))
    for n in range(3, x.shape[1]):
        rows = _lifted(x[:, n - 1], _squared_radius(x, n), rows, n, tuple(range(top + 1)))
    return _lifted(x[:, -1], None, rows, x.shape[1], degrees)


def harmonics_and_gradients(
    x: Float[Array, "N D"], degrees: tuple[int, ...]
) -> tuple[Float[Array, "M N"], list[Float[Array, "M N"]]]:
    """Evaluate harmonics and their D ambient partial derivatives, by the product rule, in one recursion."""
    top, size = max(degrees), x.shape[1]
    rows = _circle_rows(x[:, 0], x[:, 1], top)
    slopes = _circle_slopes(x[:, 0], x[:, 1], top)
    for n in range(3, size + 1):
        index = _lift(n, degrees if n == size else tuple(range(top + 1)))
        table = _table(x[:, n - 1], None if n == size else _squared_radius(x, n), n, top)
        value, parent = _take(table, index.polynomial), _take(rows, index.parent)
        newest = _take(_slope_along(table, n), index.polynomial) * parent
        slopes = [value * _take(slope, index.parent) for slope in slopes]
        if n < size:
            radial = 2.0 * _take(_slope_radial(table, n), index.polynomial) * parent
            slopes = [slope + x[:, i] * radial for i, slope in enumerate(slopes)]
            newest = newest + x[:, n - 1] * radial
        slopes, rows = [*slopes, newest], value * parent
    if size == 2:
        selection = _circle_selection(degrees)
        rows, slopes = _take(rows, selection), [_take(slope, selection) for slope in slopes]
    return rows, slopes


def _squared_radius(x: Float[Array, "N D"], n: int) -> Float[Array, "N"]:
    return jnp.sum(jnp.square(x[:, :n]), axis=1)


@partial(jax.custom_jvp, nondiff_argnums=(3, 4))
def _lifted(
    t: Float[Array, "N"], s: Float[Array, "N"] | None, rows: Float[Array, "R N"], n: int, degrees: tuple[int, ...]
) -> Float[Array, "M N"]:
    """Multiply the harmonics in n - 1 coordinates by the polynomials of the n-th coordinate."""
    index = _lift(n, degrees)
    return _take(_table(t, s, n, max(degrees)), index.polynomial) * _take(rows, index.parent)


@_lifted.defjvp
def _lifted_jvp(
    n: int,
    degrees: tuple[int, ...],
    primals: tuple[Array, Array | None, Array],
    tangents: tuple[Array, Array | None, Array],
) -> tuple[Float[Array, "M N"], Float[Array, "M N"]]:
    """Differentiate by the closed form of the polynomials' slopes, which spares the reversed recurrence."""
    (t, s, rows), (dt, ds, drows) = primals, tangents
    index = _lift(n, degrees)
    table = _table(t, s, n, max(degrees))
    value, parent = _take(table, index.polynomial), _take(rows, index.parent)
    tangent = _take(_slope_along(table, n), index.polynomial) * parent * dt + value * _take(drows, index.parent)
    if ds is not None:
        tangent = tangent + _take(_slope_radial(table, n), index.polynomial) * parent * ds
    return value * parent, tangent


class _Lift(NamedTuple):
    """Which polynomial and which parent harmonic make each harmonic."""

    polynomial: Int[np.ndarray, "M"]
    parent: Int[np.ndarray, "M"]


@lru_cache(maxsize=256)
def _lift(n: int, degrees: tuple[int, ...]) -> _Lift:
    """Index the harmonics in n coordinates of the given degrees: row (k, j) of the table times a parent of degree j.

    The indices are int32: JAX takes a cached int64 array in the precision in which it met it first.
    """
    top = max(degrees)
    parent_degree = np.repeat(np.arange(top + 1), [num_harmonics(n - 2, j) for j in range(top + 1)])
    parents = [np.flatnonzero(parent_degree <= k) for k in degrees]
    rows = [k * (top + 1) + parent_degree[parent] for k, parent in zip(degrees, parents, strict=True)]
    return _Lift(np.concatenate(rows, dtype=np.int32), np.concatenate(parents, dtype=np.int32))


def _take(rows: Float[Array, "R N"], index: Int[np.ndarray, "M"]) -> Float[Array, "M N"]:
    return rows.at[index].get(mode="promise_in_bounds")


@partial(jax.custom_jvp, nondiff_argnums=(2, 3))
def _table(t: Float[Array, "N"], s: Float[Array, "N"] | None, n: int, top: int) -> Float[Array, "R N"]:
    """Return p_{k-j}(t, s) for all j, k <= top in row k (top + 1) + j, zero for j > k; s = None means 1."""
    j = np.arange(top + 1.0)[None, :]
    k = np.arange(top + 1.0)[:, None]
    alpha = j + (n - 2) / 2

    def beta(m: np.ndarray) -> np.ndarray:
        m = np.maximum(m, 1.0)
        return np.sqrt(m * (m + 2 * alpha - 1) / (4 * (m + alpha) * (m + alpha - 1)))

    up = np.where(j < k, 1.0 / beta(k - j), 0.0)
    down = np.where(j < k - 1, beta(k - j - 1), 0.0) * up
    start = np.where(j == k, np.exp(0.5 * (betaln(0.5, (n - 1) / 2) - betaln(0.5, alpha + 0.5))), 0.0)

    def step(carry: tuple[Array, Array], level: tuple[Array, Array, Array]) -> tuple[tuple[Array, Array], Array]:
        (previous, before), (a, b, c) = carry, level
        current = a[:, None] * (t * previous) - b[:, None] * (before if s is None else s * before) + c[:, None]
        return (current, previous), current

    zero = jnp.zeros((top + 1, *t.shape), t.dtype)
    levels = (jnp.asarray(up, t.dtype), jnp.asarray(down, t.dtype), jnp.asarray(start, t.dtype))
    _, table = jax.lax.scan(step, (zero, zero), levels, unroll=16)
    return table.reshape(-1, *t.shape)


@_table.defjvp
def _table_jvp(
    n: int, top: int, primals: tuple[Array, Array | None], tangents: tuple[Array, Array | None]
) -> tuple[Float[Array, "R N"], Float[Array, "R N"]]:
    (t, s), (dt, ds) = primals, tangents
    table = _table(t, s, n, top)
    tangent = _slope_along(table, n) * dt
    return table, tangent if ds is None else tangent + _slope_radial(table, n) * ds


def _slope_along(table: Float[Array, "R N"], n: int) -> Float[Array, "R N"]:
    """Return the derivative of the table in t: row (k, j) is a multiple of row (k, j + 1)."""
    _, j, k = _grid(table)
    factor = np.sqrt(np.maximum((k - j) * (k + j + n - 2), 0.0)).ravel()
    shifted = jnp.concatenate([table[1:], jnp.zeros_like(table[:1])])
    return jnp.asarray(factor, table.dtype)[:, None] * shifted


def _slope_radial(table: Float[Array, "R N"], n: int) -> Float[Array, "R N"]:
    """Return the derivative of the table in s: row (k, j) is a multiple of row (k - 1, j + 1)."""
    top, j, k = _grid(table)
    m, alpha = np.maximum(k - j, 0.0), j + (n - 2) / 2
    factor = -0.5 * np.sqrt(m * np.maximum(m - 1, 0.0) * (m + alpha) / np.maximum(m + alpha - 1, 0.5)).ravel()
    shifted = jnp.concatenate([jnp.zeros_like(table[:top]), table[: table.shape[0] - top]])
    return jnp.asarray(factor, table.dtype)[:, None] * shifted


def _grid(table: Float[Array, "R N"]) -> tuple[int, np.ndarray, np.ndarray]:
    size = round(table.shape[0] ** 0.5)
    return size - 1, np.arange(float(size))[None, :], np.arange(float(size))[:, None]


@partial(jax.custom_jvp, nondiff_argnums=(2,))
def circle_powers(
    x: Float[Array, "N"], y: Float[Array, "N"], top: int
) -> tuple[Float[Array, "R N"], Float[Array, "R N"]]:
    """Return the real and imaginary parts of (x + i y)^m for m = 0..top, by doubling."""
    cosines, sines = x[None], y[None]
    while cosines.shape[0] < top:
        c, s = cosines[-1], sines[-1]
        cosines, sines = (
            jnp.concatenate([cosines, c * cosines - s * sines]),
            jnp.concatenate([sines, c * sines + s * cosines]),
        )
    one = jnp.ones_like(x)[None]
    return jnp.concatenate([one, cosines[:top]]), jnp.concatenate([jnp.zeros_like(one), sines[:top]])


@circle_powers.defjvp
def _circle_powers_jvp(
    top: int, primals: tuple[Array, Array], tangents: tuple[Array, Array]
) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    powers, (dx, dy) = circle_powers(*primals, top), tangents
    cosines, sines = _power_slopes(*powers)
    return powers, (cosines * dx - sines * dy, sines * dx + cosines * dy)


def _power_slopes(cosines: Float[Array, "R N"], sines: Float[Array, "R N"]) -> list[Float[Array, "R N"]]:
    """Return m (x + i y)^(m - 1), the derivative of every power."""
    degree = jnp.arange(cosines.shape[0], dtype=cosines.dtype)[:, None]
    return [degree * jnp.roll(part, 1, axis=0) for part in (cosines, sines)]


def _circle_rows(x: Float[Array, "N"], y: Float[Array, "N"], top: int) -> Float[Array, "R N"]:
    """Return the harmonics on the circle: 1, √2 c_1, √2 s_1, √2 c_2, ..."""
    return _interleaved(*circle_powers(x, y, top))


def _circle_slopes(x: Float[Array, "N"], y: Float[Array, "N"], top: int) -> list[Float[Array, "R N"]]:
    """Return their derivatives in x and y."""
    cosines, sines = _power_slopes(*circle_powers(x, y, top))
    return [_interleaved(cosines, sines), _interleaved(-sines, cosines)]


def _interleaved(cosines: Float[Array, "K N"], sines: Float[Array, "K N"]) -> Float[Array, "R N"]:
    pairs = np.sqrt(2.0).astype(cosines.dtype) * jnp.stack([cosines[1:], sines[1:]], axis=1)
    return jnp.concatenate([cosines[:1], pairs.reshape(-1, cosines.shape[1])])


def _circle_selection(degrees: tuple[int, ...]) -> Int[np.ndarray, "M"]:
    return np.concatenate([np.array([0]) if k == 0 else np.array([2 * k - 1, 2 * k]) for k in degrees])
