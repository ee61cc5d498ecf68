"""Quadrature exact for polynomials in the ambient coordinates, to hold bases to orthonormality."""

from functools import singledispatch

import numpy as np
from jaxtyping import Float
from scipy.special import roots_gegenbauer

from rdgp.spaces import Product, Rotations, Space, Sphere, Torus

Rule = tuple[Float[np.ndarray, "_ _"], Float[np.ndarray, "_"]]  # points [Q, D] and weights [Q]


@singledispatch
def quadrature(space: Space, degree: int) -> Rule:
    """Return points and weights (summing to one) that integrate polynomials up to a degree exactly."""
    raise ValueError(f"{space} has no quadrature; it is defined on spheres, tori, rotations and their products")


@quadrature.register
def _(space: Sphere, degree: int) -> Rule:
    if space.d == 1:
        angle = 2 * np.pi * np.arange(degree + 1) / (degree + 1)
        return np.stack([np.cos(angle), np.sin(angle)], axis=1), np.full(degree + 1, 1 / (degree + 1))
    nodes, weights = roots_gegenbauer(degree // 2 + 1, (space.d - 1) / 2)
    inner, inner_weights = quadrature(Sphere(space.d - 1), degree)
    scaled = np.sqrt(1 - nodes**2)[:, None, None] * inner
    last = np.broadcast_to(nodes[:, None, None], (*scaled.shape[:2], 1))
    points = np.concatenate([scaled, last], axis=2).reshape(-1, space.ambient_dim)
    return points, np.outer(weights / weights.sum(), inner_weights).ravel()


@quadrature.register
def _(space: Rotations, degree: int) -> Rule:
    return quadrature(Sphere(3), degree)


@quadrature.register
def _(space: Torus, degree: int) -> Rule:
    return _tensor([quadrature(Sphere(1), degree)] * space.n)


@quadrature.register
def _(space: Product, degree: int) -> Rule:
    return _tensor([quadrature(factor, degree) for factor in space.factors])


def _tensor(rules: list[Rule]) -> Rule:
    points, weights = rules[0]
    for other, other_weights in rules[1:]:
        left = np.repeat(points, other.shape[0], axis=0)
        points = np.concatenate([left, np.tile(other, (points.shape[0], 1))], axis=1)
        weights = np.outer(weights, other_weights).ravel()
    return points, weights
