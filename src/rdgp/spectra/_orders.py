"""Sums of all harmonics of S_2 up to a degree, order by order.

A harmonic of order j is a polynomial of the height times a harmonic of the circle. Summing over degrees first is one
product for each order, and the harmonics themselves are never formed.
"""

from functools import lru_cache

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from rdgp.spectra._harmonics import _table, circle_powers


def sum_by_orders(x: Float[Array, "N 3"], coefficients: Float[Array, "H c"], degree: int) -> Float[Array, "N c"]:
    """Return φ(x) C for all harmonics φ of degrees 0 to `degree`, as `harmonics` sorts them."""
    count = coefficients.shape[1]
    padded = jnp.concatenate([coefficients, jnp.zeros((1, count), coefficients.dtype)])
    cosines, sines = circle_powers(x[:, 0], x[:, 1], degree)
    table = _table(x[:, 2], None, 3, degree).reshape(degree + 1, degree + 1, -1)
    both = jnp.concatenate([padded[index] for index in _places(degree)], axis=-1)  # [orders, degrees, 2 c]
    inner = jnp.einsum("kjn,jkc->jnc", table, both)
    size = jnp.asarray(np.where(np.arange(degree + 1) > 0, np.sqrt(2.0), 1.0), x.dtype)[:, None, None]
    terms = cosines[:, :, None] * inner[:, :, :count] + sines[:, :, None] * inner[:, :, count:]
    return jnp.sum(size * terms, axis=0)


@lru_cache(maxsize=32)
def _places(degree: int) -> tuple[Int[np.ndarray, "J K"], Int[np.ndarray, "J K"]]:
    """Return where the even and the odd harmonic of each order and degree stand, past the end if there is none."""
    order, own = np.indices((degree + 1, degree + 1), np.int32)
    even, odd = own**2 + np.maximum(2 * order - 1, 0), own**2 + 2 * order
    nowhere = (degree + 1) ** 2
    return np.where(order <= own, even, nowhere), np.where((order <= own) & (order > 0), odd, nowhere)
