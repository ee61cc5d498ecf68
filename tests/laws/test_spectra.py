"""The laws of a spectrum: orthonormality, addition theorem, eigenvalues."""

from math import comb, factorial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdgp.spaces import Circle, Product, Rotations, Space, Sphere, Torus
from rdgp.spectra import ScalarSpectrum, SphereSpectrum, ambient_spectra, scalar_spectrum
from tests.cases import SPECTRA, SpectrumCase, points, spectra
from tests.laws.evaluations import scalar_derivatives, small_spectra, values

seeds = st.integers(0, 2**20)


def addition_error(spectrum: ScalarSpectrum, x: jax.Array, y: jax.Array, at_x: np.ndarray, at_y: np.ndarray) -> float:
    """Return the largest error of sum_j φ_kj(x) φ_kj(y) = Z_k(x, y), relative to the multiplicity."""
    level = np.repeat(np.arange(spectrum.eigenvalues.size), spectrum.multiplicities)
    errors = []
    one_hot = np.eye(spectrum.eigenvalues.size)
    for k, count in enumerate(spectrum.multiplicities):
        zonal = np.asarray(spectrum.zonal(jnp.asarray(one_hot[k]), x, y))
        errors.append(np.max(np.abs(at_x[:, level == k] @ at_y[:, level == k].T - zonal)) / count)
    return float(max(errors))


@spectra
def test_eigenfunctions_are_orthonormal(case: SpectrumCase) -> None:
    for spectrum in {*ambient_spectra(case.space, case.levels), scalar_spectrum(case.space, case.levels)}:
        known = values(case, spectrum)
        inner = (known.at_nodes * known.weights[:, None]).T @ known.at_nodes
        np.testing.assert_allclose(inner, np.eye(spectrum.num_features), atol=1e-10)


@spectra
def test_addition_theorem(case: SpectrumCase) -> None:
    spectrum = scalar_spectrum(case.space, case.levels)
    known = values(case, spectrum)
    assert addition_error(spectrum, known.x, known.y, known.at_x, known.at_y) < 1e-10
    weights = np.random.default_rng(2).uniform(size=case.levels)
    diagonal = np.diagonal(spectrum.zonal(jnp.asarray(weights), known.x, known.x))
    np.testing.assert_allclose(diagonal, np.sum(weights * spectrum.multiplicities), rtol=1e-10)


@pytest.mark.parametrize(("d", "levels"), [(1, 60), (2, 41), (3, 12), (8, 5)])
def test_addition_theorem_where_quadrature_is_too_large(d: int, levels: int) -> None:
    space, unit = Sphere(d), np.eye(d + 1)
    x = jnp.asarray(np.concatenate([points(space, 0), unit[-1:], -unit[-1:], unit[:1]]))
    y, spectrum = points(space, 1, len(x)), scalar_spectrum(space, levels)
    at_x, at_y = (np.asarray(spectrum.features(some)) for some in (x, y))
    assert addition_error(spectrum, x, y, at_x, at_y) < 1e-10


@spectra
@given(seed=seeds)
def test_eigenfunctions_are_eigenfunctions_of_the_laplacian(case: SpectrumCase, seed: int) -> None:
    spectrum = small_spectra(case)[0]
    known = scalar_derivatives(case)(np.asarray(points(case.space, seed, 1))[0])
    eigenvalues = np.repeat(spectrum.eigenvalues, spectrum.multiplicities)
    np.testing.assert_allclose(known.laplacian, -eigenvalues * known.value, atol=1e-8 * max(1.0, eigenvalues[-1]))


@spectra
def test_levels_increase_and_count_whole_eigenspaces(case: SpectrumCase) -> None:
    spectrum = scalar_spectrum(case.space, case.levels)
    assert spectrum.eigenvalues.size == case.levels == spectrum.multiplicities.size
    assert spectrum.eigenvalues[0] == 0.0
    assert spectrum.multiplicities[0] == 1
    assert np.all(np.diff(spectrum.eigenvalues) > 0.5)
    assert values(case, spectrum).at_x.shape == (5, spectrum.num_features)


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
    np.testing.assert_allclose(torus.zonal(weights, x, y), circles.zonal(weights, x, y), atol=1e-10)


def test_sphere_one_is_torus_one() -> None:
    x = points(Circle(), 0)
    np.testing.assert_allclose(
        scalar_spectrum(Circle(), 6).features(x), scalar_spectrum(Torus(1), 6).features(x), atol=1e-13
    )


def test_functions_of_a_rotation_are_even_and_ambient_coordinates_odd() -> None:
    x = points(Rotations(), 0)
    even, (odd,) = scalar_spectrum(Rotations(), 4), ambient_spectra(Rotations(), 4)
    np.testing.assert_allclose(even.features(-x), even.features(x), atol=1e-12)
    np.testing.assert_allclose(odd.features(-x), -odd.features(x), atol=1e-12)


@pytest.mark.parametrize("space", [Sphere(2), Torus(2), Product(Rotations(), Circle())], ids=str)
def test_single_precision_stays_single_and_close(space: Space) -> None:
    (case,) = (case for case in SPECTRA if case.space == space)
    spectrum = scalar_spectrum(space, case.levels)
    known = values(case, spectrum)
    x, weights = jnp.asarray(known.x, jnp.float32), jnp.asarray(np.ones(case.levels))
    single = spectrum.features(x)
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, known.at_x, atol=1e-4 * float(spectrum.multiplicities[-1]) ** 0.5)
    assert jax.eval_shape(spectrum.zonal, weights, x, x).dtype == jnp.float32


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


def test_zonal_sums_have_exact_derivatives() -> None:
    """Gradients of a zonal sum in its weights and points, against the features."""
    spectrum = scalar_spectrum(Sphere(3), 8)
    x, y, weights = points(Sphere(3), 0), points(Sphere(3), 1), jnp.asarray(np.random.default_rng(2).uniform(size=8))

    @jax.jit
    def gradients(w: jax.Array, x: jax.Array) -> list:
        by_features = jax.grad(lambda w, x: jnp.sum(jnp.sin(ScalarSpectrum.zonal(spectrum, w, x, y))), (0, 1))(w, x)
        by_clenshaw = jax.grad(lambda w, x: jnp.sum(jnp.sin(spectrum.zonal(w, x, y))), (0, 1))(w, x)
        return [(in_weights, Sphere(3).project(x, in_x)) for in_weights, in_x in (by_features, by_clenshaw)]

    for ours, theirs in zip(*gradients(weights, x), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


def test_zonal_sums_do_not_store_the_levels() -> None:
    spectrum = scalar_spectrum(Sphere(2), 60)
    x = jax.ShapeDtypeStruct((400, 3), jnp.float64)
    weights = jax.ShapeDtypeStruct((60,), jnp.float64)

    def loss(weights: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.sum(jnp.square(spectrum.zonal(weights, x, x)))

    memory = jax.jit(jax.grad(loss, (0, 1))).lower(weights, x).compile().memory_analysis()
    assert memory.temp_size_in_bytes < 14 * 400 * 400 * 8
