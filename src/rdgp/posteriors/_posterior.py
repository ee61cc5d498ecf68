"""The contract of a posterior: a Gaussian process, given whatever is known of a field."""

from abc import abstractmethod

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import Numbers, compiled
from rdgp.fields import Field, Frame, FunctionDraw, check_points

Moments = tuple[Float[Array, "N q"], Float[Array, "N q q"]]


class Marginals(eqx.Module):
    """The distribution of a field's values at each point alone."""

    @abstractmethod
    def coordinate_moments(self, x: Float[Array, "N D"], frame: Frame) -> Moments:
        """Return mean and covariance of the coordinates at each point in a frame."""

    def mean_and_trace(self, x: Float[Array, "N D"], frame: Frame) -> tuple[Float[Array, "N q"], Float[Array, "N"]]:
        """Return the mean of the coordinates and the sum of their variances, all that isotropic noise needs."""
        mean, covariance = self.coordinate_moments(x, frame)
        return mean, jnp.trace(covariance, axis1=1, axis2=2)


class Posterior(Marginals):
    """A Gaussian posterior of a field."""

    field: eqx.AbstractVar[Field]

    @property
    @abstractmethod
    def size(self) -> int:
        """Size of the square matrix with which the covariance at a point takes a product."""

    @abstractmethod
    def joint_moments(self, x: Float[Array, "N D"], frame: Frame) -> tuple[Float[Array, "n"], Float[Array, "n n"]]:
        """Return mean and covariance of the coordinates at all points together, n = N q."""

    @abstractmethod
    def draw(self, *, key: PRNGKeyArray) -> FunctionDraw:
        """Draw one function: the same wherever it is called, and differentiable."""

    def moments(self, x: Numbers) -> tuple[Float[Array, "N ..."], Float[Array, "N ..."]]:
        """Return mean and covariance of the values at each point: [N] and [N], or [N, P] and [N, P, P]."""
        x = check_points(self.field.space, x)
        return compiled(Posterior._value_moments, self, x)

    def joint(self, x: Numbers) -> tuple[Float[Array, "n"], Float[Array, "n n"]]:
        """Return mean and covariance over all points, in coordinates of the field's frame, n = N q."""
        x = check_points(self.field.space, x)
        return compiled(Posterior._joint, self, x)

    def _value_moments(self, x: Float[Array, "N D"]) -> tuple[Float[Array, "N ..."], Float[Array, "N ..."]]:
        frame = self.field.bundle.frame(x)
        mean, covariance = self.coordinate_moments(x, frame)
        return frame.values(mean), frame.covariance(covariance)

    def _joint(self, x: Float[Array, "N D"]) -> tuple[Float[Array, "n"], Float[Array, "n n"]]:
        return self.joint_moments(x, self.field.bundle.frame(x))
