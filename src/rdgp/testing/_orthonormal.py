"""Orthonormality of eigenfunctions and eigenfields, under exact quadrature or of random points."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from rdgp.spaces import Space
from rdgp.spectra import HodgeSpectrum, ScalarSpectrum, provides, quadrature
from rdgp.testing._laws import hold, hold_mean, key_of, precision

_SAMPLES = 20_000
_LAW = "features are orthonormal in the mean over the space"


def check_orthonormal(owner: str, space: Space, spectrum: ScalarSpectrum | HodgeSpectrum, largest: float) -> None:
    """Hold the features of a spectrum to orthonormality; `largest` is its largest eigenvalue.

    Products of two eigenfunctions of degree √λ have twice that degree, fields one more each for their projection.
    """
    eye = np.eye(spectrum.num_features)
    if provides(quadrature, space):
        nodes, weights = quadrature(space, 2 * int(np.sqrt(largest) + 1e-9) + 2)
        scaled = _features(spectrum, nodes).astype(float) * np.sqrt(weights)[:, None, None]
        flat = scaled.reshape(-1, scaled.shape[-1])
        hold(owner, _LAW, (flat.T @ flat).astype(precision()), eye)
        return
    rows = _features(spectrum, np.asarray(space.random(_SAMPLES, key=key_of(0)))).astype(float)
    for number, row in enumerate(eye):  # one feature with all at a time, to hold few products
        products = np.einsum("nd,ndm->nm", rows[:, :, number], rows)
        hold_mean(owner, _LAW, products, row)


def _features(
    spectrum: ScalarSpectrum | HodgeSpectrum, x: Float[np.ndarray, "N D"]
) -> Float[np.ndarray, "N D M"] | Float[np.ndarray, "N 1 M"]:
    features = np.asarray(spectrum.features(jnp.asarray(x, precision())))
    return features if features.ndim == 3 else features[:, None, :]
