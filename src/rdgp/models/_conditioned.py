"""A field conditioned on noisy observations: the output layer once the hidden layers are drawn, and a GP on its own."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.linalg import cho_solve
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import as_matrix, solve_lower, standard_normal
from rdgp.fields import Field, FieldDraw
from rdgp.models._evidence import (
    evidence_by_features,
    evidence_by_kernel,
    posterior_by_features,
    posterior_by_kernel,
)

Basis = Float[Array, "N P q"] | None


def uses_features(field: Field, num_numbers: int) -> bool:
    """Tell whether a field has features, and so few that they are the cheaper way to the evidence and its gradient.

    By m features it takes about 4 n m² + 1.7 m³ operations, by the kernel 1.7 n³.
    """
    latents = field.latents
    num_features = sum(latent.copies * latent.levels().size for latent in latents if latent.spectral)
    return all(latent.spectral for latent in latents) and num_features < 0.55 * num_numbers


def log_evidence(
    field: Field,
    noise: Float[Array, ""],
    x: Float[Array, "N D"],
    basis: Basis,
    y: Float[Array, "N p r"],
) -> Float[Array, ""]:
    """Return log p(y) of noisy coordinates of a field's values, in a basis or in its own; r copies are independent."""
    n = x.shape[0] * y.shape[1]
    noise = noise.astype(x.dtype)
    if uses_features(field, n):
        return evidence_by_features(_design(field, x, basis), y.reshape(n, -1), noise)
    return evidence_by_kernel(_kernel(field, x, x, basis, basis), _components_first(y), noise)


class Conditioned(eqx.Module):
    """A field given observations."""

    field: Field
    noise: Float[Array, ""]
    x: Float[Array, "N D"]
    basis: Basis
    factor: Float[Array, "k k"]
    solution: Float[Array, "k r"]
    by_features: bool = eqx.field(static=True)

    def __init__(
        self, field: Field, noise: Float[Array, ""], x: Float[Array, "N D"], basis: Basis, y: Float[Array, "N p r"]
    ) -> None:
        n = x.shape[0] * y.shape[1]
        self.field, self.noise, self.x, self.basis = field, noise.astype(x.dtype), x, basis
        self.by_features = uses_features(field, n)
        if self.by_features:
            design = _design(field, x, basis)
            self.factor, self.solution = posterior_by_features(design, y.reshape(n, -1), self.noise)
        else:
            kernel = _kernel(field, x, x, basis, basis)
            self.factor, self.solution = posterior_by_kernel(kernel, _components_first(y), self.noise)

    def moments(self, x: Float[Array, "L D"], basis: Basis) -> tuple[Float[Array, "L q"], Float[Array, "L q q"]]:
        """Return mean and covariance of the q = p r coordinates at each point."""
        mean, half, prior = self._parts(x, basis)
        p, copies = half.shape[2], self.solution.shape[1]
        explained = jnp.einsum("alp,alq->lpq", half, half) if p > 1 else jnp.sum(half * half, axis=0)[:, :, None]
        covariance = self.noise * explained if prior is None else prior - explained
        shared = covariance[:, :, None, :, None] * jnp.eye(copies, dtype=x.dtype)[None, None, :, None, :]
        return mean.reshape(x.shape[0], p * copies), shared.reshape(x.shape[0], p * copies, p * copies)

    def _parts(
        self, x: Float[Array, "L D"], basis: Basis
    ) -> tuple[Float[Array, "n r"], Float[Array, "k L p"], Float[Array, "L p p"] | None]:
        """Return the mean, L⁻¹ times features or cross-covariances, and the prior covariance where it is needed."""
        if self.by_features:
            psi = _design(self.field, x, basis)
            half = solve_lower(self.factor, psi.T).reshape(psi.shape[1], x.shape[0], -1)
            return psi @ self.solution, half, None
        cross = _kernel(self.field, self.x, x, self.basis, basis)
        half = solve_lower(self.factor, cross).reshape(cross.shape[0], -1, x.shape[0])
        mean = _points_first(cross.T @ self.solution, x.shape[0])
        return mean, jnp.swapaxes(half, 1, 2), self.field.variance_along(x, basis)

    def joint(self, x: Float[Array, "L D"], basis: Basis) -> tuple[Float[Array, "n r"], Float[Array, "n n"]]:
        """Return mean and covariance over all points, n = L p; the r copies share it."""
        mean, half, _ = self._parts(x, basis)
        flat = half.reshape(half.shape[0], -1)
        if self.by_features:
            return mean, self.noise * flat.T @ flat
        return mean, as_matrix(self.field.gram(x, x, basis, basis)) - flat.T @ flat


