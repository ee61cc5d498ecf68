"""A surrogate given padded data: a mixture of Gaussians over draws of the hidden layers."""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import cho_solve
from jaxtyping import Array, Bool, Float, Key, PRNGKeyArray

from rdgp.core import jittered_cholesky, solve_lower, standard_normal
from rdgp.fields import ScalarField
from rdgp.models import DeepGP

SMALLEST = 64  # points of the smallest bucket; the next ones are twice as large


class Observed(NamedTuple):
    """Points, scaled values and known noise, padded to a bucket; pending points have no value yet."""

    x: Float[Array, "N D"]
    y: Float[Array, "N"]
    noise: Float[Array, "N"]
    seen: Bool[Array, "N"]
    pending: Bool[Array, "N"]


def bucket(count: int) -> int:
    """Return the size to which so many points are padded."""
    size = SMALLEST
    while size < count:
        size *= 2
    return size


def filled(points: Float[np.ndarray, "n D"], size: int) -> Float[Array, "size D"]:
    """Append copies of the first point up to a size, so that data of many sizes share one compilation."""
    return jnp.asarray(np.concatenate([points, np.repeat(points[:1], size - len(points), axis=0)]), float)


def padded(
    x: Float[np.ndarray, "n D"],
    y: Float[np.ndarray, "n"],
    noise: Float[np.ndarray, "n"],
    pending: Float[np.ndarray, "m D"],
    size: int | None = None,
) -> Observed:
    """Fill up to a bucket with copies of the first point, which are marked as neither seen nor pending."""
    count, total = len(x), len(x) + len(pending)
    size = bucket(total) if size is None else size
    index = np.arange(size)
    fill = np.zeros(size - count)
    return Observed(
        filled(np.concatenate([x, pending]), size),
        jnp.asarray(np.concatenate([y, fill]), float),
        jnp.asarray(np.concatenate([noise, fill]), float),
        jnp.asarray(index < count),
        jnp.asarray((index >= count) & (index < total)),
    )


def output_field(model: DeepGP) -> ScalarField:
    """Return the output field of a surrogate."""
    field = model.integrated_field
    if not isinstance(field, ScalarField):
        raise ValueError(f"a surrogate has a scalar output, got {type(field).__name__}")
    return field


def masked_kernel(
    model: DeepGP, x: Float[Array, "N D"], noise: Float[Array, "N"], mask: Bool[Array, "N"]
) -> Float[Array, "N N"]:
    """Return the covariance of observations at x; those outside of the mask are unit noise of their own."""
    kernel = output_field(model).prior.covariance(x, x)
    total = noise + model.noise_variance.astype(x.dtype)
    both = mask[:, None] & mask[None, :]
    return jnp.where(both, kernel, 0.0) + jnp.diag(jnp.where(mask, total, 1.0))


class Posterior(eqx.Module):
    """P draws of the hidden layers, and for each of them A functions through the data (one unless noise is drawn)."""

    model: DeepGP
    keys: Key[Array, "P"]
    points: Float[Array, "P N D"]
    inverse: Float[Array, "P N N"]  # of the factor
    solution: Float[Array, "P A N"]
    best: Float[Array, "P A"]

    def moments(self, x: Float[Array, "R D"]) -> tuple[Float[Array, "P A R"], Float[Array, "P R"]]:
        """Return means and variances of all members at points."""
        field, offset = output_field(self.model), self.model.offset(x.dtype)

        def member(
            key: PRNGKeyArray, points: Float[Array, "N D"], inverse: Float[Array, "N N"], solution: Float[Array, "A N"]
        ) -> tuple[Float[Array, "A R"], Float[Array, "R"]]:
            there = self.model.lead(key, x).x
            cross = field.prior.covariance(points, there)
            prior = field.prior.covariance(x[:1], x[:1])[0, 0]
            variance = prior - jnp.sum(jnp.square(inverse @ cross), axis=0)
            floor = jnp.finfo(x.dtype).eps * prior
            return solution @ cross + offset, jnp.maximum(variance, floor)

        if self.points.shape[0] == 1:
            mean, variance = member(self.keys[0], self.points[0], self.inverse[0], self.solution[0])
            return mean[None], variance[None]
        return jax.vmap(member)(self.keys, self.points, self.inverse, self.solution)

    def mixture(self, x: Float[Array, "R D"]) -> tuple[Float[Array, "S R"], Float[Array, "S R"]]:
        """Return means and variances of all S = P A members, one axis for both."""
        mean, variance = self.moments(x)
        shape = (-1, x.shape[0])
        return mean.reshape(shape), jnp.broadcast_to(variance[:, None], mean.shape).reshape(shape)


