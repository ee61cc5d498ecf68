"""Sums of zonal functions by Clenshaw's recurrence, differentiable without storing the levels."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

_UNROLL = 16  # levels fused into one pass over the data; more only lengthens compilation
_BLOCK = 8192


@partial(jax.custom_jvp, nondiff_argnums=(2,))
def gegenbauer_sum(weights: Float[Array, "K"], t: Float[Array, "..."], d: int) -> Float[Array, "..."]:
    """Return sum_k w_k G_k(t), G_k the zonal polynomial of degree k on S_d with G_k(1) = 1.

    G_0 = 1, G_1 = t, (k + d - 1) G_{k+1} = (2k + d - 1) t G_k - k G_{k-1}. On the circle these are Chebyshev's.
    """
    return _clenshaw(weights, t, d)


@gegenbauer_sum.defjvp
def _gegenbauer_sum_jvp(
    d: int, primals: tuple[Array, Array], tangents: tuple[Array, Array]
) -> tuple[Float[Array, "..."], Float[Array, "..."]]:
    """Differentiate: linear in the weights; in t it is again such a sum, two dimensions up."""
    (weights, t), (dweights, dt) = primals, tangents
    value = _clenshaw(weights, t, d)
    _, dvalue = jax.jvp(lambda w: _clenshaw_by_blocks(w, t, d), (weights,), (dweights,))
    return value, dvalue + gegenbauer_sum(derivative_weights(weights, d), t, d + 2) * dt


def derivative_weights(weights: Float[Array, "K"], d: int) -> Float[Array, "_"]:
    """Return the weights on S_{d+2} of the derivative of a sum on S_d: G_k' = k (k + d - 1) / d G_{k-1}."""
    k = np.arange(1, weights.shape[0])
    shifted = weights[1:] * jnp.asarray(k * (k + d - 1) / d, weights.dtype)
    return shifted if shifted.shape[0] else jnp.zeros(1, weights.dtype)


def _clenshaw_by_blocks(weights: Float[Array, "K"], t: Float[Array, "..."], d: int) -> Float[Array, "..."]:
    """Do the same in blocks: transposed, the recurrence passes over t once for each level, so t should be in cache."""
    if t.size <= _BLOCK:
        return _clenshaw(weights, t, d)
    count = -(-t.size // _BLOCK)
    blocks = jnp.pad(t.reshape(-1), (0, count * _BLOCK - t.size)).reshape(count, _BLOCK)
    sums = jax.lax.map(lambda block: _clenshaw(weights, block, d), blocks)
    return sums.reshape(-1)[: t.size].reshape(t.shape)


def _clenshaw(weights: Float[Array, "K"], t: Float[Array, "..."], d: int) -> Float[Array, "..."]:
    if weights.shape[0] < 2:
        weights = jnp.pad(weights, (0, 2 - weights.shape[0]))
    weights = weights.astype(t.dtype)
    k = np.arange(weights.shape[0], dtype=float)
    raising = jnp.asarray(np.where(k == 0, 1.0, (2 * k + d - 1) / np.maximum(k + d - 1, 1)), t.dtype)
    lowering = jnp.asarray(k / np.maximum(k + d - 1, 1), t.dtype)

    def step(carry: tuple[Array, Array], level: tuple[Array, Array, Array]) -> tuple[tuple[Array, Array], None]:
        (b1, b2), (w, up, down) = carry, level
        return (w + up * (t * b1) - down * b2, b1), None

    start = (weights[-2] + raising[-2] * (t * weights[-1]), jnp.broadcast_to(weights[-1], t.shape))
    levels = (weights[:-2], raising[:-2], lowering[1:-1])
    (total, _), _ = jax.lax.scan(step, start, levels, reverse=True, unroll=_UNROLL)
    return total
