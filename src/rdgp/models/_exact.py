"""Exact Gaussian process regression on any field."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import (
    Numbers,
    Parameter,
    Progress,
    check_count,
    jittered_cholesky,
    solve_cholesky,
    solve_lower,
    split_trainable,
)
from rdgp.fields import Field, FieldDraw, check_points
from rdgp.models._prediction import Prediction
from rdgp.optimize import minimize_lbfgs

_BATCH = 1024  # test points predicted at once


class _Conditioned(NamedTuple):
    """Data a model is conditioned on, and what prediction needs of them."""

    x: Float[Array, "N D"]
    coordinates: Float[Array, "n r"]
    factor: Float[Array, "n n"]
    solution: Float[Array, "n r"]


class ExactGP(eqx.Module):
    """Gaussian process regression y = f(x) + noise with all N³ of its cost and none of its approximations.

    For tangent fields y holds tangent vectors and the noise is isotropic in the tangent space.
    """

    field: Field
    _noise: Parameter
    data: _Conditioned | None

    def __init__(self, field: Field, noise_variance: float = 0.1) -> None:
        if not isinstance(field, Field):
            raise ValueError(f"ExactGP needs a field such as ScalarField(Sphere(2), ...), got {type(field).__name__}")
        self.field = field
        self._noise = Parameter(noise_variance, name="noise_variance")
        self.data = None

    @property
    def noise_variance(self) -> Float[Array, ""]:
        """Variance of the observation noise, per coordinate."""
        return self._noise.value

    def log_marginal_likelihood(self, x: Numbers, y: Numbers) -> Float[Array, ""]:
        """Return log p(y) under the prior and the noise."""
        x, y = self._check(x, y)
        return _log_evidence(self, x, y)

    def fit(self, x: Numbers, y: Numbers, *, steps: int = 200, progress: bool = True) -> "ExactGP":
        """Maximise the marginal likelihood by L-BFGS and return the model conditioned on the data."""
        x, y = self._check(x, y)
        free, rest = split_trainable(eqx.tree_at(lambda gp: gp.data, self, None, is_leaf=lambda leaf: leaf is None))
        with Progress("fit", check_count(steps, "steps"), enabled=progress) as bar:
            best = minimize_lbfgs(
                _negative_log_evidence,
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
        data = _condition(self, x, y)
        if not bool(jnp.all(jnp.isfinite(data.factor))):
            raise ValueError(
                f"the covariance of the {x.shape[0]} points is not positive definite at noise_variance "
                f"{float(self.noise_variance):.3g}; raise noise_variance or use float64"
            )
        return eqx.tree_at(lambda gp: gp.data, self, data, is_leaf=lambda leaf: leaf is None)

    def predict(self, x: Numbers) -> Prediction:
        """Return the posterior law at each point."""
        x = check_points(self.field.space, x)
        data = self._conditioned()
        pieces = [_moments(self, data, x[i : i + _BATCH]) for i in range(0, max(x.shape[0], 1), _BATCH)]
        mean, covariance = (jnp.concatenate(part) for part in zip(*pieces, strict=True))
        scalar = self.field.value_shape() == ()
        return Prediction(mean[None], covariance[None], self.noise_variance, self.field.basis(x), scalar)

    def joint(self, x: Numbers) -> tuple[Float[Array, "n r"], Float[Array, "n n"]]:
        """Return posterior mean and full covariance over all points, in coordinates: n = N p, shared by r copies."""
        x = check_points(self.field.space, x)
        data = self._conditioned()
        cross = _matrix(self.field.coordinate_covariance(data.x, x))
        half = solve_lower(data.factor, cross)
        return cross.T @ data.solution, _matrix(self.field.coordinate_covariance(x, x)) - half.T @ half

    def draw(self, *, key: PRNGKeyArray) -> FieldDraw:
        """Draw one function from the posterior: a prior draw, corrected by what the data say of it."""
        data = self._conditioned()
        key_prior, key_noise = jax.random.split(key)
        prior = self.field.sample(key=key_prior)
        drawn = self.field.coordinates(data.x, prior(data.x)).reshape(data.coordinates.shape)
        noise = jnp.sqrt(self.noise_variance) * jax.random.normal(key_noise, drawn.shape, drawn.dtype)
        return _ExactDraw(self.field, prior, data.x, solve_cholesky(data.factor, data.coordinates - drawn - noise))

    def _check(self, x: Numbers, y: Numbers) -> tuple[Float[Array, "N D"], Float[Array, "N ..."]]:
        x = check_points(self.field.space, x)
        if x.shape[0] == 0:
            raise ValueError("x must hold at least one point, got none")
        return x, self.field.check_values(x, y)

    def _conditioned(self) -> _Conditioned:
        if self.data is None:
            raise ValueError("the model has seen no data; call fit(x, y) or condition(x, y) and use what it returns")
        return self.data


class _ExactDraw(eqx.Module):
    field: Field
    prior: FieldDraw
    x: Float[Array, "N D"]
    solution: Float[Array, "n r"]

    @eqx.filter_jit
    def __call__(self, points: Float[Array, "L D"]) -> Float[Array, "L ..."]:
        points = check_points(self.field.space, points)
        correction = _matrix(self.field.coordinate_covariance(points, self.x)) @ self.solution
        correction = correction.reshape(points.shape[0], -1)
        basis = self.field.basis(points)
        if basis is not None:
            correction = jnp.einsum("npq,nq->np", basis, correction)
        return self.prior(points) + correction.reshape(points.shape[0], *self.field.value_shape())


def _matrix(covariance: Float[Array, "N p L q"]) -> Float[Array, "n l"]:
    n, p, m, q = covariance.shape
    return covariance.reshape(n * p, m * q)


@eqx.filter_jit
def _condition(gp: ExactGP, x: Float[Array, "N D"], y: Float[Array, "N ..."]) -> _Conditioned:
    covariance = _matrix(gp.field.coordinate_covariance(x, x))
    noise = gp.noise_variance.astype(x.dtype) * jnp.eye(covariance.shape[0], dtype=x.dtype)
    factor = jittered_cholesky(covariance + noise)
    coordinates = gp.field.coordinates(x, y)
    coordinates = coordinates.reshape(-1, coordinates.shape[-1])
    return _Conditioned(x, coordinates, factor, solve_cholesky(factor, coordinates))


@eqx.filter_jit
def _log_evidence(gp: ExactGP, x: Float[Array, "N D"], y: Float[Array, "N ..."]) -> Float[Array, ""]:
    data = _condition(gp, x, y)
    n, copies = data.coordinates.shape
    half_log_det = jnp.sum(jnp.log(jnp.diagonal(data.factor)))
    fit = jnp.sum(data.coordinates * data.solution)
    return -0.5 * fit - copies * (half_log_det + 0.5 * n * jnp.log(2.0 * jnp.pi))


def _negative_log_evidence(
    free: ExactGP, rest: ExactGP, x: Float[Array, "N D"], y: Float[Array, "N ..."]
) -> Float[Array, ""]:
    return -_log_evidence(eqx.combine(free, rest), x, y)


@eqx.filter_jit
def _moments(
    gp: ExactGP, data: _Conditioned, x: Float[Array, "L D"]
) -> tuple[Float[Array, "L q"], Float[Array, "L q q"]]:
    """Return mean and covariance of the q = p r coordinates at each point."""
    variance = gp.field.coordinate_variance(x)
    size, copies = variance.shape[-1], data.coordinates.shape[-1]
    cross = _matrix(gp.field.coordinate_covariance(data.x, x))
    half = solve_lower(data.factor, cross).reshape(-1, x.shape[0], size)
    covariance = variance - jnp.einsum("alp,alq->lpq", half, half)
    mean = (cross.T @ data.solution).reshape(x.shape[0], size * copies)
    eye = jnp.eye(copies, dtype=x.dtype)
    shared = covariance[:, :, None, :, None] * eye[None, None, :, None, :]
    return mean, shared.reshape(x.shape[0], size * copies, size * copies)
