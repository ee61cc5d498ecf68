"""A space, a kernel and a likelihood as another package would define them: public names of rdgp only."""

import math
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import log_ndtr
from jaxtyping import Array, Float, Int, PRNGKeyArray

from rdgp import Kernel, Likelihood, Space, Sphere, register
from rdgp.core import Parameter, positive_parameters
from rdgp.likelihoods import REAL_NUMBERS, Support
from rdgp.spaces import Isometry
from rdgp.spectra import ScalarSpectrum, ambient_spectra, harmonics, scalar_spectrum

_COVER = Sphere(2)


@register("outside:ProjectivePlane")
class ProjectivePlane(Space):
    """RP², as unit vectors of R³ where x and -x are the same point."""

    dim = 2
    ambient_dim = 3
    injectivity_radius = math.pi / 2

    def __str__(self) -> str:
        return "ProjectivePlane()"

    @property
    def identifications(self) -> Float[np.ndarray, "2 3 3"]:
        return np.stack([np.eye(3), -np.eye(3)])

    def _random_isometry(self, key: PRNGKeyArray) -> Isometry:
        return _COVER.random_isometry(key=key)

    def _exp(self, x: Array, v: Array) -> Array:
        return _COVER.exp(x, v)

    def _log(self, x: Array, y: Array) -> Array:
        return _COVER.log(x, _nearer(x, y))

    def _project(self, x: Array, u: Array) -> Array:
        return _COVER.project(x, u)

    def _transport_along(self, x: Array, v: Array, u: Array) -> Array:
        return _COVER.transport_along(x, v, u)

    def _distance(self, x: Array, y: Array) -> Array:
        return _COVER.distance(x, _nearer(x, y))

    def _frame(self, x: Array) -> Array:
        return _COVER.frame(x)

    def _nearest(self, x: Array) -> Array:
        return _COVER.nearest(x)

    def _random(self, n: int, key: PRNGKeyArray) -> Array:
        return _COVER.random(n, key=key)

    def _canonical(self, x: Array) -> Array:
        first = jnp.take_along_axis(x, jnp.argmax(jnp.abs(x) > 1e-6, axis=-1)[..., None], axis=-1)
        return jnp.where(first < 0.0, -x, x)


def _nearer(x: Array, y: Array) -> Array:
    return jnp.where(jnp.sum(x * y, axis=-1, keepdims=True) < 0.0, -y, y)


@register("outside:Harmonics")
class Harmonics(ScalarSpectrum):
    """Spherical harmonics of the degrees start, start + 2, ...: even functions, or odd ones."""

    start: int = eqx.field(static=True)
    num_levels: int = eqx.field(static=True)

    @property
    def _degrees(self) -> tuple[int, ...]:
        return tuple(range(self.start, self.start + 2 * self.num_levels, 2))

    @property
    def eigenvalues(self) -> Float[np.ndarray, "K"]:
        return np.array([k * (k + 1.0) for k in self._degrees])

    @property
    def multiplicities(self) -> Int[np.ndarray, "K"]:
        return np.array([2 * k + 1 for k in self._degrees])

    def features(self, x: Float[Array, "*N D"]) -> Float[Array, "*N M"]:
        return harmonics(x.reshape(-1, 3), self._degrees).T.reshape(*x.shape[:-1], -1)


@scalar_spectrum.register
def _(space: ProjectivePlane, num_levels: int) -> Harmonics:
    return Harmonics(0, num_levels)


@ambient_spectra.register
def _(space: ProjectivePlane, num_levels: int) -> tuple[Harmonics]:
    return (Harmonics(1, num_levels),)


@register("outside:Rational")
class Rational(Kernel):
    """The kernel of spectral density 1 / (1 + κ² λ)^(d + 1)."""

    def __init__(self, lengthscale: float = 1.0, variance: float = 1.0) -> None:
        super().__init__({"lengthscale": lengthscale, "variance": variance})

    def log_density(self, eigenvalues: Float[np.ndarray, "K"], dim: int) -> Float[Array, "K"]:
        return -(dim + 1.0) * jnp.log1p(jnp.square(self.lengthscale) * jnp.asarray(eigenvalues))


@register("outside:Laplace")
class Laplace(Likelihood):
    """Observations y = f + ε, ε of density e^(-|ε|/b) / 2b; expectations in closed form, because it has a kink."""

    support: ClassVar[Support] = REAL_NUMBERS
    parameters: dict[str, Parameter]

    def __init__(self, scale: float = 0.3) -> None:
        self.parameters = positive_parameters({"scale": scale}, (), None)

    def _scale(self, like: Array) -> Array:
        return self.parameters["scale"].value.astype(like.dtype)

    def log_density(self, y: Array, f: Array) -> Array:
        b = self._scale(f)
        return -jnp.abs(y - f) / b - jnp.log(2.0 * b)

    def conditional_moments(self, f: Array) -> tuple[Array, Array]:
        return f, jnp.full_like(f, 2.0 * jnp.square(self._scale(f)))

    def sample(self, f: Array, *, key: PRNGKeyArray) -> Array:
        return f + self._scale(f) * jax.random.laplace(key, f.shape, f.dtype)

    def expected_log_density(self, y: Array, mean: Array, covariance: Array) -> Array:
        b, (m, s) = self._scale(mean), _residual(y, mean, covariance)
        z = m / s
        folded = s * jnp.sqrt(2.0 / jnp.pi) * jnp.exp(-0.5 * z * z) + m * jax.lax.erf(z / jnp.sqrt(2.0).astype(z.dtype))
        return jnp.sum(-folded / b - jnp.log(2.0 * b), axis=-1)

    def log_predictive(self, y: Array, mean: Array, covariance: Array) -> Array:
        b, (m, s) = self._scale(mean), _residual(y, mean, covariance)
        sides = [half - sign * m / b + log_ndtr(sign * m / s - s / b) for sign, half in ((1.0, 0.0), (-1.0, 0.0))]
        return jnp.sum(jnp.logaddexp(*sides) + 0.5 * jnp.square(s / b) - jnp.log(2.0 * b), axis=-1)


def _residual(y: Array, mean: Array, covariance: Array) -> tuple[Array, Array]:
    variance = jnp.diagonal(covariance, axis1=-2, axis2=-1)
    return y.astype(mean.dtype) - mean, jnp.sqrt(jnp.maximum(variance, jnp.finfo(mean.dtype).eps ** 2))
