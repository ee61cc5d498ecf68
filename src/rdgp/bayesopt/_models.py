"""The models that serve as surrogates, and how they are fitted to padded data."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float, Int, PRNGKeyArray

from rdgp.bayesopt._options import Options
from rdgp.bayesopt._posterior import Observed, masked_kernel
from rdgp.core import Gamma, LogNormal, Prior, log_prior, split_trainable
from rdgp.fields import ScalarField
from rdgp.inference._recipe import RECIPES, learning_rates, make_optimizer
from rdgp.kernels import EuclideanMatern, Matern
from rdgp.likelihoods import Gaussian
from rdgp.models import DeepGP, deep_gp
from rdgp.models._evidence import evidence_by_kernel
from rdgp.optimize import minimize_on_space
from rdgp.spaces import Box, Circle, Euclidean, Product, Rotations, Space, Torus

_LENGTHSCALES = (0.15, 0.4, 1.0)  # where fits of the shallow model start
_NOISES = (1e-4, 1e-2)
_EVALUATIONS = 30


def shallow_model(space: Space, options: Options) -> DeepGP:
    """Build the shallow surrogate; each factor of a product, and each circle of a torus, has its own lengthscale."""
    parts = _factors(space)
    kernels = tuple(_kernel(part, options, first=i == 0) for i, part in enumerate(parts))
    levels = tuple(_levels(part, options) for part in parts)
    if len(parts) == 1:
        field = ScalarField(parts[0], kernels[0], levels[0])
    else:
        field = ScalarField(Product(*parts), kernels, levels)
    return DeepGP((), field, _noise(options), constant_mean=True)


def _factors(space: Space) -> tuple[Space, ...]:
    if isinstance(space, Product):
        return tuple(part for factor in space.factors for part in _factors(factor))
    return (Circle(),) * space.n if isinstance(space, Torus) else (space,)


def _levels(space: Space, options: Options) -> int:
    return max(options.levels // 2, 2) if isinstance(space, Rotations) else options.levels


def _kernel(space: Space, options: Options, *, first: bool) -> Matern | EuclideanMatern:
    """Build the kernel of a factor; the first one carries the variance of all."""
    priors: dict[str, Prior] = {}
    if options.standardize:
        priors["lengthscale"] = LogNormal(options.lengthscale, 0.7)
    if first:
        priors["variance"] = LogNormal(1.0, 1.0) if options.standardize else Gamma(2.0, 0.15)
    fixed = ["nu"] if first else ["nu", "variance"]
    if isinstance(space, Box | Euclidean):
        return EuclideanMatern(options.nu, [options.lengthscale] * space.dim, 1.0, fixed=fixed[1:], prior=priors)
    return Matern(options.nu, options.lengthscale, 1.0, fixed=fixed, prior=priors)


def _noise(options: Options) -> Gaussian:
    if options.standardize:
        return Gaussian(1e-3, prior={"noise_variance": LogNormal(1e-3, 2.0)})
    return Gaussian(2.0, prior={"noise_variance": Gamma(1.1, 0.05)})


def deep_model(space: Space, options: Options) -> DeepGP:
    """Build the deep surrogate: residual hidden layers, then the shallow one's kernel and priors."""
    anywhere = space._random(400, jax.random.key(0)) if options.inducing == "locations" else None
    model = deep_gp(
        space,
        layers=options.layers,
        field=options.field,
        inducing=options.inducing,
        num_inducing=options.num_inducing,
        x=anywhere,
        constant_mean=True,
    )
    if has_one_kernel(space):
        return eqx.tree_at(lambda m: (m.output, m.likelihood), model, _output(space, options))
    return eqx.tree_at(lambda m: m.likelihood, model, _noise(options))


def has_one_kernel(space: Space) -> bool:
    """Tell whether the shallow surrogate of a space has one kernel, which a deep one can take over."""
    return _factors(space) == (space,)


def _output(space: Space, options: Options) -> tuple[ScalarField, Gaussian]:
    return ScalarField(space, _kernel(space, options, first=True), _levels(space, options)), _noise(options)


def on_top_of(deep: DeepGP, shallow: DeepGP) -> DeepGP:
    """Return the deep surrogate with kernel, noise and mean of a fitted shallow one in its output."""
    if not has_one_kernel(deep.space):
        return deep
    return eqx.tree_at(
        lambda m: (m.output, m.likelihood, m.mean), deep, (shallow.output, shallow.likelihood, shallow.mean)
    )