def _design(field: Field, x: Float[Array, "N D"], basis: Basis) -> Float[Array, "n m"]:
    design = field.design(x, basis)
    return design.reshape(-1, design.shape[-1])


def _kernel(
    field: Field, x: Float[Array, "N D"], y: Float[Array, "L D"], basis_x: Basis, basis_y: Float[Array, "L P q"] | None
) -> Float[Array, "n l"]:
    """Return the covariance as a matrix, the first coordinates of all points first: rows of pairs stay together."""
    n, p, m, q = (gram := field.gram(x, y, basis_x, basis_y)).shape
    return jnp.transpose(gram, (1, 0, 3, 2)).reshape(p * n, q * m)


def _components_first(y: Float[Array, "N p r"]) -> Float[Array, "n r"]:
    return jnp.swapaxes(y, 0, 1).reshape(-1, y.shape[-1])


def _points_first(values: Float[Array, "n r"], num_points: int) -> Float[Array, "n r"]:
    return jnp.swapaxes(values.reshape(-1, num_points, values.shape[-1]), 0, 1).reshape(values.shape)


class ConditionedDraw(eqx.Module):
    """A function from a conditioned field: a prior draw plus a correction that makes it agree with the data."""

    posterior: Conditioned
    prior: FieldDraw
    solution: Float[Array, "k r"]

    def __call__(self, x: Float[Array, "L D"], basis: Basis) -> Float[Array, "L ..."]:
        """Evaluate it, given the basis in which the data were conditioned on."""
        posterior, field = self.posterior, self.posterior.field
        if posterior.by_features:
            correction = _design(field, x, basis) @ self.solution
        else:
            kernel = _kernel(field, x, posterior.x, basis, posterior.basis)
            correction = _points_first(kernel @ self.solution, x.shape[0])
        correction = correction.reshape(x.shape[0], -1)
        basis = field.basis(x) if basis is None else basis
        values = correction if basis is None else jnp.einsum("npq,nq->np", basis, correction)
        return self.prior(x) + values.reshape(x.shape[0], *field.value_shape())


def draw_conditioned(posterior: Conditioned, y: Float[Array, "N p r"], *, key: PRNGKeyArray) -> ConditionedDraw:
    """Draw a function from a conditioned field, given the observed coordinates once more."""
    key_prior, key_noise = jax.random.split(key)
    field, flat = posterior.field, y.reshape(-1, posterior.solution.shape[1])
    prior = field.sample(key=key_prior)
    drawn = prior(posterior.x)
    if posterior.basis is None:
        drawn = field.coordinates(posterior.x, drawn).reshape(flat.shape)
    else:
        drawn = jnp.einsum("npq,np->nq", posterior.basis, drawn).reshape(flat.shape)
    noise = jnp.sqrt(posterior.noise) * standard_normal(key_noise, drawn.shape, drawn.dtype)
    residual = flat - drawn - noise
    if posterior.by_features:
        residual = _design(field, posterior.x, posterior.basis).T @ residual
    else:
        residual = _components_first(residual.reshape(y.shape))
    return ConditionedDraw(posterior, prior, cho_solve((posterior.factor, True), residual))
