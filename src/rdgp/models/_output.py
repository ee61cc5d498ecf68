"""Outputs: what the last layer contributes to the objective, and the posterior it leaves."""

from abc import abstractmethod
from functools import singledispatch
from typing import Any, ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from rdgp.core import register
from rdgp.fields import Bundle, Field, Frame, NumberFrame
from rdgp.likelihoods import Gaussian, Likelihood, ObservationModel, WrappedGaussian
from rdgp.models._data import Data
from rdgp.models._prediction import PointPrediction, Prediction
from rdgp.models._propagate import State
from rdgp.posteriors import Exact, Noise, Posterior, Variational, log_evidence
from rdgp.spaces import Space

Members = tuple[Float[Array, "..."], ...]


class Output(eqx.Module):
    """The last layer of a deep model."""

    joint: eqx.AbstractClassVar[bool]  # whether the objective needs joint draws of the hidden layers at all points

    @property
    @abstractmethod
    def space(self) -> Space:
        """The space on which it starts."""

    @property
    @abstractmethod
    def bundle(self) -> Bundle | None:
        """Where values live; None for points of the space."""

    @abstractmethod
    def default_likelihood(self) -> ObservationModel:
        """Return the likelihood of models that are given none."""

    @abstractmethod
    def check_likelihood(self, likelihood: object) -> None:
        """Raise unless the output works with a likelihood."""

    @abstractmethod
    def frame(self, x: Float[Array, "N D"]) -> Frame:
        """Return the frame of values at points."""

    @abstractmethod
    def divergence(self) -> Float[Array, ""]:
        """Return the divergence of its posterior from its prior, zero if it is integrated out."""

    @abstractmethod
    def log_density(self, likelihood: Any, state: State, data: Data) -> Float[Array, "..."]:
        """Return the log density of all observations together if `joint`, else the expected one of each."""

    @abstractmethod
    def prediction(self, members: Members, likelihood: Any, frame: Frame) -> Prediction | PointPrediction:
        """Return the predictive distribution of stacked members."""


class ProcessOutput(Output):
    """An output that is a Gaussian process: single numbers, several, or tangent vectors."""

    @property
    @abstractmethod
    def field(self) -> Field:
        """The prior."""

    @abstractmethod
    def posterior(self, likelihood: ObservationModel, state: State | None, data: Data | None) -> Posterior:
        """Return the posterior given where the hidden layers lead the data, which is needed if `joint`."""

    @abstractmethod
    def with_field(self, field: Field) -> "ProcessOutput":
        """Return the output with another prior of the same structure."""

    @property
    def space(self) -> Space:
        """The space of the field."""
        return self.field.space

    @property
    def bundle(self) -> Bundle:
        """Where values live."""
        return self.field.bundle

    def default_likelihood(self) -> Likelihood:
        """Return Gaussian noise."""
        return Gaussian()

    def check_likelihood(self, likelihood: object) -> None:
        """Raise unless it is a likelihood of values."""
        if not isinstance(likelihood, Likelihood):
            raise ValueError(f"likelihood must be one such as Gaussian(), got {type(likelihood).__name__}")

    def frame(self, x: Float[Array, "N D"]) -> Frame:
        """Return the frame of the bundle."""
        return self.bundle.frame(x)

    def prediction(self, members: Members, likelihood: Likelihood, frame: Frame) -> Prediction:
        """Return a mixture of Gaussians."""
        means, covariances = members
        return Prediction(means, covariances, likelihood, frame)


@register("rdgp:Integrated")
class Integrated(ProcessOutput):
    """A process that is integrated out given each joint draw of the hidden layers; the noise is Gaussian."""

    joint: ClassVar[bool] = True
    _field: Field

    @property
    def field(self) -> Field:
        """The prior."""
        return self._field

    def with_field(self, field: Field) -> "Integrated":
        """Return the output with another prior."""
        return Integrated(field)

    def __repr__(self) -> str:
        return f"Integrated({self.field})"

    def divergence(self) -> Float[Array, ""]:
        """Zero."""
        return jnp.zeros(())

    def log_density(self, likelihood: Likelihood, state: State, data: Data) -> Float[Array, ""]:
        """Return the log evidence."""
        return log_evidence(self.field, noise_of(likelihood, data), state.x, state.frame, data.y)

    def posterior(self, likelihood: ObservationModel, state: State | None, data: Data | None) -> Exact:
        """Condition the process on the data."""
        if state is None or data is None:
            raise ValueError("the model has seen no data; call fit(model, x, y, key=key) and use its result's model")
        return Exact(self.field, noise_of(likelihood, data), state.x, state.frame, data.y)


