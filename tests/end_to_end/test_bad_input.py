"""Wrong input gives one clear line: what was expected, what came, what to do."""
# ruff: noqa: E501 - one case a line reads as a table

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdgp.fields import FrameField, HodgeField, ProjectedField, ScalarField, StackedField
from rdgp.kernels import Kernel, Matern
from rdgp.models import ExactGP
from rdgp.spaces import (
    Box,
    Circle,
    Euclidean,
    Product,
    Rotations,
    Sphere,
    Torus,
    latlon_to_sphere,
    tangent_to_wind,
    wind_to_tangent,
)
from tests.cases import points

SPHERE = Sphere(2)
X = points(SPHERE, 0)
FIELD = ScalarField(SPHERE, Matern(), num_levels=4)
GP = ExactGP(FIELD, 0.1)


class Flatless(Kernel):
    """A kernel of one's own, on curved spaces only."""

    def __init__(self) -> None:
        super().__init__({"variance": 1.0})

    def log_density(self, eigenvalues: np.ndarray, dim: int) -> jax.Array:
        return -jnp.asarray(eigenvalues)


CASES = {
    "ambient dimension": (lambda: FIELD.covariance(X[:, :2], X), "3 numbers along its last axis for Sphere(2), got shape (5, 2)"),
    "off the sphere": (lambda: FIELD.features(X.at[3].mul(1.1)), "1 of 5 rows do not, the worst is row 3, off by 0.1; use space.nearest"),
    "NaN in points": (lambda: FIELD.features(X.at[2, 1].set(jnp.nan)), "1 NaN or infinite values of 15, the first at index (2, 1)"),
    "NaN in y": (lambda: GP.fit(X, jnp.array([1.0, jnp.nan, 0.0, jnp.inf, 2.0])), "y must be finite, got 2 NaN"),
    "y of wrong length": (lambda: GP.fit(X, jnp.ones(4)), "y must have shape (5,) for 5 points, got (4,)"),
    "y of wrong width": (lambda: ExactGP(ProjectedField(SPHERE, Matern(), 3)).fit(X, jnp.ones((5, 2))), "(5, 3)"),
    "no points": (lambda: GP.fit(X[:0], jnp.ones(0)), "at least one point, got none"),
    "single point": (lambda: FIELD.covariance(X[0], X), "list of points [N, 3], got shape (3,)"),
    "no data yet": (lambda: GP.predict(X), "has seen no data; call fit(x, y)"),
    "y in log_prob": (lambda: GP.condition(X, jnp.ones(5)).predict(X).log_prob(jnp.ones(3)), "y must have shape (5,)"),
    "negative lengthscale": (lambda: Matern(lengthscale=-1.0), "lengthscale must be a positive finite number, got -1.0"),
    "zero lengthscale": (lambda: Matern(1.5, 0.0), "lengthscale must be a positive finite number, got 0.0"),
    "NaN variance": (lambda: Matern(variance=float("nan")), "variance must be a positive finite number, got nan"),
    "zero noise": (lambda: ExactGP(FIELD, 0.0), "noise_variance must be a positive finite number, got 0.0"),
    "Euclidean nu": (lambda: ScalarField(Euclidean(2), Matern(1.0)), "nu must be 0.5, 1.5, 2.5 or inf on flat spaces, got 1"),
    "levels 0": (lambda: ScalarField(SPHERE, Matern(), num_levels=0), "num_levels must be a whole number of at least 1, got 0"),
    "levels missing": (lambda: ScalarField(SPHERE, Matern()), "num_levels must be a number for Sphere(2), got None"),
    "Hodge levels": (lambda: HodgeField(SPHERE, Matern(), Matern(), num_levels=-1), "num_levels must be a whole number"),
    "outputs 0": (lambda: StackedField(SPHERE, Matern(), 3, outputs=0), "outputs must be a whole number of at least 1"),
    "dimension 0": (lambda: Sphere(0), "dimension of a sphere must be a whole number of at least 1, got 0"),
    "torus 0": (lambda: Torus(0), "dimension of a torus must be a whole number of at least 1, got 0"),
    "box upside down": (lambda: Box([0.0, 1.0], [1.0, 0.0]), "every lower bound must be finite and below its upper bound"),
    "box lengths": (lambda: Box([0.0], [1.0, 2.0]), "two lists of one length"),
    "one factor": (lambda: Product(SPHERE), "at least two factors, got 1"),
    "kernel without closed form": (lambda: ScalarField(Euclidean(2), Flatless()), "Flatless has no closed form on flat spaces; define on_flat(dim)"),
    "lengthscales on the sphere": (lambda: ScalarField(SPHERE, Matern(1.5, [1.0, 2.0, 3.0]), 3), "Matern takes one number as lengthscale here, got a list"),
    "ARD length": (lambda: ScalarField(Euclidean(3), Matern(1.5, [1.0, 2.0])), "one lengthscale or 3, got 2"),
    "features of R^d": (lambda: ScalarField(Euclidean(2), Matern()).features(jnp.ones((2, 2))), "no discrete spectrum"),
    "one kernel on mixed": (lambda: ScalarField(Product(SPHERE, Euclidean(1)), Matern(), 3), "no discrete spectrum"),
    "kernels off products": (lambda: ScalarField(SPHERE, (Matern(), Matern()), 3), "a tuple of kernels needs a Product"),
    "levels per factor": (
        lambda: ScalarField(Product(SPHERE, Circle()), (Matern(), Matern()), num_levels=(3, 3, 3)),
        "one for each factor, got 3",
    ),
    "curl on the circle": (lambda: HodgeField(Circle(), Matern(), Matern(), 3), "Sphere(1) has gradient and harmonic fields, got curl"),
    "harmonic on S_2": (lambda: HodgeField(SPHERE, harmonic=Matern()), "pass None for what it lacks"),
    "no Hodge part": (lambda: HodgeField(SPHERE), "Sphere(2) has gradient and curl fields, got none"),
    "Hodge on R^d": (lambda: HodgeField(Euclidean(2), Matern()), "no Hodge spectrum; use ProjectedField or FrameField"),
    "east-north elsewhere": (lambda: FrameField(Sphere(3), Matern(), 3, frame="east_north"), "on Sphere(3)"),
    "shapes of exp": (lambda: SPHERE.exp(X, jnp.zeros((4, 3))), "x and v must have matching shapes for Sphere(2), got (5, 3) and (4, 3)"),
    "width of exp": (lambda: SPHERE.exp(X, jnp.zeros((5, 2))), "v must have 3 numbers along its last axis"),
    "NaN velocity": (lambda: SPHERE.exp(X, X * jnp.nan), "v must be finite, got 15 NaN"),
    "log of bad point": (lambda: Rotations().log(jnp.eye(4), 2 * jnp.eye(4)), "y must lie on Rotations()"),
    "latitude": (lambda: latlon_to_sphere([[95.0, 10.0]]), "latitude must lie within ±90 degrees, got 95"),
    "latlon NaN": (lambda: latlon_to_sphere([[np.nan, 10.0]]), "latlon must be finite"),
    "latlon columns": (lambda: latlon_to_sphere([[1.0, 2.0, 3.0]]), "2 numbers along its last axis"),
    "uv shape": (lambda: wind_to_tangent([[1.0, 2.0], [3.0, 4.0]], jnp.ones((3, 2))), "latlon and uv must have matching shapes"),
    "wind off the sphere": (lambda: tangent_to_wind([[2.0, 0.0, 0.0]], [[0.0, 1.0, 0.0]]), "must lie on Sphere(2)"),
    "quantile": (lambda: GP.condition(X, jnp.ones(5)).predict(X).quantile(1.5), "p must lie between 0 and 1, got 1.5"),
    "steps": (lambda: GP.fit(X, jnp.ones(5), steps=0), "steps must be a whole number of at least 1, got 0"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_wrong_input_is_explained_in_one_line(name: str) -> None:
    call, message = CASES[name]
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is checked below, as plain text
        call()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_radians_raise_a_warning() -> None:
    rng = np.random.default_rng(0)
    radians = np.stack([rng.uniform(-1.5, 1.5, 50), rng.uniform(-3.1, 3.1, 50)], axis=1)
    with pytest.warns(UserWarning, match="look like radians"):
        latlon_to_sphere(radians)


def test_wrong_shapes_are_explained_inside_a_trace_too() -> None:
    with pytest.raises(ValueError, match="3 numbers along its last axis"):
        jax.jit(lambda x: FIELD.covariance(x, x))(jnp.ones((4, 2)))
