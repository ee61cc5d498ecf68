"""Scalar fields and stacks of independent ones."""

from abc import abstractmethod
from collections.abc import Sequence

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rdgp.core import check_count, register
from rdgp.fields._bundle import NumberBundle
from rdgp.fields._components import Levels
from rdgp.fields._field import Field, Weights
from rdgp.fields._frames import Frame
from rdgp.fields._prior import ScalarPrior, scalar_prior
from rdgp.fields._process import ScalarProcess
from rdgp.kernels import Kernel
from rdgp.spaces import Space


class CopiesField(Field):
    """A field whose coordinates, in a frame of its own, are independent copies of one scalar process."""

    prior: eqx.AbstractVar[ScalarPrior]

    @abstractmethod
    def copies_frame(self, x: Float[Array, "N D"]) -> Frame:
        """Return the frame in which the copies are the coordinates."""

    @property
    def processes(self) -> tuple[ScalarProcess]:
        """One copy for each coordinate."""
        return (ScalarProcess(self.prior, self.bundle.rank),)

    @property
    def num_columns(self) -> int:
        """Number of features of one copy."""
        return self.processes[0].num_features

    @property
    def width(self) -> int:
        """One: coordinates are independent."""
        return 1

    @property
    def is_one_process(self) -> bool:
        """True."""
        return True

    @property
    def variance(self) -> Float[Array, ""]:
        """Variance of a coordinate."""
        return self.prior.variance_parameter

    def details(self) -> tuple[str, ...]:
        """Return the kernel."""
        return (repr(self.prior),)

    def with_scale_of(self, x: Float[np.ndarray, "N D"], mean_square: float) -> "CopiesField":
        """Return the field with a variance, and with lengthscales that fit the data's units."""
        prior = self.prior.with_lengthscales_of(x).with_variance(mean_square)
        return eqx.tree_at(lambda field: field.prior, self, prior)

    def with_lengthscales_of(self, x: Float[np.ndarray, "N D"]) -> "CopiesField":
        """Return the field with lengthscales that fit the data's units."""
        return eqx.tree_at(lambda field: field.prior, self, self.prior.with_lengthscales_of(x))

    def split(
        self, x: Float[Array, "N D"], frame: Frame, coordinates: Float[Array, "*S N q"]
    ) -> Float[Array, "*S N 1 r"]:
        """Take the coordinates in the field's own frame as copies."""
        return self.copies_frame(x).components(frame, coordinates)[..., None, :]

    def join(
        self, x: Float[Array, "N D"], frame: Frame, mean: Float[Array, "N 1 r"], covariance: Float[Array, "N 1 1"]
    ) -> tuple[Float[Array, "N q"], Float[Array, "N q q"]]:
        """Turn the copies into coordinates; independent ones of equal variance stay so in any frame."""
        mean = frame.components(self.copies_frame(x), mean[:, 0, :])
        return mean, covariance * jnp.eye(mean.shape[-1], dtype=mean.dtype)

    def gram(
        self, x: Float[Array, "N D"], y: Float[Array, "L D"], frame_x: Frame, frame_y: Frame
    ) -> Float[Array, "N 1 L 1"]:
        """Return the kernel, one for all copies."""
        return self.prior.covariance(x, y)[:, None, :, None]

    def design(self, x: Float[Array, "N D"], frame: Frame) -> Float[Array, "N 1 m"]:
        """Evaluate the features times scales of one copy."""
        return (self.prior.features(x) * self.prior.scales().astype(x.dtype))[:, None, :]

    def point_variance(self, x: Float[Array, "N D"], frame: Frame) -> Float[Array, "N 1 1"]:
        """Return the variance of a copy."""
        return self.prior.variance(x)[:, None, None]

    def mixing(self, x: Float[Array, "N D"], frame: Frame) -> tuple[Float[Array, "N q 1 r"]]:
        """Return the components of the field's own frame."""
        size = self.bundle.rank
        units = jnp.broadcast_to(jnp.eye(size, dtype=x.dtype)[:, None, :], (size, x.shape[0], size))  # [r, N, r]
        return (jnp.moveaxis(frame.components(self.copies_frame(x), units), 0, -1)[:, :, None, :],)

    def assemble(self, x: Float[Array, "N D"], values: tuple[Float[Array, "N 1 r"], ...]) -> Float[Array, "N ..."]:
        """Take the copies as coordinates in the field's own frame."""
        return self.copies_frame(x).values(values[0][:, 0, :])

    def mean_and_trace(
        self, x: Float[Array, "N D"], frame: Frame, means: Weights, factors: tuple[Float[Array, "r m m"], ...]
    ) -> tuple[Float[Array, "N q"], Float[Array, "N"]]:
        """Return the mean of the copies and the sum of their variances, by features that both share."""
        psi, mean, factor = self.design(x, frame)[:, 0, :], means[0].astype(x.dtype), factors[0].astype(x.dtype)
        half = psi @ factor.transpose(1, 0, 2).reshape(psi.shape[1], -1)
        return frame.components(self.copies_frame(x), psi @ mean.T), jnp.sum(jnp.square(half), axis=-1)


@register("rdgp:ScalarField")
class ScalarField(CopiesField):
    """A scalar Gaussian process f: X -> R.

    `num_levels` counts the eigenvalues kept, zero included; spaces with kernels in closed form need none. On a product
    one kernel serves all factors, or a tuple of kernels gives each factor its own.
    """

    space: Space
    prior: ScalarPrior

    def __init__(self, space: Space, kernel: Kernel | Sequence[Kernel], num_levels: Levels = None) -> None:
        self.space = space
        self.prior = scalar_prior(space, kernel, num_levels)

    @property
    def bundle(self) -> NumberBundle:
        """Single numbers."""
        return NumberBundle(())

    def copies_frame(self, x: Float[Array, "N D"]) -> Frame:
        """Return the frame of numbers: each is its own coordinate."""
        return self.bundle.frame(x)


@register("rdgp:StackedField")
class StackedField(CopiesField):
    """Independent scalar Gaussian processes with one kernel, f: X -> R^P."""

    space: Space
    prior: ScalarPrior
    outputs: int = eqx.field(static=True)

    def __init__(
        self, space: Space, kernel: Kernel | Sequence[Kernel], num_levels: Levels = None, *, outputs: int
    ) -> None:
        self.space = space
        self.outputs = check_count(outputs, "outputs")
        self.prior = scalar_prior(space, kernel, num_levels)

    def details(self) -> tuple[str, ...]:
        """Return the kernel and the number of outputs."""
        return (*super().details(), f"outputs={self.outputs}")

    @property
    def bundle(self) -> NumberBundle:
        """P numbers."""
        return NumberBundle((self.outputs,))

    def copies_frame(self, x: Float[Array, "N D"]) -> Frame:
        """Numbers are their own coordinates."""
        return self.bundle.frame(x)
