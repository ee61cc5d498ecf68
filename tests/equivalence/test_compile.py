"""Compiled functions: bounded in number, and the same inside other transformations."""

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdgp.core import _compile, compiled_quickly


@compiled_quickly
def _total(x: jax.Array, power: int = 2) -> jax.Array:
    return jnp.sum(x**power)


@compiled_quickly
def _mean(x: jax.Array) -> jax.Array:
    return jnp.mean(x)


def test_the_executables_of_all_large_functions_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two functions with forty shapes each, and a look after every call at what JAX holds of both."""
    run, used, held = _compile._run, {}, []

    def spy(jitted: Any, *arguments: Any, **named: Any) -> Any:
        used[id(jitted)] = jitted
        result = run(jitted, *arguments, **named)
        held.append(sum(own._cached._cache_size() for own in used.values()))
        return result

    monkeypatch.setattr(_compile, "_run", spy)
    for size in range(1, 41):
        assert float(_total(jnp.ones(size))) == size
        assert float(_mean(jnp.ones(size))) == 1.0
    assert len(used) == 2
    assert 10 < max(held) <= 32


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
