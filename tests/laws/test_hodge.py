"""The laws of vector spectra: tangency, orthonormality, divergence, curl, and the Hodge Laplacian by its definition."""

from collections.abc import Callable
from functools import lru_cache
from math import factorial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rdgp.spaces import Circle, Product, Rotations, Space, Sphere, Torus
from rdgp.spectra import HodgeSpectrum, hodge_parts, hodge_spectrum, quadrature, scalar_spectrum
from rdgp.spectra._coexact import coexact_coefficients, derivative_matrices
from rdgp.spectra._harmonics import harmonics
from tests.cases import SpectrumCase, points, spectra

seeds = st.integers(0, 2**20)


@lru_cache
def vector_spectrum(case: SpectrumCase) -> HodgeSpectrum:
    return hodge_spectrum(case.space, max(case.levels - 2, 2), hodge_parts(case.space))


@lru_cache
def small_spectrum(case: SpectrumCase) -> HodgeSpectrum:
    """Return few levels, for what is differentiated."""
    return hodge_spectrum(case.space, 2 if isinstance(case.space, Product) else 3, hodge_parts(case.space))


def labels(spectrum: HodgeSpectrum) -> tuple[np.ndarray, np.ndarray]:
    """Return the part's name and the eigenvalue of each field."""
    names = [np.repeat(part.name, part.multiplicities.sum()) for part in spectrum.parts]
    values = [np.repeat(part.eigenvalues, part.multiplicities) for part in spectrum.parts]
    return np.concatenate(names), np.concatenate(values)


@spectra
def test_fields_are_orthonormal_in_the_mean(case: SpectrumCase) -> None:
    spectrum = vector_spectrum(case)
    x, weights = quadrature(case.space, case.degree)
    values = np.asarray(spectrum.features(jnp.asarray(x)))
    flat = (values * np.sqrt(weights)[:, None, None]).reshape(-1, spectrum.num_features)
    np.testing.assert_allclose(flat.T @ flat, np.eye(spectrum.num_features), atol=1e-10)


@spectra
def test_fields_are_tangent(case: SpectrumCase) -> None:
    x = points(case.space, 0)
    fields = jnp.moveaxis(vector_spectrum(case).features(x), -1, 0)
    np.testing.assert_allclose(case.space.project(x, fields), fields, atol=1e-10)


@spectra
def test_zonal_kernels_are_sums_over_the_fields(case: SpectrumCase) -> None:
    spectrum, space = vector_spectrum(case), case.space
    x, y = points(space, 0), points(space, 1)
    keys = jax.random.split(jax.random.key(2), len(spectrum.parts))
    weights = tuple(jax.random.uniform(k, p.eigenvalues.shape) for k, p in zip(keys, spectrum.parts, strict=True))
    frames = space.frame(x), space.frame(y)
    direct = HodgeSpectrum.zonal(spectrum, weights, x, y, *frames)
    np.testing.assert_allclose(spectrum.zonal(weights, x, y, *frames), direct, atol=1e-10)


@spectra
@given(seed=seeds)
def test_gradients_have_no_curl_and_curls_no_divergence(case: SpectrumCase, seed: int) -> None:
    spectrum = small_spectrum(case)
    x = points(case.space, seed)[0]
    jacobian = _covariant(spectrum, case.space, x)
    names, values = labels(spectrum)
    divergence, twist = jnp.trace(jacobian, axis1=0, axis2=1), jacobian - jnp.swapaxes(jacobian, 0, 1)
    size = 1e-9 * max(1.0, float(values.max()))
    np.testing.assert_allclose(twist[:, :, names != "curl"], 0.0, atol=size)
    np.testing.assert_allclose(divergence[names != "gradient"], 0.0, atol=size)


@spectra
@given(seed=seeds)
def test_fields_are_eigenfields_of_the_hodge_laplacian(case: SpectrumCase, seed: int) -> None:
    """Δ V = -grad div V + δ d V, each taken by differentiating projected ambient derivatives."""
    spectrum = small_spectrum(case)
    x = points(case.space, seed)[0]
    _, values = labels(spectrum)
    expected = values * (case.space._frame(x).T @ spectrum.features(x))
    np.testing.assert_allclose(_hodge_laplacian(spectrum, case.space, x), expected, atol=1e-7 * max(1.0, values.max()))


@lru_cache
def _compiled(space: Space, spectrum: HodgeSpectrum) -> tuple[Callable, Callable]:
    def projector(x: jax.Array) -> jax.Array:
        return space._project(x, jnp.eye(space.ambient_dim))

    def derivative(x: jax.Array) -> jax.Array:
        """Return P (∂V/∂x) P as [D, D, M]: component, direction, field."""
        project = projector(x)
        along = jax.jacfwd(spectrum.features)(x)  # [D, M, D]
        return jnp.einsum("ab,bmc,cd->adm", project, along, project)

    def laplacian(x: jax.Array) -> jax.Array:
        frame = space._frame(x)
        gradient_of_divergence = jax.jacfwd(lambda y: jnp.trace(derivative(y), axis1=0, axis2=1))(x)  # [M, D]
        twist = jax.jacfwd(lambda y: derivative(y) - jnp.swapaxes(derivative(y), 0, 1))(x)  # [D, D, M, D]
        codifferential = -jnp.einsum("abmc,ai,bj,cj->im", twist, frame, frame, frame)
        return codifferential - frame.T @ gradient_of_divergence.T

    def covariant(x: jax.Array) -> jax.Array:
        frame = space._frame(x)
        return jnp.einsum("abm,ai,bj->ijm", derivative(x), frame, frame)

    return jax.jit(laplacian), jax.jit(covariant)


