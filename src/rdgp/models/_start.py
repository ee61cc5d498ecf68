"""Where a search for the numbers of a model starts: variances that fit the size of the observations."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rdgp.fields import Field
from rdgp.fields._prior import ScalarPrior
from rdgp.kernels import EuclideanMatern, Matern
from rdgp.likelihoods import Gaussian

_NOISE = 0.03  # share of the noise in the size of the observations at the start


def is_kernel(node: object) -> bool:
    """Tell whether a node of a tree is a kernel."""
    return isinstance(node, Matern | EuclideanMatern)


def leading_kernels(field: Field) -> list[Matern | EuclideanMatern]:
    """Return the kernels whose variances add up to that of the field; of a product of kernels that is the first."""
    nodes = jax.tree.leaves(field, is_leaf=lambda node: isinstance(node, ScalarPrior) or is_kernel(node))
    kernels = [node.components[0].kernel if isinstance(node, ScalarPrior) else node for node in nodes]
    return [kernel for kernel in kernels if is_kernel(kernel)]


def with_variance(field: Field, size: float) -> Field:
    """Set every trainable variance of a field's kernels so that values have the given mean square per coordinate."""
    kernels = [k for k in leading_kernels(field) if k._variance.trainable]
    if not kernels:
        return field
    share = size * (field.space.dim if hasattr(field, "kernels") else 1.0) / len(kernels)
    new = [jnp.full_like(k._variance.raw, np.log(share)) for k in kernels]
    return eqx.tree_at(lambda f: [k._variance.raw for k in leading_kernels(f) if k._variance.trainable], field, new)


def with_noise(likelihood: Gaussian, variance: float) -> Gaussian:
    """Set the noise variance unless it is fixed; its precision stays."""
    raw = likelihood._noise_variance.raw
    if not likelihood._noise_variance.trainable:
        return likelihood
    return eqx.tree_at(lambda g: g._noise_variance.raw, likelihood, jnp.full_like(raw, np.log(variance)))


def of_size(field: Field, likelihood: Gaussian, size: float) -> tuple[Field, Gaussian]:
    """Return a field and noise that together have a mean square, nearly all of it in the field."""
    return with_variance(field, size), with_noise(likelihood, _NOISE * size)


def prior_size(field: Field, likelihood: Gaussian) -> Float[Array, ""]:
    """Return the mean square of observations under the prior, up to a factor of the dimension."""
    variances = [kernel.variance for kernel in leading_kernels(field)]
    return likelihood.noise_variance + sum(variances, start=jnp.zeros(()))
