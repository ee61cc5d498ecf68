"""The contract of a Gaussian field: features times scales."""

from abc import abstractmethod
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import Numbers, as_float_array, check_finite, check_size
from rdgp.fields._latent import Latent
from rdgp.spaces import Space

FieldDraw = Callable[[Float[Array, "*N D"]], Float[Array, "..."]]


class Field(eqx.Module):
    """A zero-mean Gaussian prior over functions or vector fields on a space.

    For inference every field offers its values in coordinates [N, p, r]: p correlated numbers at a point, r independent
    copies that share one covariance.
    """

    space: eqx.AbstractVar[Space]

    @abstractmethod
    def features(self, x: Numbers) -> Float[Array, "..."]:
        """Evaluate the features: [N, M] scalar, [N, P, M] stacked, [N, D, M] tangent."""

    @abstractmethod
    def scales(self) -> Float[Array, "M"]:
        """Return the prior standard deviations of the features' coefficients."""

    @abstractmethod
    def covariance(self, x: Numbers, y: Numbers) -> Float[Array, "..."]:
        """Return the covariance of values at x and y: [N, L], or [N, P, L, P]."""

    @abstractmethod
    def sample(self, *, key: PRNGKeyArray) -> FieldDraw:
        """Draw one function from the prior."""

    @abstractmethod
    def value_shape(self) -> tuple[int, ...]:
        """Return the shape of one value: (), (P,) or (D,)."""

    @abstractmethod
    def basis(self, x: Float[Array, "N D"]) -> Float[Array, "N P q"] | None:
        """Return the orthonormal basis in which coordinates are taken at each point; None if values are coordinates."""

    @abstractmethod
    def coordinate_covariance(self, x: Float[Array, "N D"], y: Float[Array, "L D"]) -> Float[Array, "N p L p"]:
        """Return the covariance of the p correlated coordinates."""

    @abstractmethod
    def coordinates(self, x: Float[Array, "N D"], values: Float[Array, "N ..."]) -> Float[Array, "N p r"]:
        """Turn values at points into coordinates."""

    @abstractmethod
    def design(self, x: Float[Array, "N D"], basis: Float[Array, "N P q"] | None) -> Float[Array, "N p m"]:
        """Evaluate features times scales of the p correlated coordinates; tangent fields take a basis, or their own."""

    def gram(
        self,
        x: Float[Array, "N D"],
        y: Float[Array, "L D"],
        basis_x: Float[Array, "N P q"] | None,
        basis_y: Float[Array, "L P q"] | None,
    ) -> Float[Array, "N p L p"]:
        """Return the covariance of the p correlated coordinates: of tangent fields in given bases, or in their own."""
        return self.coordinate_covariance(x, y)

    @property
    @abstractmethod
    def latents(self) -> tuple[Latent, ...]:
        """The independent processes of which the field is a linear image."""

    @abstractmethod
    def assemble(self, x: Float[Array, "N D"], latents: tuple[Float[Array, "N p r"], ...]) -> Float[Array, "N ..."]:
        """Turn values of the independent processes into values of the field."""

    def mixing(
        self, x: Float[Array, "N D"], basis: Float[Array, "N P q"] | None
    ) -> tuple[Float[Array, "N q p r"], ...] | None:
        """Return the matrices that turn values of the processes into coordinates in a basis; None for the identity."""
        return None

    def evaluate(
        self,
        carriers: tuple[Float[Array, "..."], ...],
        x: Float[Array, "N D"],
        weights: tuple[Float[Array, "r m"], ...],
    ) -> Float[Array, "N ..."]:
        """Evaluate the function with given whitened weights; carriers come from `carriers(x)`."""
        triples = zip(self.latents, carriers, weights, strict=True)
        return self.assemble(x, tuple(latent.evaluate(carrier, x, w) for latent, carrier, w in triples))

    def carriers(self, x: Float[Array, "N D"]) -> tuple[Float[Array, "..."], ...]:
        """Evaluate what `evaluate` needs of the points alone."""
        return tuple(latent.carriers(x) for latent in self.latents)

    def squares(self, x: Float[Array, "N D"], factors: tuple[Float[Array, "r m m"], ...]) -> Float[Array, "N"] | None:
        """Return the total variance of values whose whitened weights have given factors, if there is a short way."""
        return None

    def variance_along(self, x: Float[Array, "N D"], basis: Float[Array, "N P q"] | None) -> Float[Array, "N p p"]:
        """Return the covariance of the p correlated coordinates at each point alone."""

        def at(point: Float[Array, "D"], own: Float[Array, "P q"] | None) -> Float[Array, "p p"]:
            frame = None if own is None else own[None]
            return self.gram(point[None], point[None], frame, frame)[0, :, 0, :]

        return jax.vmap(at)(x, basis)

    def check_values(self, x: Float[Array, "N D"], values: Numbers, name: str = "y") -> Float[Array, "N ..."]:
        """Return values as an array, or raise a ValueError that says what is wrong with them."""
        return check_values(x, values, self.value_shape(), name)


def check_values(x: Float[Array, "N D"], values: Numbers, shape: tuple[int, ...], name: str) -> Float[Array, "N ..."]:
    """Return values of a shape at each point as an array of the points' dtype, or raise."""
    values = as_float_array(values, name)
    if values.shape != (*x.shape[:-1], *shape):
        raise ValueError(
            f"{name} must have shape {(*x.shape[:-1], *shape)} for {x.shape[0]} points, got {values.shape}"
        )
    check_finite(values, name)
    check_size(values, x.dtype, name)
    return values.astype(x.dtype)


def check_points(space: Space, x: Numbers, name: str = "x") -> Float[Array, "N D"]:
    """Return points as an array [N, D], or raise."""
    x = space.check(x, name)
    if x.ndim != 2:
        raise ValueError(f"{name} must be a list of points [N, {space.ambient_dim}], got shape {x.shape}")
    return x


def check_two(space: Space, x: Numbers, y: Numbers) -> tuple[Float[Array, "N D"], Float[Array, "L D"]]:
    """Return two lists of points in one dtype, or raise."""
    x, y = check_points(space, x), check_points(space, y, "y")
    dtype = jnp.promote_types(x.dtype, y.dtype)
    return x.astype(dtype), y.astype(dtype)
