"""Hodge-compositional Gaussian vector fields."""

from collections.abc import Sequence
from functools import reduce

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import register, small_product, standard_normal
from rdgp.fields._bundle import TangentBundle
from rdgp.fields._field import Field, Weights
from rdgp.fields._frames import TangentFrame
from rdgp.fields._process import Levels, Process, ProcessDraw, shaped_tail
from rdgp.kernels import Kernel, share_variance
from rdgp.spaces import Space
from rdgp.spectra import HodgePart, HodgeSpectrum, hodge_spectrum

Kernels = tuple[Kernel, ...]  # one for all factors of a space, or one for each


@register("rdgp:HodgeProcess")
class HodgeProcess(Process):
    """A Hodge field, in components of the space's frame."""

    bundle: TangentBundle
    spectrum: HodgeSpectrum
    kernels: tuple[Kernels, ...]

    @property
    def copies(self) -> int:
        """One field."""
        return 1

    @property
    def width(self) -> int:
        """As many numbers as the space has dimensions."""
        return self.bundle.rank

    @property
    def has_features(self) -> bool:
        """True."""
        return True

    @property
    def num_features(self) -> int:
        """Number of eigenfields."""
        return self.spectrum.num_features

    @property
    def levels(self) -> Levels:
        """Part and level of each eigenfield."""
        parts = self.spectrum.parts
        part = np.repeat(np.arange(len(parts)), [own.num_features for own in parts])
        return Levels(part, np.concatenate([own.per_feature(own.level) for own in parts]))

    @property
    def degree(self) -> int | None:
        """That of the eigenfields."""
        return self.spectrum.degree

    def level_scales(self) -> tuple[Float[Array, "_"], ...]:
        """Return the prior standard deviation of a coefficient of each set of each part."""
        pairs = zip(self.kernels, self.spectrum.parts, strict=True)
        return tuple(_scales(self.bundle.space, kernels, part) for kernels, part in pairs)

    def scales(self) -> Float[Array, "m"]:
        """Return the scales of all parts."""
        return self.spectrum.per_feature(self.level_scales())

    def variances(self) -> tuple[Float[Array, "_"], ...]:
        """Return the prior variance of a coefficient of each set of each part."""
        return tuple(jnp.square(scale) for scale in self.level_scales())

    def features(self, x: Float[Array, "N D"]) -> Float[Array, "N p m"]:
        """Evaluate the eigenfields in the frame."""
        return small_product(self.bundle.frame(x).rows, self.spectrum.features(x))

    def lowest_features(self, x: Float[Array, "N D"], num_levels: int) -> Float[Array, "N p _"]:
        """Evaluate the eigenfields of the lowest levels in the frame."""
        return small_product(self.bundle.frame(x).rows, self.spectrum.lowest_features(x, num_levels))

    def basis(self, x: Float[Array, "N D"]) -> Float[Array, "..."]:
        """Evaluate what sums of eigenfields need."""
        return self.spectrum.basis(x)

    def evaluate(
        self, basis: Float[Array, "..."], x: Float[Array, "N D"], weights: Float[Array, "1 m"]
    ) -> Float[Array, "N p 1"]:
        """Add up the eigenfields and take components."""
        return self.bundle.frame(x).coordinates(self.vectors(basis, x, weights))[..., None]

    def vectors(
        self, basis: Float[Array, "..."], x: Float[Array, "N D"], weights: Float[Array, "1 m"]
    ) -> Float[Array, "N D"]:
        """Add up the eigenfields as ambient vectors."""
        return self.spectrum.synthesize(basis, x, (self.scales() * weights[0]).astype(x.dtype))

    def covariance(self, x: Float[Array, "N D"], y: Float[Array, "L D"]) -> Float[Array, "N p L p"]:
        """Sum the kernels of all parts."""
        return self.spectrum.kernel(self.variances(), x, y, self.bundle.frame(x).rows, self.bundle.frame(y).rows)

    def variance(self, x: Float[Array, "N D"]) -> Float[Array, "N p p"]:
        """Sum the kernels at equal points."""
        return self.spectrum.diagonal(self.variances(), x, self.bundle.frame(x).rows)

    def tail_covariance(
        self, factors: Float[Array, "parts t"], x: Float[Array, "N D"], y: Float[Array, "L D"]
    ) -> Float[Array, "N p L p"]:
        """Sum the kernels of the last levels of all parts."""
        weights = self._tail(factors)
        return self.spectrum.kernel(weights, x, y, self.bundle.frame(x).rows, self.bundle.frame(y).rows)

    def tail_variance(self, factors: Float[Array, "parts t"], x: Float[Array, "N D"]) -> Float[Array, "N p p"]:
        """Sum the kernels of the last levels at equal points."""
        return self.spectrum.diagonal(self._tail(factors), x, self.bundle.frame(x).rows)

    def _tail(self, factors: Float[Array, "parts t"]) -> tuple[Float[Array, "_"], ...]:
        count = self.levels.num_levels
        triples = zip(self.spectrum.parts, self.variances(), factors, strict=True)
        return tuple(variance * shaped_tail(part.level, factor, count) for part, variance, factor in triples)

    def draw(self, *, key: PRNGKeyArray) -> ProcessDraw:
        """Draw the field."""
        return _HodgeDraw(self, standard_normal(key, (1, self.num_features)))


