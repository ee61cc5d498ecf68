"""Functions drawn from a surrogate's posterior, pathwise: a prior draw and its correction by the data."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.bayesopt._posterior import Observed, Posterior, masked_kernel, output_field
from rdgp.core import jittered_cholesky, standard_normal
from rdgp.fields import ScalarField
from rdgp.models import DeepGP
from rdgp.spaces import Product

_NUM_WAVES = 1024


class PriorDraw(eqx.Module):
    """A sum of functions h(x, u_j) with random signs and centers, where h is the square root of the kernel.

    On a compact space E_u[h(x, u) h(y, u)] = k(x, y) for uniform u if h has the levels' standard deviations where the
    kernel has variances; on a box h is a cosine of random frequency and phase. Unlike features, h costs no more when
    many levels are kept.
    """

    field: ScalarField
    centers: Float[Array, "J D"]
    frequencies: tuple[Float[Array, "J _"] | None, ...]
    phases: Float[Array, "J"]
    weights: Float[Array, "J"]

    def __call__(self, x: Float[Array, "R D"]) -> Float[Array, "R"]:
        """Evaluate it."""
        prior, product = self.field.prior, None
        several = isinstance(prior.space, Product) and len(prior.components) > 1
        x_parts, u_parts = (prior.space.split(p) if several else (p,) for p in (x, self.centers))
        for component, own, u, frequency in zip(prior.components, x_parts, u_parts, self.frequencies, strict=True):
            if frequency is None:
                wave = component.spectrum.zonal(component.level_scales(), own, u)
            else:
                amplitude = jnp.sqrt(2.0 * component.kernel.variance)
                wave = amplitude * jnp.cos(own @ frequency.T + self.phases)
            product = wave if product is None else product * wave
        return product @ self.weights


def draw_prior(field: ScalarField, key: PRNGKeyArray, dtype: jnp.dtype) -> PriorDraw:
    """Draw a function from a field's prior, approximately Gaussian."""
    keys = jax.random.split(key, 4)
    centers = field.space._random(_NUM_WAVES, keys[0]).astype(dtype)
    frequencies = tuple(
        None
        if hasattr(component, "spectrum")
        else component.kernel.sample_frequencies(_NUM_WAVES, component.dim, key=jax.random.fold_in(keys[1], i))
        for i, component in enumerate(field.prior.components)
    )
    phases = jax.random.uniform(keys[2], (_NUM_WAVES,), dtype, 0.0, 2.0 * jnp.pi)
    weights = standard_normal(keys[3], (_NUM_WAVES,), dtype) / jnp.sqrt(_NUM_WAVES)
    return PriorDraw(field, centers, frequencies, phases, weights)


class PosteriorDraw(eqx.Module):
    """One function through the data along one path of the hidden layers."""

    model: DeepGP
    key: PRNGKeyArray
    prior: PriorDraw
    points: Float[Array, "N D"]
    solution: Float[Array, "N"]

    def __call__(self, x: Float[Array, "R D"]) -> Float[Array, "R"]:
        """Evaluate it."""
        there = self.model.lead(self.key, x).x
        cross = output_field(self.model).prior.covariance(there, self.points)
        return self.prior(there) + cross @ self.solution + self.model.offset(x.dtype)


def draw_posterior(posterior: Posterior, data: Observed, key: PRNGKeyArray) -> PosteriorDraw:
    """Draw a function along the first path of a posterior."""
    model, points = posterior.model, posterior.points[0]
    key_prior, key_noise = jax.random.split(key)
    prior = draw_prior(output_field(model), key_prior, points.dtype)
    noise = jnp.sqrt(data.noise + model.noise_variance) * standard_normal(key_noise, data.y.shape, points.dtype)
    residual = jnp.where(data.seen, data.y - model.offset(points.dtype) - prior(points) - noise, 0.0)
    factor = jittered_cholesky(masked_kernel(model, points, data.noise, data.seen))
    return PosteriorDraw(model, posterior.keys[0], prior, points, cho_solve((factor, True), residual))
