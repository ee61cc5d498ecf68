"""A surrogate given data: a mixture of Gaussians over draws of the hidden layers."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Key, PRNGKeyArray

from rdgp.bayesopt._trial import Padded
from rdgp.core import standard_normal
from rdgp.models import DeepGP
from rdgp.posteriors import Exact, Noise

_EXACT = 1e-8  # share of the variance that stands for the noise of drawn values, which have none


class Mixture(eqx.Module):
    """P draws of the hidden layers, and for each of them A functions through the data (one unless noise is drawn)."""

    model: DeepGP
    keys: Key[Array, "P"]
    posteriors: Exact  # one for each key, along the first axis of its arrays
    best: Float[Array, "P A"]

    def moments(self, x: Float[Array, "R D"]) -> tuple[Float[Array, "S R"], Float[Array, "S R"]]:
        """Return means and variances of all S = P A members at points."""

        def member(key: PRNGKeyArray, posterior: Exact) -> tuple[Float[Array, "A R"], Float[Array, "A R"]]:
            state = self.model.at(key, x)
            mean, covariance = posterior.coordinate_moments(state.x, state.frame)
            floor = jnp.finfo(x.dtype).eps * self.model.field.variance.astype(x.dtype)
            variance = jnp.maximum(covariance[:, 0, 0], floor)  # copies share it
            return mean.T + self.model.offset(x.dtype), jnp.broadcast_to(variance, mean.T.shape)

        if self.keys.shape[0] == 1:
            return member(self.keys[0], jax.tree.map(lambda leaf: leaf[0], self.posteriors))
        mean, variance = jax.vmap(member)(self.keys, self.posteriors)
        return mean.reshape(-1, x.shape[0]), variance.reshape(-1, x.shape[0])


def condition(model: DeepGP, padded: Padded, key: PRNGKeyArray, paths: int, draws: int) -> Mixture:
    """Condition a surrogate on data, for `paths` draws of its hidden layers; pending points are observed at their mean.

    With `draws` the values at the data are drawn instead of observed with noise, so many times for each path.
    """
    keys = jax.random.split(key, paths)

    def member(key: PRNGKeyArray) -> tuple[Exact, Float[Array, "N A"]]:
        state, data = model.at(key, padded.data.x), padded.data
        y, known = data.y - model.offset(data.y.dtype), padded.observed | padded.pending
        noise = Noise(model.noise_variance, data.noise, padded.observed)
        given = Exact(model.field, noise, state.x, state.frame, y)
        if draws:
            return _through_draws(given, known, jax.random.fold_in(key, 1), draws)
        mean, _ = given.coordinate_moments(state.x, state.frame)
        believed = jnp.where(padded.pending[:, None], mean, y)
        noise = Noise(model.noise_variance, data.noise, known)
        return Exact(model.field, noise, state.x, state.frame, believed), mean

    posteriors, values = jax.lax.map(member, keys)
    if not draws:
        values = jnp.mean(values, axis=0, keepdims=True)  # all members improve on one best, that of the mixture
    best = jnp.min(jnp.where(padded.observed[:, None], values, jnp.inf), axis=1) + model.offset(values.dtype)
    return Mixture(model, keys, posteriors, jnp.broadcast_to(best, (paths, values.shape[2])))


def _through_draws(
    given: Exact, known: Bool[Array, "N"], key: PRNGKeyArray, draws: int
) -> tuple[Exact, Float[Array, "N A"]]:
    """Draw the values at the data and pending points from their posterior and condition on them without noise."""
    mean, covariance = given.joint_moments(given.x, given.frame)
    size, variance = mean.size, given.field.variance.astype(mean.dtype)
    rounding = 1e3 * jnp.finfo(mean.dtype).eps * variance
    root = jnp.linalg.cholesky(covariance + rounding * jnp.eye(size, dtype=mean.dtype))
    values = mean[:, None] + root @ standard_normal(key, (size, draws), mean.dtype)
    noise = Noise(_EXACT * variance, None, known)
    return Exact(given.field, noise, given.x, given.frame, values), values
