"""Variational family of inducing points: values at points of the space as inducing variables."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import Numbers, Parameter, as_matrix, register, solve_lower, standard_normal
from rdgp.fields import Field, FunctionDraw, Process, ProcessDraw, check_points
from rdgp.posteriors._variational import Conditional, Variational
from rdgp.posteriors._whitened import WhitenedGaussian

_JITTER = {8: 1e-8, 4: 1e-5}  # relative to the mean variance, by bytes of a number


@register("rdgp:InducingPoints")
class InducingPoints(Variational):
    """A Gaussian over the whitened values of a field's processes at inducing points z (the paper's locations).

    Processes of projected and frame fields are the independent scalar functions; a Hodge field has its d components in
    the space's frame. Training moves the points if they are `trainable`; `std` is the standard deviation of the
    whitened values at the start.
    """

    field: Field
    blocks: tuple[WhitenedGaussian, ...]
    _z: Parameter

    def __init__(self, field: Field, z: Numbers, trainable: bool = False, *, std: float = 1.0) -> None:
        self.field = field
        z = check_points(field.space, z, "z")
        if z.shape[0] == 0:
            raise ValueError("z must hold at least one point, got none")
        self._z = Parameter(z, "real", name="z", trainable=trainable)
        self.blocks = tuple(
            WhitenedGaussian(process.copies, process.width * z.shape[0], std) for process in field.processes
        )

    @property
    def z(self) -> Float[Array, "m D"]:
        """The inducing points."""
        return self._z.value

    @property
    def trainable(self) -> bool:
        """Whether training moves the points."""
        return self._z.trainable

    def details(self) -> tuple[str, ...]:
        """Return the number of points, and whether they are trained."""
        return (f"{self.z.shape[0]} {'trained ' if self.trainable else ''}points",)

    @property
    def size(self) -> int:
        """Number of inducing variables."""
        return sum(block.mean.size for block in self.blocks)

    def nearest(self) -> "InducingPoints":
        """Return the family with its points moved to the nearest ones of the space."""
        if not self.trainable:
            return self
        return eqx.tree_at(lambda q: q._z.raw, self, self.field.space.nearest(self.z))

    def conditionals(self, x: Float[Array, "N D"]) -> tuple[Conditional, ...]:
        """Return A = L⁻¹ k(z, x) and k(x, x) - Aᵀ A."""
        return tuple(self._conditional(process, x) for process in self.field.processes)

    def _conditional(self, process: Process, x: Float[Array, "N D"]) -> Conditional:
        half = self._half(process, x)
        n, p = x.shape[0], process.width
        weights = half.T.reshape(n, p, -1)
        if p == 1:
            explained = jnp.sum(jnp.square(half), axis=0)[:, None, None]
        else:
            explained = jnp.einsum("npm,nqm->npq", weights, weights)
        floor = 1e-12 * jnp.eye(p, dtype=x.dtype)
        rest = process.variance(x) - explained
        return Conditional(weights, jnp.maximum(rest, 0.0) if p == 1 else rest + floor)

    def _half(self, process: Process, x: Float[Array, "N D"]) -> Float[Array, "m n"]:
        """Return L⁻¹ k(z, x); the small factor is inverted once, which is faster than solving for every point."""
        factor = self._factor(process, x.dtype)
        inverse = solve_lower(factor, jnp.eye(factor.shape[0], dtype=x.dtype))
        return inverse @ as_matrix(process.covariance(self.z.astype(x.dtype), x))

    def _factor(self, process: Process, dtype: jnp.dtype) -> Float[Array, "m m"]:
        z = self.z.astype(dtype)
        covariance = as_matrix(process.covariance(z, z))
        return jnp.linalg.cholesky(covariance + _jitter(covariance) * jnp.eye(covariance.shape[0], dtype=dtype))

    def joint_rest(self, x: Float[Array, "N D"]) -> tuple[Float[Array, "_ _"], ...]:
        """Return k(x, x') - Aᵀ A' between all points."""
        halves = [(process, self._half(process, x)) for process in self.field.processes]
        return tuple(as_matrix(process.covariance(x, x)) - half.T @ half for process, half in halves)

    def draw(self, *, key: PRNGKeyArray) -> FunctionDraw:
        """Draw one function: a prior draw, corrected so that it passes through drawn inducing values."""
        keys = jax.random.split(key, len(self.blocks))
        pieces = [
            self._draw(process, block, own)
            for process, block, own in zip(self.field.processes, self.blocks, keys, strict=True)
        ]
        return InducingPointsDraw(self.field, self.z, tuple(p for p, _ in pieces), tuple(s for _, s in pieces))

    def _draw(
        self, process: Process, block: WhitenedGaussian, key: PRNGKeyArray
    ) -> tuple[ProcessDraw, Float[Array, "m r"]]:
        """Return a prior draw and K⁻¹ (u - prior(z) - √j ε), K = k(z, z) + j I, u = L u'."""
        key_prior, key_inducing, key_jitter = jax.random.split(key, 3)
        factor = self._factor(process, self.z.dtype)
        prior = process.draw(key=key_prior)
        values = prior(self.z).reshape(factor.shape[0], process.copies)
        jitter = _jitter(as_matrix(process.covariance(self.z, self.z)))
        noise = jnp.sqrt(jitter) * standard_normal(key_jitter, values.shape, values.dtype)
        normal = standard_normal(key_inducing, block.mean.shape, block.mean.dtype)
        whitened = block.sample(normal).T - solve_lower(factor, values + noise)
        return prior, jax.scipy.linalg.solve_triangular(factor, whitened, lower=True, trans=1)


@register("rdgp:InducingPointsDraw")
class InducingPointsDraw(FunctionDraw):
    """A prior draw plus k(x, z) times fixed weights, process by process."""

    field: Field
    z: Float[Array, "m D"]
    priors: tuple[ProcessDraw, ...]
    solutions: tuple[Float[Array, "_ _"], ...]

    @eqx.filter_jit
    def __call__(self, x: Float[Array, "N D"]) -> Float[Array, "N ..."]:
        """Evaluate it."""
        x = check_points(self.field.space, x)
        values = []
        for process, prior, solution in zip(self.field.processes, self.priors, self.solutions, strict=True):
            correction = as_matrix(process.covariance(x, self.z.astype(x.dtype))) @ solution.astype(x.dtype)
            values.append(prior(x) + correction.reshape(x.shape[0], process.width, -1))
        return self.field.assemble(x, tuple(values))


def _jitter(covariance: Float[Array, "m m"]) -> Float[Array, ""]:
    return _JITTER[covariance.dtype.itemsize] * jnp.mean(jnp.diagonal(covariance))
