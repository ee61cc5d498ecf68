"""Gaussian vector fields from scalar processes: projected, and in a frame."""

from abc import abstractmethod
from collections.abc import Sequence
from functools import reduce
from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import Numbers, compiled, small_product
from rdgp.fields._field import Field, FieldDraw, check_two
from rdgp.fields._latent import ScalarLatent
from rdgp.fields._prior import Kernel, ScalarDraw, ScalarPrior, scalar_prior
from rdgp.spaces import Product, Space, Sphere, east_north_frame


class TangentField(Field):
    """What Gaussian vector fields share: values are tangent vectors, coordinates are taken in the space's frame."""

    @abstractmethod
    def covariance_along(
        self,
        x: Float[Array, "N D"],
        y: Float[Array, "L D"],
        along_x: Float[Array, "N D p"],
        along_y: Float[Array, "L D q"],
    ) -> Float[Array, "N p L q"]:
        """Return the covariance of the components along given tangent vectors."""

    def covariance(self, x: Numbers, y: Numbers) -> Float[Array, "N D L D"]:
        """Return the covariance of the ambient vectors (singular across the tangent spaces)."""
        return compiled(type(self)._ambient_covariance, self, *check_two(self.space, x, y))

    def _ambient_covariance(self, x: Float[Array, "N D"], y: Float[Array, "L D"]) -> Float[Array, "N D L D"]:
        return self.covariance_along(x, y, self._projector(x), self._projector(y))

    def features(self, x: Numbers) -> Float[Array, "*N D M"]:
        """Evaluate the features, each a vector field."""
        return compiled(type(self)._features, self, self.space.check(x))

    @abstractmethod
    def _features(self, x: Float[Array, "*N D"]) -> Float[Array, "*N D M"]: ...

    def scales(self) -> Float[Array, "M"]:
        """Return the prior standard deviations of the features' coefficients."""
        return compiled(type(self)._scales, self)

    @abstractmethod
    def _scales(self) -> Float[Array, "M"]: ...

    def _projector(self, x: Float[Array, "N D"]) -> Float[Array, "N D D"]:
        return self.space.project(x[:, None, :], jnp.eye(x.shape[-1], dtype=x.dtype))

    def value_shape(self) -> tuple[int, ...]:
        """Values are ambient vectors."""
        return (self.space.ambient_dim,)

    def basis(self, x: Float[Array, "N D"]) -> Float[Array, "N D d"]:
        """Return the frame of the space."""
        return self.space.frame(x)

    def coordinate_covariance(self, x: Float[Array, "N D"], y: Float[Array, "L D"]) -> Float[Array, "N p L p"]:
        """Return the covariance of the components in the frame."""
        return self.covariance_along(x, y, self.basis(x), self.basis(y))

    def design(self, x: Float[Array, "N D"], basis: Float[Array, "N D q"] | None) -> Float[Array, "N q m"]:
        """Evaluate the components of the features, scaled."""
        components = small_product(self.basis(x) if basis is None else basis, self._features(x))
        return components * self._scales().astype(x.dtype)

    def gram(
        self,
        x: Float[Array, "N D"],
        y: Float[Array, "L D"],
        basis_x: Float[Array, "N D q"] | None,
        basis_y: Float[Array, "L D q"] | None,
    ) -> Float[Array, "N q L q"]:
        """Return the covariance of the components."""
        basis_x = self.basis(x) if basis_x is None else basis_x
        return self.covariance_along(x, y, basis_x, self.basis(y) if basis_y is None else basis_y)

    def coordinates(self, x: Float[Array, "N D"], values: Float[Array, "N D"]) -> Float[Array, "N d 1"]:
        """Return the components in the frame; a normal component of the values is dropped."""
        return jnp.einsum("npd,np->nd", self.basis(x), values)[:, :, None]


