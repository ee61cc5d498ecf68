"""The models that serve as surrogates, and how they are fitted to padded data."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.bayesopt._options import FieldName, Options
from rdgp.core import Gamma, LogNormal, Parametric, Prior, log_prior, split_trainable
from rdgp.fields import Field, ScalarField
from rdgp.inference import RECIPES, Plan, advance, estimate, initial_state, with_vector
from rdgp.kernels import Matern
from rdgp.likelihoods import Gaussian
from rdgp.models import Data, DeepGP, deep_gp
from rdgp.optimize import minimize_on_space
from rdgp.spaces import Box, Euclidean, Product, Space
from rdgp.spectra import hodge_spectrum, provides, scalar_spectrum

_STARTS = ((0.15, 1e-4), (0.4, 1e-2), (1.0, 1e-4))  # lengthscales and noise where fits of the shallow model start
_EVALUATIONS = 30
_RECIPE = RECIPES["paper"]  # its slow rates: the faster ones follow so few observations too closely
_SAMPLES = 2


def shallow_model(space: Space, options: Options) -> DeepGP:
    """Build the shallow surrogate; each irreducible factor, such as a circle of a torus, has its own lengthscale."""
    return DeepGP((), _scalar_field(space.irreducible_factors, options), _noise(options), constant_mean=True)


def _scalar_field(factors: tuple[Space, ...], options: Options) -> ScalarField:
    kernels = tuple(_kernel(factor, options, first=i == 0) for i, factor in enumerate(factors))
    counts = tuple(_num_levels(factor, options.num_levels) for factor in factors)
    if len(factors) == 1:
        return ScalarField(factors[0], kernels[0], counts[0])
    return ScalarField(Product(*factors), kernels, counts)


def _num_levels(space: Space, most: int) -> int | None:
    """Return how many levels a kernel keeps: those with frequencies √λ below `most`, which a circle has so many of."""
    if not provides(scalar_spectrum, space):
        return None
    return max(int(np.sum(scalar_spectrum(space, most).eigenvalues < most**2)), 2)


def _kernel(space: Space, options: Options, *, first: bool) -> Matern:
    """Build the kernel of a factor; the first one carries the variance of all."""
    priors: dict[str, Prior] = {}
    if options.standardize:
        priors["lengthscale"] = LogNormal(options.lengthscale, 0.7)
    if first:
        priors["variance"] = LogNormal(1.0, 1.0) if options.standardize else Gamma(2.0, 0.15)
    fixed = ["nu"] if first else ["nu", "variance"]
    flat = not provides(scalar_spectrum, space)
    lengthscale = [options.lengthscale] * space.dim if flat else options.lengthscale
    return Matern(options.nu, lengthscale, 1.0, fixed=fixed, prior=priors)


def _noise(options: Options) -> Gaussian:
    if options.standardize:
        return Gaussian(1e-3, prior={"noise_variance": LogNormal(1e-3, 2.0)})
    return Gaussian(2.0, prior={"noise_variance": Gamma(1.1, 0.05)})


def can_be_deep(space: Space, field: FieldName) -> bool:
    """Tell whether a space has the vector fields of which hidden layers are made."""
    return provides(hodge_spectrum if field == "hodge" else scalar_spectrum, space)


def deep_model(space: Space, options: Options) -> DeepGP:
    """Build the deep surrogate: residual hidden layers, then the shallow one's kernel if it has one, and its priors."""
    built = deep_gp(
        space,
        layers=options.layers,
        field=options.field,
        inducing=options.inducing,
        num_inducing=options.num_inducing,
        x=space.random(400, key=jax.random.key(0)) if options.inducing == "points" else None,
    )
    output: Field = _scalar_field((space,), options) if has_one_kernel(space) else built.field
    return DeepGP(built.hidden, output, _noise(options), constant_mean=True)


def has_one_kernel(space: Space) -> bool:
    """Tell whether the shallow surrogate of a space has one kernel, which a deep one can take over."""
    return len(space.irreducible_factors) == 1


def on_top_of(deep: DeepGP, shallow: DeepGP) -> DeepGP:
    """Return the deep surrogate with kernel, noise and mean of a fitted shallow one in its output."""
    if not has_one_kernel(deep.space):
        return deep
    return eqx.tree_at(
        lambda m: (m.output, m.likelihood, m.mean), deep, (shallow.output, shallow.likelihood, shallow.mean)
    )


def local_model(dim: int, options: Options) -> tuple[Box, DeepGP]:
    """Build the surrogate of a trust region, in coordinates of its tangent space: the cube from -1 to 1."""
    cube = Box([-1.0] * dim, [1.0] * dim)
    priors = {"lengthscale": LogNormal(1.5, 1.0), "variance": LogNormal(1.0, 1.0)}
    field = ScalarField(cube, Matern(1.5, [1.0] * dim, 1.0, prior=priors))
    return cube, DeepGP((), field, _noise(options), constant_mean=True)


def parameters_of(model: DeepGP) -> Float[Array, "P"]:
    """Return all trainable numbers of a surrogate as one vector."""
    return ravel_pytree(split_trainable(model)[0])[0]


def shallow_starts(model: DeepGP) -> Float[Array, "R P"]:
    """Return where fits of a shallow surrogate start: short and long lengthscales, much and little noise."""
    return jnp.stack([parameters_of(_placed(model, *start)) for start in _STARTS])


def _placed(model: DeepGP, lengthscale: float, noise: float) -> DeepGP:
    """Return a surrogate with all lengthscales, and the noise, set to a number."""
    values = {"lengthscale": lengthscale, "noise_variance": noise}

    def is_parametric(node: object) -> bool:
        return isinstance(node, Parametric)

    def place(node: object) -> object:
        if not isinstance(node, Parametric):
            return node
        return node.with_values(**{name: value for name, value in values.items() if name in node.parameters})

    placed: DeepGP = jax.tree.map(place, model, is_leaf=is_parametric)
    return placed


def _shallow_loss(vectors: Float[Array, "R P"], model: DeepGP, data: Data) -> Float[Array, "R"]:
    """Return minus log p(y, parameters), up to a constant, for each row of parameters."""

    def loss(vector: Float[Array, "P"]) -> Float[Array, ""]:
        own = with_vector(model, vector)
        return -estimate(own, data, jax.random.key(0), 1) - log_prior(own)

    return jax.vmap(loss)(vectors)


@eqx.filter_jit
def fit_shallow(model: DeepGP, data: Data, starts: Float[Array, "R P"]) -> Float[Array, "P"]:
    """Return the most probable parameters found from some starts."""
    flat = Euclidean(starts.shape[1])
    found = minimize_on_space(_shallow_loss, flat, starts, model, data, evaluations=_EVALUATIONS, longest=2.0)
    best = jnp.argmin(jnp.where(jnp.isfinite(found.values), found.values, jnp.inf))
    return found.points[best]


@eqx.filter_jit
def fit_deep(model: DeepGP, data: Data, key: PRNGKeyArray, steps: int) -> DeepGP:
    """Raise the ELBO of a deep surrogate by Adam."""
    plan = Plan(_RECIPE, None, steps, _SAMPLES, None)
    state, _ = advance(initial_state(parameters_of(model), plan), model, data, key, plan, steps, steps)
    return with_vector(model, jnp.where(state.bad > 0, state.kept, state.parameters))
