"""Variational posteriors: Gaussians over whitened variables, and the moments every family shares."""

from abc import abstractmethod
from functools import reduce
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import register, small_product, square_root, standard_normal
from rdgp.fields import Field, Frame, FunctionDraw
from rdgp.posteriors._posterior import Moments, Posterior
from rdgp.posteriors._whitened import WhitenedGaussian


class Conditional(NamedTuple):
    """One process at points given whitened variables u ~ N(0, I): mean A u, and the covariance u does not explain."""

    weights: Float[Array, "N p m"]
    rest: Float[Array, "N p p"]


class Variational(Posterior):
    """An approximate posterior of a field through whitened variables, independent between its processes."""

    field: eqx.AbstractVar[Field]
    blocks: eqx.AbstractVar[tuple[WhitenedGaussian, ...]]

    @abstractmethod
    def conditionals(self, x: Float[Array, "N D"]) -> tuple[Conditional, ...]:
        """Return the distribution of each process at points, given its whitened variables."""

    @abstractmethod
    def joint_rest(self, x: Float[Array, "N D"]) -> tuple[Float[Array, "_ _"], ...]:
        """Return the covariance between all points that the whitened variables leave, n = N p."""

    @property
    def draws_are_exact(self) -> bool:
        """Whether `draw` has exactly the distribution of the family, which random features only approach."""
        return self.field.has_features

    @property
    def num_normals(self) -> int:
        """How many standard normal numbers determine a draw; none where a key does."""
        return 0

    def draw_exactly(self, *, key: PRNGKeyArray) -> FunctionDraw:
        """Draw a function, or each point on its own where draws of functions are not exact."""
        return self.draw(key=key) if self.draws_are_exact else IndependentDraw(self, key)

    def draw_with(self, normal: Float[Array, "_"], *, key: PRNGKeyArray) -> FunctionDraw:
        """Return the exact draw that given normal numbers determine, or a key where there are none."""
        return self.draw_exactly(key=key)

    def nearest(self) -> "Variational":
        """Return the family with what training has moved off the space back on it."""
        return self

    def details(self) -> tuple[str, ...]:
        """Return what a short text about the family says after its field."""
        return ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join([repr(self.field), *self.details()])})"

    def kl(self) -> Float[Array, ""]:
        """Return the divergence from the prior."""
        return reduce(jnp.add, [block.kl() for block in self.blocks])

    def coordinate_moments(self, x: Float[Array, "N D"], frame: Frame) -> Moments:
        """Return mean and covariance of the coordinates at each point."""
        pairs = zip(self.conditionals(x), self.blocks, strict=True)
        moments = [_process_moments(conditional, block) for conditional, block in pairs]
        means, covariances = [], []
        for mix, (mean, covariance) in zip(self.field.mixing(x, frame), moments, strict=True):
            rows = jnp.moveaxis(mix, 1, -1)  # [N, p, r, q]
            n, p, r, q = rows.shape
            flat = rows.reshape(n, p * r, q)
            means.append(small_product(flat, mean.reshape(n, p * r, 1))[..., 0])
            half = reduce(jnp.add, [covariance[:, :, k, :, None] * rows[:, None, k] for k in range(p)])
            covariances.append(small_product(flat, half.reshape(n, p * r, q)))
        return reduce(jnp.add, means), reduce(jnp.add, covariances)

    def sample_independently(self, x: Float[Array, "N D"], key: PRNGKeyArray) -> Float[Array, "N ..."]:
        """Draw the value at each point from its marginal distribution, independently of the other points."""
        keys = jax.random.split(key, len(self.blocks))
        values = []
        for conditional, block, own in zip(self.conditionals(x), self.blocks, keys, strict=True):
            mean, covariance = _process_moments(conditional, block)
            normal = standard_normal(own, mean.shape, mean.dtype)
            root = square_root(jnp.moveaxis(covariance, -1, 1))
            values.append(mean + jnp.einsum("nrpq,nqr->npr", root, normal))
        return self.field.assemble(x, tuple(values))

    def joint_moments(self, x: Float[Array, "N D"], frame: Frame) -> tuple[Float[Array, "n"], Float[Array, "n n"]]:
        """Return mean and covariance of the coordinates at all points together."""
        means, covariances = [], []
        parts = zip(self.field.mixing(x, frame), self.conditionals(x), self.blocks, self.joint_rest(x), strict=True)
        for mix, conditional, block, rest in parts:
            n, p, m = conditional.weights.shape
            half = jnp.einsum("npm,rmk->rnpk", conditional.weights, block.factor).reshape(-1, n * p, m)
            total = (half @ jnp.swapaxes(half, -1, -2) + rest).reshape(-1, n, p, n, p)
            means.append(jnp.einsum("nqpr,npm,rm->nq", mix, conditional.weights, block.mean))
            covariances.append(jnp.einsum("napr,rnplo,lbor->nalb", mix, total, mix))
        n = x.shape[0] * means[0].shape[1]
        return reduce(jnp.add, means).reshape(n), reduce(jnp.add, covariances).reshape(n, n)


@register("rdgp:IndependentDraw")
class IndependentDraw(FunctionDraw):
    """Values drawn at each point from its marginal distribution: no function, but exact point by point."""

    posterior: Variational
    key: PRNGKeyArray

    def __call__(self, x: Float[Array, "N D"]) -> Float[Array, "N ..."]:
        """Draw the values."""
        return self.posterior.sample_independently(x, self.key)


def _process_moments(
    conditional: Conditional, block: WhitenedGaussian
) -> tuple[Float[Array, "N p r"], Float[Array, "N p p r"]]:
    """Return mean A m and covariance A C Cᵀ Aᵀ + rest of each copy at each point."""
    weights = conditional.weights
    n, p, m = weights.shape
    mean = jnp.einsum("npm,rm->npr", weights, block.mean.astype(weights.dtype))
    factor = block.factor.astype(weights.dtype)
    half = (weights.reshape(n * p, m) @ factor.transpose(1, 0, 2).reshape(m, -1)).reshape(n, p, -1, m)
    if p == 1:
        covariance = jnp.sum(jnp.square(half), axis=-1)[:, :, None, :]
    else:
        rows = [[jnp.sum(half[:, a] * half[:, b], axis=-1) for b in range(p)] for a in range(p)]
        covariance = jnp.stack([jnp.stack(row, axis=1) for row in rows], axis=1)
    return mean, covariance + conditional.rest[..., None]
