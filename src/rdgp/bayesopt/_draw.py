"""Functions drawn from a surrogate's posterior, pathwise: a prior draw and its correction by the data."""

from functools import reduce
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.bayesopt._posterior import Observed, Posterior, masked_kernel, output_field
from rdgp.core import jittered_cholesky, standard_normal
from rdgp.fields import ScalarField
from rdgp.kernels import EuclideanMatern
from rdgp.models import DeepGP
from rdgp.spaces import Product, Space
from rdgp.spectra import ScalarSpectrum

_NUM_WAVES = 1024


class _ZonalWaves(eqx.Module):
    """The square root of a kernel on a compact space, around random centers."""

    spectrum: ScalarSpectrum
    scales: Float[Array, "K"]
    centers: Float[Array, "J D"]

    def __call__(self, x: Float[Array, "R D"]) -> Float[Array, "R J"]:
        return self.spectrum.zonal(self.scales, x, self.centers)


class _FlatWaves(eqx.Module):
    """Cosines of random frequencies and phases."""

    amplitude: Float[Array, ""]
    frequencies: Float[Array, "J D"]
    phases: Float[Array, "J"]

    def __call__(self, x: Float[Array, "R D"]) -> Float[Array, "R J"]:
        return self.amplitude * jnp.cos(x @ self.frequencies.T + self.phases)


class PriorDraw(eqx.Module):
    """A sum of functions h(x, u_j) with random weights and centers, where h is the square root of the kernel.

    On a compact space E_u[h(x, u) h(y, u)] = k(x, y) for uniform u if h has the levels' standard deviations where the
    kernel has variances; on a box h is a cosine of random frequency and phase. Unlike features, h costs no more when
    many levels are kept.
    """

    space: Space
    waves: tuple[_ZonalWaves | _FlatWaves, ...]
    weights: Float[Array, "J"]

    def __call__(self, x: Float[Array, "R D"]) -> Float[Array, "R"]:
        """Evaluate it."""
        parts = self.space.split(x) if isinstance(self.space, Product) and len(self.waves) > 1 else (x,)
        return reduce(jnp.multiply, [wave(part) for wave, part in zip(self.waves, parts, strict=True)]) @ self.weights


def draw_prior(field: ScalarField, key: PRNGKeyArray, dtype: jnp.dtype) -> PriorDraw:
    """Draw a function from a field's prior, approximately Gaussian."""
    prior, (key_weights, *keys) = field.prior, jax.random.split(key, 1 + len(field.prior.components))
    several = isinstance(prior.space, Product) and len(prior.components) > 1
    spaces = prior.space.factors if several and isinstance(prior.space, Product) else (prior.space,)
    waves = [
        _waves(component, space, own, dtype)
        for component, space, own in zip(prior.components, spaces, keys, strict=True)
    ]
    weights = standard_normal(key_weights, (_NUM_WAVES,), dtype) / _NUM_WAVES**0.5
    return PriorDraw(prior.space, tuple(waves), weights)


def _waves(component: Any, space: Space, key: PRNGKeyArray, dtype: jnp.dtype) -> _ZonalWaves | _FlatWaves:
    if not isinstance(component.kernel, EuclideanMatern):
        return _ZonalWaves(component.spectrum, component.level_scales(), space._random(_NUM_WAVES, key).astype(dtype))
    key_frequency, key_phase = jax.random.split(key)
    frequencies = component.kernel.sample_frequencies(_NUM_WAVES, component.dim, key=key_frequency)
    phases = jax.random.uniform(key_phase, (_NUM_WAVES,), dtype, 0.0, 2.0 * jnp.pi)
    return _FlatWaves(jnp.sqrt(2.0 * component.kernel.variance), frequencies.astype(dtype), phases)


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
