"""Observations that are points of a manifold: a Gaussian in the tangent space, wrapped onto the space."""

from collections.abc import Collection, Mapping
from functools import singledispatch

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import Numbers, Parameter, Prior, angle_over_sine, standard_normal
from rdgp.likelihoods._likelihood import single_numbers
from rdgp.spaces import Euclidean, Product, Rotations, Space, Sphere, Torus


class WrappedGaussian(eqx.Module):
    """Observations y = exp_f(v), v ~ N(0, τ² I) in the tangent space at the point f.

    Of all v that lead to y the density counts the shortest, so it integrates to one while τ is well below the
    injectivity radius. On S_d, d >= 2, it is unbounded at the antipode of f, as any wrapped density is on one sheet.
    The variance is learned unless in `fixed`; `prior` gives it a prior density, as for kernels.
    """

    space: Space
    _variance: Parameter

    def __init__(
        self,
        space: Space,
        variance: float = 0.1,
        *,
        fixed: Collection[str] = (),
        prior: Mapping[str, Prior] | None = None,
    ) -> None:
        point = jax.ShapeDtypeStruct((space.ambient_dim,), float)
        jax.eval_shape(lambda x: log_volume_correction(space, x, x), point)
        self.space = space
        (self._variance,) = single_numbers({"variance": variance}, fixed, prior)

    @property
    def variance(self) -> Float[Array, ""]:
        """Variance τ² in each tangent direction."""
        return self._variance.value

    def log_density(self, y: Float[Array, "N D"], f: Float[Array, "*S N D"]) -> Float[Array, "*S N"]:
        """Return log p(y | f) with respect to the volume of the space.

        log N(θ) = -θ²/(2 τ²) - d/2 log(2π τ²) at θ = distance(f, y), plus what exp does to volumes.
        """
        y, variance = y.astype(f.dtype), self.variance.astype(f.dtype)
        squared = jnp.square(self.space.distance(f, y))
        log_normal = -0.5 * (squared / variance + self.space.dim * jnp.log(2.0 * jnp.pi * variance))
        return log_normal + log_volume_correction(self.space, f, y)

    def sample(self, f: Float[Array, "*S N D"], *, key: PRNGKeyArray) -> Float[Array, "*S N D"]:
        """Draw an observation of each point."""
        frame = self.space.frame(f)
        normal = standard_normal(key, (*f.shape[:-1], self.space.dim), f.dtype)
        return self.space.exp(
            f, jnp.sqrt(self.variance).astype(f.dtype) * jnp.einsum("...pd,...d->...p", frame, normal)
        )

    def check(self, y: Numbers) -> Float[Array, "N D"]:
        """Return observations as an array of points, or raise a ValueError if some are not on the space."""
        return self.space.check(y, "y")


@singledispatch
def log_volume_correction(space: Space, x: Float[Array, "*#N D"], y: Float[Array, "*#N D"]) -> Float[Array, "*#N"]:
    """Return minus the log determinant of the derivative of exp_x at log_x(y)."""
    raise ValueError(
        f"{space} has no wrapped Gaussian; use spheres, tori, rotations, Euclidean space or their products"
    )


@log_volume_correction.register
def _(space: Sphere, x: Float[Array, "*#N D"], y: Float[Array, "*#N D"]) -> Float[Array, "*#N"]:
    cosine, sine_squared = _cosine_and_squared_sine(x, y)
    return (space.d - 1) * jnp.log(angle_over_sine(cosine, sine_squared))


@log_volume_correction.register
def _(space: Rotations, x: Float[Array, "*#N D"], y: Float[Array, "*#N D"]) -> Float[Array, "*#N"]:
    cosine, sine_squared = _cosine_and_squared_sine(x, y)
    return 2.0 * jnp.log(angle_over_sine(jnp.abs(cosine), sine_squared))


@log_volume_correction.register(Torus)
@log_volume_correction.register(Euclidean)
def _(space: Torus | Euclidean, x: Float[Array, "*#N D"], y: Float[Array, "*#N D"]) -> Float[Array, "*#N"]:
    return jnp.zeros_like(x[..., 0] + y[..., 0])


@log_volume_correction.register
def _(space: Product, x: Float[Array, "*#N D"], y: Float[Array, "*#N D"]) -> Float[Array, "*#N"]:
    parts = zip(space.factors, space.split(x), space.split(y), strict=True)
    return jnp.sum(jnp.stack([log_volume_correction(*part) for part in parts]), axis=0)


def _cosine_and_squared_sine(
    x: Float[Array, "*#N D"], y: Float[Array, "*#N D"]
) -> tuple[Float[Array, "*#N"], Float[Array, "*#N"]]:
    cosine = jnp.sum(x * y, axis=-1)
    return cosine, jnp.sum(jnp.square(y - cosine[..., None] * x), axis=-1)
