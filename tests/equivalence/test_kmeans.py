"""Inducing points chosen by k-means."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdgp.posteriors import kmeans
from rdgp.spaces import Euclidean, Product, Rotations, Space, Torus
from tests.cases import points
from tests.equivalence.families import SPHERE, X

pytestmark = pytest.mark.xdist_group("kmeans")  # one worker compiles what they share

SPACES = [SPHERE, Torus(2), Rotations(), Product(Rotations(), Euclidean(1))]


def distances(space: Space, a: jax.Array, b: jax.Array) -> np.ndarray:
    return np.asarray(space.distance(a[:, None, :], b[None, :, :]))


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_kmeans_returns_distinct_points_of_the_space(space: Space) -> None:
    x = np.asarray(points(space, 0, 60))
    x = jnp.asarray(np.concatenate([x, x[:20]]))
    centers = kmeans(space, x, 7, key=jax.random.key(1))
    assert centers.shape == (7, space.ambient_dim)
    assert np.all(space.contains(centers))
    assert np.min(distances(space, centers, centers) + np.eye(7)) > 1e-3
    np.testing.assert_array_equal(centers, kmeans(space, x, 7, key=jax.random.key(1)))
    ours, chance = (
        np.mean(distances(space, x, some).min(1) ** 2) for some in (centers, jnp.asarray(np.asarray(x)[:7]))
    )
    assert ours < chance


def test_both_quaternions_of_a_rotation_are_one_point() -> None:
    x = np.random.default_rng(0).normal(size=(6, 4))
    x = x / np.linalg.norm(x, axis=1, keepdims=True)
    both = jnp.asarray(np.concatenate([x, -x, [[0.0, 1.0, 0.0, 0.0], [-0.0, -1.0, 0.0, 0.0]]]))
    assert kmeans(Rotations(), both, 14, key=jax.random.key(0)).shape == (7, 4)
    few = np.asarray(kmeans(Rotations(), both, 5, key=jax.random.key(0)))
    assert np.max(np.abs(few @ few.T) - np.eye(5)) < 1 - 1e-6


def test_kmeans_of_fewer_distinct_points_returns_them() -> None:
    np.testing.assert_allclose(kmeans(SPHERE, jnp.asarray(np.concatenate([X, X, X])), 20, key=jax.random.key(0)), X)


@pytest.mark.parametrize("space", [SPHERE, Torus(2)], ids=str)
def test_kmeans_of_opposite_points_stays_on_the_space(space: Space) -> None:
    """The mean of opposite points is zero, which is no direction."""
    x = np.asarray(points(space, 0, 1))
    centers = kmeans(space, jnp.asarray(np.concatenate([x, -x])), 1, key=jax.random.key(0))
    assert centers.shape == x.shape
    assert np.all(space.contains(centers))


def test_kmeans_keeps_single_precision() -> None:
    assert kmeans(SPHERE, jnp.asarray(X, jnp.float32), 4, key=jax.random.key(0)).dtype == jnp.float32
