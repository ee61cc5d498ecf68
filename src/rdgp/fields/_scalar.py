"""Scalar fields and stacks of independent ones."""

from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import Numbers, check_count, compiled
from rdgp.fields._field import Field, FieldDraw, check_two
from rdgp.fields._latent import ScalarLatent
from rdgp.fields._prior import Kernel, ScalarDraw, ScalarPrior, scalar_prior
from rdgp.spaces import Space


class ScalarField(Field):
    """A scalar Gaussian process f: X -> R.

    `levels` counts the eigenvalues kept, zero included. On a product one kernel serves all factors, or a tuple of
    kernels gives each factor its own.
    """

    space: Space
    prior: ScalarPrior

    def __init__(
        self, space: Space, kernel: Kernel | Sequence[Kernel], levels: int | Sequence[int] | None = None
    ) -> None:
        self.space = space
        self.prior = scalar_prior(space, kernel, levels)

    def features(self, x: Numbers) -> Float[Array, "*N M"]:
        """Evaluate the eigenfunctions."""
        return compiled(ScalarPrior.features, self.prior, self.space.check(x))

    def scales(self) -> Float[Array, "M"]:
        """Return the prior standard deviations of the coefficients."""
        return compiled(ScalarPrior.scales, self.prior)

    def covariance(self, x: Numbers, y: Numbers) -> Float[Array, "N L"]:
        """Return the kernel for all pairs of points."""
        return compiled(ScalarPrior.covariance, self.prior, *check_two(self.space, x, y))

    def sample(self, *, key: PRNGKeyArray) -> FieldDraw:
        """Draw a function x [N, D] -> [N]."""
        return _OneFunction(self.prior.draw(1, key=key))

    def value_shape(self) -> tuple[int, ...]:
        """Values are single numbers."""
        return ()

    def basis(self, x: Float[Array, "N D"]) -> None:
        """Values are coordinates."""
        return

    def coordinate_covariance(self, x: Float[Array, "N D"], y: Float[Array, "L D"]) -> Float[Array, "N 1 L 1"]:
        """Return the kernel."""
        return self.prior.covariance(x, y)[:, None, :, None]

    def coordinates(self, x: Float[Array, "N D"], values: Float[Array, "N"]) -> Float[Array, "N 1 1"]:
        """Add the axes of one correlated and one independent number."""
        return values[:, None, None]

    def design(self, x: Float[Array, "N D"], basis: Float[Array, "N P q"] | None) -> Float[Array, "N 1 m"]:
        """Evaluate the eigenfunctions, scaled."""
        return self.prior.design(x)

    @property
    def latents(self) -> tuple[ScalarLatent]:
        """The process itself."""
        return (ScalarLatent(self.prior, 1),)

    def assemble(self, x: Float[Array, "N D"], latents: tuple[Float[Array, "N 1 1"], ...]) -> Float[Array, "N"]:
        """Drop the axes of one correlated and one independent number."""
        return latents[0][:, 0, 0]


class StackedField(Field):
    """Independent scalar Gaussian processes with one kernel, f: X -> R^P."""

    space: Space
    prior: ScalarPrior
    outputs: int = eqx.field(static=True)

    def __init__(
        self,
        space: Space,
        kernel: Kernel | Sequence[Kernel],
        levels: int | Sequence[int] | None = None,
        *,
        outputs: int,
    ) -> None:
        self.space = space
        self.outputs = check_count(outputs, "outputs")
        self.prior = scalar_prior(space, kernel, levels)

    def features(self, x: Numbers) -> Float[Array, "*N P M"]:
        """Evaluate the eigenfunctions, output by output."""
        return compiled(type(self)._features, self, self.space.check(x))

    def _features(self, x: Float[Array, "*N D"]) -> Float[Array, "*N P M"]:
        scalar = self.prior.features(x)
        blocks = jnp.eye(self.outputs, dtype=scalar.dtype)[:, :, None] * scalar[..., None, None, :]
        return blocks.reshape(*scalar.shape[:-1], self.outputs, -1)

    def scales(self) -> Float[Array, "M"]:
        """Return the prior standard deviations of the coefficients."""
        return jnp.tile(compiled(ScalarPrior.scales, self.prior), self.outputs)

    def covariance(self, x: Numbers, y: Numbers) -> Float[Array, "N P L P"]:
        """Return the covariance, block-diagonal in the outputs."""
        kernel = compiled(ScalarPrior.covariance, self.prior, *check_two(self.space, x, y))
        return kernel[:, None, :, None] * jnp.eye(self.outputs, dtype=kernel.dtype)[:, None, :]

    def sample(self, *, key: PRNGKeyArray) -> ScalarDraw:
        """Draw a function x [N, D] -> [N, P]."""
        return self.prior.draw(self.outputs, key=key)

    def value_shape(self) -> tuple[int, ...]:
        """Values are P numbers."""
        return (self.outputs,)

    def basis(self, x: Float[Array, "N D"]) -> None:
        """Values are coordinates."""
        return

    def coordinate_covariance(self, x: Float[Array, "N D"], y: Float[Array, "L D"]) -> Float[Array, "N 1 L 1"]:
        """Return the kernel, one for all outputs."""
        return self.prior.covariance(x, y)[:, None, :, None]

    def coordinates(self, x: Float[Array, "N D"], values: Float[Array, "N P"]) -> Float[Array, "N 1 P"]:
        """Treat the outputs as independent copies."""
        return values[:, None, :]

    def design(self, x: Float[Array, "N D"], basis: Float[Array, "N P q"] | None) -> Float[Array, "N 1 m"]:
        """Evaluate the eigenfunctions, scaled."""
        return self.prior.design(x)

    @property
    def latents(self) -> tuple[ScalarLatent]:
        """One copy for each output."""
        return (ScalarLatent(self.prior, self.outputs),)

    def assemble(self, x: Float[Array, "N D"], latents: tuple[Float[Array, "N 1 P"], ...]) -> Float[Array, "N P"]:
        """Drop the axis of one correlated number."""
        return latents[0][:, 0, :]


class _OneFunction(eqx.Module):
    draw: ScalarDraw

    def __call__(self, x: Float[Array, "*N D"]) -> Float[Array, "*N"]:
        return self.draw(x)[..., 0]
