"""The laws of kernels."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st

from rdgp.core import Prior, compiled, split_trainable
from rdgp.fields import ScalarField
from rdgp.kernels import FlatKernel, Gamma, Heat, LogNormal, Matern, Sum
from rdgp.models import ExactGP
from rdgp.spaces import Euclidean, Sphere
from rdgp.spectra import scalar_spectrum
from tests.cases import points

SPECTRUM = scalar_spectrum(Sphere(2), 13)


@jax.jit
def _scales_and_slopes(raw: jax.Array) -> tuple[jax.Array, jax.Array]:
    def scales(raw: jax.Array) -> jax.Array:
        kernel = jax.tree.map(lambda leaf: leaf.astype(raw.dtype), Matern())
        kernel = kernel.with_values(**dict(zip(("nu", "lengthscale", "variance"), jnp.exp(raw), strict=True)))
        return kernel.level_scales(SPECTRUM.eigenvalues, SPECTRUM.multiplicities, 2)

    return scales(raw), jax.jacrev(scales)(raw)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@given(log_nu=st.floats(math.log(0.01), math.log(1e4)), log_kappa=st.floats(math.log(1e-3), math.log(1e3)))
def test_scales_and_their_gradients_are_finite(dtype: type, log_nu: float, log_kappa: float) -> None:
    scales, slopes = _scales_and_slopes(jnp.array([log_nu, log_kappa, 0.0], dtype))
    assert bool(jnp.all(jnp.isfinite(scales)) & jnp.all(jnp.isfinite(slopes)))
    np.testing.assert_allclose(jnp.sum(jnp.square(scales) * SPECTRUM.multiplicities), 1.0, rtol=1e-4)


def test_very_smooth_matern_is_heat() -> None:
    rough, smooth = Matern(1e7, 0.4), Heat(0.4)
    levels = SPECTRUM.eigenvalues, SPECTRUM.multiplicities, 2
    np.testing.assert_allclose(rough.level_scales(*levels), smooth.level_scales(*levels), rtol=1e-4)
    assert math.isinf(float(smooth.nu))


def test_a_sum_of_kernels_is_the_sum_of_their_covariances() -> None:
    terms = Matern(1.5, 0.5, 2.0), Heat(0.3, 0.7), Matern(2.5, 1.0, 0.4)
    for space, num_levels in ((Sphere(2), 6), (Euclidean(3), None)):
        x, y = points(space, 0), points(space, 1)
        parts = [np.asarray(ScalarField(space, term, num_levels).covariance(x, y)) for term in terms]
        field = ScalarField(space, Sum(*terms), num_levels)
        np.testing.assert_allclose(field.covariance(x, y), sum(parts), atol=1e-13)
        np.testing.assert_allclose(field.variance, 3.1, rtol=1e-14)
    assert float(Sum(*terms).with_variance(6.0).variance) == pytest.approx(6.0)


def test_fixed_parameters_are_not_trained() -> None:
    free, _ = split_trainable(Matern(fixed=("nu", "variance")))
    assert len(jax.tree.leaves(free)) == 1
    free, _ = split_trainable(Matern())
    assert len(jax.tree.leaves(free)) == 3
    with pytest.raises(ValueError, match=r"fixed takes names out of nu, lengthscale, variance, got .'kappa'"):
        Matern(fixed=("kappa",))


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, math.inf])
def test_matern_on_flat_spaces_matches_its_formula_and_has_finite_gradients(nu: float) -> None:
    kernel = Matern(nu, [0.5, 2.0, 1.0], 1.7).on_flat(3)
    x, y = points(Euclidean(3), 0), points(Euclidean(3), 1)
    r = np.linalg.norm((np.asarray(x)[:, None] - np.asarray(y)[None]) / np.array([0.5, 2.0, 1.0]), axis=-1)
    formula = {
        0.5: np.exp(-r),
        1.5: (1 + math.sqrt(3) * r) * np.exp(-math.sqrt(3) * r),
        2.5: (1 + math.sqrt(5) * r + 5 * r**2 / 3) * np.exp(-math.sqrt(5) * r),
        math.inf: np.exp(-(r**2) / 2),
    }[nu]

    @jax.jit
    @jax.value_and_grad
    def total(x: jax.Array) -> jax.Array:
        return jnp.sum(kernel.covariance(x, x))

    covariance, other = (compiled(FlatKernel.covariance, kernel, x, z) for z in (x, y))
    np.testing.assert_allclose(other, 1.7 * formula, rtol=1e-12)
    assert np.all(np.isfinite(total(x)[1]))
    np.testing.assert_allclose(np.diagonal(covariance), 1.7, rtol=1e-14)


def test_single_precision_kernels_agree_at_the_extremes() -> None:
    x = points(Sphere(2), 0)
    rounded = jnp.asarray(x, jnp.float32)
    for nu in (0.01, 0.5, 30.0, 1e4):
        for lengthscale in (1e-3, 0.1, 1.0, 1e3):
            field = ScalarField(Sphere(2), Matern(nu, lengthscale), num_levels=13)
            single = field.covariance(rounded, rounded)
            np.testing.assert_allclose(single, field.covariance(x, x), atol=2e-5)


@pytest.mark.parametrize(
    ("prior", "theirs"),
    [
        (Gamma(2.0, 0.15), scipy.stats.gamma(2.0, scale=1 / 0.15)),
        (LogNormal(0.5, 0.7), scipy.stats.lognorm(0.7, scale=0.5)),
    ],
)
def test_densities_of_priors(prior: Prior, theirs: scipy.stats.rv_continuous) -> None:
    values = np.array([0.01, 0.3, 1.0, 8.0])
    np.testing.assert_allclose(prior.log_density(jnp.asarray(values)), theirs.logpdf(values), rtol=1e-10)


def test_a_strong_prior_decides() -> None:
    x = points(Sphere(2), 0, 20)
    y = np.asarray(x)[:, 0]
    kernel = Matern(1.5, 0.5, 1.0, fixed=("nu",), prior={"variance": LogNormal(3.0, 1e-4)})
    fitted = ExactGP(ScalarField(Sphere(2), kernel, num_levels=4), 0.1).fit(x, y, progress=False)
    assert float(fitted.field.prior.components[0].kernel.variance) == pytest.approx(3.0, rel=1e-2)
    with pytest.raises(ValueError, match="prior takes a dict"):
        Matern(prior={"width": LogNormal(1.0, 1.0)})
