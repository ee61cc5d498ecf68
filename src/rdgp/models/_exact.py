"""Exact Gaussian process regression on any field."""

from collections.abc import Collection, Mapping

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import Numbers, Prior, Progress, check_count, log_prior, split_trainable
from rdgp.fields import Field, FieldDraw, check_points
from rdgp.likelihoods import Gaussian
from rdgp.models._conditioned import Conditioned, ConditionedDraw, draw_conditioned, log_evidence
from rdgp.models._prediction import Prediction
from rdgp.models._start import of_size, prior_size
from rdgp.optimize import minimize_lbfgs

_BATCH = 1024  # test points predicted at once
_FAR = 1e4  # a search from variances that are wrong by more than this factor may get lost


class ExactGP(eqx.Module):
    """Gaussian process regression y = f(x) + noise with none of its approximations.

    For tangent fields y holds tangent vectors and the noise is isotropic in the tangent space. The cost is N³, or N M²
    where the field has M features and M is smaller than the number of observed numbers. `fixed` and `prior` are
    those of the noise.
    """

    field: Field
    likelihood: Gaussian
    coordinates: Float[Array, "N p r"] | None
    posterior: Conditioned | None

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
        self.coordinates = self.posterior = None

    @property
    def noise_variance(self) -> Float[Array, ""]:
        """Variance of the observation noise, per coordinate."""
        return self.likelihood.noise_variance

    def log_marginal_likelihood(self, x: Numbers, y: Numbers) -> Float[Array, ""]:
        """Return log p(y) under the prior and the noise."""
        return -_negative_log_evidence(*split_trainable(self._prior()), *self._check(x, y))

    def fit(self, x: Numbers, y: Numbers, *, steps: int = 200, progress: bool = True) -> "ExactGP":
        """Maximise the marginal likelihood, times priors if any, by L-BFGS and return the model given the data.

        The search starts at the model's own numbers, or at variances of the size of y where those are far off.
        """
        x, y = self._check(x, y)
        free, rest = split_trainable(self._prior()._of_size(y))
        with Progress("fit", check_count(steps, "steps"), enabled=progress) as bar:
            best = minimize_lbfgs(
                _objective,
                free,
                rest,
                x,
                y,
                steps=steps,
                callback=lambda step, value: bar.update(step, f"· -log evidence {value:.5g}"),
            )
        return eqx.combine(best.arguments, rest).condition(x, y)

    def condition(self, x: Numbers, y: Numbers) -> "ExactGP":
        """Return the model conditioned on data, its parameters as they are."""
        x, y = self._check(x, y)
        coordinates, posterior = _condition(self._prior(), x, y)
        if not bool(jnp.all(jnp.isfinite(posterior.factor))):
            raise ValueError(
                f"the covariance of the {x.shape[0]} points is not positive definite at noise_variance "
                f"{float(self.noise_variance):.3g}; raise noise_variance or use float64"
            )
        return eqx.tree_at(_data, self, (coordinates, posterior), is_leaf=lambda leaf: leaf is None)

    def predict(self, x: Numbers) -> Prediction:
        """Return the posterior law at each point."""
        x = check_points(self.field.space, x)
        if x.shape[0] == 0:
            raise ValueError("x must hold at least one point, got none")
        posterior = self._conditioned()
        pieces = [_moments(posterior, x[i : i + _BATCH]) for i in range(0, max(x.shape[0], 1), _BATCH)]
        mean, covariance = (jnp.concatenate(part) for part in zip(*pieces, strict=True))
        scalar = self.field.value_shape() == ()
        return Prediction(mean[None], covariance[None], self.likelihood, self.field.basis(x), scalar)

    def joint(self, x: Numbers) -> tuple[Float[Array, "n r"], Float[Array, "n n"]]:
        """Return posterior mean and full covariance over all points, in coordinates: n = N p, shared by r copies."""
        return _joint(self._conditioned(), check_points(self.field.space, x))

    def draw(self, *, key: PRNGKeyArray) -> FieldDraw:
        """Draw one function from the posterior: a prior draw, corrected by what the data say of it."""
        posterior = self._conditioned()
        return ExactDraw(draw_conditioned(posterior, jnp.asarray(self.coordinates), key=key))

    def _of_size(self, y: Float[Array, "N ..."]) -> "ExactGP":
        """Return the model with variances that fit the size of the observations, where its own are far off."""
        size, own = float(np.mean(np.square(np.asarray(y, float)))), float(prior_size(self.field, self.likelihood))
        if size == 0.0 or 1.0 / _FAR < size / own < _FAR:
            return self
        return eqx.tree_at(lambda gp: (gp.field, gp.likelihood), self, of_size(self.field, self.likelihood, size))

    def _prior(self) -> "ExactGP":
        return eqx.tree_at(_data, self, (None, None), is_leaf=lambda leaf: leaf is None)

    def _check(self, x: Numbers, y: Numbers) -> tuple[Float[Array, "N D"], Float[Array, "N ..."]]:
        x = check_points(self.field.space, x)
        if x.shape[0] == 0:
            raise ValueError("x must hold at least one point, got none")
        return x, self.field.check_values(x, y)

    def _conditioned(self) -> Conditioned:
        if self.posterior is None:
            raise ValueError("the model has seen no data; call fit(x, y) or condition(x, y) and use what it returns")
        return self.posterior


class ExactDraw(eqx.Module):
    """One function from the posterior."""

    draw: ConditionedDraw

    @eqx.filter_jit
    def __call__(self, x: Float[Array, "L D"]) -> Float[Array, "L ..."]:
        """Evaluate it."""
        x = check_points(self.draw.posterior.field.space, x)
        return self.draw(x, None)


def _data(gp: ExactGP) -> tuple[object, object]:
    return gp.coordinates, gp.posterior


@eqx.filter_jit
def _condition(
    gp: ExactGP, x: Float[Array, "N D"], y: Float[Array, "N ..."]
) -> tuple[Float[Array, "N p r"], Conditioned]:
    coordinates = gp.field.coordinates(x, y)
    return coordinates, Conditioned(gp.field, gp.noise_variance, x, None, coordinates)


@eqx.filter_jit
def _negative_log_evidence(
    free: ExactGP, rest: ExactGP, x: Float[Array, "N D"], y: Float[Array, "N ..."]
) -> Float[Array, ""]:
    gp = eqx.combine(free, rest)
    return -log_evidence(gp.field, gp.noise_variance, x, None, gp.field.coordinates(x, y))


def _objective(free: ExactGP, rest: ExactGP, x: Float[Array, "N D"], y: Float[Array, "N ..."]) -> Float[Array, ""]:
    return _negative_log_evidence(free, rest, x, y) - log_prior(eqx.combine(free, rest))


@eqx.filter_jit
def _moments(posterior: Conditioned, x: Float[Array, "L D"]) -> tuple[Float[Array, "L q"], Float[Array, "L q q"]]:
    return posterior.moments(x, None)


@eqx.filter_jit
def _joint(posterior: Conditioned, x: Float[Array, "L D"]) -> tuple[Float[Array, "n r"], Float[Array, "n n"]]:
    return posterior.joint(x, None)