@register("rdgp:Explicit")
class Explicit(ProcessOutput):
    """A process with an explicit variational posterior, which any likelihood and minibatches allow."""

    joint: ClassVar[bool] = False
    variational: Variational

    @property
    def field(self) -> Field:
        """The prior."""
        return self.variational.field

    def with_field(self, field: Field) -> "Explicit":
        """Return the output with another prior and the same whitened variables."""
        return eqx.tree_at(lambda output: output.variational.field, self, field)

    def __repr__(self) -> str:
        return f"Explicit({self.variational})"

    def divergence(self) -> Float[Array, ""]:
        """Return that of the posterior."""
        return self.variational.kl()

    def log_density(self, likelihood: Likelihood, state: State, data: Data) -> Float[Array, "N"]:
        """Return the expected log density of each observation."""
        if likelihood.by_trace:
            mean, trace = self.variational.mean_and_trace(state.x, state.frame)
            return likelihood.expected_log_density_by_trace(data.y, mean, trace)
        mean, covariance = self.variational.coordinate_moments(state.x, state.frame)
        return likelihood.expected_log_density(data.y, mean, covariance)

    def posterior(self, likelihood: ObservationModel, state: State | None, data: Data | None) -> Variational:
        """Return the variational posterior, whatever the data."""
        return self.variational


@register("rdgp:Points")
class Points(Output):
    """No process: the model is manifold-valued, its values are where the hidden layers lead."""

    joint: ClassVar[bool] = False
    _space: Space

    @property
    def space(self) -> Space:
        """The space of the values."""
        return self._space

    @property
    def bundle(self) -> None:
        """None."""
        return None

    def __repr__(self) -> str:
        return f"Points({self.space})"

    def default_likelihood(self) -> WrappedGaussian:
        """Return the wrapped Gaussian of the space."""
        return WrappedGaussian(self.space)

    def check_likelihood(self, likelihood: object) -> None:
        """Raise unless it is a likelihood of points of the space."""
        if not isinstance(likelihood, WrappedGaussian) or likelihood.space != self.space:
            raise ValueError(
                f"a model without output needs WrappedGaussian({self.space}), got {type(likelihood).__name__}"
            )

    def frame(self, x: Float[Array, "N D"]) -> NumberFrame:
        """Return nothing to carry along."""
        return NumberFrame((self.space.ambient_dim,))

    def divergence(self) -> Float[Array, ""]:
        """Zero."""
        return jnp.zeros(())

    def log_density(self, likelihood: WrappedGaussian, state: State, data: Data) -> Float[Array, "N"]:
        """Return the log density of each observed point."""
        return likelihood.log_density(data.y, state.x)

    def prediction(self, members: Members, likelihood: WrappedGaussian, frame: Frame) -> PointPrediction:
        """Return equally likely points."""
        return PointPrediction(self.space, members[0], likelihood)


def noise_of(likelihood: ObservationModel, data: Data) -> Noise:
    """Return the noise of observations under a Gaussian likelihood."""
    return Noise(likelihood.noise_variance, data.noise, data.mask)


@singledispatch
def as_output(output: object) -> Output:
    """Return what stands for the last layer of a model as an output; register your own kinds."""
    raise ValueError(
        f"output must be a field, Interdomain, InducingPoints or None, got {type(output).__name__}; pass one of those"
    )


@as_output.register
def _(output: Output) -> Output:
    return output


@as_output.register
def _(output: Field) -> Integrated:
    return Integrated(output)


@as_output.register
def _(output: Variational) -> Explicit:
    return Explicit(output)
