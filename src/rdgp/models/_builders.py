"""Deep models in one call."""

from collections.abc import Callable
from typing import Literal

import jax
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import Numbers, check_count
from rdgp.fields import Field, FrameField, HodgeField, ProjectedField, ScalarField, StackedField, TangentBundle
from rdgp.kernels import Kernel, Matern
from rdgp.likelihoods import Gaussian, Likelihood, WrappedGaussian
from rdgp.models._deep_gp import DeepGP
from rdgp.posteriors import InducingPoints, Interdomain, Variational, kmeans
from rdgp.spaces import Euclidean, Space
from rdgp.spectra import hodge_parts, hodge_spectrum, provides, scalar_spectrum

FieldName = Literal["hodge", "projected", "frame"]
InducingName = Literal["interdomain", "points"]

_HIDDEN_FEATURES = 100  # hidden layers keep as many levels as give at most this many features ...
_OUTPUT_FEATURES = 450  # ... and output layers this many
_HIDDEN_VARIANCE = 0.01  # of displacements: a tenth of a radian
_HIDDEN_STD = 0.1  # of the inducing variables at the start, whose prior has one


def deep_gp(
    space: Space,
    layers: int = 2,
    field: FieldName = "hodge",
    output: Literal["scalar", "tangent", "point"] | int = "scalar",
    *,
    num_levels: int | None = None,
    num_output_levels: int | None = None,
    inducing: InducingName = "interdomain",
    num_inducing: int = 50,
    x: Numbers | None = None,
    key: PRNGKeyArray | None = None,
    constant_mean: bool = False,
    likelihood: Likelihood | WrappedGaussian | None = None,
) -> DeepGP:
    """Build a residual deep Gaussian process with `layers` layers, the output included.

    `field` is the kind of vector field of the hidden layers and of a tangent output; `output` is "scalar", "tangent",
    "point" (manifold-valued) or a number of outputs. `num_levels` counts the eigenvalues kept by hidden fields,
    `num_output_levels` those of the output; both have defaults that fit the space. `inducing="points"` chooses
    `num_inducing` inducing points among the data `x` by k-means with `key`; spaces that are not compact need it, and
    their deep models have inducing points in the output layer too. `constant_mean` adds a constant to scalar outputs.
    The likelihood is Gaussian noise unless given.
    """
    count = check_count(layers, "layers")
    _check_name(field, "field", ("hodge", "projected", "frame"))
    _check_name(inducing, "inducing", ("interdomain", "points"))
    hidden_count = count if output == "point" else count - 1
    fields = [_tangent_field(space, field, num_levels, _HIDDEN_FEATURES, _HIDDEN_VARIANCE) for _ in range(hidden_count)]
    hidden = [_variational(own, inducing, num_inducing, x, key) for own in fields]
    if output == "point":
        return DeepGP(hidden, None, likelihood)
    last = _output_field(space, field, output, num_output_levels)
    integrated = all(layer.draws_are_exact for layer in hidden)
    ending = last if integrated else InducingPoints(last, _points(space, num_inducing, x, key))
    return DeepGP(hidden, ending, likelihood, constant_mean=constant_mean)


def _check_name(name: str, what: str, names: tuple[str, ...]) -> None:
    if name not in names:
        quoted = [f'"{known}"' for known in names]
        raise ValueError(f"{what} must be {', '.join(quoted[:-1])} or {quoted[-1]}, got {name!r}")


def _tangent_field(space: Space, name: FieldName, num_levels: int | None, limit: int, variance: float) -> Field:
    if name == "hodge":
        return _hodge(space, num_levels, limit, variance)
    kind = {"projected": ProjectedField, "frame": FrameField}[name]
    return kind(space, _kernel(space, variance), _scalar_levels(space, num_levels, limit))


def _output_field(space: Space, name: FieldName, output: str | int, num_levels: int | None) -> Field:
    if output == "tangent":
        return _tangent_field(space, name, num_levels, 8 * _OUTPUT_FEATURES, 1.0)
    kept, kernel = _scalar_levels(space, num_levels, _OUTPUT_FEATURES), _kernel(space, 1.0)
    if output == "scalar":
        return ScalarField(space, kernel, kept)
    if isinstance(output, int) and not isinstance(output, bool):
        return StackedField(space, kernel, kept, outputs=output)
    raise ValueError(f'output must be "scalar", "tangent", "point" or a number of outputs, got {output!r}')


def _hodge(space: Space, num_levels: int | None, limit: int, variance: float) -> HodgeField:
    parts = hodge_parts(space)
    if num_levels is None:
        num_levels = _most_levels(lambda k: hodge_spectrum(space, k, parts).num_features, limit)
    names = {"gradient": "divergence", "curl": "curl", "harmonic": "harmonic"}
    kernels = {names[part]: Matern(1.5, 1.0, variance) for part in parts}
    return HodgeField(space, num_levels=num_levels, **kernels)


