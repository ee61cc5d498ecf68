"""Sums of eigenfunctions and eigenfields, their derivatives, and variance traces, by short ways."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdgp.spaces import Circle, Rotations, Space, Sphere
from rdgp.spectra import HodgeSpectrum, hodge_parts, hodge_spectrum, scalar_spectrum
from tests.cases import points, vectors

LEVELS = {Circle(): 3, Sphere(2): 3, Sphere(3): 3, Rotations(): 2}


def both_ways(space: Space, kind: str) -> tuple:
    """Return a sum at points, as a function of the points and coefficients: through `synthesize`, and by features."""
    if kind == "scalar":
        scalar = scalar_spectrum(space, LEVELS[space])
        shape = (scalar.num_features, 2)
        return shape, lambda x, c: scalar.synthesize(scalar.features(x), x, c), lambda x, c: scalar.features(x) @ c
    hodge = hodge_spectrum(space, LEVELS[space], hodge_parts(space))
    shape = (hodge.num_features,)
    return shape, lambda x, c: hodge.synthesize(hodge.basis(x), x, c), lambda x, c: hodge.features(x) @ c


@pytest.mark.parametrize(
    ("space", "kind"), [(Circle(), "scalar"), (Sphere(2), "hodge"), (Sphere(3), "scalar")], ids=str
)
def test_derivatives_of_sums_are_those_of_features(space: Space, kind: str) -> None:
    """First and second ones along a surface of points, and mixed ones with the coefficients."""
    shape, short, long = both_ways(space, kind)
    x = points(space, 0, 3)
    v, u = vectors(space, x, 1), vectors(space, x, 2)
    c, dc = (jnp.asarray(np.random.default_rng(seed).normal(size=shape)) for seed in (3, 4))

    @jax.jit
    def facts() -> list:
        results = []
        for way in (short, long):

            def at(t: jax.Array, r: jax.Array, s: jax.Array, way: object = way) -> jax.Array:
                return way(space.exp(x, t * v + r * u), c + s * dc)

            first, mixed = jax.jacfwd(at, (0, 2)), jax.jacfwd(jax.jacfwd(at, 0), (1, 2))
            slope = jax.grad(lambda t, at=at: jnp.sum(jnp.sin(at(t, 0.2, 0.0))))(0.1)
            results.append((at(0.1, 0.2, 0.0), first(0.1, 0.2, 0.0), mixed(0.1, 0.2, 0.0), slope))
        return results

    short_facts, long_facts = facts()
    for ours, theirs in zip(jax.tree.leaves(short_facts), jax.tree.leaves(long_facts), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("space", [Sphere(2), Rotations()], ids=str)
def test_variance_traces_are_those_of_features(space: Space) -> None:
    spectrum = hodge_spectrum(space, LEVELS[space], hodge_parts(space))
    x = points(space, 0, 7)
    factor = jnp.asarray(np.random.default_rng(1).normal(size=(spectrum.num_features, 5)))
    expected = HodgeSpectrum.variance_trace(spectrum, x, factor)
    np.testing.assert_allclose(jax.jit(spectrum.variance_trace)(x, factor), expected, rtol=1e-10)
