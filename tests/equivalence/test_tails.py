"""Tails of interdomain families: which parts and levels they have, and what they cost."""

from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdgp.fields import Field, HodgeField, ProjectedField, ScalarField
from rdgp.kernels import Heat, Matern
from rdgp.posteriors import Interdomain
from rdgp.spaces import Circle, Product, Rotations, Sphere, Torus

ROUGH, SMOOTH = Matern(1.5, 0.6, 1.7), Heat(0.8, 0.9)
MIXED = Product(Sphere(2), Circle())
FIELDS: dict[str, tuple[Field, int]] = {
    "sphere": (ScalarField(Sphere(2), ROUGH, 6), 4),
    "torus": (ScalarField(Torus(2), ROUGH, 6), 4),
    "rotations": (ScalarField(Rotations(), ROUGH, 4), 2),
    "product": (ScalarField(MIXED, ROUGH, 7), 4),
    "product of kernels": (ScalarField(MIXED, (ROUGH, SMOOTH), (5, 4)), 3),
    "projected": (ProjectedField(MIXED, ROUGH, 6), 4),
    "Hodge on the sphere": (HodgeField(Sphere(2), ROUGH, SMOOTH, 5), 3),
    "Hodge on S_4": (HodgeField(Sphere(4), ROUGH, SMOOTH, 3), 1),
    "Hodge on the torus": (HodgeField(Torus(2), ROUGH, SMOOTH, 5, harmonic=ROUGH), 3),
    "Hodge on a product": (HodgeField(MIXED, ROUGH, SMOOTH, 5, harmonic=ROUGH), 3),
}
fields = pytest.mark.parametrize("name", FIELDS)
N = 17  # points, a number that nothing else has


def points(field: Field) -> jax.Array:
    return field.space.random(N, key=jax.random.key(0))


def test_a_product_of_kernels_has_one_part() -> None:
    """Levels of the first factor come again for each function of the second, which is no new part."""
    field = ScalarField(MIXED, (ROUGH, SMOOTH), num_levels=(2, 3))
    q = Interdomain(field, tail=1)
    assert [tail.raw.shape for tail in q.tails] == [(1, 1)]
    levels = field.processes[0].levels
    assert levels.num_parts == 1
    by_hand = np.maximum.outer([0, 1, 1, 1], [0, 1, 1, 2, 2]).ravel()
    np.testing.assert_array_equal(levels.level, by_hand)
    assert q.blocks[0].mean.shape == (1, int(np.sum(by_hand < 2)))


@fields
def test_moments_are_those_of_independent_coefficients(name: str) -> None:
    """Rows of the tail as plain features: D' of its part and level times the squared scale of each."""
    field, tail = FIELDS[name]
    q = Interdomain(field, tail=tail)
    rng = np.random.default_rng(0)
    raws = [jnp.asarray(rng.normal(size=own.raw.shape)) for own in q.tails]
    q, x = eqx.tree_at(lambda f: [own.raw for own in f.tails], q, raws), points(field)
    conditionals, rests = eqx.filter_jit(lambda q, x: (q.conditionals(x), q.joint_rest(x)))(q, x)
    for process, raw, conditional, rest in zip(field.processes, raws, conditionals, rests, strict=True):
        level, part, kept = process.levels.level, process.levels.part, process.levels.num_levels
        assert raw.shape == (process.levels.num_parts, tail)
        psi = np.asarray(process.features(x) * process.scales())
        head = level < kept - tail
        np.testing.assert_allclose(conditional.weights, psi[..., head], atol=1e-10)
        half = psi[..., ~head] * np.exp(0.5 * np.asarray(raw)[part[~head], level[~head] - (kept - tail)])
        np.testing.assert_allclose(conditional.rest, half @ np.swapaxes(half, 1, 2), atol=1e-10)
        flat = half.reshape(-1, half.shape[-1])
        np.testing.assert_allclose(rest, flat @ flat.T, atol=1e-10)


def test_variances_belong_to_the_parts_of_a_hodge_field() -> None:
    """A larger D' of the curl part adds to the variance of curl fields alone: none of it is a gradient."""
    field = HodgeField(Sphere(2), ROUGH, SMOOTH, 3)
    q, process = Interdomain(field, tail=1), field.processes[0]
    assert q.tails[0].raw.shape == (2, 1)
    larger = eqx.tree_at(lambda f: f.tails[0].raw, q, jnp.asarray([[0.0], [np.log(3.0)]]))
    added = larger.joint_rest(points(field))[0] - q.joint_rest(points(field))[0]
    rows = np.asarray(process.features(points(field)) * process.scales())
    curl = rows[..., (process.levels.part == 1) & (process.levels.level == 2)].reshape(2 * N, -1)
    np.testing.assert_allclose(added, 2.0 * curl @ curl.T, atol=1e-10)


def _shapes(jaxpr: Any) -> Iterator[tuple[int, ...]]:
    """Yield the shapes of all arrays that a computation makes."""
    for equation in jaxpr.eqns:
        yield from (variable.aval.shape for variable in equation.outvars)
        for value in equation.params.values():
            for inner in value if isinstance(value, tuple | list) else [value]:
                if hasattr(inner, "jaxpr"):
                    yield from _shapes(inner.jaxpr)
                elif hasattr(inner, "eqns"):
                    yield from _shapes(inner)


@fields
def test_no_feature_of_a_tail_is_evaluated(name: str) -> None:
    """No array has more columns for each point than the head has features, times components of vectors."""
    field, tail = FIELDS[name]
    q = Interdomain(field, tail=tail)
    shapes = _shapes(jax.make_jaxpr(q.conditionals)(points(field)).jaxpr)
    columns = max(int(np.prod(shape)) // N for shape in shapes if N in shape)
    head = max(block.mean.shape[-1] for block in q.blocks)
    vectors = isinstance(field, HodgeField)
    assert columns == head * (field.space.ambient_dim if vectors else 1)
    assert head < max(process.num_features for process in field.processes) / 2
