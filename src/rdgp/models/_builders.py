"""Deep models in one call."""

from collections.abc import Callable
from typing import Literal

import jax
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import Numbers, check_count
from rdgp.fields import Field, FrameField, HodgeField, ProjectedField, ScalarField, StackedField, TangentField
from rdgp.kernels import EuclideanMatern, Matern
from rdgp.likelihoods import Gaussian, Likelihood, WrappedGaussian
from rdgp.models._deep import DeepGP
from rdgp.spaces import Box, Euclidean, Product, Space
from rdgp.spectra import hodge_parts, hodge_spectrum, scalar_spectrum
from rdgp.variational import InducingLocations, Interdomain, Variational, kmeans

FieldName = Literal["hodge", "projected", "frame"]

_HIDDEN_FIELDS = 100  # hidden layers keep as many levels as give at most this many fields ...
_OUTPUT_FEATURES = 450  # ... and output layers this many features
_HIDDEN_VARIANCE = 0.01  # of displacements: a tenth of a radian
_HIDDEN_DEVIATION = 0.1  # of the inducing variables at the start, whose prior deviation is one


def deep_gp(
    space: Space,
    layers: int = 2,
    field: FieldName = "hodge",
    output: Literal["scalar", "tangent", "point"] | int = "scalar",
    *,
    levels: int | None = None,
    output_levels: int | None = None,
    inducing: Literal["interdomain", "locations"] = "interdomain",
    num_inducing: int = 50,
    x: Numbers | None = None,
    key: PRNGKeyArray | None = None,
    constant_mean: bool = False,
    likelihood: Likelihood | WrappedGaussian | None = None,
) -> DeepGP:
    """Build a residual deep Gaussian process with `layers` layers, the output included.

    `levels` counts the eigenvalues kept by hidden fields, `output_levels` those of the output; both have defaults that
    fit the space. `inducing="locations"` chooses locations among the data `x` by k-means; spaces that are not compact
    need it, and their deep models have locations in the output layer too. The likelihood is
    Gaussian noise unless given.
    """
    count = check_count(layers, "layers")
    _check_name(field, "field", ("hodge", "projected", "frame"))
    _check_name(inducing, "inducing", ("interdomain", "locations"))
    hidden_count = count if output == "point" else count - 1
    fields = [_tangent_field(space, field, levels, _HIDDEN_FIELDS, _HIDDEN_VARIANCE) for _ in range(hidden_count)]
    families = [_family(hidden, inducing, num_inducing, x, key) for hidden in fields]
    if output == "point":
        return DeepGP(tuple(families), None, likelihood)
    last = _output_field(space, field, output, output_levels)
    integrated = all(family.draws_are_exact for family in families)
    ending = last if integrated else InducingLocations(last, _locations(space, num_inducing, x, key))
    return DeepGP(tuple(families), ending, likelihood, constant_mean=constant_mean)


def _check_name(name: str, what: str, names: tuple[str, ...]) -> None:
    if name not in names:
        quoted = [f'"{known}"' for known in names]
        raise ValueError(f"{what} must be {', '.join(quoted[:-1])} or {quoted[-1]}, got {name!r}")


def _tangent_field(space: Space, name: FieldName, levels: int | None, limit: int, variance: float) -> TangentField:
    fields = {"hodge": _hodge, "projected": _projected, "frame": _frame}
    return fields[name](space, levels, limit, variance)


def _output_field(space: Space, name: FieldName, output: str | int, levels: int | None) -> Field:
    if output == "tangent":
        return _tangent_field(space, name, levels, 8 * _OUTPUT_FEATURES, 1.0)
    levels, kernel = _scalar_levels(space, levels, _OUTPUT_FEATURES), _kernel(space, 1.0)
    if output == "scalar":
        return ScalarField(space, kernel, levels)
    if isinstance(output, int) and not isinstance(output, bool):
        return StackedField(space, kernel, levels, outputs=output)
    raise ValueError(f'output must be "scalar", "tangent", "point" or a number of outputs, got {output!r}')


def _hodge(space: Space, levels: int | None, limit: int, variance: float) -> HodgeField:
    parts = hodge_parts(space)
    if levels is None:
        levels = _levels(lambda k: hodge_spectrum(space, k, parts).num_features, limit)
    names = {"gradient": "divergence", "curl": "curl", "harmonic": "harmonic"}
    kernels = {names[part]: Matern(1.5, 1.0, variance) for part in parts}
    return HodgeField(space, levels=levels, **kernels)


def _projected(space: Space, levels: int | None, limit: int, variance: float) -> ProjectedField:
    return ProjectedField(space, _kernel(space, variance), _scalar_levels(space, levels, limit))


