"""Compiled functions: bounded in number, and the same inside other transformations."""

from types import FunctionType

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

from rdgp.core import compiled_quickly


@compiled_quickly
def _total(x: jax.Array, power: int = 2) -> jax.Array:
    return jnp.sum(x**power)


@compiled_quickly
def _mean(x: jax.Array) -> jax.Array:
    return jnp.mean(x)


def _held(function: FunctionType) -> int:
    """Return how many XLA executables the JAX function behind a compiled one holds."""
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    on = next(cell for cell in cells if hasattr(cell, "cache_info"))
    return on(jax.default_backend())._cached._cache_size()


def test_the_executables_of_all_large_functions_are_bounded() -> None:
    """Two functions with forty shapes each, and a look after every call."""
    held = []
    for size in range(1, 41):
        assert float(_total(jnp.ones(size))) == size
        assert float(_mean(jnp.ones(size))) == 1.0
        held.append(_held(_total) + _held(_mean))
    assert 10 < max(held) <= 32
    assert held[-1] < 40


def test_shapes_that_come_again_are_not_compiled_again() -> None:
    counted: list[int] = []

    @compiled_quickly
    def once(x: jax.Array) -> jax.Array:
        counted.append(x.size)
        return jnp.sum(x)

    for _ in range(5):
        for size in (3, 4):
            once(jnp.ones(size))
    assert counted in ([3, 4], [3, 4, 3], [3, 4, 3, 4])  # all may be forgotten once in between


def test_values_and_derivatives_inside_and_outside_of_compilations_agree() -> None:
    x = jnp.asarray([1.0, 2.0, 3.0])
    assert float(_total(x, power=3)) == 36.0
    assert float(jax.jit(lambda x: _total(x, power=3))(x)) == 36.0
    for gradient in (jax.grad(_total), jax.jit(jax.grad(_total)), eqx.filter_grad(_total)):
        np.testing.assert_allclose(gradient(x), [2.0, 4.0, 6.0])
    np.testing.assert_allclose(jax.vmap(_total)(jnp.stack([x, 2.0 * x])), [14.0, 56.0])
    np.testing.assert_allclose(jax.hessian(_total)(x), 2.0 * np.eye(3))
