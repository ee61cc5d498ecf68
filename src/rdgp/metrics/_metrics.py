"""Scores of a prediction. Lower is better, but for coverages, which should equal their level.

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


def coverage(prediction: Prediction, y: Numbers, level: float = 0.9) -> Float[Array, "..."]:
    """Return how often each component of y lies in the central interval of a given probability.

    One number for scalars, else one for each component.
    """
    _check_level(level)
    law, values = compiled(_in_coordinates, *_check(prediction, y))
    low, high = law.quantile((1.0 - level) / 2.0), law.quantile((1.0 + level) / 2.0)
    return _shape_like(prediction, compiled(_share_between, values, low, high))


def pit(prediction: Prediction, y: Numbers) -> Float[Array, "N ..."]:
    """Return the probability integral transform F(y) of each component: uniform on 0..1 where the law is right.

    [N] for scalars, else [N, q]; F is the distribution function of the mixture, noise included.
    """
    values = compiled(_pit, *_check(prediction, y))
    return values[:, 0] if prediction.scalar else values


def calibration_curve(prediction: Prediction, y: Numbers, levels: Numbers) -> Float[Array, "L ..."]:
    """Return how often each component of y lies in the central interval, for each of many levels.

    [L] for scalars, else [L, q]: the `coverage` at all levels from one pass over the data.
    """
    levels = as_float_array(levels, "levels")
    if levels.ndim != 1 or not levels.size:
        raise ValueError(f"levels must be a list of probabilities, got shape {levels.shape}")
    for level in levels:
        _check_level(float(level))
    distance = jnp.abs(2.0 * pit(prediction, y) - 1.0)
    return jnp.stack([jnp.mean(distance <= level, axis=0, dtype=distance.dtype) for level in levels])


def region_coverage(prediction: Prediction, y: Numbers, level: float = 0.9) -> float:
    """Return how often y lies in the ellipsoid (y - mean)ᵀ covariance⁻¹ (y - mean) <= χ²_q(level)."""
    _check_level(level)
    bound = chdtri(prediction.means.shape[-1], 1.0 - level)
    return float(jnp.mean(compiled(_mahalanobis, *_check(prediction, y)) <= bound))


def _check(prediction: Prediction, y: Numbers) -> tuple[Prediction, Float[Array, "N ..."]]:
    """Return the prediction and y as an array of its dtype, or raise."""
    y = as_float_array(y, "y")
    _, n, size = prediction.means.shape
    expected = (n,) if prediction.scalar else (n, size if prediction.basis is None else prediction.basis.shape[1])
    if y.shape != expected:
        raise ValueError(f"y must have shape {expected} like the mean of the prediction, got {y.shape}")
    if n == 0:
        raise ValueError("y must hold at least one observation, got none")
    check_finite(y, "y")
    return prediction, y.astype(prediction.means.dtype)


def _check_level(level: float) -> None:
    if not 0.0 < level < 1.0:
        raise ValueError(f"level must lie between 0 and 1, got {level}; 0.9 is ninety percent")


def _in_coordinates(prediction: Prediction, y: Float[Array, "N ..."]) -> tuple[Prediction, Float[Array, "N q"]]:
    """Return the law of observations, and observations, as coordinates."""
    law = prediction.observed
    coordinates = y.reshape(y.shape[0], -1) if law.basis is None else jnp.einsum("npq,np->nq", law.basis, y)
    return replace(law, basis=None, scalar=False), coordinates


def _shape_like(prediction: Prediction, scores: Float[Array, "q"]) -> Float[Array, "..."]:
    """Return one number for scalars."""
    return scores.reshape(()) if prediction.scalar else scores


def _mse(prediction: Prediction, y: Float[Array, "N ..."]) -> Float[Array, ""]:
    law, y = _in_coordinates(prediction, y)
    return jnp.mean(jnp.square(y - law.mean))


def _crps(prediction: Prediction, y: Float[Array, "N ..."]) -> Float[Array, "q"]:
    law, y = _in_coordinates(prediction, y)
    means, variances = law.means, jnp.diagonal(law.covariances, axis1=-2, axis2=-1)
    error = jnp.mean(_expected_absolute(y - means, variances), axis=0)

    def to_all(member: tuple[Float[Array, "N q"], Float[Array, "N q"]]) -> Float[Array, "N q"]:
        mean, variance = member
        return jnp.mean(_expected_absolute(mean - means, variance + variances), axis=0)

    spread = jnp.mean(jax.lax.map(to_all, (means, variances)), axis=0)
    return jnp.mean(error - spread / 2.0, axis=0)


def _energy_score(
    prediction: Prediction, y: Float[Array, "N ..."], key: PRNGKeyArray, samples: int
) -> Float[Array, ""]:
    law, y = _in_coordinates(prediction, y)
    draws = law.sample(key=key, n=samples)
    error = jnp.linalg.norm(draws - y, axis=-1)
    spread = jnp.linalg.norm(draws - jnp.roll(draws, 1, axis=0), axis=-1)
    return jnp.mean(error - spread / 2.0)


def _share_between(y: Float[Array, "N q"], low: Float[Array, "N q"], high: Float[Array, "N q"]) -> Float[Array, "q"]:
    return jnp.mean((low <= y) & (y <= high), axis=0, dtype=y.dtype)


def _pit(prediction: Prediction, y: Float[Array, "N ..."]) -> Float[Array, "N q"]:
    law, y = _in_coordinates(prediction, y)
    variances = jnp.diagonal(law.covariances, axis1=-2, axis2=-1)
    deviations = jnp.sqrt(jnp.maximum(variances, jnp.finfo(y.dtype).tiny))
    return jnp.mean(ndtr((y - law.means) / deviations), axis=0)


def _mahalanobis(prediction: Prediction, y: Float[Array, "N ..."]) -> Float[Array, "N"]:
    law, y = _in_coordinates(prediction, y)
    residual = y - law.mean
    return jnp.sum(residual * jnp.linalg.solve(law.covariance, residual[..., None])[..., 0], axis=-1)


def _expected_absolute(mean: Float[Array, "*S"], variance: Float[Array, "*S"]) -> Float[Array, "*S"]:
    """Return E|Z| for Z ~ N(mean, variance)."""
    deviation = jnp.sqrt(jnp.maximum(variance, jnp.finfo(mean.dtype).tiny))
    ratio = mean / deviation
    return 2.0 * deviation * norm.pdf(ratio) + mean * (2.0 * ndtr(ratio) - 1.0)
