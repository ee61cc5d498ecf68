"""Harmonics against SciPy."""

import jax.numpy as jnp
import numpy as np
from scipy.special import sph_harm_y

from rdgp.spaces import Sphere
from rdgp.spectra import scalar_spectrum
from tests.cases import points


def test_harmonics_on_the_sphere_are_those_of_scipy() -> None:
    """SciPy's are complex, normalised by area, with the Condon-Shortley sign."""
    x = np.concatenate([points(Sphere(2), 0, 40), [[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]]])
    theta, phi = np.arccos(np.clip(x[:, 2], -1, 1)), np.arctan2(x[:, 1], x[:, 0])
    columns = []
    for degree in range(13):
        for order in range(degree + 1):
            value = np.sqrt(4 * np.pi) * (-1) ** order * sph_harm_y(degree, order, theta, phi)
            columns += [value.real] if order == 0 else [np.sqrt(2) * value.real, np.sqrt(2) * value.imag]
    ours = scalar_spectrum(Sphere(2), 13).features(jnp.asarray(x))
    np.testing.assert_allclose(ours, np.stack(columns, axis=1), atol=1e-12)