def _scalar_levels(space: Space, num_levels: int | None, limit: int) -> int | None:
    if num_levels is not None:
        return num_levels
    if provides(scalar_spectrum, space):
        return _most_levels(lambda k: scalar_spectrum(space, k).num_features, limit)
    counts = [_scalar_levels(factor, None, limit) for factor in space.factors if factor is not space]
    return min((count for count in counts if count is not None), default=None)


def _most_levels(num_features: Callable[[int], int], limit: int) -> int:
    """Return the largest number of levels, at least two, with no more features than the limit."""
    count = 2
    while num_features(count + 1) <= limit:
        count += 1
    return count


def _kernel(space: Space, variance: float) -> Kernel | tuple[Kernel, ...]:
    """Return one kernel for a space with a spectrum, one for each factor of a product of such and others."""
    if provides(scalar_spectrum, space):
        return Matern(1.5, 1.0, variance)
    if len(space.factors) == 1:
        return Matern(1.5, [1.0] * space.dim, variance)
    kernels = [_kernel(factor, variance if i == 0 else 1.0) for i, factor in enumerate(space.factors)]
    return tuple(kernel for kernel in kernels if isinstance(kernel, Kernel))


def _variational(
    field: Field, inducing: InducingName, num: int, x: Numbers | None, key: PRNGKeyArray | None
) -> Variational:
    if inducing == "interdomain":
        if not field.has_features:
            raise ValueError(f'{field.space} is not compact; pass inducing="points" and x=...')
        return Interdomain(field, std=_HIDDEN_STD)
    return InducingPoints(field, _points(field.space, num, x, key), std=_HIDDEN_STD)


def _points(space: Space, num: int, x: Numbers | None, key: PRNGKeyArray | None) -> Float[Array, "m D"]:
    if x is None:
        raise ValueError('inducing="points" needs data to choose them from; pass x=...')
    return kmeans(space, x, num, key=jax.random.key(0) if key is None else key)


def euclidean_deep_gp(
    dim: int,
    layers: int = 2,
    num_inducing: int = 100,
    *,
    x: Numbers,
    input_space: Space | None = None,
    output: Literal["scalar", "tangent"] = "scalar",
    num_levels: int = 7,
    key: PRNGKeyArray | None = None,
) -> DeepGP:
    """Build the doubly stochastic deep Gaussian process of Salimbeni and Deisenroth: x + g(x) layers on R^dim.

    Kernels are Matérn 3/2 with one lengthscale for each coordinate; `num_inducing` inducing points are chosen among the
    data `x` by k-means with `key`, and trained. With `input_space` the first layer is x + h(x) with manifold Matérn
    functions h of `num_levels` levels, and a tangent `output` has east and north components with Matérn 5/2 kernels;
    with one layer that model is the manifold Gaussian process.
    """
    count, flat = check_count(layers, "layers"), Euclidean(dim)
    space = flat if input_space is None else input_space
    if space.ambient_dim != dim or (output == "tangent" and input_space is None):
        raise ValueError(f"dim must be {space.ambient_dim} for {space}, got {dim}; tangent output needs input_space")
    z = kmeans(space, x, num_inducing, key=jax.random.key(0) if key is None else key)
    hidden = [_euclidean_hidden(space if i == 0 else flat, z, num_levels) for i in range(count - 1)]
    last = _euclidean_output(flat if hidden else space, output, num_levels)
    bundle = TangentBundle(space, frame="east_north") if output == "tangent" else None
    return DeepGP(hidden, InducingPoints(last, z, trainable=bool(last.space == flat)), Gaussian(0.1), bundle=bundle)


def _euclidean_hidden(space: Space, z: Float[Array, "m D"], num_levels: int) -> InducingPoints:
    if provides(scalar_spectrum, space):
        field = StackedField(space, Matern(1.5, 1.0, _HIDDEN_VARIANCE), num_levels, outputs=space.ambient_dim)
        return InducingPoints(field, z, std=_HIDDEN_STD)
    kernel = Matern(1.5, [1.0] * space.dim, _HIDDEN_VARIANCE)
    return InducingPoints(FrameField(space, kernel), z, True, std=_HIDDEN_STD)


def _euclidean_output(space: Space, output: str, num_levels: int) -> Field:
    nu = 2.5 if output == "tangent" else 1.5
    compact = provides(scalar_spectrum, space)
    kernel = Matern(nu, 1.0 if compact else [1.0] * space.dim, 1.0)
    kept = num_levels if compact else None
    return StackedField(space, kernel, kept, outputs=2) if output == "tangent" else ScalarField(space, kernel, kept)
