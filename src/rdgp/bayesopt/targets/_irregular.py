"""The irregular function of the residual deep GP paper on the 2-sphere, as released and as printed."""

from typing import Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rdgp.bayesopt.targets._target import Target, Values
from rdgp.core import safe_norm
from rdgp.spaces import Space, Sphere

_HEIGHT = float(np.sqrt(105.0 / (32.0 * np.pi)))
_STEEPEST = np.arccos(-1.0 / np.sqrt(3.0))  # the longitude where sin² cos is least, 125.26 degrees
_NEAR = 1e-6  # far enough from the pole to have a longitude in single precision
_PRINTED = (0.35037667644853476, -1.1175085764852912)  # colatitude and value of the minimum


def irregular_sphere(version: Literal["released", "printed"] = "released") -> Target:
    """Return the irregular function of colatitude θ and longitude λ, C = √(105/32π).

    Released: C sin²λ cos λ cos 2θ (1 + cos θ)(1 - θ), which jumps at the north pole and has its infimum -0.7867 there,
    approached along λ = ±125.26 degrees; a local minimum of -0.2328 lies near θ = 1.67. Printed: C sin³λ sin 3θ
    (1 + cos θ)(1 - θ), minimum -1.1175 at θ = 0.350, λ = -90 degrees. At the poles λ counts as 0.
    """
    if version == "released":
        minimum, center = -4.0 * _HEIGHT / (3.0 * np.sqrt(3.0)), _place(_NEAR, _STEEPEST)
        return Target("irregular", Sphere(2), float(minimum), _released, center)
    if version == "printed":
        return Target("irregular, printed", Sphere(2), _PRINTED[1], _printed, _place(_PRINTED[0], -np.pi / 2.0))
    raise ValueError(f"version must be 'released' or 'printed', got {version!r}")


def _place(colatitude: float, longitude: float) -> Float[Array, "3"]:
    rho = np.sin(colatitude)
    return jnp.asarray([rho * np.cos(longitude), rho * np.sin(longitude), np.cos(colatitude)], float)


def _released(space: Space, x: Float[Array, "*N 3"]) -> Values:
    theta, cosine, sine = _angles(x)
    return _HEIGHT * sine**2 * cosine * jnp.cos(2.0 * theta) * _slope(x, theta)


def _printed(space: Space, x: Float[Array, "*N 3"]) -> Values:
    theta, _, sine = _angles(x)
    return _HEIGHT * sine**3 * jnp.sin(3.0 * theta) * _slope(x, theta)


def _slope(x: Float[Array, "*N 3"], theta: Float[Array, "*N"]) -> Float[Array, "*N"]:
    return (1.0 + x[..., 2]) * (1.0 - theta)


def _angles(x: Float[Array, "*N 3"]) -> tuple[Float[Array, "*N"], Float[Array, "*N"], Float[Array, "*N"]]:
    """Return colatitude, and cosine and sine of the longitude, with finite derivatives at the poles."""
    rho = safe_norm(x[..., :2])
    regular = rho > 0.0
    safe = jnp.where(regular, rho, 1.0)
    cosine, sine = (jnp.where(regular, x[..., i] / safe, float(i == 0)) for i in (0, 1))
    return jnp.arctan2(rho, x[..., 2]), cosine, sine
