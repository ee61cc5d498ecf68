"""The contract of a likelihood: expectations of log p(y | f) and of p(y | f) under a Gaussian f."""

from abc import abstractmethod
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from rdgp.core import Numbers, Parameter, Prior, as_float_array, check_finite, is_concrete


class Support(NamedTuple):
    """Which observations are possible, in words and as a test of each value."""

    words: str
    contains: Callable[[Float[np.ndarray, "..."]], Bool[np.ndarray, "..."]]


REAL_NUMBERS = Support("real numbers", np.isfinite)


class Likelihood(eqx.Module):
    """The law p(y | f) of an observation, independent from point to point.

    Latent values and observations are q coordinates at each point: one for scalars, d in an orthonormal frame for
    tangent vectors, P for several outputs.
    """

    support: eqx.AbstractClassVar[Support]

    @abstractmethod
    def expected_log_density(
        self, y: Float[Array, "N q"], mean: Float[Array, "*S N q"], covariance: Float[Array, "*S N q q"]
    ) -> Float[Array, "*S N"]:
        """Return E log p(y | f) under f ~ N(mean, covariance)."""

    @abstractmethod
    def log_predictive(
        self, y: Float[Array, "N q"], mean: Float[Array, "*S N q"], covariance: Float[Array, "*S N q q"]
    ) -> Float[Array, "*S N"]:
        """Return log E p(y | f) under f ~ N(mean, covariance)."""

    @abstractmethod
    def observed_moments(
        self, mean: Float[Array, "*S N q"], covariance: Float[Array, "*S N q q"]
    ) -> tuple[Float[Array, "*S N q"], Float[Array, "*S N q q"]]:
        """Return mean and covariance of y under f ~ N(mean, covariance)."""

    @abstractmethod
    def sample(self, f: Float[Array, "*S N q"], *, key: PRNGKeyArray) -> Float[Array, "*S N q"]:
        """Draw an observation of each latent value."""

    def check(self, y: Numbers) -> Float[Array, "N ..."]:
        """Return observations as a floating array, or raise a ValueError if some are impossible."""
        y = as_float_array(y, "y")
        check_finite(y, "y")
        if is_concrete(y):
            bad = np.argwhere(~self.support.contains(np.asarray(y)))
            if bad.size:
                first = tuple(int(i) for i in bad[0])
                raise ValueError(
                    f"y must hold {self.support.words} for a {type(self).__name__} likelihood, got {len(bad)} other "
                    f"values of {y.size}, the first is {float(y[first]):g} at index {first}; convert them"
                )
        return y


def positive_number(value: Numbers, name: str, prior: Prior | None = None) -> Parameter:
    """Return one positive number that training may change, or raise."""
    parameter = Parameter(value, name=name, prior=prior)
    if parameter.raw.ndim:
        raise ValueError(f"{name} must be one number, got {value}; it is shared by all coordinates")
    return parameter


def variances(covariance: Float[Array, "*S q q"]) -> Float[Array, "*S q"]:
    """Return the diagonal, all that matters where a likelihood treats coordinates independently."""
    return jnp.diagonal(covariance, axis1=-2, axis2=-1)
