"""Values and derivatives of spectra, each compiled once for all the laws that need it."""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from rdgp.spectra import HodgeSpectrum, ScalarSpectrum, hodge_parts, hodge_spectrum, quadrature, scalar_spectrum
from tests.cases import SpectrumCase, points


def whole_spectrum(case: SpectrumCase) -> HodgeSpectrum:
    return hodge_spectrum(case.space, max(case.levels - 2, 2), hodge_parts(case.space))


def small_spectra(case: SpectrumCase) -> tuple[ScalarSpectrum, HodgeSpectrum]:
    """Return few levels, for what is differentiated; the gradient fields are those of the scalar functions."""
    levels = 3 if case.space.dim <= 2 else 2
    return scalar_spectrum(case.space, levels + 1), hodge_spectrum(case.space, levels, hodge_parts(case.space))


class Values(NamedTuple):
    """Features at two lists of points, and at the nodes of a quadrature."""

    x: jax.Array
    y: jax.Array
    at_x: np.ndarray
    at_y: np.ndarray
    at_nodes: np.ndarray
    weights: np.ndarray


@cache
def values(case: SpectrumCase, spectrum: ScalarSpectrum | HodgeSpectrum) -> Values:
    nodes, weights = quadrature(case.space, case.degree)
    x, y = points(case.space, 0), points(case.space, 1)
    everywhere = np.concatenate([np.asarray(x), np.asarray(y), nodes])
    features = np.asarray(spectrum.features(jnp.asarray(everywhere)))
    return Values(x, y, features[:5], features[5:10], features[10:], weights)


class ScalarDerivatives(NamedTuple):
    """Functions [M], their slopes in the frame [d, M], and their Laplacians [M], at a point."""

    value: jax.Array
    slopes: jax.Array
    laplacian: jax.Array


@cache
def scalar_derivatives(case: SpectrumCase) -> Callable[[jax.Array], ScalarDerivatives]:
    """Differentiate along geodesics: the Laplacian sums second derivatives in orthonormal directions."""
    space, spectrum = case.space, small_spectra(case)[0]

    def evaluate(x: jax.Array) -> ScalarDerivatives:
        def along(direction: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
            def value_and_slope(t: jax.Array) -> tuple[jax.Array, jax.Array]:
                return jax.jvp(lambda s: spectrum.features(space._exp(x, s * direction)), (t,), (1.0,))

            (value, slope), (_, bend) = jax.jvp(value_and_slope, (0.0,), (1.0,))
            return value, slope, bend

        value, slopes, bends = jax.vmap(along)(space._frame(x).T)
        return ScalarDerivatives(value[0], slopes, jnp.sum(bends, axis=0))

    return jax.jit(evaluate)


class HodgeDerivatives(NamedTuple):
    """Fields [d, M], covariant derivatives [component, direction, M] and Hodge Laplacians [d, M] in the frame."""

    value: jax.Array
    covariant: jax.Array
    laplacian: jax.Array


@cache
def hodge_derivatives(case: SpectrumCase) -> Callable[[jax.Array], HodgeDerivatives]:
    """Differentiate projected ambient derivatives: Δ V = -grad div V + δ d V."""
    space, spectrum = case.space, small_spectra(case)[1]

    def features(x: jax.Array) -> tuple[jax.Array, jax.Array]:
        value = spectrum.features(x)
        return value, value

    def derivative(x: jax.Array) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
        """Return P (∂V/∂x) P as [D, D, M]: component, direction, field."""
        project = space._project(x, jnp.eye(space.ambient_dim))
        slopes, value = jax.jacfwd(features, has_aux=True)(x)  # [D, M, D]
        result = jnp.einsum("ab,bmc,cd->adm", project, slopes, project)
        return result, (result, value)

    def evaluate(x: jax.Array) -> HodgeDerivatives:
        frame = space._frame(x)
        second, (first, value) = jax.jacfwd(derivative, has_aux=True)(x)  # [D, D, M, D]
        codifferential = -jnp.einsum("abmc,ai,bj,cj->im", second - jnp.swapaxes(second, 0, 1), frame, frame, frame)
        gradient_of_divergence = frame.T @ jnp.trace(second, axis1=0, axis2=1).T
        covariant = jnp.einsum("abm,ai,bj->ijm", first, frame, frame)
        return HodgeDerivatives(frame.T @ value, covariant, codifferential - gradient_of_divergence)

    return jax.jit(evaluate)
