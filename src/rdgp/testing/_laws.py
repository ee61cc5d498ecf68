"""How a law is stated and held: two sides that must agree up to rounding."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rdgp.core import compiled

Sides = tuple[Array, Array | float] | None  # None where a law says nothing about an object
STANDARD_ERRORS = 6.0  # a mean of samples is further off once in 10^9


class Law(NamedTuple):
    """A statement, the function that computes both of its sides, and how many rounding errors apart they may be."""

    name: str
    sides: Callable[..., Sides]
    rounding: float


class Laws:
    """All laws of one kind of object; they are computed in one compilation."""

    def __init__(self) -> None:
        self._laws: list[Law] = []

    def law(self, name: str, rounding: float = 200.0) -> Callable[[Callable[..., Sides]], Callable[..., Sides]]:
        """Return a decorator that adds a function of the object and of given arrays as a law."""

        def add(sides: Callable[..., Sides]) -> Callable[..., Sides]:
            self._laws.append(Law(name, sides, rounding))
            return sides

        return add

    def hold(self, owner: str, thing: Any, *given: Any) -> None:
        """Raise an AssertionError unless all laws hold for a thing and given arrays, also in their precision."""
        laws = tuple(self._laws)
        for law, sides in zip(laws, compiled(_all_sides, laws, thing, *given), strict=True):
            if sides is not None:
                hold(owner, law.name, *sides, rounding=law.rounding)
        single = jax.tree.map(lambda array: jax.ShapeDtypeStruct(array.shape, jnp.float32), given)
        shapes = jax.eval_shape(lambda *arrays: _all_sides(laws, thing, *arrays), *single)
        for law, sides in zip(laws, shapes, strict=True):
            if sides is not None and jnp.issubdtype(sides[0].dtype, jnp.floating) and sides[0].dtype != jnp.float32:
                raise AssertionError(f"{owner} breaks a law: {law.name}: float32 comes out as {sides[0].dtype}")


def _all_sides(laws: tuple[Law, ...], thing: Any, *given: Any) -> list[Sides]:
    return [law.sides(thing, *given) for law in laws]


def precision() -> np.dtype:
    """Return the dtype that JAX is set to."""
    return np.dtype(jnp.result_type(float))


def hold(owner: str, law: str, found: Any, expected: Any, *, rounding: float = 200.0) -> None:
    """Raise an AssertionError unless two arrays agree up to a number of rounding errors of their largest entry."""
    dtype = precision()
    found, expected = np.asarray(found), np.asarray(expected)
    if np.issubdtype(found.dtype, np.floating) and found.dtype != dtype:
        raise AssertionError(f"{owner} breaks a law: {law}: the result is {found.dtype}, expected {dtype}")
    size = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
    error = float(np.max(np.abs(found.astype(float) - expected.astype(float)), initial=0.0)) / size
    limit = rounding * float(jnp.finfo(dtype).eps)
    if not error <= limit:
        raise AssertionError(f"{owner} breaks a law: {law}: off by {error:.3g}, at most {limit:.3g} in {dtype}")


def hold_true(owner: str, law: str, holds: Any) -> None:
    """Raise an AssertionError unless everything is true."""
    holds = np.asarray(holds)
    if not np.all(holds):
        raise AssertionError(f"{owner} breaks a law: {law}: not so in {int(np.sum(~holds))} of {holds.size} cases")


def hold_mean(
    owner: str, law: str, samples: Float[np.ndarray, "S ..."], expected: Any, *, rounding: float = 200.0
) -> None:
    """Raise an AssertionError unless the mean of samples is within six standard errors of what is expected."""
    samples, expected = np.asarray(samples, float), np.asarray(expected, float)
    mean, error = samples.mean(axis=0), samples.std(axis=0) / np.sqrt(len(samples))
    slack = rounding * float(jnp.finfo(precision()).eps) * max(1.0, float(np.max(np.abs(expected), initial=0.0)))
    excess = np.max((np.abs(mean - expected) - slack) / np.maximum(error, np.finfo(float).tiny), initial=0.0)
    if not excess <= STANDARD_ERRORS:
        raise AssertionError(
            f"{owner} breaks a law: {law}: off by {excess:.3g} standard errors, at most {STANDARD_ERRORS:g}"
        )


def refuses(owner: str, law: str, call: Callable[[], Any]) -> None:
    """Raise an AssertionError unless a call raises a ValueError."""
    try:
        call()
    except ValueError:
        return
    raise AssertionError(f"{owner} breaks a law: {law}: no ValueError is raised")


def key_of(seed: int) -> Array:
    """Return a random key."""
    return jax.random.key(seed)