def condition(model: DeepGP, data: Observed, key: PRNGKeyArray, paths: int, draws: int) -> Posterior:
    """Condition a surrogate on data; pending points count as observed at their mean.

    With `draws` the values at the data are drawn instead of observed with noise, so many times for each path.
    """
    keys = jax.random.split(key, paths)
    offset = model.offset(data.x.dtype)
    centered = jnp.where(data.seen, data.y - offset, 0.0)

    def member(key: PRNGKeyArray) -> tuple[Array, Array, Array, Array]:
        path = model.lead(key, data.x).x
        factor = jittered_cholesky(masked_kernel(model, path, data.noise, data.seen))
        solution = cho_solve((factor, True), centered)
        known = data.seen | data.pending
        inverse = _inverse_of(jittered_cholesky(masked_kernel(model, path, data.noise, known)), known)
        kernel = jnp.where(known[:, None] & known, output_field(model).prior.covariance(path, path), 0.0)
        mean = kernel @ solution
        if not draws:
            return path, inverse, solution[None], mean[None]
        return _drawn(key, path, kernel, factor, mean, data, draws)

    points, inverse, solution, values = jax.lax.map(member, keys)
    seen = data.seen[None, None]
    if not draws:
        values = jnp.mean(values, axis=0, keepdims=True)  # all members improve on one best, that of the mixture
    best = jnp.min(jnp.where(seen, values, jnp.inf), axis=-1) + offset
    best = jnp.broadcast_to(best, solution.shape[:2])
    return Posterior(model, keys, points, inverse, solution, best)


def _inverse_of(factor: Float[Array, "N N"], known: Bool[Array, "N"]) -> Float[Array, "N N"]:
    """Return the inverse of a factor, without the rows that explain padding."""
    inverse = solve_lower(factor, jnp.eye(factor.shape[0], dtype=factor.dtype))
    return jnp.where(known[:, None], inverse, 0.0)


def _drawn(
    key: PRNGKeyArray,
    path: Float[Array, "N D"],
    kernel: Float[Array, "N N"],
    factor: Float[Array, "N N"],
    mean: Float[Array, "N"],
    data: Observed,
    draws: int,
) -> tuple[Array, Array, Array, Array]:
    """Draw the values at the data and pending points from their posterior and condition on them without noise."""
    known = data.seen | data.pending
    half = solve_lower(factor, jnp.where(data.seen[:, None], kernel, 0.0))
    spread = kernel - half.T @ half
    size = path.shape[0]
    noise = 1e3 * jnp.finfo(path.dtype).eps * jnp.max(kernel)
    eye = jnp.eye(size, dtype=path.dtype)
    root = jnp.linalg.cholesky(spread + noise * eye)
    normal = standard_normal(jax.random.fold_in(key, 1), (size, draws), path.dtype)
    values = jnp.where(known[:, None], mean[:, None] + root @ normal, 0.0)
    exact = jnp.linalg.cholesky(kernel + jnp.diag(jnp.where(known, 10.0 * noise, 1.0)))
    return path, _inverse_of(exact, known), cho_solve((exact, True), values).T, values.T
