"""Scores of a prediction. Lower is better, but for coverages, which should equal their probability.

Components are coordinates: for tangent vectors the d components in the frame of the prediction, because ambient
components have no density of their own.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
from jax.scipy.special import ndtr
from jax.scipy.stats import norm
from jaxtyping import Array, Float, PRNGKeyArray
from scipy.special import chdtri

from rdgp.core import Numbers, as_float_array, check_count, check_finite, compiled
from rdgp.fields import NumberFrame
from rdgp.models import Prediction


def nlpd(prediction: Prediction, y: Numbers) -> float:
    """Return the negative log predictive density of y, a mean over points."""
    prediction, y = _check(prediction, y)
    return -float(jnp.mean(prediction.log_prob(y)))


def mse(prediction: Prediction, y: Numbers) -> float:
    """Return the mean over points and components of (y - mean)²; for tangent vectors that is |y - mean|² / d."""
    return float(compiled(_mse, *_check(prediction, y)))


def crps(prediction: Prediction, y: Numbers) -> Float[Array, "..."]:
    """Return the continuous ranked probability score E|X - y| - E|X - X'|/2 of each component, a mean over points.

    One number for scalars, else one for each component; in closed form for mixtures of Gaussians (Grimit et al. 2006).
    """
    return _shape_like(prediction, compiled(_crps, *_check(prediction, y)))


def energy_score(prediction: Prediction, y: Numbers, *, key: PRNGKeyArray, samples: int = 200) -> float:
    """Return the energy score E|X - y| - E|X - X'|/2 of whole vectors, a mean over points, estimated by samples."""
    return float(compiled(_energy_score, *_check(prediction, y), key, check_count(samples, "samples", 2)))


def coverage(prediction: Prediction, y: Numbers, probability: float = 0.9) -> Float[Array, "..."]:
    """Return how often each component of y lies in the central interval of a given probability.

    One number for scalars, else one for each component.
    """
    _check_probability(probability)
    observed, values = compiled(_in_coordinates, *_check(prediction, y))
    low, high = (observed.quantile((1.0 + side * probability) / 2.0) for side in (-1.0, 1.0))
    return _shape_like(prediction, compiled(_share_between, values, low, high))


def pit(prediction: Prediction, y: Numbers) -> Float[Array, "N ..."]:
    """Return the probability integral transform F(y) of each component: uniform on 0..1 if calibrated.

    [N] for scalars, else [N, q]; F is the distribution function of the mixture, noise included.
    """
    values = compiled(_pit, *_check(prediction, y))
    return values if prediction.frame.value_shape else values[:, 0]


def calibration_curve(prediction: Prediction, y: Numbers, probabilities: Numbers) -> Float[Array, "L ..."]:
    """Return how often each component of y lies in the central interval, for each of many probabilities.

    [L] for scalars, else [L, q]: the `coverage` of all of them from one pass over the data.
    """
    probabilities = as_float_array(probabilities, "probabilities")
    if probabilities.ndim != 1 or not probabilities.size:
        raise ValueError(f"probabilities must be a list of numbers between 0 and 1, got shape {probabilities.shape}")
    for probability in probabilities:
        _check_probability(float(probability))
    distance = jnp.abs(2.0 * pit(prediction, y) - 1.0)
    return jnp.stack([jnp.mean(distance <= probability, axis=0, dtype=distance.dtype) for probability in probabilities])


def region_coverage(prediction: Prediction, y: Numbers, probability: float = 0.9) -> float:
    """Return how often y lies in the ellipsoid (y - mean)ᵀ covariance⁻¹ (y - mean) <= χ²_q(probability)."""
    _check_probability(probability)
    largest = chdtri(prediction.means.shape[-1], 1.0 - probability)
    return float(jnp.mean(compiled(_mahalanobis, *_check(prediction, y)) <= largest))


