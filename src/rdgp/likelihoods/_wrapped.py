"""Observations that are points of a manifold: a Gaussian in the tangent space, wrapped onto the space."""

from collections.abc import Collection, Mapping

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import Numbers, Parameter, Prior, register, standard_normal
from rdgp.likelihoods._likelihood import ObservationModel, single_numbers
from rdgp.spaces import Space


@register("rdgp:WrappedGaussian")
class WrappedGaussian(ObservationModel):
    """Observations y = exp_f(v), v ~ N(0, τ² I) in the tangent space at the point f.

    Of all v that lead to y the density counts the shortest, so it integrates to one while τ is well below the
    injectivity radius. On S_d, d >= 2, it is unbounded at the antipode of f, as any wrapped density is on one sheet.
    The variance is learned unless in `fixed`; `prior` gives it a prior density, as for kernels.
    """

    space: Space
    parameters: dict[str, Parameter]

    def __init__(
        self,
        space: Space,
        variance: float = 0.1,
        *,
        fixed: Collection[str] = (),
        prior: Mapping[str, Prior] | None = None,
    ) -> None:
        if space.has_boundary:
            raise ValueError(f"{space} has a boundary, so no wrapped Gaussian; use a space without one")
        self.space = space
        self.parameters = single_numbers({"variance": variance}, fixed, prior)

    @property
    def variance(self) -> Float[Array, ""]:
        """Variance τ² in each tangent direction."""
        return self.parameters["variance"].value

    def log_density(self, y: Float[Array, "N D"], f: Float[Array, "*S N D"]) -> Float[Array, "*S N"]:
        """Return log p(y | f) with respect to the volume of the space.

        log N(θ) = -θ²/(2 τ²) - d/2 log(2π τ²) at θ = distance(f, y), minus what exp does to volumes.
        """
        y, variance = y.astype(f.dtype), self.variance.astype(f.dtype)
        squared = jnp.square(self.space.distance(f, y))
        log_normal = -0.5 * (squared / variance + self.space.dim * jnp.log(2.0 * jnp.pi * variance))
        return log_normal - self.space.log_volume_ratio(f, y)

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
