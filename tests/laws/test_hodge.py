"""Facts of vector spectra beyond the laws that `check_spectrum` holds them to."""

from math import factorial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdgp.spaces import Circle, Product, Rotations, Sphere, Torus
from rdgp.spectra import HodgeSpectrum, hodge_spectrum
from rdgp.spectra._coexact import coexact_coefficients, derivative_matrices
from rdgp.spectra._harmonics import harmonics, num_harmonics
from tests.cases import points


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
    kernel = spectrum.kernel((jnp.ones(5),), x, x, Sphere(8).frame(x), Sphere(8).frame(x))
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
        np.testing.assert_array_equal(ours.multiplicities, np.bincount(theirs.level, theirs.multiplicities))
    found = circles.kernel(_of_sets(circles, weights), x, y, *frames)
    np.testing.assert_allclose(torus.kernel(weights, x, y, *frames), found, atol=1e-10)


def _of_sets(spectrum: HodgeSpectrum, weights: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
    """Return the weights of the sets of fields, given those of the levels."""
    return tuple(weight[part.level] for part, weight in zip(spectrum.parts, weights, strict=True))


def test_three_factors_agree_however_they_are_ordered() -> None:
    parts = ("gradient", "curl", "harmonic")
    one = hodge_spectrum(Product(Sphere(2), Circle(), Circle()), 2, parts)
    two = hodge_spectrum(Product(Circle(), Sphere(2), Circle()), 2, parts)
    space = Product(Sphere(2), Circle(), Circle())
    x, y = points(space, 0), points(space, 1)
    weights = (jnp.array([1.0, 0.5]), jnp.array([0.7, 0.4]), jnp.array([0.9]))
    order = np.array([3, 4, 0, 1, 2, 5, 6])
    frames = space.frame(x), space.frame(y)
    direct = one.kernel(_of_sets(one, weights), x, y, *frames)
    moved = [jnp.asarray(np.asarray(array)[:, order]) for array in (x, y, *frames)]
    np.testing.assert_allclose(two.kernel(_of_sets(two, weights), *moved), direct, atol=1e-10)
