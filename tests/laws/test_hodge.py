"""The laws of vector spectra: tangency, orthonormality, divergence, curl, and the Hodge Laplacian by its definition."""

from math import factorial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdgp.spaces import Circle, Product, Rotations, Sphere, Torus
from rdgp.spectra import HodgeSpectrum, hodge_spectrum
from rdgp.spectra._coexact import coexact_coefficients, derivative_matrices
from rdgp.spectra._harmonics import harmonics, num_harmonics
from tests.cases import SpectrumCase, points, spectra
from tests.laws.evaluations import hodge_derivatives, scalar_derivatives, small_spectra, values, whole_spectrum

seeds = st.integers(0, 2**20)


def labels(spectrum: HodgeSpectrum) -> tuple[np.ndarray, np.ndarray]:
    """Return the part's name and the eigenvalue of each field."""
    names = [np.repeat(part.name, part.multiplicities.sum()) for part in spectrum.parts]
    values = [np.repeat(part.eigenvalues, part.multiplicities) for part in spectrum.parts]
    return np.concatenate(names), np.concatenate(values)


@spectra
def test_fields_are_orthonormal_in_the_mean(case: SpectrumCase) -> None:
    spectrum = whole_spectrum(case)
    known = values(case, spectrum)
    flat = (known.at_nodes * np.sqrt(known.weights)[:, None, None]).reshape(-1, spectrum.num_features)
    np.testing.assert_allclose(flat.T @ flat, np.eye(spectrum.num_features), atol=1e-10)


@spectra
def test_fields_are_tangent(case: SpectrumCase) -> None:
    known = values(case, whole_spectrum(case))
    fields = np.moveaxis(known.at_x, -1, 0)
    np.testing.assert_allclose(case.space.project(known.x, fields), fields, atol=1e-10)


@spectra
def test_zonal_kernels_are_sums_over_the_fields(case: SpectrumCase) -> None:
    spectrum, space = whole_spectrum(case), case.space
    known, rng = values(case, spectrum), np.random.default_rng(2)
    weights = [rng.uniform(size=part.eigenvalues.shape) for part in spectrum.parts]
    scale = np.concatenate([w[part.level_of_feature()] for w, part in zip(weights, spectrum.parts, strict=True)])
    frames = space.frame(known.x), space.frame(known.y)
    left = np.einsum("ndm,ndp->npm", known.at_x * scale, frames[0])
    right = np.einsum("ldm,ldq->lqm", known.at_y, frames[1])
    zonal = spectrum.zonal(tuple(map(jnp.asarray, weights)), known.x, known.y, *frames)
    np.testing.assert_allclose(zonal, np.einsum("npm,lqm->nplq", left, right), atol=1e-10)


@spectra
@given(seed=seeds)
def test_gradients_have_no_curl_and_curls_no_divergence(case: SpectrumCase, seed: int) -> None:
    jacobian = np.asarray(hodge_derivatives(case)(point(case, seed)).covariant)
    names, eigenvalues = labels(small_spectra(case)[1])
    divergence, twist = np.trace(jacobian, axis1=0, axis2=1), jacobian - np.swapaxes(jacobian, 0, 1)
    size = 1e-9 * max(1.0, float(eigenvalues.max()))
    np.testing.assert_allclose(twist[:, :, names != "curl"], 0.0, atol=size)
    np.testing.assert_allclose(divergence[names != "gradient"], 0.0, atol=size)


def point(case: SpectrumCase, seed: int) -> np.ndarray:
    return np.asarray(points(case.space, seed, 1))[0]


@spectra
@given(seed=seeds)
def test_fields_are_eigenfields_of_the_hodge_laplacian(case: SpectrumCase, seed: int) -> None:
    known = hodge_derivatives(case)(point(case, seed))
    _, eigenvalues = labels(small_spectra(case)[1])
    expected = eigenvalues * np.asarray(known.value)
    np.testing.assert_allclose(known.laplacian, expected, atol=1e-7 * max(1.0, eigenvalues.max()))


@spectra
@given(seed=seeds)
def test_gradient_fields_follow_the_scalar_spectrum(case: SpectrumCase, seed: int) -> None:
    scalar, spectrum = small_spectra(case)
    x = point(case, seed)
    fields = np.asarray(hodge_derivatives(case)(x).value)[:, labels(spectrum)[0] == "gradient"]
    slopes = np.asarray(scalar_derivatives(case)(x).slopes)[:, 1:]
    eigenvalues = np.repeat(scalar.eigenvalues, scalar.multiplicities)[1:]
    np.testing.assert_allclose(fields, slopes / np.sqrt(eigenvalues), atol=1e-10)


@pytest.mark.parametrize("d", [2, 3, 4, 5, 8])
def test_curl_counts_and_eigenvalues(d: int) -> None:
    curl = hodge_spectrum(Sphere(d), 3, ("curl",)).parts[0]
    ratio = [factorial(k + d - 3) / (factorial(k + 1) * factorial(d - 2)) for k in (1, 2, 3)]
    counts = [round(k * (k + d - 1) * (2 * k + d - 1) * r) for k, r in zip((1, 2, 3), ratio, strict=True)]
    assert curl.multiplicities.tolist() == counts
    assert curl.eigenvalues.tolist() == [(k + 1) * (k + d - 2) for k in (1, 2, 3)]


