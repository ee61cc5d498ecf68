"""Known noise of observations: how users give it, and how models take it."""

from typing import Any

import numpy as np
from jaxtyping import Float

from rdgp.core import check_unmasked

_ROUNDING = 1e-8  # of the largest eigenvalue of a covariance matrix


def known_covariances(
    noise_variance: Any, num_points: int, num_targets: int
) -> Float[np.ndarray, "N"] | Float[np.ndarray, "N P P"]:
    """Return known noise as one variance for each observation, or as covariance matrices of its targets; or raise.

    It may come as variances [N] of every target, as variances [N, P] of each, or as covariance matrices [N, P, P].
    """
    check_unmasked(noise_variance, "noise_variance")
    noise, (n, p) = np.asarray(noise_variance, dtype=np.float64), (num_points, num_targets)
    shapes = ((n,), (n, p), (n, p, p))
    if noise.shape not in shapes:
        wanted = " or ".join(map(str, shapes))
        raise ValueError(f"noise_variance must have shape {wanted} for {n} observations, got {noise.shape}")
    missing = int((~np.isfinite(noise)).sum())
    if missing:
        raise ValueError(
            f"noise_variance must be finite, got {missing} NaN or infinite values of {noise.size}; drop these "
            "observations or fill in their variances"
        )
    if noise.ndim == 3:
        _check_covariances(noise)
    elif (noise < 0.0).any():
        raise ValueError(
            f"noise_variance must not be negative, got {noise.min():g}; pass squares of standard deviations"
        )
    if p == 1:
        return noise.reshape(n)
    return noise[..., None] * np.eye(p) if noise.ndim == 2 else noise


def scaled_noise(
    noise: Float[np.ndarray, "N"] | Float[np.ndarray, "N P P"], scale: Float[np.ndarray, "P"]
) -> Float[np.ndarray, "N"] | Float[np.ndarray, "N P P"]:
    """Return the noise of targets that are divided by their scales."""
    if noise.ndim == 1 and (scale == scale[0]).all():
        return noise / scale[0] ** 2
    covariances = noise[:, None, None] * np.eye(scale.size) if noise.ndim == 1 else noise
    return covariances / (scale[:, None] * scale[None, :])


def _check_covariances(noise: Float[np.ndarray, "N P P"]) -> None:
    """Raise unless all are symmetric with no negative eigenvalue but for rounding."""
    values = np.linalg.eigvalsh(noise)
    size = np.maximum(np.abs(values).max(axis=1), np.finfo(np.float64).tiny)
    wrong = (values.min(axis=1) < -_ROUNDING * size) | (
        np.abs(noise - np.swapaxes(noise, 1, 2)).max(axis=(1, 2)) > _ROUNDING * size
    )
    if wrong.any():
        raise ValueError(
            f"noise_variance must hold covariance matrices, symmetric and without negative eigenvalues, got "
            f"{int(wrong.sum())} other matrices of {len(noise)}, the first at index {int(np.argmax(wrong))}"
        )
