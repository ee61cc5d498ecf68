"""The coordinates by which people read points: they lie within their limits, and lead back to the point."""

import numpy as np
import pytest

from rdgp.spaces import Box, Circle, Euclidean, Product, Rotations, Space, Sphere, Torus

SPACES = [
    Circle(),
    Sphere(2),
    Sphere(3),
    Torus(3),
    Rotations(),
    Euclidean(2),
    Box([-1.0, 0.0], [2.0, 0.5]),
    Product(Rotations(), Circle(), Box([3.0], [4.0]), Torus(2)),
]


@pytest.fixture
def x(space: Space) -> np.ndarray:
    """Return random points, the base point and, of each factor with several vectors a point, the other one."""
    normal = np.random.default_rng(0).normal(size=(40, space.ambient_dim))
    return np.asarray(space.nearest(np.concatenate([normal, -normal, space.base_point()[None]])))


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_what_is_read_leads_back(space: Space, x: np.ndarray) -> None:
    assert np.all(space.distance(space.from_readable(space.read(x)), x) < 1e-7)


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_coordinates_lie_within_their_limits(space: Space, x: np.ndarray) -> None:
    read, (low, high) = space.read(x), np.transpose(space.readable.limits)
    assert read.shape == (len(x), len(space.readable.names)) == (len(x), len(space.readable.periodic))
    assert np.all((read >= low) & (read <= high))
    assert np.array_equal(np.isfinite(high - low).all(), space.bounded)


def test_rotations_are_read_as_angle_times_axis_in_degrees() -> None:
    half = np.deg2rad(35.0)
    x = np.array(
        [[np.cos(half), 0.0, np.sin(half), 0.0], [-np.cos(half), 0.0, 0.0, np.sin(half)], [1.0, 0.0, 0.0, 0.0]]
    )
    np.testing.assert_allclose(Rotations().read(x), [[0.0, 70.0, 0.0], [0.0, 0.0, -70.0], [0.0, 0.0, 0.0]], atol=1e-12)


def test_circles_are_read_as_angles_in_degrees() -> None:
    x = np.array([[0.0, 1.0, -1.0, 0.0]])
    np.testing.assert_allclose(Torus(2).read(x), [[90.0, 180.0]])
    np.testing.assert_allclose(Circle().read(-x[:, :2]), [[-90.0]])
