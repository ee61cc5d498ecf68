"""Sums of kernels: independent processes that add up."""

from functools import reduce

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from rdgp.core import Numbers, Parameter, register
from rdgp.kernels._closed_form import ClosedFormKernel, RandomFeatures
from rdgp.kernels._kernel import Kernel


@register("rdgp:Sum")
class Sum(Kernel):
    """The kernel of a sum of independent processes, each with its own kernel.

    >>> from rdgp.kernels import Heat, Matern
    >>> round(float(Sum(Matern(variance=2.0), Heat(variance=0.5)).variance), 3)
    2.5
    """

    parameters: dict[str, Parameter]
    terms: tuple[Kernel, ...]

    def __init__(self, *terms: Kernel) -> None:
        if len(terms) < 2 or not all(isinstance(term, Kernel) for term in terms):
            raise ValueError(f"Sum takes two kernels or more, got {terms}; write Sum(Matern(), Heat())")
        self.parameters, self.terms = {}, terms

    @property
    def variance(self) -> Float[Array, ""]:
        """Sum of the variances."""
        return reduce(jnp.add, [term.variance for term in self.terms])

    def log_density(self, eigenvalues: Float[np.ndarray, "K"], dim: int) -> Float[Array, "K"]:
        """Raise: the terms share their variances among the levels each on its own."""
        raise ValueError("a Sum has no density of its own; use level_scales")

    def level_scales(
        self, eigenvalues: Float[np.ndarray, "K"], multiplicities: Int[np.ndarray, "K"], dim: int
    ) -> Float[Array, "K"]:
        """Return the roots of the summed variances of each level."""
        scales = [term.level_scales(eigenvalues, multiplicities, dim) for term in self.terms]
        tiny = jnp.finfo(scales[0].dtype).tiny  # keeps the derivative of the root finite where all terms underflow
        return jnp.sqrt(reduce(jnp.add, [jnp.square(scale) for scale in scales]) + tiny)

    def with_variance(self, variance: Numbers) -> "Sum":
        """Return the sum with equal variances of its terms."""
        return Sum(*(term.with_variance(jnp.asarray(variance) / len(self.terms)) for term in self.terms))

    def with_lengthscale(self, lengthscale: Numbers) -> "Sum":
        """Return the sum with one lengthscale for all terms."""
        return Sum(*(term.with_lengthscale(lengthscale) for term in self.terms))

    def on_manifold(self) -> "Sum":
        """Return the sum of the terms as they are used on curved spaces."""
        return Sum(*(term.on_manifold() for term in self.terms))

    def on_flat(self, dim: int) -> ClosedFormKernel:
        """Return the sum of the closed forms."""
        return _FlatSum({}, tuple(term.on_flat(dim) for term in self.terms))

    def __repr__(self) -> str:
        return f"Sum({', '.join(map(repr, self.terms))})"


@register("rdgp:FlatSum")
class _FlatSum(ClosedFormKernel):
    """The sum of kernels on flat space."""

    parameters: dict[str, Parameter]
    terms: tuple[ClosedFormKernel, ...]

    @property
    def variance(self) -> Float[Array, ""]:
        """Sum of the variances."""
        return reduce(jnp.add, [term.variance for term in self.terms])

    @property
    def lengthscale(self) -> Float[Array, "*d"]:
        """Length scale of the first term."""
        return self.terms[0].lengthscale

    def covariance(self, x: Float[Array, "N d"], y: Float[Array, "L d"]) -> Float[Array, "N L"]:
        """Add up."""
        return reduce(jnp.add, [term.covariance(x, y) for term in self.terms])

    def random_features(self, n: int, dim: int, *, key: PRNGKeyArray) -> RandomFeatures:
        """Draw features of every term, in equal number."""
        keys = jax.random.split(key, len(self.terms))
        share = -(-n // len(self.terms))
        return _SummedFeatures(
            tuple(term.random_features(share, dim, key=own) for term, own in zip(self.terms, keys, strict=True))
        )

    def with_variance(self, variance: Numbers) -> "_FlatSum":
        """Return the sum with equal variances of its terms."""
        return _FlatSum({}, tuple(term.with_variance(jnp.asarray(variance) / len(self.terms)) for term in self.terms))

    def with_lengthscale(self, lengthscale: Numbers) -> "_FlatSum":
        """Return the sum with one lengthscale for all terms."""
        return _FlatSum({}, tuple(term.with_lengthscale(lengthscale) for term in self.terms))

    def __repr__(self) -> str:
        return f"Sum({', '.join(map(repr, self.terms))})"


@register("rdgp:SummedFeatures")
class _SummedFeatures(RandomFeatures):
    """The features of all terms of a sum."""

    terms: tuple[RandomFeatures, ...]

    def __call__(self, x: Float[Array, "*N D"]) -> Float[Array, "*N M"]:
        """Evaluate them, term after term."""
        return jnp.concatenate([term(x) for term in self.terms], axis=-1)