def _check(prediction: Prediction, y: Numbers) -> tuple[Prediction, Float[Array, "N ..."]]:
    """Return the prediction and y as an array of its dtype, or raise."""
    y = as_float_array(y, "y")
    n = prediction.means.shape[1]
    expected = (n, *prediction.frame.value_shape)
    if y.shape != expected:
        raise ValueError(f"y must have shape {expected} like the mean of the prediction, got {y.shape}")
    if n == 0:
        raise ValueError("y must hold at least one observation, got none")
    check_finite(y, "y")
    return prediction, y.astype(prediction.means.dtype)


def _check_probability(probability: float) -> None:
    if not 0.0 < probability < 1.0:
        raise ValueError(f"probability must lie between 0 and 1, got {probability}; 0.9 is ninety percent")


def _in_coordinates(prediction: Prediction, y: Float[Array, "N ..."]) -> tuple[Prediction, Float[Array, "N q"]]:
    """Return the predictive distribution of observations, and observations, as coordinates."""
    observed = prediction.observed
    numbers = NumberFrame(observed.means.shape[-1:])
    return replace(observed, frame=numbers), observed.frame.coordinates(y)


def _shape_like(prediction: Prediction, scores: Float[Array, "q"]) -> Float[Array, "..."]:
    """Return one number for scalars."""
    return scores if prediction.frame.value_shape else scores.reshape(())


def _mse(prediction: Prediction, y: Float[Array, "N ..."]) -> Float[Array, ""]:
    observed, y = _in_coordinates(prediction, y)
    return jnp.mean(jnp.square(y - observed.mean))


def _crps(prediction: Prediction, y: Float[Array, "N ..."]) -> Float[Array, "q"]:
    observed, y = _in_coordinates(prediction, y)
    means, variances = observed.means, jnp.diagonal(observed.covariances, axis1=-2, axis2=-1)
    error = jnp.mean(_expected_absolute(y - means, variances), axis=0)

    def to_all(member: tuple[Float[Array, "N q"], Float[Array, "N q"]]) -> Float[Array, "N q"]:
        mean, variance = member
        return jnp.mean(_expected_absolute(mean - means, variance + variances), axis=0)

    spread = jnp.mean(jax.lax.map(to_all, (means, variances)), axis=0)
    return jnp.mean(error - spread / 2.0, axis=0)


def _energy_score(
    prediction: Prediction, y: Float[Array, "N ..."], key: PRNGKeyArray, samples: int
) -> Float[Array, ""]:
    observed, y = _in_coordinates(prediction, y)
    draws = observed.sample(key=key, n=samples)
    error = jnp.linalg.norm(draws - y, axis=-1)
    spread = jnp.linalg.norm(draws - jnp.roll(draws, 1, axis=0), axis=-1)
    return jnp.mean(error - spread / 2.0)


def _share_between(y: Float[Array, "N q"], low: Float[Array, "N q"], high: Float[Array, "N q"]) -> Float[Array, "q"]:
    return jnp.mean((low <= y) & (y <= high), axis=0, dtype=y.dtype)


def _pit(prediction: Prediction, y: Float[Array, "N ..."]) -> Float[Array, "N q"]:
    observed, y = _in_coordinates(prediction, y)
    variances = jnp.diagonal(observed.covariances, axis1=-2, axis2=-1)
    stds = jnp.sqrt(jnp.maximum(variances, jnp.finfo(y.dtype).tiny))
    return jnp.mean(ndtr((y - observed.means) / stds), axis=0)


def _mahalanobis(prediction: Prediction, y: Float[Array, "N ..."]) -> Float[Array, "N"]:
    observed, y = _in_coordinates(prediction, y)
    residual = y - observed.mean
    return jnp.sum(residual * jnp.linalg.solve(observed.covariance, residual[..., None])[..., 0], axis=-1)


def _expected_absolute(mean: Float[Array, "*S"], variance: Float[Array, "*S"]) -> Float[Array, "*S"]:
    """Return E|Z| for Z ~ N(mean, variance)."""
    std = jnp.sqrt(jnp.maximum(variance, jnp.finfo(mean.dtype).tiny))
    ratio = mean / std
    return 2.0 * std * norm.pdf(ratio) + mean * (2.0 * ndtr(ratio) - 1.0)
