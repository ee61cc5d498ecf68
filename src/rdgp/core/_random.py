"""Random numbers that compile quickly."""

import math

import jax
from jaxtyping import Array, DTypeLike, Float, PRNGKeyArray


def standard_normal(key: PRNGKeyArray, shape: tuple[int, ...], dtype: DTypeLike = float) -> Float[Array, "..."]:
    """Draw standard normal numbers, as one flat list: the same numbers as in their shape, and compiled in less time."""
    return jax.random.normal(key, (math.prod(shape),), dtype).reshape(shape)
