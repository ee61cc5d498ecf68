"""The laws of a spectrum: orthonormality, addition theorem, eigenvalues."""

from math import comb, factorial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdgp.spaces import Circle, Product, Rotations, Space, Sphere, Torus
from rdgp.spectra import ScalarSpectrum, SphereSpectrum, ambient_spectra, quadrature, scalar_spectrum
from tests.cases import SpectrumCase, points, spectra

seeds = st.integers(0, 2**20)


def addition_error(spectrum: ScalarSpectrum, x: jax.Array, y: jax.Array) -> float:
    """Return the largest error of sum_j φ_kj(x) φ_kj(y) = Z_k(x, y), relative to the multiplicity."""
    left, right = np.asarray(spectrum.features(x)), np.asarray(spectrum.features(y))
    level = np.repeat(np.arange(spectrum.eigenvalues.size), spectrum.multiplicities)
    errors = []
    one_hot = np.eye(spectrum.eigenvalues.size)
    for k, count in enumerate(spectrum.multiplicities):
        zonal = np.asarray(spectrum.zonal(jnp.asarray(one_hot[k]), x, y))
        errors.append(np.max(np.abs(left[:, level == k] @ right[:, level == k].T - zonal)) / count)
    return float(max(errors))


@spectra
def test_eigenfunctions_are_orthonormal(case: SpectrumCase) -> None:
    x, weights = quadrature(case.space, case.degree)
    for spectrum in {*ambient_spectra(case.space, case.levels), scalar_spectrum(case.space, case.levels)}:
        values = np.asarray(spectrum.features(jnp.asarray(x)))
        np.testing.assert_allclose((values * weights[:, None]).T @ values, np.eye(spectrum.num_features), atol=1e-10)


@spectra
def test_addition_theorem(case: SpectrumCase) -> None:
    spectrum = scalar_spectrum(case.space, case.levels)
    x, y = points(case.space, 0), points(case.space, 1)
    assert addition_error(spectrum, x, y) < 1e-10
    weights = jax.random.uniform(jax.random.key(2), (case.levels,))
    diagonal = jnp.diagonal(spectrum.zonal(weights, x, x))
    np.testing.assert_allclose(diagonal, jnp.sum(weights * spectrum.multiplicities), rtol=1e-10)


@pytest.mark.parametrize(("d", "levels"), [(1, 60), (2, 41), (3, 16), (7, 7), (8, 6), (10, 5)])
def test_addition_theorem_where_quadrature_is_too_large(d: int, levels: int) -> None:
    space = Sphere(d)
    x = jnp.concatenate([points(space, 0), jnp.eye(d + 1)[-1:], -jnp.eye(d + 1)[-1:], jnp.eye(d + 1)[:1]])
    assert addition_error(scalar_spectrum(space, levels), x, points(space, 1)) < 1e-10


@spectra
@given(seed=seeds)
def test_eigenfunctions_are_eigenfunctions_of_the_laplacian(case: SpectrumCase, seed: int) -> None:
    """The Laplacian is the sum of second derivatives along geodesics in orthonormal directions."""
    spectrum = scalar_spectrum(case.space, case.levels)
    x = points(case.space, seed)[0]
    laplacian = _laplacian(spectrum, case.space, x)
    expected = -spectrum.per_feature(jnp.asarray(spectrum.eigenvalues)) * spectrum.features(x)
    np.testing.assert_allclose(laplacian, expected, atol=1e-8 * max(1.0, spectrum.eigenvalues[-1]))


def _second_derivatives(spectrum: ScalarSpectrum, space: Space, x: jax.Array) -> jax.Array:
    def along(direction: jax.Array) -> jax.Array:
        def value(t: jax.Array) -> jax.Array:
            return spectrum.features(space._exp(x, t * direction))

        return jax.jvp(lambda t: jax.jvp(value, (t,), (1.0,))[1], (0.0,), (1.0,))[1]

    return jnp.sum(jax.vmap(along)(space._frame(x).T), axis=0)


_laplacian = jax.jit(_second_derivatives, static_argnums=(0, 1))


@spectra
def test_levels_increase_and_count_whole_eigenspaces(case: SpectrumCase) -> None:
    spectrum = scalar_spectrum(case.space, case.levels)
    assert spectrum.eigenvalues.size == case.levels == spectrum.multiplicities.size
    assert spectrum.eigenvalues[0] == 0.0
    assert spectrum.multiplicities[0] == 1
    assert np.all(np.diff(spectrum.eigenvalues) > 0.5)
    assert spectrum.features(points(case.space, 0)).shape == (5, spectrum.num_features)


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
    x, y, weights = points(Torus(3), 0), points(Torus(3), 1), jax.random.uniform(jax.random.key(2), (7,))
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


@spectra
def test_single_precision_stays_single_and_close(case: SpectrumCase) -> None:
    spectrum = scalar_spectrum(case.space, case.levels)
    x = points(case.space, 0)
    single = spectrum.features(x.astype(jnp.float32))
    assert single.dtype == jnp.float32
    np.testing.assert_allclose(single, spectrum.features(x), atol=1e-4 * float(spectrum.multiplicities[-1]) ** 0.5)
    weights = jnp.ones(case.levels)
    assert spectrum.zonal(weights, x.astype(jnp.float32), x.astype(jnp.float32)).dtype == jnp.float32


def test_tiles_of_points_agree_with_single_points() -> None:
    spectrum = scalar_spectrum(Sphere(2), 4)
    x = points(Sphere(2), 0, 1300)
    np.testing.assert_allclose(spectrum.features(x)[::97], jax.vmap(spectrum.features)(x[::97]), atol=1e-13)
    assert spectrum.features(x.reshape(13, 100, 3)).shape == (13, 100, 16)


def test_poles_are_ordinary_points() -> None:
    spectrum = scalar_spectrum(Sphere(2), 8)
    poles = jnp.array([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]])
    jacobian = jax.vmap(jax.jacfwd(jax.jacrev(spectrum.features)))(poles)
    assert bool(jnp.all(jnp.isfinite(jacobian)))


def test_zonal_sums_have_exact_derivatives() -> None:
    """Gradients of a zonal sum in its weights and points, against the features."""
    spectrum = scalar_spectrum(Sphere(3), 20)
    x, y, weights = points(Sphere(3), 0), points(Sphere(3), 1), jax.random.uniform(jax.random.key(2), (20,))

    def by_features(w: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.sum(jnp.sin(ScalarSpectrum.zonal(spectrum, w, x, y)))

    def by_clenshaw(w: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.sum(jnp.sin(spectrum.zonal(w, x, y)))

    for which in (0, 1):
        ours, theirs = (jax.grad(f, which)(weights, x) for f in (by_clenshaw, by_features))
        if which == 1:
            ours, theirs = Sphere(3).project(x, ours), Sphere(3).project(x, theirs)
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


def test_zonal_sums_do_not_store_the_levels() -> None:
    spectrum = scalar_spectrum(Sphere(2), 60)
    x = jax.ShapeDtypeStruct((400, 3), jnp.float64)
    weights = jax.ShapeDtypeStruct((60,), jnp.float64)

    def loss(weights: jax.Array, x: jax.Array) -> jax.Array:
        return jnp.sum(jnp.square(spectrum.zonal(weights, x, x)))

    memory = jax.jit(jax.grad(loss, (0, 1))).lower(weights, x).compile().memory_analysis()
    assert memory.temp_size_in_bytes < 14 * 400 * 400 * 8
