"""Every exported space, spectrum and field, once or more, for the laws to run on."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import pytest

from rdgp.fields import Field, FrameField, HodgeField, ProjectedField, ScalarField, StackedField
from rdgp.kernels import EuclideanMatern, Heat, Matern
from rdgp.spaces import Box, Circle, Euclidean, Product, Rotations, Space, Sphere, Torus

SPACES: list[Space] = [
    Circle(),
    Sphere(2),
    Sphere(3),
    Sphere(6),
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
    SpectrumCase(Circle(), 8, 16),
    SpectrumCase(Sphere(2), 9, 18),
    SpectrumCase(Sphere(3), 5, 12),
    SpectrumCase(Sphere(4), 4, 10),
    SpectrumCase(Torus(2), 7, 12),
    SpectrumCase(Torus(3), 4, 6),
    SpectrumCase(Rotations(), 3, 14),
    SpectrumCase(Product(Sphere(2), Circle()), 6, 8),
    SpectrumCase(Product(Rotations(), Circle()), 4, 10),
    SpectrumCase(Product(Circle(), Sphere(2), Circle()), 4, 6),
]

_rough, _smooth = Matern(1.5, 0.6, 1.7), Heat(0.4, 0.8)
_flat = EuclideanMatern(2.5, 0.8, 1.2)
_pose = Product(Rotations(), Euclidean(2))
_mixed = Product(Rotations(), Sphere(2))

FIELDS: dict[str, Callable[[], Field]] = {
    "scalar-sphere": lambda: ScalarField(Sphere(2), _rough, levels=7),
    "scalar-torus": lambda: ScalarField(Torus(2), _rough, levels=6),
    "scalar-rotations": lambda: ScalarField(Rotations(), _rough, levels=3),
    "scalar-product": lambda: ScalarField(_mixed, _rough, levels=5),
    "scalar-product-kernel": lambda: ScalarField(_mixed, (_rough, _smooth), levels=(2, 4)),
    "scalar-euclidean": lambda: ScalarField(Euclidean(2), EuclideanMatern(1.5, [0.5, 2.0], 1.3)),
    "scalar-pose": lambda: ScalarField(_pose, (_rough, _flat), levels=2),
    "stacked-sphere": lambda: StackedField(Sphere(2), _rough, levels=4, outputs=3),
    "projected-sphere": lambda: ProjectedField(Sphere(2), _rough, levels=5),
    "projected-rotations": lambda: ProjectedField(Rotations(), _rough, levels=3),
    "projected-product": lambda: ProjectedField(_mixed, _rough, levels=4),
    "frame-sphere": lambda: FrameField(Sphere(2), _rough, levels=5),
    "frame-east-north": lambda: FrameField(Sphere(2), _rough, levels=5, frame="east_north"),
    "frame-rotations": lambda: FrameField(Rotations(), _rough, levels=3),
    "frame-euclidean": lambda: FrameField(Euclidean(3), _flat),
    "hodge-circle": lambda: HodgeField(Circle(), divergence=_rough, harmonic=_smooth, levels=5),
    "hodge-sphere": lambda: HodgeField(Sphere(2), divergence=_rough, curl=_smooth, levels=5),
    "hodge-sphere4": lambda: HodgeField(Sphere(4), divergence=_rough, curl=_smooth, levels=3),
    "hodge-torus": lambda: HodgeField(Torus(2), divergence=_rough, curl=_smooth, harmonic=_rough, levels=4),
    "hodge-rotations": lambda: HodgeField(Rotations(), divergence=_rough, curl=_smooth, levels=2),
    "hodge-product": lambda: HodgeField(Product(Sphere(2), Circle()), _rough, _smooth, 4, harmonic=_rough),
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


fields = _field_cases(FIELDS)
representative_fields = _field_cases(_REPRESENTATIVES)


def points(space: Space, seed: int, n: int = 5, dtype: type = jnp.float64) -> jax.Array:
    """Draw points on a space."""
    return space.random(n, key=jax.random.key(seed)).astype(dtype)


def vectors(space: Space, x: jax.Array, seed: int) -> jax.Array:
    """Draw tangent vectors at points, standard normal in a frame."""
    frame = space.frame(x)
    normal = jax.random.normal(jax.random.key(seed), (*frame.shape[:-2], frame.shape[-1]), x.dtype)
    return jnp.einsum("...pd,...d->...p", frame, normal)