def _frame(space: Space, levels: int | None, limit: int, variance: float) -> FrameField:
    return FrameField(space, _kernel(space, variance), _scalar_levels(space, levels, limit))


def _scalar_levels(space: Space, levels: int | None, limit: int) -> int | None:
    if levels is not None or _is_flat(space):
        return levels
    if isinstance(space, Product) and any(_is_flat(factor) for factor in space.factors):
        counts = [_scalar_levels(factor, None, limit) for factor in space.factors]
        return min((count for count in counts if count is not None), default=None)
    return _levels(lambda k: scalar_spectrum(space, k).num_features, limit)


def _levels(num_features: Callable[[int], int], limit: int) -> int:
    """Return the largest number of levels, at least two, with no more features than the limit."""
    levels = 2
    while num_features(levels + 1) <= limit:
        levels += 1
    return levels


def _is_flat(space: Space) -> bool:
    return isinstance(space, Euclidean | Box)


def _kernel(space: Space, variance: float) -> Matern | EuclideanMatern | tuple:
    if _is_flat(space):
        return EuclideanMatern(1.5, [1.0] * space.dim, variance)
    if isinstance(space, Product) and any(_is_flat(factor) for factor in space.factors):
        return tuple(_kernel(factor, variance if i == 0 else 1.0) for i, factor in enumerate(space.factors))
    return Matern(1.5, 1.0, variance)


def _family(field: Field, inducing: str, num: int, x: Numbers | None, key: PRNGKeyArray | None) -> Variational:
    if inducing == "interdomain":
        if not all(latent.spectral for latent in field.latents):
            raise ValueError(f'{field.space} is not compact; pass inducing="locations" and x=...')
        return Interdomain(field, deviation=_HIDDEN_DEVIATION)
    return InducingLocations(field, _locations(field.space, num, x, key), deviation=_HIDDEN_DEVIATION)


def _locations(space: Space, num: int, x: Numbers | None, key: PRNGKeyArray | None) -> Float[Array, "m D"]:
    if x is None:
        raise ValueError('inducing="locations" needs data to choose them from; pass x=...')
    return kmeans(space, x, num, key=jax.random.key(0) if key is None else key)


def euclidean_deep_gp(
    dim: int,
    layers: int = 2,
    inducing: int = 100,
    *,
    x: Numbers,
    input_space: Space | None = None,
    output: Literal["scalar", "tangent"] = "scalar",
    levels: int = 7,
    key: PRNGKeyArray | None = None,
) -> DeepGP:
    """Build the doubly stochastic deep Gaussian process of Salimbeni and Deisenroth: x + g(x) layers on R^dim.

    Kernels are Matérn 3/2 with one lengthscale for each coordinate, inducing locations are trained. With `input_space`
    the first layer is x + h(x) with manifold Matérn functions h, and a tangent output has east and north components
    with Matérn 5/2 kernels; with one layer that model is the manifold Gaussian process.
    """
    count, flat = check_count(layers, "layers"), Euclidean(dim)
    space = flat if input_space is None else input_space
    if space.ambient_dim != dim or (output == "tangent" and input_space is None):
        raise ValueError(f"dim must be {space.ambient_dim} for {space}, got {dim}; tangent output needs input_space")
    z = kmeans(space, x, inducing, key=jax.random.key(0) if key is None else key)
    hidden = [_euclidean_hidden(flat if i else space, z, levels) for i in range(count - 1)]
    last = _euclidean_output(flat if hidden else space, output, levels)
    trained = isinstance(last.space, Euclidean)
    return DeepGP(tuple(hidden), InducingLocations(last, z, trained), Gaussian(0.1), in_frame=output == "tangent")


def _euclidean_hidden(space: Space, z: Float[Array, "m D"], levels: int) -> InducingLocations:
    if isinstance(space, Euclidean):
        kernel = EuclideanMatern(1.5, [1.0] * space.dim, _HIDDEN_VARIANCE)
        return InducingLocations(FrameField(space, kernel), z, True, deviation=_HIDDEN_DEVIATION)
    field = StackedField(space, Matern(1.5, 1.0, _HIDDEN_VARIANCE), levels, outputs=space.ambient_dim)
    return InducingLocations(field, z, deviation=_HIDDEN_DEVIATION)


def _euclidean_output(space: Space, output: str, levels: int) -> Field:
    nu = 2.5 if output == "tangent" else 1.5
    flat = isinstance(space, Euclidean)
    kernel = EuclideanMatern(nu, [1.0] * space.dim, 1.0) if flat else Matern(nu, 1.0, 1.0)
    if output == "tangent":
        return StackedField(space, kernel, None if flat else levels, outputs=2)
    return ScalarField(space, kernel, None if flat else levels)
