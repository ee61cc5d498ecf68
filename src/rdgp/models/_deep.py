"""The residual deep Gaussian process."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import Numbers, Parameter, check_count, compiled_quickly
from rdgp.fields import Field, FieldDraw, TangentField, check_points, check_values
from rdgp.likelihoods import Gaussian, Likelihood, WrappedGaussian
from rdgp.models._conditioned import Conditioned, ConditionedDraw, draw_conditioned
from rdgp.models._layers import Path, next_space, walk, walk_draws
from rdgp.models._prediction import PointPrediction, Prediction
from rdgp.models._tabulated import Tabulated, tabulate, worth_tabulating
from rdgp.spaces import Space, Sphere, east_north_frame
from rdgp.variational import Variational

_BATCH = 1024  # test points predicted at once


class Observations(NamedTuple):
    """Data that a model with an integrated output layer carries."""

    x: Float[Array, "N D"]
    coordinates: Float[Array, "N p r"]


class DeepGP(eqx.Module):
    """Hidden layers x -> exp_x(g(x)), then an output: a variational posterior, a field, or nothing.

    With a field as output the output process is integrated out given each joint draw of the hidden layers: the fitted
    model carries its data, like an exact Gaussian process. Without output the model is manifold-valued. A tangent
    output is carried back from where the hidden layers lead to x by parallel transport. With `in_frame` two scalar
    outputs are the east and north components of a tangent vector at x.
    """

    hidden: tuple[Variational, ...]
    output: Variational | Field | None
    likelihood: Likelihood | WrappedGaussian
    mean: Parameter | None
    data: Observations | None
    in_frame: bool = eqx.field(static=True)

    def __init__(
        self,
        hidden: tuple[Variational, ...] = (),
        output: Variational | Field | None = None,
        likelihood: Likelihood | WrappedGaussian | None = None,
        *,
        constant_mean: bool = False,
        in_frame: bool = False,
    ) -> None:
        self.hidden, self.output = tuple(hidden), output
        spaces = _check_layers(self.hidden, output)
        if likelihood is None:
            likelihood = Gaussian() if output is not None else WrappedGaussian(spaces[-1])
        _check_likelihood(likelihood, output, spaces[-1])
        self.likelihood = likelihood
        if constant_mean and (self.output_field is None or isinstance(self.output_field, TangentField)):
            raise ValueError("a constant mean needs a scalar output; tangent fields and points have none")
        shape = () if self.output_field is None else self.output_field.value_shape()
        self.mean = Parameter(jnp.zeros(shape), "real", name="mean") if constant_mean else None
        self.data = None
        self.in_frame = in_frame
        if in_frame and not (shape == (2,) and self.space == Sphere(2)):
            raise ValueError("in_frame needs two outputs and inputs on Sphere(2): components along east and north")

    @property
    def space(self) -> Space:
        """The space of the inputs."""
        first = self.hidden[0].field if self.hidden else self.output_field
        if first is None:
            raise ValueError("a DeepGP needs at least one layer")
        return first.space

    @property
    def output_field(self) -> Field | None:
        """The prior of the output layer."""
        return self.output.field if isinstance(self.output, Variational) else self.output

    @property
    def integrated_field(self) -> Field:
        """The output field that is integrated out."""
        if not isinstance(self.output, Field):
            raise ValueError("the output of this model is not integrated out; pass a field as output")
        return self.output

    @property
    def noise_variance(self) -> Float[Array, ""]:
        """Variance of Gaussian observation noise."""
        if not isinstance(self.likelihood, Gaussian):
            raise ValueError(f"a {type(self.likelihood).__name__} likelihood has no noise variance")
        return self.likelihood.noise_variance

    def predict(self, x: Numbers, *, key: PRNGKeyArray, samples: int = 10) -> Prediction | PointPrediction:
        """Return the law at each point: a mixture over draws of the hidden layers, shared by all points."""
        x = check_points(self.space, x)
        if x.shape[0] == 0:
            raise ValueError("x must hold at least one point, got none")
        return self.prepare(key=key, samples=samples, num_points=x.shape[0])(x)

    def prepare(self, *, key: PRNGKeyArray, samples: int = 10, num_points: int = 1) -> "Predictor":
        """Return what predicts many points, some at a time, with the same draws of the hidden layers.

        Where `num_points` are many on S_2, the law of the output layer is turned into sums of harmonics.
        """
        keys = tuple(jax.random.split(key, check_count(samples, "samples")))
        field = self.output_field
        if field is None:
            return Predictor(self, keys, ())
        if isinstance(self.output, Variational):
            return Predictor(self, keys, (self._law(field, keys[0], num_points),) * samples)
        return Predictor(self, keys, tuple(self._law(field, k, num_points) for k in keys))

    def _law(self, field: Field, key: PRNGKeyArray, num_points: int) -> Conditioned | Tabulated | Variational:
        """Return the law of the output layer given a draw of the hidden ones, in the form that suits the points."""
        law = self.output if isinstance(self.output, Variational) else _condition(self, self._observations(), key)
        observed = law.factor.shape[0] if isinstance(law, Conditioned) else None
        if not worth_tabulating(field, num_points, observed):
            return law
        dtype = jax.tree.leaves(eqx.filter(law, eqx.is_inexact_array))[0].dtype
        return tabulate(field, lambda x, basis: _moments_at(law, x, basis), dtype)

    def _member(
        self, key: PRNGKeyArray, x: Float[Array, "N D"], law: Conditioned | Tabulated | Variational
    ) -> tuple[Float[Array, "N q"], Float[Array, "N q q"]]:
        pieces = [_moments(self, law, key, part) for part in _parts(x)]
        mean, covariance = (jnp.concatenate(part) for part in zip(*pieces, strict=True))
        return mean + self.offset(mean.dtype), covariance

    def draw(self, *, key: PRNGKeyArray) -> "DeepDraw":
        """Draw one function from the posterior: differentiable, and the same wherever it is called."""
        key_hidden, key_output = jax.random.split(key)
        draws = self.hidden_draws(key_hidden)
        if self.output is None:
            return DeepDraw(self, draws, None)
        if isinstance(self.output, Variational):
            return DeepDraw(self, draws, self.output.draw(key=key_output))
        data = self._observations()
        centered = data.coordinates - self.offset(data.x.dtype)
        return DeepDraw(self, draws, draw_conditioned(_condition(self, data, key_hidden), centered, key=key_output))

    def start(self, x: Float[Array, "N D"]) -> Path:
        """Return the path of points before any layer, with their frames if the output is tangent."""
        if self.in_frame:
            return Path(x, east_north_frame(x))
        field = self.output_field
        return Path(x, field.basis(x) if isinstance(field, TangentField) else None)

    def hidden_draws(self, key: PRNGKeyArray) -> tuple[FieldDraw, ...]:
        """Draw the fields of the hidden layers."""
        keys = jax.random.split(key, max(len(self.hidden), 1))
        return tuple(layer.draw(key=own) for layer, own in zip(self.hidden, keys, strict=False))

    def lead(self, key: PRNGKeyArray, x: Float[Array, "N D"]) -> Path:
        """Follow one draw of the hidden layers; where draws are not exact, each point on its own."""
        path = self.start(x)
        keys = jax.random.split(key, max(len(self.hidden), 1))
        for layer, own in zip(self.hidden, keys, strict=False):
            exact = layer.draws_are_exact
            v = layer.draw(key=own)(path.x) if exact else layer.sample_independently(path.x, own)
            path = walk(layer.field, path, v)
        return path

    def coordinates(self, x: Float[Array, "N D"], y: Float[Array, "N ..."]) -> Float[Array, "N p r"]:
        """Turn observations into coordinates at their points."""
        frame = self.start(x).frame
        if frame is None:
            return y.reshape(x.shape[0], 1, -1)
        components = jnp.einsum("npd,np->nd", frame, y)
        return components[:, None, :] if self.in_frame else components[:, :, None]

    def check_values(self, x: Float[Array, "N D"], y: Numbers) -> Float[Array, "N ..."]:
        """Return observations as an array, or raise."""
        field = self.output_field
        if field is None:
            raise ValueError("a manifold-valued model observes points, not values")
        return check_values(x, y, (self.space.ambient_dim,), "y") if self.in_frame else field.check_values(x, y)

    def offset(self, dtype: jnp.dtype) -> Float[Array, "..."]:
        """Return the constant mean."""
        return jnp.zeros((), dtype) if self.mean is None else jnp.atleast_1d(self.mean.value).astype(dtype)

    def with_coordinates(self, x: Float[Array, "N D"], coordinates: Float[Array, "N p r"]) -> "DeepGP":
        """Return the model carrying its data, which an integrated output layer needs."""
        data = Observations(x, coordinates)
        return eqx.tree_at(lambda model: model.data, self, data, is_leaf=lambda leaf: leaf is None)

    def _observations(self) -> Observations:
        if self.data is None:
            raise ValueError("the model has seen no data; call fit(model, x, y, key=key) and use its result's model")
        return self.data


class Predictor(eqx.Module):
    """A model with its hidden layers drawn and its output conditioned on the data, once for any number of calls."""

    model: DeepGP
    keys: tuple[PRNGKeyArray, ...]
    laws: tuple[Conditioned | Tabulated | Variational, ...]  # none for a manifold-valued model

    def __call__(self, x: Numbers) -> Prediction | PointPrediction:
        """Return the law at each point."""
        model = self.model
        x = check_points(model.space, x)
        if isinstance(model.likelihood, WrappedGaussian):
            pieces = [jnp.concatenate([_points(model, k, part) for part in _parts(x)]) for k in self.keys]
            return PointPrediction(model.likelihood.space, jnp.stack(pieces), model.likelihood)
        members = [model._member(k, x, law) for k, law in zip(self.keys, self.laws, strict=True)]
        means, covariances = (jnp.stack(part) for part in zip(*members, strict=True))
        field = model.output_field
        scalar = field is not None and field.value_shape() == ()
        return Prediction(means, covariances, model.likelihood, model.start(x).frame, scalar)


class DeepDraw(eqx.Module):
    """One function from the posterior of a deep Gaussian process."""

    model: DeepGP
    hidden: tuple[FieldDraw, ...]
    output: FieldDraw | ConditionedDraw | None

    @eqx.filter_jit
    def __call__(self, x: Float[Array, "N D"]) -> Float[Array, "N ..."]:
        """Evaluate it: [N] for scalars, [N, P] for several outputs, [N, D] for tangent vectors and points."""
        x = check_points(self.model.space, x)
        start = self.model.start(x)
        path = walk_draws(self.hidden, [layer.field for layer in self.model.hidden], start)
        if self.output is None:
            return path.x
        framed = (path.frame,) if isinstance(self.output, ConditionedDraw) else ()
        value = self.output(path.x, *framed)
        if path.frame is not None and start.frame is not None:
            components = value if self.model.in_frame else jnp.einsum("ndq,nd->nq", path.frame, value)
            return jnp.einsum("ndq,nq->nd", start.frame, components)
        return value + self.model.offset(value.dtype).reshape(value.shape[1:] if self.model.mean is not None else ())


@compiled_quickly
def _points(model: DeepGP, key: PRNGKeyArray, x: Float[Array, "N D"]) -> Float[Array, "N D"]:
    return model.lead(key, x).x


@compiled_quickly
def _condition(model: DeepGP, data: Observations, key: PRNGKeyArray) -> Conditioned:
    path = model.lead(key, data.x)
    centered = data.coordinates - model.offset(path.x.dtype)
    return Conditioned(model.integrated_field, model.noise_variance, path.x, path.frame, centered)


@compiled_quickly
def _moments(
    model: DeepGP, law: Conditioned | Tabulated | Variational, key: PRNGKeyArray, x: Float[Array, "N D"]
) -> tuple[Float[Array, "N q"], Float[Array, "N q q"]]:
    path = model.lead(key, x)
    return _moments_at(law, path.x, path.frame)


@eqx.filter_jit
def _moments_at(
    law: Conditioned | Tabulated | Variational, x: Float[Array, "N D"], frame: Float[Array, "N P q"] | None
) -> tuple[Float[Array, "N q"], Float[Array, "N q q"]]:
    return law.coordinate_moments(x, frame) if isinstance(law, Variational) else law.moments(x, frame)


def _parts(x: Float[Array, "N D"]) -> list[Float[Array, "_ D"]]:
    return [x[i : i + _BATCH] for i in range(0, max(x.shape[0], 1), _BATCH)]


def _check_layers(hidden: tuple[Variational, ...], output: Variational | Field | None) -> list[Space]:
    """Return the spaces before, between and after the layers, or raise where two do not meet."""
    for layer in hidden:
        if not isinstance(layer, Variational):
            raise ValueError(
                f"hidden layers are Interdomain or InducingLocations, got {type(layer).__name__}; wrap fields in those"
            )
    if not isinstance(output, Variational | Field | None):
        raise ValueError(f"output must be Interdomain, InducingLocations, a field or None, got {type(output).__name__}")
    if not hidden and output is None:
        raise ValueError("a DeepGP needs at least one layer; pass hidden=(...), output=... or both")
    fields = [layer.field for layer in hidden]
    last = output.field if isinstance(output, Variational) else output
    spaces = [field.space for field in [*fields, *([] if last is None else [last])]]
    reached = [next_space(field) for field in fields]
    for i, (there, following) in enumerate(zip(reached, spaces[1:], strict=False)):
        if there != following:
            raise ValueError(f"layer {i + 1} leads to {there}, but layer {i + 2} starts on {following}; use one space")
    if isinstance(output, Field) and not all(layer.draws_are_exact for layer in hidden):
        raise ValueError("an integrated output needs hidden layers on compact spaces; pass InducingLocations as output")
    return [*spaces, *reached[-1:]]


def _check_likelihood(likelihood: object, output: Variational | Field | None, space: Space) -> None:
    if output is None and not (isinstance(likelihood, WrappedGaussian) and likelihood.space == space):
        raise ValueError(f"a model without output needs WrappedGaussian({space}), got {type(likelihood).__name__}")
    if output is not None and not isinstance(likelihood, Likelihood):
        raise ValueError(f"likelihood must be one such as Gaussian(), got {type(likelihood).__name__}")
