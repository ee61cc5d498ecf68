"""Every exported space, spectrum and field, once or more, for the laws to run on."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdgp.core import compiled
from rdgp.fields import Field, FrameField, HodgeField, ProjectedField, ScalarField, StackedField
from rdgp.fields._field import FieldDraw
from rdgp.kernels import EuclideanMatern, Heat, Matern
from rdgp.spaces import Box, Circle, Euclidean, Isometry, Product, Rotations, Space, Sphere, Torus

SPACES: list[Space] = [
    Circle(),
    Sphere(2),
    Sphere(3),
    Torus(3),
    Rotations(),
    Euclidean(3),
    Box([-1.0, 0.0], [2.0, 0.5]),
    Product(Rotations(), Euclidean(2)),
]


class SpectrumCase(NamedTuple):
    """A space, how many levels to keep, and the polynomial degree at which products of two fields are integrated."""

    space: Space
    levels: int
    degree: int


SPECTRA = [
    SpectrumCase(Circle(), 6, 12),
    SpectrumCase(Sphere(2), 6, 12),
    SpectrumCase(Sphere(4), 4, 10),
    SpectrumCase(Torus(2), 5, 8),
    SpectrumCase(Torus(3), 4, 6),
    SpectrumCase(Rotations(), 3, 14),
    SpectrumCase(Product(Sphere(2), Circle()), 5, 8),
    SpectrumCase(Product(Rotations(), Circle()), 4, 10),
    SpectrumCase(Product(Circle(), Sphere(2), Circle()), 4, 6),
]

_rough, _smooth = Matern(1.5, 0.6, 1.7), Heat(0.4, 0.8)
_flat = EuclideanMatern(2.5, 0.8, 1.2)
_pose = Product(Rotations(), Euclidean(2))
_mixed = Product(Rotations(), Sphere(2))

FIELDS: dict[str, Callable[[], Field]] = {
    "scalar-sphere": lambda: ScalarField(Sphere(2), _rough, levels=5),
    "scalar-torus": lambda: ScalarField(Torus(2), _rough, levels=4),
    "scalar-rotations": lambda: ScalarField(Rotations(), _rough, levels=3),
    "scalar-product": lambda: ScalarField(_mixed, _rough, levels=4),
    "scalar-product-kernel": lambda: ScalarField(_mixed, (_rough, _smooth), levels=(2, 3)),
    "scalar-euclidean": lambda: ScalarField(Euclidean(2), EuclideanMatern(1.5, [0.5, 2.0], 1.3)),
    "scalar-pose": lambda: ScalarField(_pose, (_rough, _flat), levels=2),
    "stacked-sphere": lambda: StackedField(Sphere(2), _rough, levels=4, outputs=3),
    "projected-sphere": lambda: ProjectedField(Sphere(2), _rough, levels=4),
    "projected-rotations": lambda: ProjectedField(Rotations(), _rough, levels=2),
    "projected-product": lambda: ProjectedField(_mixed, _rough, levels=3),
    "frame-sphere": lambda: FrameField(Sphere(2), _rough, levels=4),
    "frame-east-north": lambda: FrameField(Sphere(2), _rough, levels=4, frame="east_north"),
    "frame-rotations": lambda: FrameField(Rotations(), _rough, levels=2),
    "frame-euclidean": lambda: FrameField(Euclidean(3), _flat),
    "hodge-circle": lambda: HodgeField(Circle(), divergence=_rough, harmonic=_smooth, levels=4),
    "hodge-sphere": lambda: HodgeField(Sphere(2), divergence=_rough, curl=_smooth, levels=4),
    "hodge-sphere4": lambda: HodgeField(Sphere(4), divergence=_rough, curl=_smooth, levels=2),
    "hodge-torus": lambda: HodgeField(Torus(2), divergence=_rough, curl=_smooth, harmonic=_rough, levels=3),
    "hodge-rotations": lambda: HodgeField(Rotations(), divergence=_rough, curl=_smooth, levels=2),
    "hodge-product": lambda: HodgeField(Product(Sphere(2), Circle()), _rough, _smooth, 3, harmonic=_rough),
}


def _grouped(value: object, name: str, group: object) -> object:
    """Keep the tests of one space in one worker, which then compiles them once."""
    return pytest.param(value, id=name, marks=pytest.mark.xdist_group(str(group)))


_REPRESENTATIVES = (
    "scalar-sphere",
    "stacked-sphere",
    "projected-rotations",
    "frame-euclidean",
    "hodge-sphere",
    "hodge-product",
)

spaces = pytest.mark.parametrize("space", [_grouped(space, str(space), space) for space in SPACES])
spectra = pytest.mark.parametrize("case", [_grouped(case, str(case.space), case.space) for case in SPECTRA])


def _field_cases(names: Iterable[str]) -> pytest.MarkDecorator:
    made = {name: FIELDS[name]() for name in names}
    return pytest.mark.parametrize("field", [_grouped(field, name, field.space) for name, field in made.items()])


def named_fields(*names: str) -> pytest.MarkDecorator:
    """Run on the fields of these names only."""
    return _field_cases(names)


fields = _field_cases(FIELDS)
representative_fields = _field_cases(_REPRESENTATIVES)


def _factors(space: Space) -> tuple[Space, ...]:
    if isinstance(space, Torus):
        return (Circle(),) * space.dim
    return space.factors if isinstance(space, Product) else (space,)


def _draw(space: Space, rng: np.random.Generator, n: int) -> np.ndarray:
    if isinstance(space, Product | Torus):
        return np.concatenate([_draw(factor, rng, n) for factor in _factors(space)], axis=1)
    if isinstance(space, Box):
        return rng.uniform(space.lower, space.upper, (n, space.dim))
    x = rng.normal(size=(n, space.ambient_dim))
    if isinstance(space, Sphere | Rotations):
        return x / np.linalg.norm(x, axis=1, keepdims=True)
    return x if isinstance(space, Euclidean) else np.array(space.random(n, key=jax.random.key(rng.integers(2**31))))


def _tangent(space: Space, x: np.ndarray, v: np.ndarray) -> np.ndarray:
    if isinstance(space, Product | Torus):
        factors = _factors(space)
        ends = np.cumsum([factor.ambient_dim for factor in factors])[:-1]
        parts = zip(factors, np.split(x, ends, axis=1), np.split(v, ends, axis=1), strict=True)
        return np.concatenate([_tangent(*part) for part in parts], axis=1)
    if isinstance(space, Sphere | Rotations):
        return v - x * np.sum(x * v, axis=1, keepdims=True)
    return v if isinstance(space, Euclidean | Box) else np.array(space.project(x, v))


def points(space: Space, seed: int, n: int = 5, dtype: type = jnp.float64) -> jax.Array:
    """Draw points on a space, uniform or normal, with NumPy where it can, which compiles nothing."""
    return jnp.asarray(_draw(space, np.random.default_rng(seed), n), dtype)


def vectors(space: Space, x: jax.Array, seed: int) -> jax.Array:
    """Draw tangent vectors at points, standard normal in each tangent space."""
    return jnp.asarray(_tangent(space, np.asarray(x), np.random.default_rng(seed).normal(size=x.shape)), x.dtype)


def _sample(field: Field, key: jax.Array) -> FieldDraw:
    return field.sample(key=key)


def draw_of(field: Field, seed: int) -> FieldDraw:
    """Draw a function from a field, compiled as a whole."""
    return compiled(_sample, field, jax.random.key(seed))


def isometry(space: Space, seed: int) -> Isometry:
    """Draw an isometry, with arrays of NumPy."""
    return jax.tree.map(np.asarray, space.random_isometry(key=jax.random.key(seed, impl="rbg")))
