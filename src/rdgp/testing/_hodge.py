"""The laws of Hodge spectra: tangency, divergence, curl, and the Hodge Laplacian by its definition."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rdgp.core import compiled
from rdgp.spaces import Space
from rdgp.spectra import HodgeSpectrum, ScalarSpectrum
from rdgp.testing._laws import Laws, Sides, hold_true, key_of
from rdgp.testing._orthonormal import check_orthonormal

_POINTS = 4
_LAWS = Laws()
_DERIVATIVE_LAWS = Laws()


class Held(NamedTuple):
    """A spectrum of fields with its space, and the spectrum of the functions whose gradients it holds."""

    space: Space
    spectrum: HodgeSpectrum
    scalar: ScalarSpectrum


class Places(NamedTuple):
    """Points, frames and numbers at which a spectrum of fields is held to its laws."""

    x: Float[Array, "N D"]
    y: Float[Array, "N D"]
    along_x: Float[Array, "N D d"]
    along_y: Float[Array, "N D d"]
    same: Float[Array, "R D D"]  # the identifications
    weights: tuple[Float[Array, "_"], ...]
    coefficients: Float[Array, "M"]
    factor: Float[Array, "M r"]


def check_hodge_spectrum(
    space: Space, spectrum: HodgeSpectrum, lowest: HodgeSpectrum, scalar: ScalarSpectrum, seed: int
) -> None:
    """Hold eigenfields to their laws, and the lowest of them, which belong to a scalar spectrum, to derivatives."""
    owner = f"the Hodge spectrum of {space}"
    for part in spectrum.parts:
        hold_true(owner, f"eigenvalues of the {part.name} part increase", np.diff(part.eigenvalues) > -1e-6)
        hold_true(owner, f"levels of the {part.name} part are its eigenvalues", _levels_are_eigenvalues(*part[1::3]))
        total = np.abs(part.by_factor.sum(axis=1) - part.eigenvalues)
        hold_true(owner, f"eigenvalues of factors add up in the {part.name} part", total < 1e-6)
    held = Held(space, spectrum, scalar)
    _LAWS.hold(owner, held, compiled(_places, held, key_of(seed)))
    low = Held(space, lowest, scalar)
    _DERIVATIVE_LAWS.hold(owner, low, compiled(_places, low, key_of(seed)))
    check_orthonormal(owner, space, spectrum, max(float(part.eigenvalues.max()) for part in spectrum.parts))


def _levels_are_eigenvalues(eigenvalues: Float[np.ndarray, "K"], level: np.ndarray) -> bool:
    distinct = np.concatenate([[0], np.cumsum(np.diff(eigenvalues) > 1e-6)])
    return bool(np.array_equal(level, distinct))


def _places(held: Held, key: Array) -> Places:
    space, spectrum = held.space, held.spectrum
    keys = jax.random.split(key, 5)
    x, y = space.random(_POINTS, key=keys[0]), space.random(_POINTS, key=keys[1])
    along_x, along_y = (space.covector(z[:, :, None].swapaxes(1, 2), space.frame(z).swapaxes(1, 2)) for z in (x, y))
    sizes = [part.eigenvalues.size for part in spectrum.parts]
    weights = tuple(
        jax.random.uniform(k, (n,)) for k, n in zip(jax.random.split(keys[2], len(sizes)), sizes, strict=True)
    )
    coefficients = jax.random.normal(keys[3], (spectrum.num_features,))
    factor = jax.random.normal(keys[4], (spectrum.num_features, 3))
    same = jnp.asarray(space.identifications, x.dtype)
    return Places(x, y, along_x.swapaxes(1, 2), along_y.swapaxes(1, 2), same, weights, coefficients, factor)


def _components(fields: Array, along: Array) -> Float[Array, "N d M"]:
    return jnp.einsum("ndm,ndp->npm", fields, along)


@_LAWS.law("fields are tangent")
def _(held: Held, at: Places) -> Sides:
    fields = jnp.moveaxis(held.spectrum.features(at.x), -1, 0)
    return held.space.project(at.x, fields), fields


@_LAWS.law("the kernel is the sum over the fields")
def _(held: Held, at: Places) -> Sides:
    spectrum = held.spectrum
    left, right = (_components(spectrum.features(z), e) for z, e in ((at.x, at.along_x), (at.y, at.along_y)))
    kernel = spectrum.kernel(at.weights, at.x, at.y, at.along_x, at.along_y)
    return kernel, jnp.einsum("npm,m,lqm->nplq", left, spectrum.per_feature(at.weights), right)


@_LAWS.law("the diagonal is the kernel at equal points")
def _(held: Held, at: Places) -> Sides:
    kernel = held.spectrum.kernel(at.weights, at.x, at.x, at.along_x, at.along_x)
    return held.spectrum.diagonal(at.weights, at.x, at.along_x), jnp.einsum("npnq->npq", kernel)


@_LAWS.law("synthesize sums the fields")
def _(held: Held, at: Places) -> Sides:
    spectrum = held.spectrum
    return spectrum.synthesize(spectrum.basis(at.x), at.x, at.coefficients), spectrum.features(at.x) @ at.coefficients


@_LAWS.law("variance_trace sums squares of the fields", 1e3)
def _(held: Held, at: Places) -> Sides:
    rows = _components(held.spectrum.features(at.x), at.along_x) @ at.factor
    return held.spectrum.variance_trace(at.x, at.factor), jnp.sum(jnp.square(rows), axis=(1, 2))


@_LAWS.law("fields satisfy V(Ax) = A V(x) for all identifications A")
def _(held: Held, at: Places) -> Sides:
    found = held.spectrum.features(jnp.einsum("rab,nb->rna", at.same, at.x))
    return found, jnp.einsum("rab,nbm->rnam", at.same, held.spectrum.features(at.x))


class Derivatives(NamedTuple):
    """Fields [N, d, M], covariant derivatives [N, component, direction, M], Hodge Laplacians [N, d, M] in a frame."""

    value: Array
    covariant: Array
    laplacian: Array


def _derivatives(held: Held, at: Places) -> Derivatives:
    """Differentiate projected ambient derivatives: Δ V = -grad div V + δ d V."""
    space, spectrum = held.space, held.spectrum

    def derivative(x: Array) -> tuple[Array, tuple[Array, Array]]:
        """Return P (∂V/∂x) P as [D, D, M]: component, direction, field."""
        project = space.project(x, jnp.eye(space.ambient_dim, dtype=x.dtype))
        value = spectrum.features(x)
        slopes = jax.jacfwd(spectrum.features)(x)  # [D, M, D]
        result = jnp.einsum("ab,bmc,cd->adm", project, slopes, project)
        return result, (result, value)

    def evaluate(x: Array) -> Derivatives:
        frame = space.frame(x)
        second, (first, value) = jax.jacfwd(derivative, has_aux=True)(x)  # [D, D, M, D]
        codifferential = -jnp.einsum("abmc,ai,bj,cj->im", second - jnp.swapaxes(second, 0, 1), frame, frame, frame)
        gradient_of_divergence = frame.T @ jnp.trace(second, axis1=0, axis2=1).T
        covariant = jnp.einsum("abm,ai,bj->ijm", first, frame, frame)
        return Derivatives(frame.T @ value, covariant, codifferential - gradient_of_divergence)

    return jax.vmap(evaluate)(at.x)


def _of_part(spectrum: HodgeSpectrum, *names: str) -> np.ndarray:
    """Return the numbers of the fields of some parts."""
    name = np.repeat([part.name for part in spectrum.parts], [part.num_features for part in spectrum.parts])
    return np.flatnonzero(np.isin(name, names))


@_DERIVATIVE_LAWS.law("fields have the eigenvalues of the Hodge Laplacian", 2e3)
def _(held: Held, at: Places) -> Sides:
    known = _derivatives(held, at)
    eigenvalues = held.spectrum.per_feature([jnp.asarray(part.eigenvalues, at.x.dtype) for part in held.spectrum.parts])
    return known.laplacian, eigenvalues * known.value


@_DERIVATIVE_LAWS.law("gradient and harmonic fields have no curl", 2e3)
def _(held: Held, at: Places) -> Sides:
    covariant = _derivatives(held, at).covariant[..., _of_part(held.spectrum, "gradient", "harmonic")]
    return covariant, jnp.swapaxes(covariant, 1, 2)


@_DERIVATIVE_LAWS.law("curl and harmonic fields have no divergence", 2e3)
def _(held: Held, at: Places) -> Sides:
    covariant = _derivatives(held, at).covariant[..., _of_part(held.spectrum, "curl", "harmonic")]
    return jnp.trace(covariant, axis1=1, axis2=2), 0.0


@_DERIVATIVE_LAWS.law("gradient fields are the gradients of the scalar eigenfunctions over √λ", 1e3)
def _(held: Held, at: Places) -> Sides:
    rows = _of_part(held.spectrum, "gradient")
    if not rows.size:
        return None
    scalar, space = held.scalar, held.space
    slopes = jax.vmap(jax.jacfwd(scalar.features))(at.x)[:, 1:]  # [N, M, D]
    gradients = jax.vmap(space.gradient, (None, 1), 2)(at.x, slopes)
    eigenvalues = jnp.asarray(scalar.eigenvalues[scalar.level_of_feature][1:], at.x.dtype)
    return held.spectrum.features(at.x)[..., rows], gradients / jnp.sqrt(eigenvalues)


@_DERIVATIVE_LAWS.law("derivatives of synthesized sums are those of the fields", 1e3)
def _(held: Held, at: Places) -> Sides:
    spectrum, space = held.spectrum, held.space
    v = at.along_x[..., 0]

    def along(t: Array, features: bool) -> Array:
        x = space.exp(at.x, t * v)
        return (
            spectrum.features(x) @ at.coefficients
            if features
            else spectrum.synthesize(spectrum.basis(x), x, at.coefficients)
        )

    time = jnp.full((), 0.1, at.x.dtype)
    first, second = (jax.jacfwd(along), jax.jacfwd(jax.jacfwd(along)))
    return jnp.stack([first(time, False), second(time, False)]), jnp.stack([first(time, True), second(time, True)])
