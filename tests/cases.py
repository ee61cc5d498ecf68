"""Every exported space, spectrum and field, once or more, for the laws to run on."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdgp.core import compiled
from rdgp.fields import Field, FieldDraw, FrameField, HodgeField, ProjectedField, ScalarField, StackedField
from rdgp.kernels import Heat, Kernel, Matern, Sum
from rdgp.spaces import Box, Circle, Euclidean, Isometry, Product, Rotations, Space, Sphere, Torus

SPACES: list[Space] = [
    Circle(),
    Sphere(2),
    Sphere(3),
    Sphere(4),
    Torus(3),
    Rotations(),
    Euclidean(3),
    Box([-1.0, 0.0], [2.0, 0.5]),
    Product(Rotations(), Euclidean(2)),
]


class SpectrumCase(NamedTuple):
    """A space and how many levels to keep."""

    space: Space
    num_levels: int


SPECTRA = [
    SpectrumCase(Circle(), 6),
    SpectrumCase(Sphere(2), 6),
    SpectrumCase(Sphere(4), 4),
    SpectrumCase(Torus(2), 5),
    SpectrumCase(Torus(3), 4),
    SpectrumCase(Rotations(), 3),
    SpectrumCase(Product(Sphere(2), Circle()), 5),
    SpectrumCase(Product(Rotations(), Circle()), 4),
    SpectrumCase(Product(Circle(), Sphere(2), Circle()), 4),
]

_pose = Product(Rotations(), Euclidean(2))
_mixed = Product(Rotations(), Sphere(2))
_ball = Product(Sphere(2), Circle())


def _rough() -> Kernel:
    return Matern(1.5, 0.6, 1.7)


def _smooth() -> Kernel:
    return Heat(0.4, 0.8)


def _flat() -> Kernel:
    return Matern(2.5, 0.8, 1.2)


def _sum() -> Kernel:
    return Sum(Matern(2.5, 0.8, 0.9), Heat(0.3, 0.4))


FIELDS: dict[str, Callable[[], Field]] = {  # built when asked for, so in the precision of the moment
    "scalar-sphere": lambda: ScalarField(Sphere(2), _rough(), num_levels=5),
    "scalar-torus": lambda: ScalarField(Torus(2), _rough(), num_levels=4),
    "scalar-rotations": lambda: ScalarField(Rotations(), _rough(), num_levels=3),
    "scalar-product": lambda: ScalarField(_mixed, _rough(), num_levels=4),
    "scalar-product-kernel": lambda: ScalarField(_mixed, (_rough(), _smooth()), num_levels=(2, 3)),
    "scalar-sum": lambda: ScalarField(Sphere(3), _sum(), num_levels=4),
    "scalar-euclidean": lambda: ScalarField(Euclidean(2), Matern(1.5, [0.5, 2.0], 1.3)),
    "scalar-box-sum": lambda: ScalarField(Box([-1.0, 0.0], [2.0, 0.5]), _sum()),
    "scalar-pose": lambda: ScalarField(_pose, (_rough(), _flat()), num_levels=2),
    "stacked-sphere": lambda: StackedField(Sphere(2), _rough(), num_levels=4, outputs=3),
    "projected-sphere": lambda: ProjectedField(Sphere(2), _rough(), num_levels=4),
    "projected-rotations": lambda: ProjectedField(Rotations(), _rough(), num_levels=2),
    "projected-product": lambda: ProjectedField(_mixed, _rough(), num_levels=3),
    "projected-factor": lambda: ProjectedField(_mixed, (_rough(), _smooth()), num_levels=(2, 3), factors=(0,)),
    "projected-pose": lambda: ProjectedField(_pose, (_rough(), _flat()), num_levels=2),
    "frame-sphere": lambda: FrameField(Sphere(2), _rough(), num_levels=4),
    "frame-east-north": lambda: FrameField(Sphere(2), _rough(), num_levels=4, frame="east_north"),
    "frame-rotations": lambda: FrameField(Rotations(), _rough(), num_levels=2),
    "frame-factor": lambda: FrameField(_ball, _rough(), num_levels=3, factors=(0,)),
    "frame-euclidean": lambda: FrameField(Euclidean(3), _flat()),
    "frame-box": lambda: FrameField(Box([-1.0, 0.0], [2.0, 0.5]), _flat()),
    "hodge-circle": lambda: HodgeField(Circle(), divergence=_rough(), harmonic=_smooth(), num_levels=4),
    "hodge-sphere": lambda: HodgeField(Sphere(2), divergence=_rough(), curl=_smooth(), num_levels=4),
    "hodge-sphere4": lambda: HodgeField(Sphere(4), divergence=_rough(), curl=_sum(), num_levels=2),
    "hodge-torus": lambda: HodgeField(Torus(2), divergence=_rough(), curl=_smooth(), harmonic=_rough(), num_levels=3),
    "hodge-rotations": lambda: HodgeField(Rotations(), divergence=_rough(), curl=_smooth(), num_levels=2),
    "hodge-product": lambda: HodgeField(_ball, _rough(), _smooth(), 3, harmonic=_rough()),
    "hodge-product-kernel": lambda: HodgeField(_ball, (_rough(), _smooth()), (_smooth(), _flat()), 3),
}

Precision = str
precisions = pytest.mark.parametrize("precision", ["float32", "float64"])


def set_to(precision: Precision) -> AbstractContextManager[None]:
    """Set JAX to a precision; float32 is its default."""
    return jax.enable_x64(precision == "float64")


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
field_makers = pytest.mark.parametrize("make", [_grouped(make, name, name) for name, make in FIELDS.items()])
representative_fields = _field_cases(_REPRESENTATIVES)


def _draw(space: Space, rng: np.random.Generator, n: int) -> np.ndarray:
    if len(space.factors) > 1:
        return np.concatenate([_draw(factor, rng, n) for factor in space.factors], axis=1)
    if isinstance(space, Torus):
        return np.concatenate([_draw(Circle(), rng, n) for _ in range(space.dim)], axis=1)
    if isinstance(space, Box):
        return rng.uniform(space.lower, space.upper, (n, space.dim))
    x = rng.normal(size=(n, space.ambient_dim))
    if isinstance(space, Sphere | Rotations):
        return x / np.linalg.norm(x, axis=1, keepdims=True)
    return x if isinstance(space, Euclidean) else np.array(space.random(n, key=jax.random.key(rng.integers(2**31))))


def points(space: Space, seed: int, n: int = 5, dtype: type = jnp.float64) -> jax.Array:
    """Draw points on a space, uniform or normal, with NumPy where it can, which compiles nothing."""
    return jnp.asarray(_draw(space, np.random.default_rng(seed), n), dtype)


def vectors(space: Space, x: jax.Array, seed: int) -> jax.Array:
    """Draw tangent vectors at points, standard normal in each tangent space."""
    return jnp.asarray(space.project(x, np.random.default_rng(seed).normal(size=x.shape).astype(x.dtype)))


def _sample(field: Field, key: jax.Array) -> FieldDraw:
    return field.sample(key=key)


def draw_of(field: Field, seed: int) -> FieldDraw:
    """Draw a function from a field, compiled as a whole."""
    return compiled(_sample, field, jax.random.key(seed))


def isometry(space: Space, seed: int) -> Isometry:
    """Draw an isometry, with arrays of NumPy."""
    return jax.tree.map(np.asarray, space.random_isometry(key=jax.random.key(seed, impl="rbg")))
