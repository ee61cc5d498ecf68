"""Products of spaces: ambient vectors are concatenated, squared distances add."""

import itertools
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
from jax.scipy.linalg import block_diag
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import register, safe_norm
from rdgp.spaces._maps import Isometry, Readable, UnitScaling
from rdgp.spaces._space import Points, Space, Tangents


@register("rdgp:Product")
class Product(Space):
    """The product of two or more spaces; nested products are flattened.

    >>> from rdgp.spaces import Circle, Sphere
    >>> Product(Sphere(2), Circle()).ambient_dim
    5
    """

    _factors: tuple[Space, ...]

    def __init__(self, *factors: Space) -> None:
        if not all(isinstance(factor, Space) for factor in factors):
            raise ValueError(f"Product takes spaces, got {factors}; write Product(Sphere(2), Circle())")
        flat = [part for factor in factors for part in factor.factors]
        if len(flat) < 2:
            raise ValueError(f"Product needs at least two factors, got {len(flat)}; use the factor itself")
        self._factors = tuple(flat)

    def __str__(self) -> str:
        return f"Product({', '.join(map(str, self.factors))})"

    @property
    def factors(self) -> tuple[Space, ...]:
        """The factors."""
        return self._factors

    @property
    def irreducible_factors(self) -> tuple[Space, ...]:
        """Those of all factors."""
        return tuple(part for factor in self.factors for part in factor.irreducible_factors)

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

    @property
    def bounded(self) -> bool:
        """Whether every factor is bounded."""
        return all(factor.bounded for factor in self.factors)

    @property
    def has_boundary(self) -> bool:
        """Whether some factor has a boundary."""
        return any(factor.has_boundary for factor in self.factors)

    @property
    def identifications(self) -> Float[np.ndarray, "R D D"]:
        """One of each factor's, in all combinations."""
        choices = itertools.product(*(factor.identifications for factor in self.factors))
        return np.stack([scipy.linalg.block_diag(*choice) for choice in choices])

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

    def _covector(self, x: Points, u: Tangents) -> Tangents:
        return self._each(lambda factor, *args: factor._covector(*args), x, u)

    def _gradient(self, x: Points, derivative: Float[Array, "*#N D"]) -> Tangents:
        return self._each(lambda factor, *args: factor._gradient(*args), x, derivative)

    def _canonical(self, x: Points) -> Points:
        return self._each(lambda factor, part: factor._canonical(part), x)

    def _log_volume_ratio(self, x: Points, y: Points) -> Float[Array, "*#N"]:
        parts = self._each(lambda factor, *args: factor._log_volume_ratio(*args)[..., None], x, y)
        return jnp.sum(parts, axis=-1)

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

    def unit_scaled(self) -> UnitScaling:
        """Scale each factor."""
        parts = [factor.unit_scaled() for factor in self.factors]
        shift, scale = (np.concatenate([part[i] for part in parts]) for i in (1, 2))
        return UnitScaling(Product(*(part.space for part in parts)), shift, scale)

    def base_point(self) -> Float[np.ndarray, "D"]:
        """Return the base points of the factors."""
        return np.concatenate([factor.base_point() for factor in self.factors])

    def cut_fraction(self, u: Float[np.ndarray, "d"]) -> float:
        """Return the largest of the factors' fractions."""
        cuts = np.cumsum([factor.dim for factor in self.factors])[:-1]
        return max(factor.cut_fraction(part) for factor, part in zip(self.factors, np.split(u, cuts), strict=True))

    @property
    def readable(self) -> Readable:
        """The coordinates of all factors."""
        parts = [factor.readable for factor in self.factors]
        return Readable(*(tuple(itertools.chain(*field)) for field in zip(*parts, strict=True)))

    def read(self, x: Float[np.ndarray, "N D"]) -> Float[np.ndarray, "N R"]:
        """Return the coordinates of all factors."""
        parts = zip(self.factors, self.slices, strict=True)
        return np.concatenate([factor.read(x[:, part]) for factor, part in parts], axis=1)

    def from_readable(self, coordinates: Float[np.ndarray, "N R"]) -> Float[np.ndarray, "N D"]:
        """Return the points of all factors, one after the other."""
        cuts = np.cumsum([len(factor.readable.names) for factor in self.factors])[:-1]
        parts = zip(self.factors, np.split(coordinates, cuts, axis=1), strict=True)
        return np.concatenate([factor.from_readable(part) for factor, part in parts], axis=1)
