"""The residual deep Gaussian process."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import Numbers, Parameter, ParameterTable, compiled_quickly, describe, register
from rdgp.fields import Bundle, Field, Frame, FunctionDraw, check_points, check_values
from rdgp.likelihoods import ObservationModel
from rdgp.models._chain import check_chain, output_after, unique
from rdgp.models._data import Data, known_noise
from rdgp.models._output import Output, ProcessOutput
from rdgp.models._prediction import PointPrediction, Prediction
from rdgp.models._predictor import Predictor, predictor
from rdgp.models._propagate import State, propagate, states
from rdgp.posteriors import Posterior, Variational
from rdgp.spaces import Space


class Randomness(NamedTuple):
    """What determines one joint draw of the hidden layers: normal numbers where they do, a key elsewhere."""

    key: PRNGKeyArray
    normal: Float[Array, "*S _"]


@register("rdgp:DeepGP")
class DeepGP(eqx.Module):
    """Hidden layers x -> exp_x(g(x)), then an output: a variational posterior, a field, or nothing.

    With a field as output the output process is integrated out given each joint draw of the hidden layers: the fitted
    model carries its data, like an exact Gaussian process. Without output the model is manifold-valued. A tangent
    output is carried back from where the hidden layers lead to x by parallel transport. The same posterior given twice
    in `hidden` is one function applied twice. With `bundle` several scalar outputs are the coordinates of values in
    that bundle over the inputs, such as the components of winds in `TangentBundle(Sphere(2), frame="east_north")`.

    >>> from rdgp.fields import ProjectedField, ScalarField
    >>> from rdgp.kernels import Heat, Matern
    >>> from rdgp.posteriors import Interdomain
    >>> from rdgp.spaces import Sphere
    >>> hidden = Interdomain(ProjectedField(Sphere(2), Heat(0.5, 0.01), num_levels=3))
    >>> DeepGP([hidden], ScalarField(Sphere(2), Matern(), num_levels=7))
    DeepGP on Sphere(2)
      1. Interdomain(ProjectedField(Sphere(2), Heat(lengthscale=0.5, variance=0.01), 27 features))
      output: Integrated(ScalarField(Sphere(2), Matern(nu=1.5, lengthscale=1, variance=1), 49 features))
      noise: Gaussian(noise_variance=0.1)
    """

    layers: tuple[Variational, ...]  # the hidden layers, each once
    order: tuple[int, ...] = eqx.field(static=True)  # which of them comes when
    output: Output
    likelihood: ObservationModel
    bundle: Bundle | None
    mean: Parameter | None
    data: Data | None

    def __init__(
        self,
        hidden: Sequence[Variational] = (),
        output: object = None,
        likelihood: ObservationModel | None = None,
        *,
        constant_mean: bool = False,
        bundle: Bundle | None = None,
    ) -> None:
        self.layers, self.order = unique(tuple(hidden))
        self.output = output_after(self.hidden, output)
        check_chain(self.hidden, self.output)
        self.likelihood = self.output.default_likelihood() if likelihood is None else likelihood
        self.output.check_likelihood(self.likelihood)
        own = self.output.bundle
        if constant_mean and (own is None or own.tangent):
            raise ValueError("a constant mean needs a scalar output; tangent fields and points have none")
        shape = () if own is None else own.value_shape
        self.mean = Parameter(jnp.zeros(shape), "real", name="mean") if constant_mean else None
        self.data = None
        if bundle is not None and (own is None or own.tangent or own.rank != bundle.rank):
            raise ValueError(f"a bundle of rank {bundle.rank} needs a StackedField with outputs={bundle.rank}")
        self.bundle = own if bundle is None else bundle

    @property
    def hidden(self) -> tuple[Variational, ...]:
        """The posteriors of the hidden layers, in their order."""
        return tuple(self.layers[i] for i in self.order)

    @property
    def space(self) -> Space:
        """The space of the inputs."""
        return self.hidden[0].field.space if self.order else self.output.space

    @property
    def field(self) -> Field:
        """The prior of the output process."""
        return self.process_output.field

    @property
    def process_output(self) -> ProcessOutput:
        """The output, if it is a Gaussian process."""
        if not isinstance(self.output, ProcessOutput):
            raise ValueError("a manifold-valued model has no output process")
        return self.output

    @property
    def noise_variance(self) -> Float[Array, ""]:
        """Variance of Gaussian observation noise."""
        return self.likelihood.noise_variance

    @property
    def parameters(self) -> ParameterTable:
        """A table of all numbers with names, values, priors, and whether training changes them."""
        return describe(self)

    def predict(
        self, x: Numbers, *, key: PRNGKeyArray, samples: int = 10, noise_variance: Numbers | None = None
    ) -> Prediction | PointPrediction:
        """Return the predictive distribution at each point: a mixture over draws of the hidden layers.

        The draws are shared by all points. `noise_variance` is known of observations at the points, as in `fit`.
        """
        x = check_points(self.space, x)
        if x.shape[0] == 0:
            raise ValueError("x must hold at least one point, got none")
        return self.prepare(key=key, samples=samples, num_points=x.shape[0])(x, noise_variance=noise_variance)

    def prepare(self, *, key: PRNGKeyArray, samples: int = 10, num_points: int = 1) -> Predictor:
        """Return what predicts many points, some at a time, with the same draws of the hidden layers.

        Where `num_points` are many on S_2, the posterior of the output layer is expanded in harmonics.
        """
        return predictor(self, key, samples, num_points)

    def draw(self, *, key: PRNGKeyArray) -> "DeepDraw":
        """Draw one function from the posterior: differentiable, and the same wherever it is called."""
        key_hidden, key_output = jax.random.split(key)
        draws = self._draws(lambda layer, key: layer.draw(key=key), key_hidden)
        if self.output.bundle is None:
            return DeepDraw(self, draws, None)
        return DeepDraw(self, draws, self.posterior(key_hidden).draw(key=key_output))

    def draw_prior(self, *, key: PRNGKeyArray) -> "DeepDraw":
        """Draw one function from the deep prior, whatever the data."""
        key_hidden, key_output = jax.random.split(key)
        draws = self._draws(lambda layer, key: layer.field.sample(key=key), key_hidden)
        return DeepDraw(self, draws, None if self.output.bundle is None else self.field.sample(key=key_output))

    def posterior(self, key: PRNGKeyArray) -> Posterior:
        """Return the posterior of the output process given one draw of the hidden layers."""
        if self.output.joint and self.data is not None:
            return _condition(self, self.data, key)
        return self.process_output.posterior(self.likelihood, None, None)

    def start(self, x: Float[Array, "N D"], basis: Any = None) -> State:
        """Return the state of points before any layer."""
        return State(x, self.output.frame(x), basis)

    def frame(self, x: Float[Array, "N D"]) -> Frame:
        """Return the frame in which observations at points have coordinates."""
        return self.output.frame(x) if self.bundle is None else self.bundle.frame(x)

    @property
    def num_normals(self) -> int:
        """How many standard normal numbers determine a draw of the hidden layers."""
        return sum(layer.num_normals for layer in self.layers)

    def draws_with(self, randomness: Randomness) -> tuple[FunctionDraw, ...]:
        """Return the draws of the hidden layers that given randomness determines."""
        unique, used = [], 0
        for i, layer in enumerate(self.layers):
            normal = randomness.normal[used : used + layer.num_normals]
            used += layer.num_normals
            unique.append(layer.draw_with(normal, key=jax.random.fold_in(randomness.key, i)))
        return tuple(unique[i] for i in self.order)

    def propagate(self, state: State, draws: Sequence[FunctionDraw]) -> State:
        """Follow draws of the hidden layers."""
        return propagate([layer.field for layer in self.hidden], state, draws)

    def at(self, key: PRNGKeyArray, x: Float[Array, "N D"]) -> State:
        """Return where one draw of the hidden layers leads; where draws are not exact, each point on its own."""
        *_, last = self.states(key, x)
        return last

    def states(self, key: PRNGKeyArray, x: Float[Array, "N D"]) -> Iterator[State]:
        """Yield where points are before the first hidden layer and after each of them, in the draw of `at`."""
        draws = self._draws(lambda layer, key: layer.draw_exactly(key=key), key)
        return states([layer.field for layer in self.hidden], self.start(x), draws)

    def _draws(self, draw: Callable[..., FunctionDraw], key: PRNGKeyArray) -> tuple[FunctionDraw, ...]:
        """Draw every hidden layer once, and return the draws in the order of the layers."""
        keys = jax.random.split(key, max(len(self.layers), 1))
        unique = [draw(layer, key=own) for layer, own in zip(self.layers, keys, strict=False)]
        return tuple(unique[i] for i in self.order)

    def check_data(self, x: Numbers, y: Numbers, noise_variance: Numbers | None = None) -> Data:
        """Return points, observations and known noise as data, or raise."""
        x = check_points(self.space, x)
        if x.shape[0] == 0:
            raise ValueError("x must hold at least one point, got none")
        y = self.likelihood.check(y)
        if self.output.bundle is None:
            y = check_points(self.output.space, y, "y")
            if y.shape[0] != x.shape[0]:
                raise ValueError(f"y must have one point for each of the {x.shape[0]} of x, got {y.shape[0]}")
            self.check_noise(noise_variance, x)
            return Data(x, y.astype(x.dtype))
        frame = self.frame(x)
        y = check_values(x, y, frame.value_shape, "y")
        return Data(x, frame.coordinates(y), self.check_noise(noise_variance, x))

    def check_noise(self, noise_variance: Numbers | None, x: Float[Array, "N D"]) -> Float[Array, "N ..."] | None:
        """Return known noise of observations at points in coordinates, or raise."""
        if noise_variance is None:
            return None
        noise = known_noise(noise_variance, self.frame(x), x)
        self.likelihood.given(noise)
        return noise

    def offset(self, dtype: jnp.dtype) -> Float[Array, "..."]:
        """Return the constant mean, as coordinates."""
        return jnp.zeros((), dtype) if self.mean is None else jnp.atleast_1d(self.mean.value).astype(dtype)

    def with_data(self, data: Data | None) -> "DeepGP":
        """Return the model carrying data, which an integrated output layer needs."""
        return eqx.tree_at(lambda model: model.data, self, data, is_leaf=lambda leaf: leaf is None)

    def __repr__(self) -> str:
        layers = [f"  {i + 1}. {layer}" for i, layer in enumerate(self.hidden)]
        seen = "" if self.data is None else f", {self.data.num_points} observations"
        lines = [f"DeepGP on {self.space}{seen}", *layers, f"  output: {self.output}", f"  noise: {self.likelihood}"]
        return "\n".join([*lines, *([] if self.mean is None else [f"  mean: {self.mean}"])])


@register("rdgp:DeepDraw")
class DeepDraw(FunctionDraw):
    """One function from a deep Gaussian process."""

    model: DeepGP
    hidden: tuple[FunctionDraw, ...]
    output: FunctionDraw | None

    @eqx.filter_jit
    def __call__(self, x: Float[Array, "N D"]) -> Float[Array, "N ..."]:
        """Evaluate it: [N] for scalars, [N, P] for several outputs, [N, D] for tangent vectors and points."""
        x = check_points(self.model.space, x)
        state = self.model.propagate(self.model.start(x), self.hidden)
        if self.output is None:
            return state.x
        coordinates = state.frame.coordinates(self.output(state.x))
        return self.model.frame(x).values(coordinates + self.model.offset(x.dtype))


@compiled_quickly
def _condition(model: DeepGP, data: Data, key: PRNGKeyArray) -> Posterior:
    centered = data.minus(model.offset(data.y.dtype))
    return model.process_output.posterior(model.likelihood, model.at(key, data.x), centered)