def local_model(dim: int, options: Options) -> tuple[Box, DeepGP]:
    """Build the surrogate of the region of trust, in coordinates of its tangent space: the cube from -1 to 1."""
    cube = Box([-1.0] * dim, [1.0] * dim)
    priors = {"lengthscale": LogNormal(1.5, 1.0), "variance": LogNormal(1.0, 1.0)}
    field = ScalarField(cube, EuclideanMatern(1.5, [1.0] * dim, 1.0, prior=priors))
    return cube, DeepGP((), field, _noise(options), constant_mean=True)


def parameters_of(model: DeepGP) -> Float[Array, "P"]:
    """Return all trainable numbers of a surrogate as one vector."""
    return ravel_pytree(split_trainable(model)[0])[0]


def with_parameters(model: DeepGP, vector: Float[Array, "P"]) -> DeepGP:
    """Put a vector of trainable numbers into a surrogate."""
    free, rest = split_trainable(model)
    return eqx.combine(ravel_pytree(free)[1](vector), rest)


def _log_joint(model: DeepGP, data: Observed, path: Float[Array, "N D"]) -> Float[Array, ""]:
    """Return log p(y, parameters) given where the hidden layers lead, up to a constant."""
    kernel = masked_kernel(model, path, data.noise, data.seen)
    centered = jnp.where(data.seen, data.y - model.offset(path.dtype), 0.0)
    evidence = evidence_by_kernel(kernel, centered[:, None], jnp.zeros((), path.dtype))
    return evidence + log_prior(model)


def _shallow_loss(vectors: Float[Array, "R P"], model: DeepGP, data: Observed) -> Float[Array, "R"]:
    return jax.vmap(lambda vector: -_log_joint(with_parameters(model, vector), data, data.x))(vectors)


def shallow_starts(model: DeepGP) -> Float[Array, "R P"]:
    """Return where fits of the shallow model start: short and long lengthscales, much and little noise."""
    starts = []
    for i, lengthscale in enumerate(_LENGTHSCALES):
        noise = _NOISES[i % 2]

        def place(node: object, lengthscale: float = lengthscale) -> object:
            if not isinstance(node, Matern | EuclideanMatern):
                return node
            raw = node._lengthscale.raw
            return eqx.tree_at(lambda k: k._lengthscale.raw, node, jnp.full_like(raw, jnp.log(lengthscale)))

        moved = jax.tree.map(place, model, is_leaf=lambda node: isinstance(node, Matern | EuclideanMatern))
        raw = moved.likelihood._noise_variance.raw
        moved = eqx.tree_at(lambda m: m.likelihood._noise_variance.raw, moved, jnp.full_like(raw, jnp.log(noise)))
        starts.append(parameters_of(moved))
    return jnp.stack(starts)


@eqx.filter_jit
def fit_shallow(model: DeepGP, data: Observed, starts: Float[Array, "R P"]) -> Float[Array, "P"]:
    """Return the most probable parameters found from some starts."""
    flat = Euclidean(starts.shape[1])
    found = minimize_on_space(_shallow_loss, flat, starts, model, data, evaluations=_EVALUATIONS, longest=2.0)
    best = jnp.argmin(jnp.where(jnp.isfinite(found.values), found.values, jnp.inf))
    return found.points[best]


@eqx.filter_jit
def fit_deep(model: DeepGP, data: Observed, key: PRNGKeyArray, steps: int) -> DeepGP:
    """Raise the evidence lower bound of a deep surrogate by Adam, two draws of the hidden layers a step."""
    free, _ = split_trainable(model)
    start = ravel_pytree(free)[0]
    recipe = RECIPES["paper"]  # its slow rates: the faster ones follow so few observations too closely
    optimizer = make_optimizer(recipe, learning_rates(recipe, free), steps)

    def loss(vector: Float[Array, "P"], key: PRNGKeyArray) -> Float[Array, ""]:
        own = with_parameters(model, vector)
        divergence = sum((layer.kl() for layer in own.hidden), start=jnp.zeros((), vector.dtype))
        draws = [_log_joint(own, data, own.lead(k, data.x).x) for k in jax.random.split(key)]
        return divergence - sum(draws) / len(draws)

    def step(i: Int[Array, ""], carry: tuple[Array, optax.OptState]) -> tuple[Array, optax.OptState]:
        vector, memory = carry
        gradient = jax.grad(loss)(vector, jax.random.fold_in(key, i))
        gradient = jnp.where(jnp.all(jnp.isfinite(gradient)), gradient, 0.0)
        change, memory = optimizer.update(gradient, memory, vector)
        return vector + change, memory

    vector, _ = jax.lax.fori_loop(0, steps, step, (start, optimizer.init(start)))
    return with_parameters(model, vector)
