"""A function to minimize whose minimum is known."""

from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import Numbers, compiled
from rdgp.spaces import Isometry, Space

Values = Float[Array, "*N"]
Formula = Callable[..., Values]


class Target(eqx.Module):
    """A function on a space, its minimum and a point where it is taken.

    Call it with one point [D] or several [N, D]. `formula(space, x, *arguments)` is a function at module level, so
    that targets of one kind share what is compiled.
    """

    name: str = eqx.field(static=True)
    space: Space = eqx.field(static=True)
    minimum: float = eqx.field(static=True)
    formula: Formula = eqx.field(static=True)
    center: Float[Array, "D"]
    arguments: tuple[Array, ...] = ()
    isometry: Isometry | None = None

    def __call__(self, x: Numbers) -> Values:
        """Evaluate at points."""
        return compiled(_evaluate, self, self.space.check(x))

    @property
    def minimizer(self) -> Float[Array, "D"]:
        """A point where the minimum is taken; where it is only approached, a point at distance 1e-6."""
        if self.isometry is None:
            return self.center
        return (self.center - self.isometry.shift) @ self.isometry.matrix

    def rotated(self, *, key: PRNGKeyArray) -> "Target":
        """Return the target after a random isometry of its space, so that no axis and no pole is special."""
        turn = self.space.random_isometry(key=key)
        if self.isometry is not None:
            matrix = self.isometry.matrix
            turn = Isometry(matrix @ turn.matrix, self.isometry(turn.shift))
        return eqx.tree_at(lambda target: target.isometry, self, turn, is_leaf=lambda leaf: leaf is None)

    def noisy(self, std: float, *, key: PRNGKeyArray) -> "NoisyTarget":
        """Return the target with normal noise of a standard deviation `std`, drawn anew at each evaluation."""
        return NoisyTarget(self, std, key)


class NoisyTarget:
    """A target whose evaluations carry normal noise; the same order of evaluations meets the same noise."""

    def __init__(self, target: Target, std: float, key: PRNGKeyArray) -> None:
        if not (np.isfinite(std) and std >= 0.0):
            raise ValueError(f"std, the standard deviation of the noise, must be a number of at least 0, got {std}")
        self.target, self.std = target, float(std)
        self._generator = np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist())

    def __call__(self, x: Numbers) -> Values:
        """Evaluate at points, with new noise."""
        value = self.target(x)
        return value + jnp.asarray(self.std * self._generator.normal(size=value.shape), value.dtype)


def _evaluate(target: Target, x: Float[Array, "*N D"]) -> Values:
    turned = x if target.isometry is None else target.isometry(x)
    return target.formula(target.space, turned, *target.arguments)
