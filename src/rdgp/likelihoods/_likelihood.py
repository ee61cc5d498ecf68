"""The contract of a likelihood: expectations of log p(y | f) and of p(y | f) under a Gaussian f."""

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from rdgp.core import (
    Numbers,
    Parameter,
    Parametric,
    Prior,
    as_float_array,
    check_finite,
    is_concrete,
    positive_parameters,
)
from rdgp.likelihoods._quadrature import expect, hermite_rule, root


class Support(NamedTuple):
    """Which observations are possible, in words and as a test of each value."""

    words: str
    contains: Callable[[Float[np.ndarray, "..."]], Bool[np.ndarray, "..."]]


REAL_NUMBERS = Support("real numbers", np.isfinite)


class ObservationModel(Parametric):
    """The distribution of an observation given what a model says of it: a value, or a point of the space."""

    parameters: eqx.AbstractVar[dict[str, Parameter]]

    @property
    def conjugate(self) -> bool:
        """Whether noise is Gaussian, so that a Gaussian process can be integrated out."""
        return False

    @property
    def noise_variance(self) -> Float[Array, ""]:
        """Variance of Gaussian noise; other likelihoods have none."""
        raise ValueError(f"a {type(self).__name__} likelihood has no noise variance; use Gaussian()")

    def given(self, noise: Float[Array, "N ..."]) -> Any:
        """Return the likelihood of observations whose noise is known: a variance or a covariance matrix for each."""
        raise ValueError(f"a {type(self).__name__} likelihood takes no known noise variance; use Gaussian()")

    def with_noise_floor(self, floor: float) -> "ObservationModel":
        """Return the likelihood with a least noise variance, where it has one."""
        return self

    @abstractmethod
    def check(self, y: Numbers) -> Float[Array, "N ..."]:
        """Return observations as a floating array, or raise a ValueError if some are impossible."""


class Likelihood(ObservationModel):
    """The distribution p(y | f) of an observation, independent from point to point and, by default, of coordinates.

    Latent values and observations are q coordinates at each point: one for scalars, d in an orthonormal frame for
    tangent vectors, P for several outputs. A likelihood of your own defines `log_density`, `conditional_moments` and
    `sample`; expectations are taken by quadrature unless it knows better.
    """

    parameters: eqx.AbstractVar[dict[str, Parameter]]
    support: eqx.AbstractClassVar[Support]

    @abstractmethod
    def log_density(self, y: Float[Array, "*#N q"], f: Float[Array, "*#N q"]) -> Float[Array, "*#N q"]:
        """Return log p(y | f), coordinate by coordinate."""

    @abstractmethod
    def conditional_moments(self, f: Float[Array, "*N q"]) -> tuple[Float[Array, "*N q"], Float[Array, "*N q"]]:
        """Return mean and variance of y given f, coordinate by coordinate."""

    @abstractmethod
    def sample(self, f: Float[Array, "*S N q"], *, key: PRNGKeyArray) -> Float[Array, "*S N q"]:
        """Draw an observation of each latent value."""

    def expected_log_density(
        self, y: Float[Array, "N q"], mean: Float[Array, "*S N q"], covariance: Float[Array, "*S N q q"]
    ) -> Float[Array, "*S N"]:
        """Return E log p(y | f) under f ~ N(mean, covariance), by quadrature in each coordinate."""
        y = y.astype(mean.dtype)
        return jnp.sum(expect(lambda f: self.log_density(y, f), mean, variances(covariance)), axis=-1)

    def log_predictive(
        self, y: Float[Array, "N q"], mean: Float[Array, "*S N q"], covariance: Float[Array, "*S N q q"]
    ) -> Float[Array, "*S N"]:
        """Return log E p(y | f) under f ~ N(mean, covariance), by quadrature in each coordinate."""
        nodes, weights = hermite_rule(mean.dtype, mean.ndim)
        f = mean + root(variances(covariance)) * nodes
        density = self.log_density(y.astype(mean.dtype), f).astype(mean.dtype)
        return jnp.sum(logsumexp(density + jnp.log(weights), axis=0), axis=-1)

    def observed_moments(
        self, mean: Float[Array, "*S N q"], covariance: Float[Array, "*S N q q"]
    ) -> tuple[Float[Array, "*S N q"], Float[Array, "*S N q q"]]:
        """Return mean and covariance of y under f ~ N(mean, covariance); coordinates count as independent."""
        variance = variances(covariance)
        first = expect(lambda f: self.conditional_moments(f)[0], mean, variance)
        noise = expect(lambda f: self.conditional_moments(f)[1], mean, variance)
        spread = expect(lambda f: jnp.square(self.conditional_moments(f)[0] - first), mean, variance)
        return first, (noise + spread)[..., None] * jnp.eye(mean.shape[-1], dtype=mean.dtype)

    def expected_log_density_by_trace(
        self, y: Float[Array, "N q"], mean: Float[Array, "*S N q"], trace: Float[Array, "*S N"]
    ) -> Float[Array, "*S N"]:
        """Return E log p(y | f) from the sum of the variances alone, if `by_trace`."""
        raise ValueError(f"the expected log density of a {type(self).__name__} likelihood needs all variances")

    @property
    def by_trace(self) -> bool:
        """Whether the expected log density depends on the sum of the variances alone."""
        return False

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


def single_numbers(
    values: Mapping[str, float], fixed: Collection[str], prior: Mapping[str, Prior] | None
) -> dict[str, Parameter]:
    """Return positive numbers that training may change, one of each name, or raise."""
    parameters = positive_parameters(values, fixed, prior)
    for name, parameter in parameters.items():
        if parameter.raw.ndim:
            raise ValueError(f"{name} must be one number, got {values[name]}; it is shared by all coordinates")
    return parameters


def variances(covariance: Float[Array, "*S q q"]) -> Float[Array, "*S q"]:
    """Return the diagonal, all that matters where a likelihood treats coordinates independently."""
    return jnp.diagonal(covariance, axis1=-2, axis2=-1)
