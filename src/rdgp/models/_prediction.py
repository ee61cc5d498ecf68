"""The predictive distribution at points: a mixture of Gaussians in coordinates."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jax.scipy.special import logsumexp, ndtr
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import Numbers, as_float_array, check_finite, compiled, register, standard_normal
from rdgp.fields import Frame, check_points
from rdgp.likelihoods import Likelihood, WrappedGaussian, log_normal
from rdgp.spaces import Space


@register("rdgp:Prediction")
class Prediction(eqx.Module):
    """A mixture, over S equally likely members, of Gaussians at each of N points.

    Numbers are kept in q coordinates; `frame` turns them into values, so densities of tangent vectors are taken in the
    tangent space. Values are [N] for scalars, [N, P] for several outputs, [N, D] for tangent vectors. Moments and
    quantiles are those of the latent f; `observed` is the predictive distribution of y.
    """

    means: Float[Array, "S N q"]
    covariances: Float[Array, "S N q q"]
    likelihood: Likelihood | None
    frame: Frame

    @property
    def observed(self) -> "Prediction":
        """The predictive distribution of y: with Gaussian noise the members with it added, else by their moments."""
        if self.likelihood is None:
            return self
        means, covariances = compiled(
            type(self.likelihood).observed_moments, self.likelihood, self.means, self.covariances
        )
        return Prediction(means, covariances, None, self.frame)

    @property
    def mean(self) -> Float[Array, "N ..."]:
        """Mean of the mixture."""
        return compiled(Prediction._mean, self)

    def _mean(self) -> Float[Array, "N ..."]:
        return self.frame.values(jnp.mean(self.means, axis=0))

    @property
    def covariance(self) -> Float[Array, "N ..."]:
        """Covariance at each point, by the law of total variance: [N] for scalars, else [N, P, P]."""
        return compiled(Prediction._covariance, self)

    def _covariance(self) -> Float[Array, "N ..."]:
        centred = self.means - jnp.mean(self.means, axis=0)
        spread = jnp.einsum("snp,snq->npq", centred, centred) / self.means.shape[0]
        return self.frame.covariance(jnp.mean(self.covariances, axis=0) + spread)

    @property
    def variance(self) -> Float[Array, "N ..."]:
        """Variance of each component of the values."""
        return jnp.diagonal(self.covariance, axis1=-2, axis2=-1) if self.frame.value_shape else self.covariance

    def log_prob(self, y: Numbers) -> Float[Array, "N"]:
        """Return the log density of observations y at their points (of the distribution with noise)."""
        y = as_float_array(y, "y")
        if y.shape != self.mean.shape:
            raise ValueError(f"y must have shape {self.mean.shape} like the mean, got {y.shape}")
        check_finite(y, "y")
        return compiled(Prediction._log_prob, self, y.astype(self.means.dtype))

    def _log_prob(self, y: Float[Array, "N ..."]) -> Float[Array, "N"]:
        density = log_normal if self.likelihood is None else self.likelihood.log_predictive
        members = density(self.frame.coordinates(y), self.means, self.covariances)
        return logsumexp(members, axis=0) - jnp.log(members.shape[0])

    def quantile(self, p: float) -> Float[Array, "N ..."]:
        """Return the p-quantile of each component of the values, by bisection on the mixture's distribution."""
        if not 0.0 < p < 1.0:
            raise ValueError(f"p must lie between 0 and 1, got {p}")
        return compiled(Prediction._quantile, self, jnp.asarray(p, self.means.dtype))

    def _quantile(self, p: Float[Array, ""]) -> Float[Array, "N ..."]:
        means, stds = self._marginals()
        low = jnp.min(means - 40.0 * stds, axis=0)
        high = jnp.max(means + 40.0 * stds, axis=0)

        def halve(_: object, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = bounds
            middle = (low + high) / 2.0
            below = jnp.mean(ndtr((middle - means) / stds), axis=0) < p
            return jnp.where(below, middle, low), jnp.where(below, high, middle)

        low, high = jax.lax.fori_loop(0, 60, halve, (low, high))
        return (low + high) / 2.0

    def sample(self, *, key: PRNGKeyArray, n: int = 1) -> Float[Array, "n N ..."]:
        """Draw n values at every point, independently from point to point."""
        return compiled(Prediction._sample, self, key, n)

    def _sample(self, key: PRNGKeyArray, n: int) -> Float[Array, "n N ..."]:
        key_member, key_normal = jax.random.split(key)
        num_members, num_points, size = self.means.shape
        member = jax.random.randint(key_member, (n, num_points), 0, num_members)
        where = jnp.arange(num_points)
        normal = standard_normal(key_normal, (n, num_points, size), self.means.dtype)
        root = _square_root(self.covariances)[member, where]
        return self.frame.values(self.means[member, where] + jnp.einsum("knpq,knq->knp", root, normal))

    def _marginals(self) -> tuple[Float[Array, "S N ..."], Float[Array, "S N ..."]]:
        """Return mean and standard deviation of each component of the values, member by member."""
        variances = self.frame.variances(self.covariances)
        tiny = jnp.finfo(variances.dtype).tiny
        return self.frame.values(self.means), jnp.sqrt(jnp.maximum(variances, tiny))


def _square_root(covariances: Float[Array, "*s q q"]) -> Float[Array, "*s q q"]:
    """Return A with A Aᵀ the covariance; singular ones are welcome."""
    values, vectors = jnp.linalg.eigh(covariances)
    return vectors * jnp.sqrt(jnp.maximum(values, 0.0))[..., None, :]


@register("rdgp:PointPrediction")
class PointPrediction(eqx.Module):
    """The predictive distribution of a manifold-valued model at each of N points: S equally likely points."""

    space: Space
    points: Float[Array, "S N D"]
    likelihood: WrappedGaussian

    @property
    def mean(self) -> Float[Array, "N D"]:
        """Fréchet mean of the points, by repeated averaging in the tangent space."""
        return compiled(PointPrediction._mean, self)

    def _mean(self) -> Float[Array, "N D"]:
        def improve(_: object, center: Float[Array, "N D"]) -> Float[Array, "N D"]:
            here = jnp.broadcast_to(center, self.points.shape)
            return self.space.exp(center, jnp.mean(self.space.log(here, self.points), axis=0))

        return jax.lax.fori_loop(0, 20, improve, self.points[0])

    @property
    def variance(self) -> Float[Array, "N"]:
        """Mean squared distance of the points to their mean."""
        return compiled(PointPrediction._variance, self)

    def _variance(self) -> Float[Array, "N"]:
        here = jnp.broadcast_to(self._mean(), self.points.shape)
        return jnp.mean(jnp.square(self.space.distance(here, self.points)), axis=0)

    def log_prob(self, y: Numbers) -> Float[Array, "N"]:
        """Return the log density of observed points."""
        y = check_points(self.space, y, "y")
        if y.shape != self.points.shape[1:]:
            raise ValueError(f"y must have shape {self.points.shape[1:]} like the mean, got {y.shape}")
        return compiled(PointPrediction._log_prob, self, y.astype(self.points.dtype))

    def _log_prob(self, y: Float[Array, "N D"]) -> Float[Array, "N"]:
        members = self.likelihood.log_density(y, self.points)
        return logsumexp(members, axis=0) - jnp.log(members.shape[0])

    def sample(self, *, key: PRNGKeyArray, n: int = 1) -> Float[Array, "n N D"]:
        """Draw n latent points at every input, independently from input to input."""
        return compiled(PointPrediction._sample, self, key, n)

    def _sample(self, key: PRNGKeyArray, n: int) -> Float[Array, "n N D"]:
        member = jax.random.randint(key, (n, self.points.shape[1]), 0, self.points.shape[0])
        return self.points[member, jnp.arange(self.points.shape[1])]
