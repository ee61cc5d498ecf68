"""Every spectrum obeys the laws of spectra; counts, high degrees, poles."""

from math import comb, factorial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdgp.spaces import Circle, Product, Rotations, Sphere, Torus
from rdgp.spectra import ScalarSpectrum, SphereSpectrum, ambient_spectra, scalar_spectrum
from rdgp.testing import check_spectrum
from tests.cases import SpectrumCase, points, precisions, set_to, spectra


def addition_error(spectrum: ScalarSpectrum, x: jax.Array, y: jax.Array, at_x: np.ndarray, at_y: np.ndarray) -> float:
    """Return the largest error of sum_j φ_kj(x) φ_kj(y) = Z_k(x, y), relative to the multiplicity."""
    level = np.repeat(np.arange(spectrum.eigenvalues.size), spectrum.multiplicities)
    errors = []
    one_hot = np.eye(spectrum.eigenvalues.size)
    for k, count in enumerate(spectrum.multiplicities):
        kernel = np.asarray(spectrum.kernel(jnp.asarray(one_hot[k]), x, y))
        errors.append(np.max(np.abs(at_x[:, level == k] @ at_y[:, level == k].T - kernel)) / count)
    return float(max(errors))


@spectra
@precisions
def test_laws(case: SpectrumCase, precision: str) -> None:
    with set_to(precision):
        check_spectrum(case.space, case.num_levels)


BROKEN = {
    "eigenvalues": (
        property(lambda self: 1.1 * SphereSpectrum(2, self.degrees).eigenvalues),
        "eigenfunctions have",
    ),
    "multiplicities": (property(lambda self: np.array([2 * k + 1 + (k == 2) for k in self.degrees])), "features come"),
    "features": (lambda self, x: 1.01 * SphereSpectrum(2, self.degrees).features(x), "addition theorem"),
    "kernel": (lambda self, w, x, y: SphereSpectrum(2, self.degrees).kernel(w, x, -y), "addition theorem"),
    "diagonal": (lambda self, w, x: 2.0 * SphereSpectrum(2, self.degrees).diagonal(w, x), "the diagonal is"),
    "synthesize": (lambda self, features, x, c: features @ c * 1.001, "synthesize sums"),
}


class BrokenSphere(Sphere):
    """S_2 with a spectrum that has one member replaced."""

    name: str = eqx.field(static=True)

    def __init__(self, name: str) -> None:
        super().__init__(2)
        self.name = name


@scalar_spectrum.register
def _(space: BrokenSphere, num_levels: int) -> ScalarSpectrum:
    broken = type("Broken", (SphereSpectrum,), {space.name: BROKEN[space.name][0]})
    return broken(2, tuple(range(num_levels)))


@pytest.mark.parametrize("name", BROKEN)
def test_a_spectrum_that_breaks_a_law_is_told_in_one_line(name: str) -> None:
    with pytest.raises(AssertionError, match=rf"the spectrum of .* breaks a law: {BROKEN[name][1]}.*: ") as error:
        check_spectrum(BrokenSphere(name), 3)
    assert "\n" not in str(error.value)


def test_ambient_coordinates_need_fields_of_the_space() -> None:
    """Even functions times ambient vectors are no fields where x and -x are one point."""

    class Same(Rotations):
        pass

    ambient_spectra.register(Same, lambda space, num_levels: (scalar_spectrum(space, num_levels),))
    with pytest.raises(AssertionError, match=r"breaks a law: fields .* satisfy V\(Ax\) = A V\(x\)"):
        check_spectrum(Same(), 2)


@pytest.mark.parametrize(("d", "num_levels"), [(1, 60), (2, 41), (3, 12), (8, 5)])
def test_addition_theorem_where_quadrature_is_too_large(d: int, num_levels: int) -> None:
    space, unit = Sphere(d), np.eye(d + 1)
    x = jnp.asarray(np.concatenate([points(space, 0), unit[-1:], -unit[-1:], unit[:1]]))
    y, spectrum = points(space, 1, len(x)), scalar_spectrum(space, num_levels)
    at_x, at_y = (np.asarray(spectrum.features(some)) for some in (x, y))
    assert addition_error(spectrum, x, y, at_x, at_y) < 1e-10


