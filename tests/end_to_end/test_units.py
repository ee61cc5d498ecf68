"""Factors of a space may have any unit, and kernels of their own."""

import jax
import numpy as np
import pytest

from rdgp.fields import HodgeField, ProjectedField, ScalarField
from rdgp.inference import fit
from rdgp.kernels import Matern
from rdgp.likelihoods import Gaussian
from rdgp.models import DeepGP, ExactGP
from rdgp.spaces import Circle, Euclidean, Product, Sphere

KEY = jax.random.key(0)
IN_TIME, IN_PHASE = Product(Sphere(2), Euclidean(1)), Product(Sphere(2), Circle())
N = 80


def sphere_points(seed: int, n: int) -> np.ndarray:
    x = np.random.default_rng(seed).normal(size=(n, 3))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def over_time(span: float) -> tuple[np.ndarray, np.ndarray]:
    """Return a function of place and time that goes round once, and noise."""
    rng = np.random.default_rng(0)
    share, x = rng.uniform(size=N), sphere_points(0, N)
    angle = 2.0 * np.pi * share
    y = np.sin(angle) * x[:, 0] + 0.5 * np.cos(angle) + 0.1 * rng.normal(size=N)
    return np.concatenate([x, span * share[:, None]], axis=1), y


def in_time(lengthscale: float) -> ScalarField:
    return ScalarField(IN_TIME, (Matern(), Matern(1.5, [lengthscale])), 3)


@pytest.mark.parametrize("span", [1e4, 1e-4])
def test_time_in_any_unit_is_learned_as_well_as_from_a_good_start(span: float) -> None:
    x, y = over_time(span)
    far, near = (ExactGP(in_time(start)).fit(x, y, progress=False) for start in (1.0, 0.2 * span))
    ours, theirs = (float(gp.log_marginal_likelihood(x, y)) for gp in (far, near))
    assert ours > theirs - 1.0
    assert 0.05 * span < float(far.field.prior.kernels[1].lengthscale[0]) < 5.0 * span
    deep = fit(DeepGP((), in_time(1.0), Gaussian()), x, y, key=KEY, progress=False)
    assert deep.history[-1] > theirs - 1.0


def test_the_evidence_does_not_depend_on_the_unit() -> None:
    by_unit = [float(ExactGP(in_time(1.0)).fit(*over_time(span), progress=False).noise_variance) for span in (1.0, 1e5)]
    assert by_unit[0] == pytest.approx(by_unit[1], rel=1e-2)


def test_lengthscales_that_suit_the_data_are_left_as_they_are() -> None:
    x, y = over_time(1.0)
    for field in (in_time(0.7), ProjectedField(IN_TIME, (Matern(), Matern(1.5, [0.7])), 2)):
        assert field.with_lengthscales_of(x) == field
        kernels = field.with_lengthscales_of(1e4 * x).processes[0].prior.kernels
        assert 1e2 < float(kernels[1].lengthscale[0]) < 1e4
        assert float(kernels[0].lengthscale) == pytest.approx(1.0)  # a sphere has no unit
    assert y.shape == (N,)


@pytest.mark.parametrize(("on_sphere", "on_circle"), [(1.5, 0.3), (0.3, 1.5)])
def test_parts_of_hodge_fields_on_products_learn_a_lengthscale_for_each_factor(
    on_sphere: float, on_circle: float
) -> None:
    def kernels(first: float, second: float) -> tuple[Matern, Matern]:
        return Matern(2.5, first, 1.0, fixed=("nu",)), Matern(2.5, second, 1.0, fixed=("nu", "variance"))

    truth = HodgeField(IN_PHASE, kernels(on_sphere, on_circle), kernels(on_sphere, on_circle), 12)
    x = IN_PHASE.random(150, key=jax.random.key(1))
    y = truth.sample(key=jax.random.key(2))(x)
    y = y + 0.05 * IN_PHASE.project(x, jax.random.normal(KEY, y.shape))
    gp = ExactGP(HodgeField(IN_PHASE, kernels(0.7, 0.7), kernels(0.7, 0.7), 12), 0.1).fit(x, y, progress=False)
    for first, second in gp.field.kernels:
        assert float(first.lengthscale) == pytest.approx(on_sphere, rel=0.5)
        assert float(second.lengthscale) == pytest.approx(on_circle, rel=0.5)
    shared = Matern(2.5, 0.7, fixed=("nu",))
    one = ExactGP(HodgeField(IN_PHASE, shared, shared, 12), 0.1).fit(x, y, progress=False)
    assert float(gp.log_marginal_likelihood(x, y)) > float(one.log_marginal_likelihood(x, y)) + 20.0
