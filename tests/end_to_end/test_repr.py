"""Models, and what they are made of, print as short readable lines with their numbers."""

import jax
import numpy as np
import pytest

from rdgp.fields import FrameField, HodgeField, ProjectedField, ScalarField, StackedField
from rdgp.inference import fit
from rdgp.kernels import Heat, Matern, Sum
from rdgp.likelihoods import Gaussian, StudentT
from rdgp.models import DeepGP, ExactGP, deep_gp
from rdgp.posteriors import InducingPoints, Interdomain
from rdgp.spaces import Circle, Euclidean, Product, Sphere

SPHERE = Sphere(2)
X = np.asarray(SPHERE.random(12, key=jax.random.key(0)))
ROUGH, SMOOTH = Matern(2.5, 0.5, 0.01), Heat(0.3, 2.0)
TEXT = {
    "ScalarField(Sphere(2), Matern(nu=2.5, lengthscale=0.5, variance=0.01), 9 features)": ScalarField(SPHERE, ROUGH, 3),
    "ScalarField(Euclidean(2), Matern(nu=1.5, lengthscale=[1, 2], variance=1))": ScalarField(
        Euclidean(2), Matern(1.5, [1.0, 2.0])
    ),
    "ScalarField(Product(Sphere(2), Sphere(1)), (Matern(nu=2.5, lengthscale=0.5, variance=0.01), "
    "Heat(lengthscale=0.3, variance=2)), 20 features)": ScalarField(Product(SPHERE, Circle()), (ROUGH, SMOOTH), (2, 3)),
    "StackedField(Sphere(2), Heat(lengthscale=0.3, variance=2), outputs=2, 18 features)": StackedField(
        SPHERE, SMOOTH, 3, outputs=2
    ),
    'FrameField(Sphere(2), Heat(lengthscale=0.3, variance=2), frame="east_north", 8 features)': FrameField(
        SPHERE, SMOOTH, 2, frame="east_north"
    ),
    "ProjectedField(Product(Sphere(2), Sphere(1)), Heat(lengthscale=0.3, variance=2), factors=(0,), 9 features)": (
        ProjectedField(Product(SPHERE, Circle()), SMOOTH, 2, factors=(0,))
    ),
    "HodgeField(Sphere(2), gradient=Matern(nu=2.5, lengthscale=0.5, variance=0.01), "
    "curl=Heat(lengthscale=0.3, variance=2), 30 features)": HodgeField(SPHERE, ROUGH, SMOOTH, 3),
    "ScalarField(Sphere(2), Sum(Matern(nu=2.5, lengthscale=0.5, variance=0.01), Heat(lengthscale=0.3, variance=2)), "
    "4 features)": ScalarField(SPHERE, Sum(ROUGH, SMOOTH), 2),
    "Interdomain(ScalarField(Sphere(2), Heat(lengthscale=0.3, variance=2), 9 features), tail=1)": Interdomain(
        ScalarField(SPHERE, SMOOTH, 3), tail=1
    ),
    "InducingPoints(ScalarField(Sphere(2), Heat(lengthscale=0.3, variance=2), 9 features), 12 trained points)": (
        InducingPoints(ScalarField(SPHERE, SMOOTH, 3), X, trainable=True)
    ),
    "Integrated(ScalarField(Sphere(2), Heat(lengthscale=0.3, variance=2), 9 features))": (
        DeepGP((), ScalarField(SPHERE, SMOOTH, 3)).output
    ),
    "Explicit(Interdomain(ScalarField(Sphere(2), Heat(lengthscale=0.3, variance=2), 9 features)))": (
        DeepGP((), Interdomain(ScalarField(SPHERE, SMOOTH, 3))).output
    ),
    "Points(Sphere(2))": deep_gp(SPHERE, 1, output="point").output,
}


@pytest.mark.parametrize("text", TEXT)
def test_parts_of_models(text: str) -> None:
    assert repr(TEXT[text]) == text


def test_a_fitted_model_shows_its_numbers() -> None:
    model = deep_gp(SPHERE, num_levels=1, num_output_levels=2, constant_mean=True)
    fitted = fit(model, X, X[:, 0] + 3.0 + 0.1 * np.sin(40.0 * X[:, 1]), key=jax.random.key(0), steps=2, progress=False)
    lines = repr(fitted.model).splitlines()
    assert lines[0] == "DeepGP on Sphere(2), 12 observations"
    assert lines[1].startswith("  1. Interdomain(HodgeField(Sphere(2), gradient=Matern(nu=1.")
    assert lines[2].startswith("  output: Integrated(ScalarField(Sphere(2), Matern(nu=")
    assert lines[2].endswith(", 4 features))")
    assert lines[3] == f"  noise: Gaussian(noise_variance={float(fitted.model.noise_variance):.4g})"
    assert lines[4] == f"  mean: {float(fitted.model.mean.value):.4g}"
    assert len(lines) == 5


def test_exact_models_and_likelihoods() -> None:
    gp = ExactGP(ScalarField(SPHERE, SMOOTH, 3), 0.25)
    field = "  field: ScalarField(Sphere(2), Heat(lengthscale=0.3, variance=2), 9 features)"
    noise = "  noise: Gaussian(noise_variance=0.25)"
    assert repr(gp).splitlines() == ["ExactGP on Sphere(2)", field, noise]
    assert repr(gp.condition(X, X[:, 0])).splitlines() == ["ExactGP on Sphere(2), 12 observations", field, noise]
    assert repr(StudentT(0.2, 9.0)) == "StudentT(freedom=9, scale=0.2)"
    assert repr(Gaussian(0.5)) == "Gaussian(noise_variance=0.5)"


def test_a_model_prints_inside_a_trace() -> None:
    texts: list[str] = []

    @jax.jit
    def show(model: DeepGP) -> None:
        texts.append(repr(model))

    with jax.ensure_compile_time_eval():
        jax.eval_shape(show, DeepGP((), ScalarField(SPHERE, SMOOTH, 3)))
    assert "ScalarField(Sphere(2), Heat(" in texts[0]
