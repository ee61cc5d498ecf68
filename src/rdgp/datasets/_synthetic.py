"""Points and target functions on the sphere made by formulas."""

from typing import Literal

import numpy as np
from jaxtyping import Float

from rdgp.core import Numbers, check_count, check_unmasked

_GOLDEN = (1.0 + 5.0**0.5) / 2.0


def fibonacci_sphere(num_points: int) -> Float[np.ndarray, "N 3"]:
    """Return an even cover of the 2-sphere: colatitude arccos(1 - (2i + 1)/n), longitude 2πi over the golden ratio.

    >>> fibonacci_sphere(4)[0].round(3).tolist()
    [0.661, 0.0, 0.75]
    """
    i = np.arange(check_count(num_points, "num_points"))
    z, lon = 1.0 - (2.0 * i + 1.0) / num_points, 2.0 * np.pi * i / _GOLDEN
    rho = np.sqrt(1.0 - z * z)
    return np.stack([rho * np.cos(lon), rho * np.sin(lon), z], axis=-1)


def irregular_target(x: Numbers, target: Literal["released", "printed"] = "released") -> Float[np.ndarray, " N"]:
    """Return the paper's synthetic target on the 2-sphere, as its code computes it or as its appendix prints it.

    Released: -√(15/8π) |sin λ| cos λ cos θ - √(3/8π) |sin λ'| cos θ'. Printed: √(105/32π) sin³λ sin 3θ + √(15/8π)
    sin λ' sin 2θ'. θ is colatitude, λ longitude, primes after R(x) = (x1, -x3, x2).
    """
    check_unmasked(x, "x")
    points = np.asarray(x, dtype=np.float64)
    if points.ndim != 2 or points.shape[-1] != 3:
        raise ValueError(f"x must be points of the 2-sphere [N, 3], got shape {points.shape}")
    lon, cosine = _angles(points)
    turned_lon, turned_cosine = _angles(np.stack([points[:, 0], -points[:, 2], points[:, 1]], axis=-1))
    if target == "released":
        first = np.sqrt(15.0 / (8.0 * np.pi)) * np.abs(np.sin(lon)) * np.cos(lon) * cosine
        return -first - np.sqrt(3.0 / (8.0 * np.pi)) * np.abs(np.sin(turned_lon)) * turned_cosine
    if target == "printed":
        first = np.sqrt(105.0 / (32.0 * np.pi)) * np.sin(lon) ** 3 * np.sin(3.0 * np.arccos(cosine))
        second = np.sqrt(15.0 / (8.0 * np.pi)) * np.sin(turned_lon) * np.sin(2.0 * np.arccos(turned_cosine))
        return first + second
    raise ValueError(f"target must be 'released' or 'printed', got {target!r}")


def _angles(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.arctan2(x[:, 1], x[:, 0]), np.clip(x[:, 2], -1.0, 1.0)
