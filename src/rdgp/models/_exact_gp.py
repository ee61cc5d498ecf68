"""Exact Gaussian process regression on any field."""

from collections.abc import Collection, Mapping

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import (
    Numbers,
    ParameterTable,
    Prior,
    Progress,
    check_count,
    compiled,
    describe,
    log_prior,
    register,
    split_trainable,
)
from rdgp.fields import Field, FunctionDraw, check_points
from rdgp.likelihoods import Gaussian
from rdgp.models._data import Data, known_noise
from rdgp.models._output import noise_of
from rdgp.models._prediction import Prediction
from rdgp.models._start import START_NOISE, noise_floor, search
from rdgp.posteriors import Exact, Posterior, log_evidence

_BATCH = 1024  # test points predicted at once
_FAR = 1e4  # a search from variances that are wrong by more than this factor may get lost


@register("rdgp:ExactGP")
class ExactGP(eqx.Module):
    """Gaussian process regression y = f(x) + noise with none of its approximations.

    For tangent fields y holds tangent vectors and the noise is isotropic in the tangent space, unless it is known. The
    cost is N³, or N M² where the field has M features and M is smaller than the number of scalar observations. `fixed`
    and `prior` are those of the noise.
    """

    field: Field
    likelihood: Gaussian
    posterior: Exact | None

    def __init__(
        self,
        field: Field,
        noise_variance: float = 0.1,
        *,
        fixed: Collection[str] = (),
        prior: Mapping[str, Prior] | None = None,
    ) -> None:
        if not isinstance(field, Field):
            raise ValueError(f"ExactGP needs a field such as ScalarField(Sphere(2), ...), got {type(field).__name__}")
        self.field = field
        self.likelihood = Gaussian(noise_variance, fixed=fixed, prior=prior)
        self.posterior = None

    @property
    def noise_variance(self) -> Float[Array, ""]:
        """Variance of the observation noise, per coordinate."""
        return self.likelihood.noise_variance

    @property
    def parameters(self) -> ParameterTable:
        """A table of all numbers with names, values, priors, and whether `fit` changes them."""
        return describe(self._prior())

    def log_marginal_likelihood(
        self, x: Numbers, y: Numbers, *, noise_variance: Numbers | None = None
    ) -> Float[Array, ""]:
        """Return log p(y) under the prior and the noise; known noise of each observation adds to the model's own."""
        return compiled(_log_evidence, self._prior(), self._check(x, y, noise_variance))

    def fit(
        self,
        x: Numbers,
        y: Numbers,
        *,
        noise_variance: Numbers | None = None,
        steps: int = 200,
        progress: bool = True,
    ) -> "ExactGP":
        """Maximise the marginal likelihood, times priors if any, by L-BFGS and return the model given the data.

        `noise_variance` is known of each observation: a number, or a covariance matrix of the values; it adds to the
        learned one. The search starts at the model's own numbers, or at variances of the size of y and lengthscales of
        the units of x where those are far off.
        """
        data = self._check(x, y, noise_variance)
        free, rest = split_trainable(self._prior()._of_size(data))
        with Progress("fit", check_count(steps, "steps"), enabled=progress) as bar:
            best = search(
                _objective,
                free,
                rest,
                data,
                steps=steps,
                callback=lambda step, value: bar.update(step, f"· -log evidence {value:.5g}"),
            )
        return eqx.combine(best.arguments, rest)._given(data)

    def condition(self, x: Numbers, y: Numbers, *, noise_variance: Numbers | None = None) -> "ExactGP":
        """Return the model conditioned on data, its parameters as they are."""
        return self._prior()._given(self._check(x, y, noise_variance))

    def predict(self, x: Numbers, *, noise_variance: Numbers | None = None) -> Prediction:
        """Return the predictive distribution at each point; `noise_variance` is known of observations there."""
        x = check_points(self.field.space, x)
        if x.shape[0] == 0:
            raise ValueError("x must hold at least one point, got none")
        posterior = self._conditioned()
        pieces = [compiled(_moments, posterior, x[i : i + _BATCH]) for i in range(0, max(x.shape[0], 1), _BATCH)]
        mean, covariance = (jnp.concatenate(part) for part in zip(*pieces, strict=True))
        frame = self.field.bundle.frame(x)
        known = None if noise_variance is None else known_noise(noise_variance, frame, x)
        likelihood = self.likelihood if known is None else self.likelihood.given(known)
        return Prediction(mean[None], covariance[None], likelihood, frame)

    def joint(self, x: Numbers) -> tuple[Float[Array, "n"], Float[Array, "n n"]]:
        """Return posterior mean and full covariance over all points, in coordinates of the field's frame: n = N q."""
        return self._conditioned().joint(x)

    def draw(self, *, key: PRNGKeyArray) -> FunctionDraw:
        """Draw one function from the posterior: a prior draw, corrected by what the data say of it."""
        return self._conditioned().draw(key=key)

    def _given(self, data: Data) -> "ExactGP":
        posterior = compiled(_condition, self, data)
        if not bool(jnp.all(jnp.isfinite(posterior.factor))):
            raise ValueError(
                f"the covariance of the {data.num_points} points is not positive definite at noise_variance "
                f"{float(self.noise_variance):.3g}; raise noise_variance or use float64"
            )
        return eqx.tree_at(lambda gp: gp.posterior, self, posterior, is_leaf=lambda leaf: leaf is None)

    def _of_size(self, data: Data) -> "ExactGP":
        """Return the model with variances and lengthscales that fit the data, where its own are far off."""
        likelihood = self.likelihood.with_noise_floor(noise_floor(data))
        field = self.field.with_lengthscales_of(np.asarray(data.x))
        size = float(np.mean(np.square(np.asarray(data.y, float))))
        own = float(self.field.variance + self.noise_variance)
        if size != 0.0 and not 1.0 / _FAR < size / own < _FAR:
            field = field.with_scale_of(np.asarray(data.x), size)
            likelihood = likelihood.with_values(noise_variance=START_NOISE * size)
        return eqx.tree_at(lambda gp: (gp.field, gp.likelihood), self, (field, likelihood))

    def _prior(self) -> "ExactGP":
        return eqx.tree_at(lambda gp: gp.posterior, self, None, is_leaf=lambda leaf: leaf is None)

    def _check(self, x: Numbers, y: Numbers, noise_variance: Numbers | None) -> Data:
        x = check_points(self.field.space, x)
        if x.shape[0] == 0:
            raise ValueError("x must hold at least one point, got none")
        frame = self.field.bundle.frame(x)
        noise = None if noise_variance is None else known_noise(noise_variance, frame, x)
        return Data(x, frame.coordinates(self.field.check_values(x, y)), noise)

    def _conditioned(self) -> Exact:
        if self.posterior is None:
            raise ValueError("the model has seen no data; call fit(x, y) or condition(x, y) and use what it returns")
        return self.posterior

    def __repr__(self) -> str:
        seen = "" if self.posterior is None else f", {self.posterior.x.shape[0]} observations"
        return f"ExactGP on {self.field.space}{seen}\n  field: {self.field}\n  noise: {self.likelihood}"


def _condition(gp: ExactGP, data: Data) -> Exact:
    return Exact(gp.field, noise_of(gp.likelihood, data), data.x, gp.field.bundle.frame(data.x), data.y)


def _log_evidence(gp: ExactGP, data: Data) -> Float[Array, ""]:
    frame = gp.field.bundle.frame(data.x)
    return log_evidence(gp.field, noise_of(gp.likelihood, data), data.x, frame, data.y)


def _objective(free: ExactGP, rest: ExactGP, data: Data) -> Float[Array, ""]:
    gp = eqx.combine(free, rest)
    return -_log_evidence(gp, data) - log_prior(gp)


def _moments(posterior: Posterior, x: Float[Array, "L D"]) -> tuple[Float[Array, "L q"], Float[Array, "L q q"]]:
    return posterior.coordinate_moments(x, posterior.field.bundle.frame(x))
