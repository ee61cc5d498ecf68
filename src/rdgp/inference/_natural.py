"""Natural-gradient steps on whitened Gaussians."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from rdgp.core import Numbers, check_count, compiled_quickly
from rdgp.inference._objective import estimate
from rdgp.models import Data, DeepGP
from rdgp.posteriors import WhitenedGaussian


def natural_gradient_step(
    model: DeepGP,
    x: Numbers,
    y: Numbers,
    *,
    key: PRNGKeyArray,
    rate: float = 1.0,
    samples: int = 3,
    noise_variance: Numbers | None = None,
) -> DeepGP:
    """Return the model after one natural-gradient step of all its variational posteriors on the ELBO.

    A step of `rate` one leads an explicit output of a shallow model with Gaussian noise to its optimum; deep models and
    other likelihoods take smaller ones. Kernels, noise and inducing points stay as they are. `samples` are draws of the
    hidden layers; `noise_variance` is that of `fit`.
    """
    data = model.check_data(x, y, noise_variance)
    return _step(model, data, key, jnp.asarray(rate), check_count(samples, "samples"))


@compiled_quickly
def _step(model: DeepGP, data: Data, key: PRNGKeyArray, rate: Float[Array, ""], samples: int) -> DeepGP:
    blocks = _blocks(model)
    moments = [(block.mean, block.factor @ jnp.swapaxes(block.factor, -1, -2)) for block in blocks]

    def objective(moments: list[tuple[Array, Array]]) -> Float[Array, ""]:
        return estimate(_with_moments(model, moments), data, key, samples)

    slopes = jax.grad(objective)(moments)
    return _with_moments(model, [_moved(own, slope, rate) for own, slope in zip(moments, slopes, strict=True)])


def _moved(
    moments: tuple[Float[Array, "r m"], Float[Array, "r m m"]],
    slopes: tuple[Float[Array, "r m"], Float[Array, "r m m"]],
    rate: Float[Array, ""],
) -> tuple[Float[Array, "r m"], Float[Array, "r m m"]]:
    """Move the natural parameters S⁻¹m and -S⁻¹/2 along the gradient in the expectations m and S + m mᵀ."""
    (mean, covariance), (by_mean, by_covariance) = moments, slopes
    rate = rate.astype(mean.dtype)
    slope = (by_covariance + jnp.swapaxes(by_covariance, -1, -2)) / 2.0
    precision = jnp.linalg.inv(covariance)
    first = jnp.einsum("rij,rj->ri", precision, mean)
    first = first + rate * (by_mean - 2.0 * jnp.einsum("rij,rj->ri", slope, mean))
    new = jnp.linalg.inv(precision - 2.0 * rate * slope)
    new = (new + jnp.swapaxes(new, -1, -2)) / 2.0
    return jnp.einsum("rij,rj->ri", new, first), new


def _is_block(node: object) -> bool:
    return isinstance(node, WhitenedGaussian)


def _blocks(model: PyTree) -> list[WhitenedGaussian]:
    return [node for node in jax.tree.leaves(model, is_leaf=_is_block) if _is_block(node)]


def _with_moments(model: DeepGP, moments: list[tuple[Array, Array]]) -> DeepGP:
    new = [
        block.with_moments(mean, jnp.linalg.cholesky(covariance))
        for block, (mean, covariance) in zip(_blocks(model), moments, strict=True)
    ]
    return eqx.tree_at(_blocks, model, new)