def test_counts_of_harmonics() -> None:
    for d in range(2, 11):
        counts = SphereSpectrum(d, tuple(range(7))).multiplicities
        formula = [(2 * k + d - 1) * factorial(k + d - 2) // (factorial(k) * factorial(d - 1)) for k in range(7)]
        assert counts.tolist() == formula
        assert counts.sum() == comb(6 + d, d) + comb(5 + d, d)
    assert scalar_spectrum(Circle(), 4).multiplicities.tolist() == [1, 2, 2, 2]
    assert scalar_spectrum(Sphere(2), 7).num_features == 49
    assert scalar_spectrum(Rotations(), 3).eigenvalues.tolist() == [0.0, 8.0, 24.0]
    assert scalar_spectrum(Rotations(), 3).multiplicities.tolist() == [1, 9, 25]
    assert scalar_spectrum(Torus(2), 6).eigenvalues.tolist() == [0.0, 1.0, 2.0, 4.0, 5.0, 8.0]
    assert scalar_spectrum(Torus(2), 6).multiplicities.tolist() == [1, 4, 4, 4, 8, 4]


def test_a_product_of_circles_is_a_torus() -> None:
    torus, circles = scalar_spectrum(Torus(3), 7), scalar_spectrum(Product(Circle(), Circle(), Circle()), 7)
    np.testing.assert_array_equal(torus.eigenvalues, circles.eigenvalues)
    np.testing.assert_array_equal(torus.multiplicities, circles.multiplicities)
    x, y, weights = points(Torus(3), 0), points(Torus(3), 1), jnp.asarray(np.random.default_rng(2).uniform(size=7))
    np.testing.assert_allclose(torus.kernel(weights, x, y), circles.kernel(weights, x, y), atol=1e-10)


def test_sphere_one_is_torus_one() -> None:
    x = points(Circle(), 0)
    np.testing.assert_allclose(
        scalar_spectrum(Circle(), 6).features(x), scalar_spectrum(Torus(1), 6).features(x), atol=1e-13
    )


def test_tiles_of_points_agree_with_single_points() -> None:
    spectrum = scalar_spectrum(Sphere(2), 4)
    x = points(Sphere(2), 0, 1300)
    some = jnp.asarray(np.asarray(x)[::97])
    alone = jax.jit(jax.vmap(spectrum.features))(some)
    np.testing.assert_allclose(np.asarray(spectrum.features(x))[::97], alone, atol=1e-13)
    assert jax.eval_shape(spectrum.features, x.reshape(13, 100, 3)).shape == (13, 100, 16)


def test_poles_are_ordinary_points() -> None:
    spectrum = scalar_spectrum(Sphere(2), 5)
    poles = jnp.array([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]])
    hessian = jax.jit(jax.vmap(jax.jacfwd(jax.jacfwd(spectrum.features))))(poles)
    assert np.all(np.isfinite(hessian))


def test_kernels_have_exact_derivatives() -> None:
    """Gradients of a kernel in its weights and points, against the features."""
    spectrum = scalar_spectrum(Sphere(3), 8)
    x, y, weights = points(Sphere(3), 0), points(Sphere(3), 1), jnp.asarray(np.random.default_rng(2).uniform(size=8))

    @jax.jit
    def gradients(w: jax.Array, x: jax.Array) -> list:
        by_features = jax.grad(lambda w, x: jnp.sum(jnp.sin(ScalarSpectrum.kernel(spectrum, w, x, y))), (0, 1))(w, x)
        by_clenshaw = jax.grad(lambda w, x: jnp.sum(jnp.sin(spectrum.kernel(w, x, y))), (0, 1))(w, x)
        return [(in_weights, Sphere(3).project(x, in_x)) for in_weights, in_x in (by_features, by_clenshaw)]

    for ours, theirs in zip(*gradients(weights, x), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


def test_kernels_do_not_store_the_levels() -> None:
    spectrum = scalar_spectrum(Sphere(2), 60)
    x = jax.ShapeDtypeStruct((400, 3), jnp.float64)
    weights = jax.ShapeDtypeStruct((60,), jnp.float64)

    def loss(weights: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.sum(jnp.square(spectrum.kernel(weights, x, x)))

    memory = jax.jit(jax.grad(loss, (0, 1))).lower(weights, x).compile().memory_analysis()
    assert memory.temp_size_in_bytes < 14 * 400 * 400 * 8
