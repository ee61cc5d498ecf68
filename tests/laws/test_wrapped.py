"""The laws of the wrapped Gaussian likelihood."""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdgp.likelihoods import WrappedGaussian
from rdgp.spaces import Euclidean, Product, Rotations, Space, Sphere, Torus
from rdgp.spectra import quadrature

SPACE = Product(Rotations(), Sphere(4))


@pytest.mark.parametrize(
    ("space", "volume"),
    [(Sphere(2), 4 * math.pi), (Rotations(), math.pi**2), (Product(Torus(1), Sphere(2)), 8 * math.pi**2)],
    ids=str,
)
def test_wrapped_density_integrates_to_one(space: Space, volume: float) -> None:
    nodes, weights = quadrature(space, 60)
    f = np.broadcast_to(nodes[len(nodes) // 3], nodes.shape)
    log_density = eqx.filter_jit(WrappedGaussian(space, 0.04).log_density)(nodes, f)
    np.testing.assert_allclose(volume * np.sum(weights * np.exp(log_density)), 1.0, atol=1e-6)


@pytest.mark.parametrize(("space", "dtype"), [(SPACE, jnp.float32), (Sphere(2), jnp.float64)], ids=str)
def test_wrapped_gradients_are_finite_at_and_opposite_the_observation(space: Space, dtype: type) -> None:
    y = space.nearest(np.random.default_rng(0).normal(size=(4, space.ambient_dim)).astype(dtype))
    f = jnp.asarray(np.stack([y, -np.asarray(y)]))

    @eqx.filter_jit
    @eqx.filter_value_and_grad(has_aux=True)
    def total(given: tuple[WrappedGaussian, jax.Array], y: jax.Array) -> tuple[jax.Array, jax.Array]:
        values = given[0].log_density(y, given[1])
        return jnp.sum(values), values

    (_, values), gradients = total((WrappedGaussian(space, 0.3), f), y)
    assert values.dtype == dtype
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves((values, gradients)))
    np.testing.assert_allclose(np.asarray(values)[0], -0.5 * space.dim * math.log(2 * math.pi * 0.3), rtol=1e-5)


def test_wrapped_samples_have_the_right_distances() -> None:
    """Hold the mean of distance² / τ², chi-squared of d degrees, to six standard errors: a false alarm in 10^8."""
    space = Product(Sphere(2), Euclidean(1))
    f = np.random.default_rng(1).normal(size=(3000, space.ambient_dim))

    @jax.jit
    def sample(f: jax.Array, key: jax.Array) -> tuple[jax.Array, jax.Array]:
        f = space.nearest(f)
        y = WrappedGaussian(space, 0.03).sample(f, key=key)
        return space.contains(y), jnp.square(space.distance(f, y)) / 0.03

    contained, squared = sample(f, jax.random.key(2))
    assert np.all(contained)
    assert abs(np.mean(squared) - space.dim) < 6 * math.sqrt(2 * space.dim / len(f))
    assert jax.eval_shape(sample, jnp.asarray(f, jnp.float32), jax.random.key(2))[1].dtype == jnp.float32
