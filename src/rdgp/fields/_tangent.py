"""Gaussian vector fields from scalar processes: projected, and in a frame."""

from collections.abc import Sequence
from functools import reduce

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rdgp.core import register
from rdgp.fields._bundle import TangentBundle
from rdgp.fields._components import Levels
from rdgp.fields._field import Field
from rdgp.fields._frames import TangentFrame, embed, restrict
from rdgp.fields._prior import ScalarPrior, scalar_prior
from rdgp.fields._process import ScalarProcess
from rdgp.fields._scalar import CopiesField
from rdgp.kernels import Kernel
from rdgp.spaces import Space


@register("rdgp:ProjectedField")
class ProjectedField(Field):
    """The projection g(x) = P_x h(x) of an ambient Gaussian process with independent coordinates.

    Each kernel variance is the variance per tangent direction: E|g|² = d σ². On a product `factors` are the numbers of
    those that the vectors are tangent to, all by default.
    """

    space: Space
    _bundle: TangentBundle
    priors: tuple[ScalarPrior, ...]  # one for each factor that values are tangent to

    def __init__(
        self,
        space: Space,
        kernel: Kernel | Sequence[Kernel],
        num_levels: Levels = None,
        *,
        factors: Sequence[int] | None = None,
    ) -> None:
        self.space, self._bundle = space, TangentBundle(space, factors)
        self.priors = tuple(scalar_prior(space, kernel, num_levels, factor) for factor in self.bundle.factors)

    def details(self) -> tuple[str, ...]:
        """Return the kernels, one where all factors share it, and which factors vectors are tangent to."""
        kernels = tuple(dict.fromkeys(map(repr, self.priors)))
        return (*kernels, *self.bundle.details())

    @property
    def bundle(self) -> TangentBundle:
        """Vectors tangent to the chosen factors."""
        return self._bundle

    @property
    def processes(self) -> tuple[ScalarProcess, ...]:
        """One copy for each ambient coordinate."""
        return tuple(ScalarProcess(prior, part.stop - part.start) for part, prior in self._blocks())

    @property
    def variance(self) -> Float[Array, ""]:
        """Mean variance of a tangent direction."""
        return jnp.mean(jnp.stack([prior.variance_parameter for prior in self.priors]))

    def with_scale_of(self, x: Float[np.ndarray, "N D"], mean_square: float) -> "ProjectedField":
        """Return the field with a variance of each direction, and with lengthscales that fit the data's units."""
        priors = tuple(prior.with_lengthscales_of(x).with_variance(mean_square) for prior in self.priors)
        return eqx.tree_at(lambda field: field.priors, self, priors)

    def with_lengthscales_of(self, x: Float[np.ndarray, "N D"]) -> "ProjectedField":
        """Return the field with lengthscales that fit the data's units."""
        priors = tuple(prior.with_lengthscales_of(x) for prior in self.priors)
        return eqx.tree_at(lambda field: field.priors, self, priors)

    def mixing(self, x: Float[Array, "N D"], frame: TangentFrame) -> tuple[Float[Array, "N q 1 _"], ...]:
        """Return the components of the unit vectors of the ambient space."""
        rows = jnp.swapaxes(frame.rows, -1, -2)[:, :, None, :]
        return tuple(rows[..., part] for part, _ in self._blocks())

    def joint_gram(
        self, x: Float[Array, "N D"], y: Float[Array, "L D"], frame_x: TangentFrame, frame_y: TangentFrame
    ) -> Float[Array, "N q L q"]:
        """Return the sum over factors of k(x, y) a·b."""
        terms = [
            prior.covariance(x, y)[:, None, :, None]
            * jnp.einsum("ndp,ldq->nplq", frame_x.rows[:, part], frame_y.rows[:, part])
            for part, prior in self._blocks()
        ]
        return reduce(jnp.add, terms)

    def assemble(self, x: Float[Array, "N D"], values: tuple[Float[Array, "N 1 _"], ...]) -> Float[Array, "N V"]:
        """Project the ambient vectors."""
        ambient = jnp.concatenate([value[:, 0, :] for value in values], axis=-1)
        factors = self.bundle.factors
        return restrict(self.space, factors, self.space.project(x, embed(self.space, factors, ambient)))

    def _blocks(self) -> list[tuple[slice, ScalarPrior]]:
        """Return where the coordinates of each factor stand in a value, with the prior of each."""
        sizes = [self.space.factors[factor].ambient_dim for factor in self.bundle.factors]
        ends = np.cumsum(sizes)
        blocks = [slice(int(end) - size, int(end)) for end, size in zip(ends, sizes, strict=True)]
        return list(zip(blocks, self.priors, strict=True))


@register("rdgp:FrameField")
class FrameField(CopiesField):
    """The combination g(x) = sum_i h_i(x) e_i(x) of a frame with independent scalar processes as coefficients.

    `frame` is one of `space.frame_names`: "default", or "east_north" on Sphere(2). On a product `factors` are the
    numbers of those that the vectors are tangent to. The variance is that per direction.
    """

    space: Space
    _bundle: TangentBundle
    prior: ScalarPrior

    def __init__(
        self,
        space: Space,
        kernel: Kernel | Sequence[Kernel],
        num_levels: Levels = None,
        frame: str = "default",
        *,
        factors: Sequence[int] | None = None,
    ) -> None:
        self.space, self._bundle = space, TangentBundle(space, factors, frame=frame)
        _check_frame(self.bundle)
        self.prior = scalar_prior(space, kernel, num_levels)

    def details(self) -> tuple[str, ...]:
        """Return the kernel, which factors vectors are tangent to, and the frame."""
        return (*super().details(), *self.bundle.details())

    @property
    def bundle(self) -> TangentBundle:
        """Vectors tangent to the chosen factors, in the frame of the field."""
        return self._bundle

    @property
    def degree(self) -> None:
        """None: frames are no polynomials."""
        return None

    def copies_frame(self, x: Float[Array, "N D"]) -> TangentFrame:
        """Return the field's own frame."""
        return self.bundle.frame(x)


def _check_frame(bundle: TangentBundle) -> None:
    """Raise unless the frame at each vector of a point is the same frame of the space."""
    space = bundle.space
    with jax.ensure_compile_time_eval():
        x = space.random(4, key=jax.random.key(0))
        here = bundle.frame(x).columns
        for matrix in space.identifications[1:]:
            same = jnp.asarray(matrix, x.dtype)
            there = bundle.frame(x @ same.T).columns
            carried = restrict(space, bundle.factors, jnp.einsum("ab,nbq->naq", same, _whole(bundle, here)), axis=-2)
            if not bool(jnp.allclose(there, carried, atol=1e-4)):
                raise ValueError(
                    f"the frame of {space} differs between vectors of one point, so a FrameField has no meaning there; "
                    "use ProjectedField"
                )


def _whole(bundle: TangentBundle, columns: Float[Array, "N V q"]) -> Float[Array, "N D q"]:
    return embed(bundle.space, bundle.factors, columns, axis=-2)