@register("rdgp:HodgeDraw")
class _HodgeDraw(ProcessDraw):
    process: HodgeProcess
    weights: Float[Array, "1 m"]

    def __call__(self, x: Float[Array, "N D"]) -> Float[Array, "N p 1"]:
        return self.process.evaluate(self.process.basis(x), x, self.weights)


def _scales(space: Space, kernels: Kernels, part: HodgePart) -> Float[Array, "K"]:
    """Return the scales of a part: by one kernel of the eigenvalue, or by a product of one for each factor."""
    if len(kernels) == 1:
        return kernels[0].level_scales(part.eigenvalues, part.multiplicities, space.dim)
    triples = zip(kernels, part.by_factor.T, space.factors, strict=True)
    density = reduce(jnp.add, [kernel.log_density(values, own.dim) for kernel, values, own in triples])
    return share_variance(reduce(jnp.multiply, [kernel.variance for kernel in kernels]), density, part.multiplicities)


@register("rdgp:HodgeField")
class HodgeField(Field):
    """The Hodge-compositional field: independent gradient (`divergence`), `curl` and `harmonic` parts.

    Each part has its own kernel or is None; on a product a tuple gives each factor its own. `num_levels` counts the
    eigenvalues kept of each part. The variance of a part is E|g|² = σ²; of a harmonic kernel only the variance matters.

    >>> from rdgp.kernels import Matern
    >>> from rdgp.spaces import Sphere
    >>> HodgeField(Sphere(2), curl=Matern(1.5, 0.5, 0.01), num_levels=3)
    HodgeField(Sphere(2), curl=Matern(nu=1.5, lengthscale=0.5, variance=0.01), 15 features)
    """

    space: Space
    kernels: tuple[Kernels, ...]
    spectrum: HodgeSpectrum

    def __init__(
        self,
        space: Space,
        divergence: Kernel | Sequence[Kernel] | None = None,
        curl: Kernel | Sequence[Kernel] | None = None,
        num_levels: int = 5,
        *,
        harmonic: Kernel | Sequence[Kernel] | None = None,
    ) -> None:
        named = {"gradient": divergence, "curl": curl, "harmonic": harmonic}
        given = {name: _kernels(space, kernel) for name, kernel in named.items() if kernel is not None}
        self.space = space
        self.kernels = tuple(given.values())
        self.spectrum = hodge_spectrum(space, num_levels, tuple(given))

    @property
    def bundle(self) -> TangentBundle:
        """Vectors tangent to the space."""
        return TangentBundle(self.space)

    @property
    def processes(self) -> tuple[HodgeProcess]:
        """The field, in components of the space's frame."""
        return (HodgeProcess(self.bundle, self.spectrum, self.kernels),)

    def details(self) -> tuple[str, ...]:
        """Return the kernels of the parts."""
        pairs = zip(self.spectrum.parts, self.kernels, strict=True)
        return tuple(f"{part.name}={kernels[0] if len(kernels) == 1 else kernels}" for part, kernels in pairs)

    @property
    def is_one_process(self) -> bool:
        """True."""
        return True

    @property
    def _process(self) -> HodgeProcess:
        return self.processes[0]

    @property
    def variance(self) -> Float[Array, ""]:
        """Mean square of a component: the variances of the parts over the dimension."""
        parts = [reduce(jnp.multiply, [kernel.variance for kernel in kernels]) for kernels in self.kernels]
        return reduce(jnp.add, parts) / self.space.dim

    def with_scale_of(self, x: Float[np.ndarray, "N D"], mean_square: float) -> "HodgeField":
        """Return the field with equal variances of its parts; compact spaces have no units."""
        free = [kernels[0].parameters.get("variance") for kernels in self.kernels]
        count = sum(1 for parameter in free if parameter is None or parameter.trainable)
        share = mean_square * self.space.dim / max(count, 1)
        new = tuple((_with_product(kernels, share), *kernels[1:]) for kernels in self.kernels)
        return eqx.tree_at(lambda field: field.kernels, self, new)

    def mixing(self, x: Float[Array, "N D"], frame: TangentFrame) -> tuple[Float[Array, "N q d 1"]]:
        """Return the components of the space's frame."""
        return (frame.components_of(self.bundle.frame(x))[..., None],)

    def _features(self, x: Float[Array, "N D"]) -> Float[Array, "N D M"]:
        return self.spectrum.features(x)

    def joint_gram(
        self, x: Float[Array, "N D"], y: Float[Array, "L D"], frame_x: TangentFrame, frame_y: TangentFrame
    ) -> Float[Array, "N q L q"]:
        """Sum the kernels of all parts."""
        return self.spectrum.kernel(self._process.variances(), x, y, frame_x.rows, frame_y.rows)

    def joint_design(self, x: Float[Array, "N D"], frame: TangentFrame) -> Float[Array, "N q M"]:
        """Evaluate the components of the eigenfields, scaled."""
        return small_product(frame.rows, self.spectrum.features(x)) * self._process.scales().astype(x.dtype)

    def point_variance(self, x: Float[Array, "N D"], frame: TangentFrame) -> Float[Array, "N q q"]:
        """Sum the kernels at equal points."""
        return self.spectrum.diagonal(self._process.variances(), x, frame.rows)

    def evaluate(
        self, basis: tuple[Float[Array, "..."], ...], x: Float[Array, "N D"], weights: Weights
    ) -> Float[Array, "N D"]:
        """Add up the eigenfields, no frame needed."""
        return self._process.vectors(basis[0], x, weights[0])

    def variance_trace(
        self, x: Float[Array, "N D"], frame: TangentFrame, factors: tuple[Float[Array, "1 m m"], ...]
    ) -> Float[Array, "N"]:
        """Return the total variance, no frame needed."""
        columns = self._process.scales()[:, None] * factors[0][0]
        return self.spectrum.variance_trace(x, columns.astype(x.dtype))


def _kernels(space: Space, kernel: Kernel | Sequence[Kernel]) -> Kernels:
    """Return one kernel for all factors or one for each, or raise."""
    given = (kernel,) if isinstance(kernel, Kernel) else tuple(kernel) if isinstance(kernel, Sequence) else ()
    if not given or not all(isinstance(own, Kernel) for own in given):
        raise ValueError(f"a part of a HodgeField needs a kernel such as Matern(), or None, got {kernel!r}")
    if len(given) not in (1, len(space.factors)):
        raise ValueError(f"a part needs one kernel or one for each factor of {space}, got {len(given)}")
    return tuple(own.on_manifold() for own in given)


def _with_product(kernels: Kernels, variance: float) -> Kernel:
    """Return the first kernel, with a variance that gives the product of all of them a variance."""
    rest = reduce(jnp.multiply, [kernel.variance for kernel in kernels[1:]], jnp.ones(()))
    return kernels[0].with_variance(variance / rest)