class ProjectedField(TangentField):
    """The projection g(x) = P_x h(x) of an ambient Gaussian process with independent coordinates.

    Each kernel variance is the variance per tangent direction: E|g|² = d σ².
    """

    space: Space
    priors: tuple[ScalarPrior, ...]  # one for each factor of a product, else one

    def __init__(
        self, space: Space, kernel: Kernel | Sequence[Kernel], levels: int | Sequence[int] | None = None
    ) -> None:
        self.space = space
        self.priors = tuple(scalar_prior(space, kernel, levels, f) for f in range(len(_blocks(space))))

    def _features(self, x: Float[Array, "*N D"]) -> Float[Array, "*N D M"]:
        """Evaluate P_x e_i φ_j(x), coordinate i by coordinate."""
        columns = self.space.project(x[..., None, :], jnp.eye(x.shape[-1], dtype=x.dtype))  # rows i: P_x e_i
        blocks = [
            (columns[..., i, :, None] * prior.features(x)[..., None, :])
            for part, prior in zip(_blocks(self.space), self.priors, strict=True)
            for i in range(part.start, part.stop)
        ]
        return jnp.concatenate(blocks, axis=-1)

    def _scales(self) -> Float[Array, "M"]:
        parts = zip(_blocks(self.space), self.priors, strict=True)
        return jnp.concatenate([jnp.tile(prior.scales(), part.stop - part.start) for part, prior in parts])

    def covariance_along(
        self,
        x: Float[Array, "N D"],
        y: Float[Array, "L D"],
        along_x: Float[Array, "N D p"],
        along_y: Float[Array, "L D q"],
    ) -> Float[Array, "N p L q"]:
        """Return sum over blocks of coordinates of k(x, y) a·b."""
        terms = [
            prior.covariance(x, y)[:, None, :, None] * jnp.einsum("ndp,ldq->nplq", along_x[:, part], along_y[:, part])
            for part, prior in zip(_blocks(self.space), self.priors, strict=True)
        ]
        return reduce(jnp.add, terms)

    @property
    def latents(self) -> tuple[ScalarLatent, ...]:
        """One copy for each ambient coordinate."""
        pairs = zip(_blocks(self.space), self.priors, strict=True)
        return tuple(ScalarLatent(prior, part.stop - part.start) for part, prior in pairs)

    def assemble(self, x: Float[Array, "N D"], latents: tuple[Float[Array, "N 1 r"], ...]) -> Float[Array, "N D"]:
        """Project the ambient vectors."""
        return self.space.project(x, jnp.concatenate([latent[:, 0, :] for latent in latents], axis=-1))

    def mixing(
        self, x: Float[Array, "N D"], basis: Float[Array, "N D q"] | None
    ) -> tuple[Float[Array, "N q 1 r"], ...]:
        """Return the components of the unit vectors in the basis."""
        basis = self.basis(x) if basis is None else basis
        rows = jnp.swapaxes(basis, -1, -2)[:, :, None, :]
        return tuple(rows[..., part] for part in _blocks(self.space))

    def sample(self, *, key: PRNGKeyArray) -> FieldDraw:
        """Draw a vector field x [N, D] -> [N, D]."""
        keys = jax.random.split(key, len(self.priors))
        parts = zip(_blocks(self.space), self.priors, keys, strict=True)
        draws = tuple(prior.draw(part.stop - part.start, key=k) for part, prior, k in parts)
        return _ProjectedDraw(self.space, draws)


def _blocks(space: Space) -> tuple[slice, ...]:
    return space.slices if isinstance(space, Product) else (slice(0, space.ambient_dim),)


class _ProjectedDraw(eqx.Module):
    space: Space
    draws: tuple[ScalarDraw, ...]

    @eqx.filter_jit
    def __call__(self, x: Float[Array, "*N D"]) -> Float[Array, "*N D"]:
        return self.space.project(x, jnp.concatenate([draw(x) for draw in self.draws], axis=-1))


