"""Interdomain variational family: spectral coefficients as inducing variables, on compact spaces."""

from typing import Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from rdgp.core import Parameter, check_count, small_product, standard_normal
from rdgp.fields import Field, FieldDraw, Latent, check_points
from rdgp.variational._variational import Conditional, Variational
from rdgp.variational._whitened import WhitenedGaussian

Weights = tuple[Float[Array, "r m"], ...]


class Interdomain(Variational):
    """A Gaussian over the whitened spectral coefficients of a field, dense but for a tail.

    Of the field's levels the last `tail` have no dense block: the coefficients of such a level are independent with one
    variance D' for the level, learned or fixed at one (their prior).
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
        deviation: float = 1.0,
    ) -> None:
        if tail_variances not in ("learned", "fixed"):
            raise ValueError(f'tail_variances must be "learned" or "fixed", got {tail_variances!r}')
        self.field, self.tail = field, check_count(tail, "tail", minimum=0)
        levels = [latent.levels() for latent in field.latents]
        if any(tail > level.max() for level in levels):
            kept = min(int(level.max()) + 1 for level in levels)
            raise ValueError(f"tail must leave at least one of the field's {kept} levels, got {tail}")
        sizes = [int(np.sum(_in_head(level, tail))) for level in levels]
        self.blocks = tuple(
            WhitenedGaussian(latent.copies, size, deviation) for latent, size in zip(field.latents, sizes, strict=True)
        )
        learned = tail_variances == "learned"
        parts = [np.ones((_num_parts(level), tail)) for level in levels] if tail else []
        self.tails = tuple(Parameter(part, name="tail variances", trainable=learned) for part in parts)

    def conditionals(self, x: Float[Array, "N D"]) -> tuple[Conditional, ...]:
        """Return the features times scales, and the variance of the tail."""
        return tuple(self._conditional(i, latent, x) for i, latent in enumerate(self.field.latents))

    def _conditional(self, i: int, latent: Latent, x: Float[Array, "N D"]) -> Conditional:
        psi = latent.features(x) * latent.scales().astype(x.dtype)
        if not self.tail:
            return Conditional(psi, None)
        head = np.flatnonzero(_in_head(latent.levels(), self.tail))
        half = self._tail_features(i, latent, psi)
        return Conditional(psi[..., head], jnp.einsum("npm,nqm->npq", half, half))

    def _tail_features(self, i: int, latent: Latent, psi: Float[Array, "N p m"]) -> Float[Array, "N p t"]:
        """Return the features of the tail, times scales and the deviations √D'."""
        rest = np.flatnonzero(~_in_head(latent.levels(), self.tail))
        return psi[..., rest] * jnp.sqrt(self._tail_variances(i, latent)).astype(psi.dtype)

    def _tail_variances(self, i: int, latent: Latent) -> Float[Array, "t"]:
        level = latent.levels()
        rest = ~_in_head(level, self.tail)
        return self.tails[i].value[_part_of(level)[rest], level[rest] - (level.max() + 1 - self.tail)]

    def joint_rest(self, x: Float[Array, "N D"]) -> tuple[Float[Array, "n n"] | None, ...]:
        """Return the covariance of the tail."""
        if not self.tail:
            return (None,) * len(self.blocks)
        halves = []
        for i, latent in enumerate(self.field.latents):
            half = self._tail_features(i, latent, latent.features(x) * latent.scales().astype(x.dtype))
            halves.append(half.reshape(-1, half.shape[-1]))
        return tuple(half @ half.T for half in halves)

    def mean_and_spread(
        self, x: Float[Array, "N D"], basis: Float[Array, "N P q"] | None
    ) -> tuple[Float[Array, "N q"], Float[Array, "N"]]:
        """Return the mean of the coordinates and the sum of their variances, by the field's short way if it has one."""
        spread = None if self.tail else self.field.squares(x, tuple(block.factor for block in self.blocks))
        if spread is None or basis is None:
            return super().mean_and_spread(x, basis)
        value = self.field.evaluate(self.field.carriers(x), x, tuple(block.mean for block in self.blocks))
        return small_product(basis, value[..., None])[..., 0], spread

    def kl(self) -> Float[Array, ""]:
        """Return the divergence of the dense blocks plus, level by level, N (D' - 1 - log D') / 2 of the tail."""
        total = super().kl()
        for i, latent in enumerate(self.field.latents if self.tail else ()):
            variances = self._tail_variances(i, latent)
            total = total + 0.5 * latent.copies * jnp.sum(variances - 1.0 - jnp.log(variances))
        return total

    @property
    def num_normals(self) -> int:
        """How many standard normal numbers make one draw."""
        return sum(latent.copies * latent.levels().size for latent in self.field.latents)

    def weights(self, normal: Float[Array, "_"]) -> Weights:
        """Turn standard normal numbers into a draw of the whitened weights of all features."""
        weights, start = [], 0
        for i, (latent, block) in enumerate(zip(self.field.latents, self.blocks, strict=True)):
            shape = latent.copies, latent.levels().size
            part = normal[start : start + shape[0] * shape[1]].reshape(shape)
            start += part.size
            weights.append(self._weights(i, latent, block, part.astype(block.mean.dtype)))
        return tuple(weights)

    def _weights(
        self, i: int, latent: Latent, block: WhitenedGaussian, normal: Float[Array, "r m"]
    ) -> Float[Array, "r m"]:
        if not self.tail:
            return block.sample(normal)
        in_head = _in_head(latent.levels(), self.tail)
        head, rest = np.flatnonzero(in_head), np.flatnonzero(~in_head)
        result = normal.at[:, head].set(block.sample(normal[:, head]))
        return result.at[:, rest].multiply(jnp.sqrt(self._tail_variances(i, latent)), unique_indices=True)

    def draw(self, *, key: PRNGKeyArray) -> FieldDraw:
        """Draw one function."""
        return InterdomainDraw(self.field, self.weights(standard_normal(key, (self.num_normals,))))


class InterdomainDraw(eqx.Module):
    """The function with given weights of a field's features."""

    field: Field
    weights: Weights

    @eqx.filter_jit
    def __call__(self, x: Float[Array, "N D"]) -> Float[Array, "N ..."]:
        """Evaluate it."""
        x = check_points(self.field.space, x)
        return self.field.evaluate(self.field.carriers(x), x, self.weights)


def _in_head(levels: Int[np.ndarray, "m"], tail: int) -> np.ndarray:
    return levels < levels.max() + 1 - tail


def _part_of(levels: Int[np.ndarray, "m"]) -> Int[np.ndarray, "m"]:
    """Return the part of a Hodge field that each feature belongs to: a part begins where the level falls back."""
    return np.concatenate([[0], np.cumsum(np.diff(levels) < 0)])


def _num_parts(levels: Int[np.ndarray, "m"]) -> int:
    return int(_part_of(levels)[-1]) + 1
