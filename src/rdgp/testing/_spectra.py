"""The laws of spectra: orthonormality, addition theorem, eigenvalues of the Laplacian."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rdgp.core import check_count, compiled
from rdgp.spaces import Space
from rdgp.spectra import (
    ScalarSpectrum,
    ambient_spectra,
    hodge_parts,
    hodge_spectrum,
    provides,
    scalar_spectrum,
)
from rdgp.testing._hodge import check_hodge_spectrum
from rdgp.testing._laws import Laws, Sides, hold_true, key_of
from rdgp.testing._orthonormal import check_orthonormal

_POINTS = 5
_LAWS = Laws()
_DERIVATIVE_LAWS = Laws()


class Held(NamedTuple):
    """A spectrum with its space, and the factor whose ambient coordinates it belongs to; None for functions."""

    space: Space
    spectrum: ScalarSpectrum
    factor: int | None


class Places(NamedTuple):
    """Points, tangent vectors and numbers at which a spectrum is held to its laws."""

    x: Float[Array, "N D"]
    y: Float[Array, "N D"]
    v: Float[Array, "N D"]  # tangent at x
    same: Float[Array, "R D D"]  # the identifications
    weights: Float[Array, "K"]
    coefficients: Float[Array, "M q"]


def check_spectrum(space: Space, num_levels: int, *, seed: int = 0) -> None:
    """Run all laws of spectra on those of a space; raise an AssertionError that names the law that is broken.

    Held are the scalar spectrum of `num_levels` levels, that of ambient coordinates, and the Hodge spectrum if the
    space provides one. Orthonormality is exact if the space provides `quadrature`, for which eigenfunctions count as
    polynomials of degree √λ; else it is that of random points. Derivatives are taken of the lowest levels. `seed`
    chooses the points.

    >>> from rdgp.spaces import Circle
    >>> check_spectrum(Circle(), 3)
    """
    check_count(num_levels, "num_levels", 2)
    few = min(num_levels, 4 if space.dim <= 2 else 3)
    scalar = Held(space, scalar_spectrum(space, num_levels), None)
    _check_levels(f"the spectrum of {space}", scalar.spectrum, num_levels)
    _check_functions(f"the spectrum of {space}", scalar, Held(space, scalar_spectrum(space, few), None), seed)
    pairs = zip(ambient_spectra(space, num_levels), ambient_spectra(space, few), strict=True)
    for factor, (own, lowest) in enumerate(pairs):
        owner = f"the spectrum of ambient coordinates of {space.factors[factor]} in {space}"
        _check_functions(owner, Held(space, own, factor), Held(space, lowest, factor), seed)
    if provides(hodge_spectrum, space):
        fields, lowest_fields = (hodge_spectrum(space, n - 1, hodge_parts(space)) for n in (num_levels, few))
        check_hodge_spectrum(space, fields, lowest_fields, scalar_spectrum(space, few), seed)


def _check_levels(owner: str, spectrum: ScalarSpectrum, num_levels: int) -> None:
    values, counts = spectrum.eigenvalues, spectrum.multiplicities
    hold_true(owner, "there are as many levels as asked for", values.size == counts.size == num_levels)
    hold_true(owner, "the first level is the constant function", (values[0] == 0.0) & (counts[0] == 1))
    hold_true(owner, "num_features is the sum of the multiplicities", spectrum.num_features == counts.sum())


def _check_functions(owner: str, held: Held, lowest: Held, seed: int) -> None:
    """Hold eigenfunctions to their laws, and the lowest of them to those of derivatives."""
    values = held.spectrum.eigenvalues
    hold_true(owner, "eigenvalues increase", np.diff(values) > 1e-6)
    _check_number(owner, held)
    _LAWS.hold(owner, held, compiled(_places, held, key_of(seed)))
    _DERIVATIVE_LAWS.hold(owner, lowest, compiled(_places, lowest, key_of(seed)))
    check_orthonormal(owner, held.space, held.spectrum, float(values.max()))


def _places(held: Held, key: Array) -> Places:
    space, spectrum = held.space, held.spectrum
    keys = jax.random.split(key, 4)
    x, y = space.random(_POINTS, key=keys[0]), space.random(_POINTS, key=keys[1])
    v = space.project(x, jax.random.normal(keys[2], x.shape))
    weights = jax.random.uniform(keys[3], (spectrum.eigenvalues.size,))
    coefficients = jax.random.normal(keys[3], (spectrum.num_features, 2))
    return Places(x, y, v, jnp.asarray(space.identifications, x.dtype), weights, coefficients)


def _check_number(owner: str, held: Held) -> None:
    """Hold the number of features, without which no other law can be stated."""
    spectrum = held.spectrum
    shape = jax.eval_shape(lambda key: spectrum.features(held.space.random(_POINTS, key=key)), key_of(0)).shape
    same = shape == (_POINTS, int(spectrum.multiplicities.sum()))
    levels = np.array_equal(np.bincount(spectrum.level_of_feature), spectrum.multiplicities)
    hold_true(owner, "features come level by level, in number as the multiplicities say", same and levels)


@_LAWS.law("addition theorem: the kernel of a level is the sum over its features")
def _(held: Held, at: Places) -> Sides:
    spectrum = held.spectrum
    units = jnp.eye(spectrum.eigenvalues.size, dtype=at.x.dtype)
    kernels = jax.vmap(lambda one: spectrum.kernel(one, at.x, at.y))(units)
    left, right = spectrum.features(at.x), spectrum.features(at.y)
    masks = units[spectrum.level_of_feature].T  # [K, M]
    counts = jnp.asarray(spectrum.multiplicities, at.x.dtype)[:, None, None]
    return kernels / counts, jnp.einsum("nm,km,lm->knl", left, masks, right) / counts


@_LAWS.law("the kernel is linear in its weights")
def _(held: Held, at: Places) -> Sides:
    spectrum = held.spectrum
    left, right = spectrum.features(at.x), spectrum.features(at.y)
    return spectrum.kernel(at.weights, at.x, at.y), (left * at.weights[spectrum.level_of_feature]) @ right.T


@_LAWS.law("the diagonal is the kernel at equal points")
def _(held: Held, at: Places) -> Sides:
    spectrum = held.spectrum
    return spectrum.diagonal(at.weights, at.x), jnp.diagonal(spectrum.kernel(at.weights, at.x, at.x))


@_LAWS.law("synthesize sums the features")
def _(held: Held, at: Places) -> Sides:
    features = held.spectrum.features(at.x)
    return held.spectrum.synthesize(features, at.x, at.coefficients), features @ at.coefficients


@_LAWS.law("functions have the same values at other vectors of a point")
def _(held: Held, at: Places) -> Sides:
    if held.factor is not None:
        return None
    found = held.spectrum.features(jnp.einsum("rab,nb->rna", at.same, at.x))
    return found, jnp.broadcast_to(held.spectrum.features(at.x), found.shape)


@_LAWS.law("fields of projected ambient coordinates satisfy V(Ax) = A V(x) for all identifications A")
def _(held: Held, at: Places) -> Sides:
    if held.factor is None:
        return None
    space = held.space
    units = jnp.eye(space.ambient_dim, dtype=at.x.dtype)[space.slices[held.factor]]

    def fields(x: Array) -> Array:
        directions = jax.vmap(lambda unit: space.project(x, jnp.broadcast_to(unit, x.shape)))(units)
        return jnp.einsum("inb,nm->inmb", directions, held.spectrum.features(x))

    found = jax.vmap(lambda matrix: fields(at.x @ matrix.T))(at.same)
    return found, jnp.einsum("rab,inmb->rinma", at.same, fields(at.x))


@_DERIVATIVE_LAWS.law("eigenfunctions have the eigenvalues of the Laplacian", 1e3)
def _(held: Held, at: Places) -> Sides:
    """Sum second derivatives along geodesics in orthonormal directions."""
    space, spectrum = held.space, held.spectrum
    zero, one = jnp.zeros((), at.x.dtype), jnp.ones((), at.x.dtype)

    def second(direction: Array) -> Array:
        def slope(t: Array) -> Array:
            return jax.jvp(lambda s: spectrum.features(space.exp(at.x, s * direction)), (t,), (one,))[1]

        return jax.jvp(slope, (zero,), (one,))[1]

    laplacian = jnp.sum(jax.vmap(second)(jnp.moveaxis(space.frame(at.x), -1, 0)), axis=0)
    eigenvalues = jnp.asarray(spectrum.eigenvalues[spectrum.level_of_feature], at.x.dtype)
    return -laplacian, eigenvalues * spectrum.features(at.x)


def _sums(held: Held, at: Places, features: bool) -> Array:
    """Return derivatives of sums along geodesics and in the coefficients, by features or by `synthesize`."""
    space, spectrum = held.space, held.spectrum

    def at_time(t: Array, s: Array) -> Array:
        x, coefficients = space.exp(at.x, t * at.v), at.coefficients * (1.0 + s)
        rows = spectrum.features(x)
        return rows @ coefficients if features else spectrum.synthesize(rows, x, coefficients)

    times = jnp.full((), 0.1, at.x.dtype), jnp.zeros((), at.x.dtype)
    mixed = jax.jacfwd(jax.jacfwd(at_time, 0), (0, 1))(*times)
    return jnp.stack([*jax.jacfwd(at_time, (0, 1))(*times), *mixed])


@_DERIVATIVE_LAWS.law("two derivatives of synthesized sums are those of features", 1e3)
def _(held: Held, at: Places) -> Sides:
    return _sums(held, at, features=False), _sums(held, at, features=True)


@_DERIVATIVE_LAWS.law("derivatives of the kernel are those of features", 1e3)
def _(held: Held, at: Places) -> Sides:
    space, spectrum = held.space, held.spectrum

    def by_features(w: Array, x: Array) -> Array:
        return jnp.sum(jnp.sin((spectrum.features(x) * w[spectrum.level_of_feature]) @ spectrum.features(at.y).T))

    def by_kernel(w: Array, x: Array) -> Array:
        return jnp.sum(jnp.sin(spectrum.kernel(w, x, at.y)))

    (w_one, x_one), (w_two, x_two) = (jax.grad(f, (0, 1))(at.weights, at.x) for f in (by_kernel, by_features))
    found, expected = (space.project(at.x, slopes).ravel() for slopes in (x_one, x_two))
    return jnp.concatenate([w_one, found]), jnp.concatenate([w_two, expected])
