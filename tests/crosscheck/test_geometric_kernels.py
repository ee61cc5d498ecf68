"""Kernels and a posterior against GeometricKernels, an independent implementation."""

import logging

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdgp import Circle, ExactGP, Matern, Product, Rotations, ScalarField, Sphere
from tests.cases import points

logging.getLogger("geometric_kernels").setLevel(logging.ERROR)
gk_spaces = pytest.importorskip("geometric_kernels.spaces")
gk_kernels = pytest.importorskip("geometric_kernels.kernels")


def theirs(space: object, x: np.ndarray, y: np.ndarray, nu: float, lengthscale: float, num_levels: int) -> np.ndarray:
    kernel = gk_kernels.MaternKarhunenLoeveKernel(space, num_levels)
    params = {"nu": np.array([nu]), "lengthscale": np.array([lengthscale])}
    return np.asarray(kernel.K(params, np.asarray(x), np.asarray(y)))


@pytest.mark.parametrize("nu", [0.5, 2.5, np.inf])
@pytest.mark.parametrize("d", [2, 5])
def test_matern_on_spheres(d: int, nu: float) -> None:
    num_levels = 8 if d == 2 else 5
    x, y = points(Sphere(d), 0, 9), points(Sphere(d), 1, 9)
    ours = ScalarField(Sphere(d), Matern(float(nu), 0.7), num_levels=num_levels).covariance(x, y)
    np.testing.assert_allclose(ours, theirs(gk_spaces.Hypersphere(d), x, y, nu, 0.7, num_levels), atol=1e-8)


def _angles(x: jax.Array) -> np.ndarray:
    return np.arctan2(x[:, 1], x[:, 0])[:, None] % (2 * np.pi)


def test_matern_on_the_circle() -> None:
    x, y = points(Circle(), 0, 9), points(Circle(), 1, 9)
    ours = ScalarField(Circle(), Matern(1.5, 0.4), num_levels=10).covariance(x, y)
    np.testing.assert_allclose(ours, theirs(gk_spaces.Circle(), _angles(x), _angles(y), 1.5, 0.4, 10), atol=1e-8)


def test_matern_on_rotations() -> None:
    """GeometricKernels measures SO(3) by the rotation angle, twice our distance: its lengthscale is twice ours."""
    space, theirs_space = Rotations(), gk_spaces.SpecialOrthogonal(3)
    x, y = points(space, 0, 6), points(space, 1, 6)

    def matrices(q: jax.Array) -> np.ndarray:
        w, u = q[:, :1, None], q[:, 1:]
        cross = jnp.stack([jnp.cross(u, e) for e in jnp.eye(3)], axis=-1)
        outer = u[:, :, None] * u[:, None, :]
        eye = jnp.eye(3)
        return np.asarray((w**2 - jnp.sum(u**2, 1)[:, None, None]) * eye + 2 * outer + 2 * w * cross)

    ours = ScalarField(space, Matern(1.5, 0.3), num_levels=4).covariance(x, y)
    np.testing.assert_allclose(ours, theirs(theirs_space, matrices(x), matrices(y), 1.5, 0.6, 4), atol=1e-8)


@pytest.mark.filterwarnings("ignore:`in1d` is deprecated:DeprecationWarning")  # inside GeometricKernels
def test_matern_on_a_product_of_circles() -> None:
    """GeometricKernels counts pairs of levels; ours closes whole eigenvalues, so compare where its count does too."""
    space = Product(Circle(), Circle())
    product = gk_spaces.ProductDiscreteSpectrumSpace(gk_spaces.Circle(), gk_spaces.Circle(), num_levels=9)
    x, y = points(space, 0, 7), points(space, 1, 7)
    angles = [np.concatenate([_angles(p[:, :2]), _angles(p[:, 2:])], axis=1) for p in (x, y)]
    reference = theirs(product, *angles, 1.5, 0.6, 9)
    ours = ScalarField(space, Matern(1.5, 0.6), num_levels=6).covariance(x, y)
    np.testing.assert_allclose(ours, reference, atol=1e-8)


def test_a_posterior_mean_agrees_with_theirs_and_linear_algebra() -> None:
    x, test = points(Sphere(2), 0, 40), points(Sphere(2), 1, 30)
    y = jnp.sin(3 * x[:, 0]) + x[:, 1] * x[:, 2]
    gp = ExactGP(ScalarField(Sphere(2), Matern(2.5, 0.5, 1.3), num_levels=10), noise_variance=0.01).condition(x, y)
    space = gk_spaces.Hypersphere(2)
    gram = 1.3 * theirs(space, x, x, 2.5, 0.5, 10) + 0.01 * np.eye(40)
    cross = 1.3 * theirs(space, test, x, 2.5, 0.5, 10)
    prediction = gp.predict(test)
    np.testing.assert_allclose(prediction.mean, cross @ np.linalg.solve(gram, np.asarray(y)), atol=1e-8)
    variance = 1.3 - np.einsum("ij,ji->i", cross, np.linalg.solve(gram, cross.T))
    np.testing.assert_allclose(prediction.variance, variance, atol=1e-8)
