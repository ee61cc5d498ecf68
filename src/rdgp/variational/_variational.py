"""The contract of a variational family, and the moments every family shares."""

from abc import abstractmethod
from collections.abc import Callable
from functools import reduce
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import Numbers, compiled, small_product, square_root, standard_normal
from rdgp.fields import Field, check_points
from rdgp.variational._whitened import WhitenedGaussian


class Conditional(NamedTuple):
    """One process at points given whitened variables u ~ N(0, I): mean A u, and what u does not explain."""

    weights: Float[Array, "N p m"]
    rest: Float[Array, "N p p"] | None


class Variational(eqx.Module):
    """An approximate posterior of a field through whitened inducing variables, independent between its processes."""

    field: eqx.AbstractVar[Field]
    blocks: eqx.AbstractVar[tuple[WhitenedGaussian, ...]]

    @abstractmethod
    def conditionals(self, x: Float[Array, "N D"]) -> tuple[Conditional, ...]:
        """Return the law of each process at points, given its inducing variables."""

    @abstractmethod
    def joint_rest(self, x: Float[Array, "N D"]) -> tuple[Float[Array, "n n"] | None, ...]:
        """Return the covariance between all points that the inducing variables leave, n = N p."""

    @abstractmethod
    def draw(self, *, key: PRNGKeyArray) -> Callable[[Float[Array, "N D"]], Float[Array, "N ..."]]:
        """Draw one function: the same wherever it is called, and differentiable."""

    @property
    def draws_are_exact(self) -> bool:
        """Whether `draw` has exactly the law of the family, which random waves on Euclidean space only approach."""
        return all(latent.spectral for latent in self.field.latents)

    def kl(self) -> Float[Array, ""]:
        """Return the divergence of the inducing variables from their prior."""
        return reduce(jnp.add, [block.kl() for block in self.blocks])

    def moments(self, x: Numbers) -> tuple[Float[Array, "N ..."], Float[Array, "N ..."]]:
        """Return mean and covariance of the values at each point: [N] and [N], or [N, P] and [N, P, P]."""
        x = check_points(self.field.space, x)
        return compiled(Variational._value_moments, self, x)

    def joint(self, x: Numbers) -> tuple[Float[Array, "n"], Float[Array, "n n"]]:
        """Return mean and covariance over all points, in the coordinates of `field.basis`: n = N q."""
        x = check_points(self.field.space, x)
        return compiled(Variational._joint, self, x)

    def coordinate_moments(
        self, x: Float[Array, "N D"], basis: Float[Array, "N P q"] | None = None
    ) -> tuple[Float[Array, "N q"], Float[Array, "N q q"]]:
        """Return mean and covariance of the coordinates at each point, in a basis or in the field's own."""
        latents = [_latent_moments(c, block) for c, block in zip(self.conditionals(x), self.blocks, strict=True)]
        mixing = self.field.mixing(x, basis)
        if mixing is None:
            (mean, covariance), n = latents[0], x.shape[0]
            eye = jnp.eye(mean.shape[-1], dtype=mean.dtype)
            full = jnp.einsum("npqr,rs->nprqs", covariance, eye)
            size = mean.shape[1] * mean.shape[2]
            return mean.reshape(n, size), full.reshape(n, size, size)
        means, covariances = [], []
        for mix, (mean, covariance) in zip(mixing, latents, strict=True):
            rows = jnp.moveaxis(mix, 1, -1)  # [N, p, r, q]
            n, p, r, q = rows.shape
            flat = rows.reshape(n, p * r, q)
            means.append(small_product(flat, mean.reshape(n, p * r, 1))[..., 0])
            half = reduce(jnp.add, [covariance[:, :, k, :, None] * rows[:, None, k] for k in range(p)])
            covariances.append(small_product(flat, half.reshape(n, p * r, q)))
        return reduce(jnp.add, means), reduce(jnp.add, covariances)

    def mean_and_spread(
        self, x: Float[Array, "N D"], basis: Float[Array, "N P q"] | None
    ) -> tuple[Float[Array, "N q"], Float[Array, "N"]]:
        """Return the mean of the coordinates and the sum of their variances, which is all that Gaussian noise needs."""
        mean, covariance = self.coordinate_moments(x, basis)
        return mean, jnp.trace(covariance, axis1=1, axis2=2)

    def sample_independently(self, x: Float[Array, "N D"], key: PRNGKeyArray) -> Float[Array, "N ..."]:
        """Draw the value at each point from its marginal law, independently of the other points."""
        keys = jax.random.split(key, len(self.blocks))
        values = []
        for conditional, block, own in zip(self.conditionals(x), self.blocks, keys, strict=True):
            mean, covariance = _latent_moments(conditional, block)
            normal = standard_normal(own, mean.shape, mean.dtype)
            root = square_root(jnp.moveaxis(covariance, -1, 1))
            values.append(mean + jnp.einsum("nrpq,nqr->npr", root, normal))
        return self.field.assemble(x, tuple(values))

    def _value_moments(self, x: Float[Array, "N D"]) -> tuple[Float[Array, "N ..."], Float[Array, "N ..."]]:
        mean, covariance = self.coordinate_moments(x)
        basis = self.field.basis(x)
        if self.field.value_shape() == ():
            return mean[:, 0], covariance[:, 0, 0]
        if basis is None:
            return mean, covariance
        return jnp.einsum("nPq,nq->nP", basis, mean), basis @ covariance @ jnp.swapaxes(basis, -1, -2)

    def _joint(self, x: Float[Array, "N D"]) -> tuple[Float[Array, "n"], Float[Array, "n n"]]:
        mixing = self.field.mixing(x, self.field.basis(x))
        means, covariances = [], []
        for i, (conditional, block, rest) in enumerate(
            zip(self.conditionals(x), self.blocks, self.joint_rest(x), strict=True)
        ):
            n, p, m = conditional.weights.shape
            half = jnp.einsum("npm,rmk->rnpk", conditional.weights, block.factor).reshape(-1, n * p, m)
            total = half @ jnp.swapaxes(half, -1, -2) + (0.0 if rest is None else rest)
            copies = jnp.arange(total.shape[0])
            full = jnp.zeros((n, p, copies.size, n, p, copies.size), x.dtype)
            full = full.at[:, :, copies, :, :, copies].set(total.reshape(-1, n, p, n, p))
            mean = jnp.einsum("npm,rm->npr", conditional.weights, block.mean)
            size = p * copies.size
            mix = jnp.broadcast_to(jnp.eye(size).reshape(size, p, -1), (n, size, p, copies.size))
            mix = (mix if mixing is None else mixing[i]).astype(x.dtype)
            means.append(jnp.einsum("nqpr,npr->nq", mix, mean))
            covariances.append(jnp.einsum("napr,nprlqs,lbqs->nalb", mix, full, mix))
        n = x.shape[0] * means[0].shape[1]
        return reduce(jnp.add, means).reshape(n), reduce(jnp.add, covariances).reshape(n, n)


def _latent_moments(
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
    return mean, covariance if conditional.rest is None else covariance + conditional.rest[..., None]