def _hodge_laplacian(spectrum: HodgeSpectrum, space: Space, x: jax.Array) -> jax.Array:
    return _compiled(space, spectrum)[0](x)


def _covariant(spectrum: HodgeSpectrum, space: Space, x: jax.Array) -> jax.Array:
    return _compiled(space, spectrum)[1](x)


@spectra
def test_gradient_fields_follow_the_scalar_spectrum(case: SpectrumCase) -> None:
    spectrum = hodge_spectrum(case.space, 2, ("gradient",))
    scalar = scalar_spectrum(case.space, 3)
    x = points(case.space, 0)
    slopes = jnp.swapaxes(jax.vmap(jax.jacfwd(scalar.features))(x), 1, 2)[:, :, 1:]
    slopes = slopes / jnp.sqrt(scalar.per_feature(jnp.asarray(scalar.eigenvalues))[1:])
    projected = jnp.moveaxis(case.space.project(x[:, None], jnp.moveaxis(slopes, -1, 1)), 1, -1)
    np.testing.assert_allclose(spectrum.features(x), projected, atol=1e-10)


@pytest.mark.parametrize("d", [2, 3, 4, 5, 8])
def test_curl_counts_and_eigenvalues(d: int) -> None:
    curl = hodge_spectrum(Sphere(d), 3, ("curl",)).parts[0]
    ratio = [factorial(k + d - 3) / (factorial(k + 1) * factorial(d - 2)) for k in (1, 2, 3)]
    counts = [round(k * (k + d - 1) * (2 * k + d - 1) * r) for k, r in zip((1, 2, 3), ratio, strict=True)]
    assert curl.multiplicities.tolist() == counts
    assert curl.eigenvalues.tolist() == [(k + 1) * (k + d - 2) for k in (1, 2, 3)]


@pytest.mark.parametrize("d", [1, 2, 3, 5])
@pytest.mark.parametrize("degree", [1, 2, 4])
def test_derivative_matrices_differentiate_solid_harmonics(d: int, degree: int) -> None:
    """r^k φ(x / r) is a polynomial; its gradient must come out of the matrices."""

    def solid(x: jax.Array) -> jax.Array:
        r = jnp.linalg.norm(x)
        return r**degree * harmonics((x / r)[None], (degree,))[:, 0]

    x = 1.3 * points(Sphere(d), 0)
    slopes = jax.vmap(jax.jacfwd(solid))(x)  # [N, M, D]
    radius = jnp.linalg.norm(x, axis=1)
    below = harmonics(x / radius[:, None], (degree - 1,)) * radius ** (degree - 1)
    expected = jnp.einsum("dml,ln->nmd", derivative_matrices(d, degree), below)
    np.testing.assert_allclose(slopes, expected, atol=1e-10)


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
    torus = hodge_spectrum(Torus(3), 3, parts)
    circles = hodge_spectrum(Product(Circle(), Circle(), Circle()), 3, parts)
    x, y = points(Torus(3), 0), points(Torus(3), 1)
    weights = (jnp.array([1.0, 0.5, 0.2]), jnp.array([0.7, 0.4, 0.3]), jnp.array([0.9]))
    frames = Torus(3).frame(x), Torus(3).frame(y)
    for ours, theirs in zip(torus.parts, circles.parts, strict=True):
        np.testing.assert_array_equal(ours.multiplicities, theirs.multiplicities)
    np.testing.assert_allclose(torus.zonal(weights, x, y, *frames), circles.zonal(weights, x, y, *frames), atol=1e-10)


def test_three_factors_agree_however_they_are_ordered() -> None:
    parts = ("gradient", "curl", "harmonic")
    one = hodge_spectrum(Product(Sphere(2), Circle(), Circle()), 3, parts)
    two = hodge_spectrum(Product(Circle(), Sphere(2), Circle()), 3, parts)
    space = Product(Sphere(2), Circle(), Circle())
    x, y = points(space, 0), points(space, 1)
    weights = (jnp.array([1.0, 0.5, 0.2]), jnp.array([0.7, 0.4, 0.3]), jnp.array([0.9]))
    order = np.array([3, 4, 0, 1, 2, 5, 6])
    direct = one.zonal(weights, x, y, space.frame(x), space.frame(y))
    frames = (space.frame(z)[:, order] for z in (x, y))
    np.testing.assert_allclose(two.zonal(weights, x[:, order], y[:, order], *frames), direct, atol=1e-10)


@spectra
def test_sums_of_fields_need_no_fields(case: SpectrumCase) -> None:
    spectrum = hodge_spectrum(case.space, min(case.levels, 3), hodge_parts(case.space))
    x = points(case.space, 0, 4)
    coefficients = jax.random.normal(jax.random.key(1), (spectrum.num_features,))
    combined = spectrum.combine(spectrum.carriers(x), x, coefficients)
    np.testing.assert_allclose(combined, spectrum.features(x) @ coefficients, atol=1e-10)