@pytest.mark.parametrize(("d", "degrees"), [(1, (1, 2, 4)), (2, (1, 2, 4)), (3, (1, 2, 3))])
def test_derivative_matrices_differentiate_solid_harmonics(d: int, degrees: tuple[int, ...]) -> None:
    """r^k φ(x / r) is a polynomial; its gradient must come out of the matrices."""
    ends = np.cumsum([num_harmonics(d, degree) for degree in range(max(degrees) + 1)])[:-1]

    def solid(x: jax.Array) -> jax.Array:
        r = jnp.linalg.norm(x)
        every = harmonics((x / r)[None], tuple(range(max(degrees) + 1)))[:, 0]
        return jnp.concatenate([r**degree * part for degree, part in enumerate(jnp.split(every, ends))])

    x = jnp.asarray(1.3 * np.asarray(points(Sphere(d), 0)))
    value, slopes = jax.jit(jax.vmap(lambda x: (solid(x), jax.jacfwd(solid)(x))))(x)  # [N, M], [N, M, D]
    value, slopes = np.split(np.asarray(value), ends, axis=1), np.split(np.asarray(slopes), ends, axis=1)
    for degree in degrees:
        expected = np.einsum("dml,nl->nmd", derivative_matrices(d, degree), value[degree - 1])
        np.testing.assert_allclose(slopes[degree], expected, atol=1e-10)


def test_the_curl_basis_is_the_same_in_every_process() -> None:
    """Numbers frozen from another process: saved coefficients refer to this basis."""
    coefficients = coexact_coefficients(4, 3)
    assert coefficients.shape == (5, 81, 30)
    generic = np.cos(np.arange(coefficients.size)).reshape(coefficients.shape)
    np.testing.assert_allclose(np.sum(generic * coefficients), FROZEN, rtol=0, atol=1e-9)


FROZEN = 0.7244077530379984


def test_curl_features_refuse_huge_bases_but_the_kernel_has_no_limit() -> None:
    spectrum = hodge_spectrum(Sphere(8), 5, ("curl",))
    x = points(Sphere(8), 0)
    with pytest.raises(ValueError, match="use fewer levels or ProjectedField"):
        spectrum.features(x)
    kernel = spectrum.zonal((jnp.ones(5),), x, x, Sphere(8).frame(x), Sphere(8).frame(x))
    total = float(spectrum.parts[0].multiplicities.sum()) / 8
    np.testing.assert_allclose(kernel[0, :, 0, :], total * jnp.eye(8), atol=1e-9 * total)


def test_fields_on_rotations_change_sign_with_the_quaternion() -> None:
    spectrum = hodge_spectrum(Rotations(), 2, ("gradient", "curl"))
    x = points(Rotations(), 0)
    np.testing.assert_allclose(spectrum.features(-x), -spectrum.features(x), atol=1e-11)
    assert [p.eigenvalues.tolist() for p in spectrum.parts] == [[8.0, 24.0], [4.0, 16.0]]
    assert [p.multiplicities.tolist() for p in spectrum.parts] == [[9, 25], [6, 30]]


def test_a_product_of_circles_has_the_fields_of_a_torus() -> None:
    parts = ("gradient", "curl", "harmonic")
    torus = hodge_spectrum(Torus(3), 2, parts)
    circles = hodge_spectrum(Product(Circle(), Circle(), Circle()), 2, parts)
    x, y = points(Torus(3), 0), points(Torus(3), 1)
    weights = (jnp.array([1.0, 0.5]), jnp.array([0.7, 0.4]), jnp.array([0.9]))
    frames = Torus(3).frame(x), Torus(3).frame(y)
    for ours, theirs in zip(torus.parts, circles.parts, strict=True):
        np.testing.assert_array_equal(ours.multiplicities, theirs.multiplicities)
    np.testing.assert_allclose(torus.zonal(weights, x, y, *frames), circles.zonal(weights, x, y, *frames), atol=1e-10)


def test_three_factors_agree_however_they_are_ordered() -> None:
    parts = ("gradient", "curl", "harmonic")
    one = hodge_spectrum(Product(Sphere(2), Circle(), Circle()), 2, parts)
    two = hodge_spectrum(Product(Circle(), Sphere(2), Circle()), 2, parts)
    space = Product(Sphere(2), Circle(), Circle())
    x, y = points(space, 0), points(space, 1)
    weights = (jnp.array([1.0, 0.5]), jnp.array([0.7, 0.4]), jnp.array([0.9]))
    order = np.array([3, 4, 0, 1, 2, 5, 6])
    frames = space.frame(x), space.frame(y)
    direct = one.zonal(weights, x, y, *frames)
    moved = [jnp.asarray(np.asarray(array)[:, order]) for array in (x, y, *frames)]
    np.testing.assert_allclose(two.zonal(weights, *moved), direct, atol=1e-10)


@spectra
def test_sums_of_fields_need_no_fields(case: SpectrumCase) -> None:
    spectrum = whole_spectrum(case)
    known, coefficients = values(case, spectrum), np.random.default_rng(1).normal(size=spectrum.num_features)
    combined = jax.jit(lambda x, c: spectrum.combine(spectrum.carriers(x), x, c))(known.x, coefficients)
    np.testing.assert_allclose(combined, known.at_x @ coefficients, atol=1e-10)