class FrameField(TangentField):
    """The combination g(x) = sum_i h_i(x) e_i(x) of a frame with independent scalar processes as coefficients.

    `frame` is "default", the frame of the space, or "east_north" on Sphere(2). The variance is that per direction.
    """

    space: Space
    prior: ScalarPrior
    frame: Literal["default", "east_north"] = eqx.field(static=True)

    def __init__(
        self,
        space: Space,
        kernel: Kernel | Sequence[Kernel],
        levels: int | Sequence[int] | None = None,
        frame: Literal["default", "east_north"] = "default",
    ) -> None:
        if frame not in ("default", "east_north") or (frame == "east_north" and space != Sphere(2)):
            raise ValueError(f'frame must be "default", or "east_north" on Sphere(2); got {frame!r} on {space}')
        self.space, self.frame = space, frame
        self.prior = scalar_prior(space, kernel, levels)

    def _features(self, x: Float[Array, "*N D"]) -> Float[Array, "*N D M"]:
        """Evaluate e_i(x) φ_j(x), direction i by direction."""
        products = self.basis(x)[..., None] * self.prior.features(x)[..., None, None, :]  # [..., D, d, M]
        return products.reshape(*x.shape, -1)

    def _scales(self) -> Float[Array, "M"]:
        return jnp.tile(self.prior.scales(), self.space.dim)

    def basis(self, x: Float[Array, "*N D"]) -> Float[Array, "*N D d"]:
        """Return the frame of the field."""
        return east_north_frame(x) if self.frame == "east_north" else self.space.frame(x)

    def covariance_along(
        self,
        x: Float[Array, "N D"],
        y: Float[Array, "L D"],
        along_x: Float[Array, "N D p"],
        along_y: Float[Array, "L D q"],
    ) -> Float[Array, "N p L q"]:
        """Return k(x, y) sum_i <e_i(x), a> <e_i(y), b>."""
        left = jnp.einsum("ndi,ndp->npi", self.basis(x), along_x)
        right = jnp.einsum("ldi,ldq->lqi", self.basis(y), along_y)
        return self.prior.covariance(x, y)[:, None, :, None] * jnp.einsum("npi,lqi->nplq", left, right)

    def coordinate_covariance(self, x: Float[Array, "N D"], y: Float[Array, "L D"]) -> Float[Array, "N 1 L 1"]:
        """Return the kernel, one for all directions of the frame."""
        return self.prior.covariance(x, y)[:, None, :, None]

    def design(self, x: Float[Array, "N D"], basis: Float[Array, "N D q"] | None) -> Float[Array, "N p m"]:
        """Evaluate the features, scaled; in the field's own frame of one number, as the directions are copies."""
        if basis is not None:
            return super().design(x, basis)
        return self.prior.design(x)

    def gram(
        self,
        x: Float[Array, "N D"],
        y: Float[Array, "L D"],
        basis_x: Float[Array, "N D q"] | None,
        basis_y: Float[Array, "L D q"] | None,
    ) -> Float[Array, "N p L p"]:
        """Return the covariance; in the field's own frame the kernel, as the directions are copies."""
        own = basis_x is None and basis_y is None
        return self.coordinate_covariance(x, y) if own else super().gram(x, y, basis_x, basis_y)

    def coordinates(self, x: Float[Array, "N D"], values: Float[Array, "N D"]) -> Float[Array, "N 1 d"]:
        """Return the components in the frame, which are independent copies."""
        return jnp.einsum("npd,np->nd", self.basis(x), values)[:, None, :]

    @property
    def latents(self) -> tuple[ScalarLatent]:
        """One copy for each direction."""
        return (ScalarLatent(self.prior, self.space.dim),)

    def assemble(self, x: Float[Array, "N D"], latents: tuple[Float[Array, "N 1 d"], ...]) -> Float[Array, "N D"]:
        """Combine the directions."""
        return jnp.sum(self.basis(x) * latents[0], axis=-1)

    def mixing(
        self, x: Float[Array, "N D"], basis: Float[Array, "N D q"] | None
    ) -> tuple[Float[Array, "N q 1 d"]] | None:
        """Return the components of the frame in the basis."""
        return None if basis is None else (small_product(basis, self.basis(x))[:, :, None, :],)

    def sample(self, *, key: PRNGKeyArray) -> FieldDraw:
        """Draw a vector field x [N, D] -> [N, D]."""
        return _FrameDraw(self, self.prior.draw(self.space.dim, key=key))


class _FrameDraw(eqx.Module):
    field: FrameField
    draw: ScalarDraw

    @eqx.filter_jit
    def __call__(self, x: Float[Array, "*N D"]) -> Float[Array, "*N D"]:
        return jnp.sum(self.field.basis(x) * self.draw(x)[..., None, :], axis=-1)
