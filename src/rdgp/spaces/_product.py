"""Products of spaces: ambient vectors are concatenated, squared distances add."""

from collections.abc import Callable, Iterator

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import block_diag
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import safe_norm
from rdgp.spaces._space import Isometry, Points, Space, Tangents


class Product(Space):
    """The product of two or more spaces; nested products are flattened.

    >>> from rdgp.spaces import Circle, Sphere
    >>> Product(Sphere(2), Circle()).ambient_dim
    5
    """

    factors: tuple[Space, ...] = eqx.field(static=True)

    def __init__(self, *factors: Space) -> None:
        if not all(isinstance(factor, Space) for factor in factors):
            raise ValueError(f"Product takes spaces, got {factors}; write Product(Sphere(2), Circle())")
        flat = [part for factor in factors for part in (factor.factors if isinstance(factor, Product) else (factor,))]
        if len(flat) < 2:
            raise ValueError(f"Product needs at least two factors, got {len(flat)}; use the factor itself")
        self.factors = tuple(flat)

    def __str__(self) -> str:
        return f"Product({', '.join(map(str, self.factors))})"

    @property
    def dim(self) -> int:
        """Sum of the factors' dimensions."""
        return sum(factor.dim for factor in self.factors)

    @property
    def ambient_dim(self) -> int:
        """Sum of the factors' ambient dimensions."""
        return sum(factor.ambient_dim for factor in self.factors)

    @property
    def injectivity_radius(self) -> float:
        """The smallest of the factors' radii."""
        return min(factor.injectivity_radius for factor in self.factors)

    @property
    def slices(self) -> tuple[slice, ...]:
        """Where each factor's coordinates stand in an ambient vector."""
        ends = np.cumsum([factor.ambient_dim for factor in self.factors])
        return tuple(
            slice(int(end) - factor.ambient_dim, int(end)) for factor, end in zip(self.factors, ends, strict=True)
        )

    def split(self, x: Float[Array, "*#N D"]) -> tuple[Float[Array, "*#N _"], ...]:
        """Cut an ambient vector into the factors' ambient vectors."""
        return tuple(x[..., part] for part in self.slices)

    def _random_isometry(self, key: PRNGKeyArray) -> Isometry:
        """Draw an isometry of each factor."""
        parts = [factor._random_isometry(k) for factor, k in self._with_keys(key)]
        return Isometry(block_diag(*(p.matrix for p in parts)), jnp.concatenate([p.shift for p in parts]))

    def _with_keys(self, key: PRNGKeyArray) -> Iterator[tuple[Space, PRNGKeyArray]]:
        return zip(self.factors, jax.random.split(key, len(self.factors)), strict=True)

    def _each(
        self, method: Callable[..., Float[Array, "*#N _"]], *arrays: Float[Array, "*#N D"]
    ) -> Float[Array, "*#N _"]:
        pieces = zip(self.factors, *(self.split(array) for array in arrays), strict=True)
        return jnp.concatenate([method(factor, *piece) for factor, *piece in pieces], axis=-1)

    def _exp(self, x: Points, v: Tangents) -> Points:
        return self._each(lambda factor, *args: factor._exp(*args), x, v)

    def _log(self, x: Points, y: Points) -> Tangents:
        return self._each(lambda factor, *args: factor._log(*args), x, y)

    def _project(self, x: Points, u: Float[Array, "*#N D"]) -> Tangents:
        return self._each(lambda factor, *args: factor._project(*args), x, u)

    def _transport_along(self, x: Points, v: Tangents, u: Tangents) -> Tangents:
        return self._each(lambda factor, *args: factor._transport_along(*args), x, v, u)

    def _distance(self, x: Points, y: Points) -> Float[Array, "*#N"]:
        return safe_norm(self._each(lambda factor, *args: factor._distance(*args)[..., None], x, y))

    def _frame(self, x: Points) -> Float[Array, "*#N D d"]:
        blocks = [factor._frame(part) for factor, part in zip(self.factors, self.split(x), strict=True)]
        widths = np.cumsum([0, *(block.shape[-1] for block in blocks)])
        rows = [
            jnp.pad(block, [(0, 0)] * (x.ndim - 1) + [(0, 0), (int(widths[i]), int(widths[-1] - widths[i + 1]))])
            for i, block in enumerate(blocks)
        ]
        return jnp.concatenate(rows, axis=-2)

    def _nearest(self, x: Float[Array, "*#N D"]) -> Points:
        return self._each(lambda factor, part: factor._nearest(part), x)

    def _random(self, n: int, key: PRNGKeyArray) -> Float[Array, "N D"]:
        return jnp.concatenate([factor._random(n, k) for factor, k in self._with_keys(key)], axis=-1)
