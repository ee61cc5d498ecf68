"""Interdomain variational family: spectral coefficients as inducing variables, on compact spaces."""

from typing import Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from rdgp.core import Parameter, check_count, register, standard_normal
from rdgp.fields import Field, Frame, FunctionDraw, Levels, Process, Weights, check_points
from rdgp.posteriors._variational import Conditional, Variational
from rdgp.posteriors._whitened import WhitenedGaussian


@register("rdgp:Interdomain")
class Interdomain(Variational):
    """A Gaussian over the whitened spectral coefficients of a field, dense but for a tail.

    Of the field's levels the last `tail` have no dense block: the coefficients of such a level are independent with one
    variance D' for the level and part, learned or fixed at one (their prior). `std` is the standard deviation of the
    coefficients at the start.
    """

    field: Field
    blocks: tuple[WhitenedGaussian, ...]
    tails: tuple[Parameter, ...]
    tail: int = eqx.field(static=True)

    def __init__(
        self,
        field: Field,
        tail: int = 0,
        tail_variances: Literal["learned", "fixed"] = "learned",
        *,
        std: float = 1.0,
    ) -> None:
        if tail_variances not in ("learned", "fixed"):
            raise ValueError(f'tail_variances must be "learned" or "fixed", got {tail_variances!r}')
        if not field.has_features:
            raise ValueError(f"{field.space} has no discrete spectrum; use InducingPoints")
        self.field, self.tail = field, check_count(tail, "tail", minimum=0)
        levels = [process.levels for process in field.processes]
        kept = min(own.num_levels for own in levels)
        if tail >= kept:
            raise ValueError(f"tail must leave at least one of the field's {kept} levels, got {tail}")
        sizes = [int(np.sum(_in_head(own, tail))) for own in levels]
        pairs = zip(field.processes, sizes, strict=True)
        self.blocks = tuple(WhitenedGaussian(process.copies, size, std) for process, size in pairs)
        learned = tail_variances == "learned"
        parts = [np.ones((own.num_parts, tail)) for own in levels] if tail else []
        self.tails = tuple(Parameter(part, name="tail variances", trainable=learned) for part in parts)

    def details(self) -> tuple[str, ...]:
        """Return the length of the tail."""
        return (f"tail={self.tail}",) if self.tail else ()

    @property
    def size(self) -> int:
        """Number of features."""
        return self.field.num_weights

    def conditionals(self, x: Float[Array, "N D"]) -> tuple[Conditional, ...]:
        """Return the features of the dense levels times scales, and the variance of the tail."""
        return tuple(self._conditional(i, process, x) for i, process in enumerate(self.field.processes))

    def _conditional(self, i: int, process: Process, x: Float[Array, "N D"]) -> Conditional:
        scales = process.scales().astype(x.dtype)
        if not self.tail:
            nothing = jnp.zeros((x.shape[0], process.width, process.width), x.dtype)
            return Conditional(process.features(x) * scales, nothing)
        head = np.flatnonzero(_in_head(process.levels, self.tail))
        psi = process.lowest_features(x, process.levels.num_levels - self.tail)
        return Conditional(psi * scales[head], process.tail_variance(self.tails[i].value, x))

    def joint_rest(self, x: Float[Array, "N D"]) -> tuple[Float[Array, "_ _"], ...]:
        """Return the covariance of the tail."""
        rests = []
        for i, process in enumerate(self.field.processes):
            n = x.shape[0] * process.width
            tail = process.tail_covariance(self.tails[i].value, x, x) if self.tail else jnp.zeros((n, n), x.dtype)
            rests.append(tail.reshape(n, n))
        return tuple(rests)

    def mean_and_trace(self, x: Float[Array, "N D"], frame: Frame) -> tuple[Float[Array, "N q"], Float[Array, "N"]]:
        """Return the mean of the coordinates and the sum of their variances, by the field's short way."""
        if self.tail:
            return super().mean_and_trace(x, frame)
        means, factors = tuple(block.mean for block in self.blocks), tuple(block.factor for block in self.blocks)
        return self.field.mean_and_trace(x, frame, means, factors)

    def kl(self) -> Float[Array, ""]:
        """Return the divergence of the dense blocks plus, level by level, N (D' - 1 - log D') / 2 of the tail."""
        total = super().kl()
        for i, process in enumerate(self.field.processes if self.tail else ()):
            variances = self._tail_variances(i, process)
            total = total + 0.5 * process.copies * jnp.sum(variances - 1.0 - jnp.log(variances))
        return total

    def _tail_variances(self, i: int, process: Process) -> Float[Array, "t"]:
        """Return D' of each feature of the tail."""
        levels = process.levels
        rest = ~_in_head(levels, self.tail)
        return self.tails[i].value[levels.part[rest], levels.level[rest] - (levels.num_levels - self.tail)]

    @property
    def num_normals(self) -> int:
        """One for each coefficient."""
        return self.field.num_weights

    def weights(self, normal: Float[Array, "_"]) -> Weights:
        """Turn standard normal numbers into a draw of the whitened weights of all features."""
        parts = zip(self.field.processes, self.blocks, self.field.arrange(normal), strict=True)
        return tuple(
            self._weights(i, process, block, part.astype(block.mean.dtype))
            for i, (process, block, part) in enumerate(parts)
        )

    def _weights(
        self, i: int, process: Process, block: WhitenedGaussian, normal: Float[Array, "r m"]
    ) -> Float[Array, "r m"]:
        if not self.tail:
            return block.sample(normal)
        in_head = _in_head(process.levels, self.tail)
        head, rest = np.flatnonzero(in_head), np.flatnonzero(~in_head)
        result = normal.at[:, head].set(block.sample(normal[:, head]))
        return result.at[:, rest].multiply(jnp.sqrt(self._tail_variances(i, process)), unique_indices=True)

    def draw(self, *, key: PRNGKeyArray) -> "WeightsDraw":
        """Draw one function."""
        return self.draw_with(standard_normal(key, (self.num_normals,)), key=key)

    def draw_with(self, normal: Float[Array, "_"], *, key: PRNGKeyArray) -> "WeightsDraw":
        """Return the function of given normal numbers."""
        return WeightsDraw(self.field, self.weights(normal))


@register("rdgp:WeightsDraw")
class WeightsDraw(FunctionDraw):
    """The function with given whitened weights of a field's features."""

    field: Field
    weights: Weights

    @eqx.filter_jit
    def __call__(self, x: Float[Array, "N D"]) -> Float[Array, "N ..."]:
        """Evaluate it."""
        x = check_points(self.field.space, x)
        return self.at(x, self.field.basis(x))

    def at(self, x: Float[Array, "N D"], basis: tuple[Float[Array, "..."], ...]) -> Float[Array, "N ..."]:
        """Evaluate it where the field's basis is known."""
        return self.field.evaluate(basis, x, self.weights)


def _in_head(levels: Levels, tail: int) -> Bool[np.ndarray, "m"]:
    return levels.level < levels.num_levels - tail
