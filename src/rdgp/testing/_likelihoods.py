"""The laws of likelihoods: densities, their expectations, moments and samples are one distribution."""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rdgp.core import compiled
from rdgp.likelihoods import Likelihood
from rdgp.testing._laws import Laws, Sides, hold, hold_mean, hold_true, key_of, precision, refuses

_ROWS, _COORDINATES = 6, 2
_NODES = 20_001  # of trapezoid rules over latent values, ten standard deviations to either side
_GRID = 16_001  # real observations that are integrated over
_COUNTS = 1000  # whole numbers that are summed over
_SAMPLES = 30_000
_EXPECTATIONS = 1e-6  # what rules of quadrature reach in double precision; they lose little in single
_LAWS = Laws()


class Places(NamedTuple):
    """Observations, and means and covariances of the latent values at some points."""

    y: Float[Array, "N q"]
    mean: Float[Array, "N q"]
    covariance: Float[Array, "N q q"]


def check_likelihood(likelihood: Likelihood, *, seed: int = 0) -> None:
    """Run all laws of a likelihood on it; raise an AssertionError that names the law that is broken.

    Observations are real numbers, positive ones or whole ones, as its support says. Expectations are held to trapezoid
    rules in its `log_density`, samples to six standard errors. `seed` chooses the observations.

    >>> from rdgp.likelihoods import Gaussian
    >>> check_likelihood(Gaussian(0.3))
    """
    owner = repr(likelihood)
    at = _places(likelihood, seed)
    _check_distribution(owner, likelihood, at, seed)
    if likelihood.conjugate:
        _check_known_noise(owner, likelihood, at, seed)
    else:
        refuses(owner, "only Gaussian noise has a variance", lambda: likelihood.noise_variance)
        refuses(owner, "only Gaussian noise may be known", lambda: likelihood.given(jnp.ones(_ROWS)))
    if not likelihood.by_trace:
        call = likelihood.expected_log_density_by_trace
        refuses(owner, "not by_trace, so no expectation by it", lambda: call(at.y, at.mean, at.mean[:, 0]))


def _check_distribution(owner: str, likelihood: Likelihood, at: Places, seed: int) -> None:
    """Hold a likelihood of some observations to its laws."""
    _check_normalized(owner, likelihood, at)
    _check_expectations(owner, likelihood, at)
    _check_samples(owner, likelihood, at, seed)
    _LAWS.hold(owner, likelihood, at)


def _places(likelihood: Likelihood, seed: int) -> Places:
    """Draw possible observations, not typical ones."""
    rng = np.random.default_rng(seed)
    mean = np.clip(0.7 * rng.normal(size=(_ROWS, _COORDINATES)), -2.0, 2.0)
    sizes = np.exp(rng.uniform(-3.5, 0.0, (_ROWS, 1, 1)))
    root = sizes * rng.normal(size=(_ROWS, _COORDINATES, _COORDINATES))
    covariance = root @ np.swapaxes(root, -1, -2)
    y = np.asarray(mean + rng.normal(size=mean.shape))
    y = np.where(likelihood.support.contains(y), y, np.abs(y))
    y = np.where(likelihood.support.contains(y), y, np.round(y))
    y = np.where(likelihood.support.contains(y), y, 1.0)
    return Places(*(jnp.asarray(numbers, precision()) for numbers in (y, mean, covariance)))


def _observations(likelihood: Likelihood) -> tuple[Float[np.ndarray, "n"], Float[np.ndarray, "n"]]:
    """Return observations and weights with which densities sum up to one."""
    inside = likelihood.support.contains
    if not np.all(inside(np.array([0.37, 1.73]))):
        whole = np.arange(-_COUNTS, _COUNTS + 1.0)
        return whole[inside(whole)], np.ones(int(np.sum(inside(whole))))
    u, step = np.linspace(-12.0, 12.0, _GRID, retstep=True)  # sinh and exp reach far into the tails
    if np.all(inside(np.array([-0.37, -1.73]))):
        return np.sinh(u), step * np.cosh(u)
    return np.exp(u), step * np.exp(u)


def _integrate(
    likelihood: Likelihood, at: Places, log_density: Callable[[Array, Array], Array]
) -> tuple[Float[np.ndarray, "3 N q"], Float[np.ndarray, "N q"]]:
    """Return the integrals of p(y), y p(y) and y² p(y), and the size of what cancels in a variance."""
    y, weights = _observations(likelihood)
    y = y.reshape(-1, 1, 1).astype(precision()).astype(float)
    shape = (len(y), _ROWS, _COORDINATES)
    logs = compiled(log_density, jnp.broadcast_to(jnp.asarray(y, precision()), shape), at.mean)
    density = weights[:, None, None] * np.exp(np.asarray(logs, float))
    powers = np.stack([np.sum(y**power * density, axis=0) for power in (0, 1, 2)])
    return powers, np.sum(np.square(y) * density, axis=0)


def _check_normalized(owner: str, likelihood: Likelihood, at: Places) -> None:
    """Hold densities to integrals of one, conditional moments to theirs, and predictive densities likewise."""
    powers, size = _integrate(likelihood, at, likelihood.log_density)
    hold(owner, "log_density normalizes", _narrow(powers[0]), 1.0, rounding=_rounding(1e-5))
    mean, variance = (np.asarray(moment, float) for moment in compiled(_conditional_moments, likelihood, at.mean))
    if np.all(np.isfinite(variance)):
        hold(owner, "conditional_moments has the mean", _narrow(mean), powers[1], rounding=_rounding(1e-5))
        law, scale = "conditional_moments has the variance", np.maximum(size, 1.0)
        hold(owner, law, _narrow(variance / scale), (powers[2] - powers[1] ** 2) / scale, rounding=_rounding(1e-4))
    largest = float(jnp.max(at.covariance))  # counts of a wide latent distribution would have to be summed far
    narrow = at._replace(covariance=at.covariance / max(largest, 1.0))
    predictive, _ = _integrate(likelihood, narrow, _log_predictive_of(likelihood, narrow))
    hold(owner, "log_predictive normalizes", _narrow(predictive[0]), 1.0, rounding=_rounding(1e-5))


def _conditional_moments(likelihood: Likelihood, f: Array) -> tuple[Array, Array]:
    return likelihood.conditional_moments(f)


def _log_predictive_of(likelihood: Likelihood, at: Places) -> Callable[[Array, Array], Array]:
    """Return the predictive density of each coordinate, from that of an observation with equal coordinates."""

    def log_density(y: Array, mean: Array) -> Array:
        return jnp.stack([_of_coordinate(likelihood.log_predictive, y, at, i) for i in range(_COORDINATES)], axis=-1)

    return log_density


def _of_coordinate(expectation: Callable[[Array, Array, Array], Array], y: Array, at: Places, i: int) -> Array:
    """Return the part of one coordinate: half of that of two independent ones that are both like it."""

    def one(row: Array) -> Array:
        mean = jnp.repeat(at.mean[:, i : i + 1], _COORDINATES, axis=1)
        covariance = at.covariance[:, i, i][:, None, None] * jnp.eye(_COORDINATES, dtype=mean.dtype)
        return expectation(jnp.repeat(row[:, i : i + 1], _COORDINATES, axis=1), mean, covariance) / _COORDINATES

    return jax.vmap(one)(y)


def _check_expectations(owner: str, likelihood: Likelihood, at: Places) -> None:
    """Hold expectations under f ~ N(mean, covariance) to integrals over f, coordinate by coordinate."""
    std = np.sqrt(np.diagonal(np.asarray(at.covariance, float), axis1=-2, axis2=-1))
    z = np.linspace(-10.0, 10.0, _NODES)
    weights = np.exp(-0.5 * z**2) / np.sum(np.exp(-0.5 * z**2))
    f = np.asarray(at.mean, float) + std * z[:, None, None]
    logs = np.asarray(compiled(likelihood.log_density, at.y, jnp.asarray(f, precision())), float)
    expected = np.tensordot(weights, logs, 1)
    predictive = np.log(np.tensordot(weights, np.exp(logs), 1))
    found = [
        np.concatenate([compiled(_of_coordinate, call, at.y[None], at, i) for i in range(_COORDINATES)]).T
        for call in (likelihood.expected_log_density, likelihood.log_predictive)
    ]
    limit = _rounding(_EXPECTATIONS)
    hold(owner, "expected_log_density is the integral of log_density", found[0], expected, rounding=limit)
    hold(owner, "log_predictive is the log of the integral of the density", found[1], predictive, rounding=limit)
    still = compiled(_expectations, likelihood, at._replace(covariance=jnp.zeros_like(at.covariance)))
    density = np.sum(np.asarray(compiled(likelihood.log_density, at.y, at.mean), float), axis=-1)
    hold(owner, "expectations without spread are those at the mean", still, np.stack([density] * 2), rounding=limit)


@eqx.filter_jit
def _sampled(likelihood: Likelihood, f: Array, key: Array) -> Array:
    return likelihood.sample(f, key=key)


def _check_samples(owner: str, likelihood: Likelihood, at: Places, seed: int) -> None:
    """Hold moments to those of samples; a diagonal covariance says nothing of two coordinates together."""
    normal = np.random.default_rng(seed).normal(size=(_SAMPLES, _ROWS, _COORDINATES))
    jitter = 1e-6 * np.eye(_COORDINATES)
    root = np.linalg.cholesky(np.asarray(at.covariance, float) + jitter)
    f = jnp.asarray(np.asarray(at.mean, float) + np.einsum("npq,snq->snp", root, normal), precision())
    y = np.asarray(_sampled(likelihood, f, key_of(seed)))
    hold_true(owner, "samples keep the precision of the latent values", y.dtype == precision())
    hold_true(owner, "samples are possible observations", likelihood.support.contains(y))
    mean, covariance = (np.asarray(z, float) for z in compiled(_observed_moments, likelihood, at.mean, at.covariance))
    if not np.all(np.isfinite(covariance)):
        return
    hold_mean(owner, "observed_moments has the mean of samples", y, mean)
    products = np.einsum("snp,snq->snpq", y - mean, y - mean)
    if np.all(covariance == covariance * np.eye(_COORDINATES)):
        products = products * np.eye(_COORDINATES)
    hold_mean(owner, "observed_moments has the covariance of samples", products, covariance)


def _observed_moments(likelihood: Likelihood, mean: Array, covariance: Array) -> tuple[Array, Array]:
    return likelihood.observed_moments(mean, covariance)


@_LAWS.law("the expected log density is below the log predictive density")
def _(likelihood: Likelihood, at: Places) -> Sides:
    both = (call(at.y, at.mean, at.covariance) for call in (likelihood.expected_log_density, likelihood.log_predictive))
    expected, predictive = both
    return jnp.maximum(expected - predictive, 0.0), 0.0


@_LAWS.law("expectations take leading axes of the latent values")
def _(likelihood: Likelihood, at: Places) -> Sides:
    calls = likelihood.expected_log_density, likelihood.log_predictive
    found = [call(at.y, at.mean[None], at.covariance[None])[0] for call in calls]
    return jnp.stack(found), jnp.stack([call(at.y, at.mean, at.covariance) for call in calls])


@_LAWS.law("by_trace, the expected log density depends on the sum of the variances alone")
def _(likelihood: Likelihood, at: Places) -> Sides:
    if not likelihood.by_trace:
        return None
    trace = jnp.trace(at.covariance, axis1=-2, axis2=-1)
    found = likelihood.expected_log_density_by_trace(at.y, at.mean, trace)
    return found, likelihood.expected_log_density(at.y, at.mean, at.covariance)


@_LAWS.law("gradients are finite with and without spread", 0.0)
def _(likelihood: Likelihood, at: Places) -> Sides:
    def total(mean: Array, covariance: Array) -> Array:
        calls = likelihood.expected_log_density, likelihood.log_predictive
        return sum(jnp.sum(call(at.y, mean, covariance)) for call in calls)  # type: ignore[return-value]

    spreads = at.covariance, jnp.zeros_like(at.covariance)
    slopes = [jax.grad(total, (0, 1))(at.mean, spread) for spread in spreads]
    finite = jnp.concatenate([jnp.isfinite(leaf).ravel() for leaf in jax.tree.leaves(slopes)])
    return finite.astype(at.mean.dtype), jnp.ones(finite.shape)


def _check_known_noise(owner: str, likelihood: Likelihood, at: Places, seed: int) -> None:
    """Hold the likelihood of observations with known noise to the same laws, and to those that connect the two."""
    known = jnp.asarray(np.linspace(0.05, 0.6, _ROWS), precision())
    matrices = known[:, None, None] * jnp.eye(_COORDINATES, dtype=known.dtype)
    _check_distribution(f"{owner}.given(...)", likelihood.given(known), at, seed)
    own = compiled(_expectations, likelihood, at)
    law = "no known noise leaves the likelihood as it is"
    hold(owner, law, compiled(_expectations, likelihood.given(jnp.zeros_like(known)), at), own)
    of_variances = compiled(_expectations, likelihood.given(known), at)
    law = "known variances are known matrices"
    hold(owner, law, compiled(_expectations, likelihood.given(matrices), at), of_variances)
    angle = 0.7
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    uneven = np.asarray(matrices, float) * np.array([1.0, 3.0])
    law = "known noise turns with the coordinates"
    hold(
        owner,
        law,
        compiled(_expectations, likelihood.given(_as_here(turn @ uneven @ turn.T)), _turned(at, turn)),
        compiled(_expectations, likelihood.given(_as_here(uneven)), at),
        rounding=1e3,
    )
    total = compiled(_observed_moments, likelihood.given(known), at.mean, at.covariance)[1]
    expected = np.asarray(compiled(_observed_moments, likelihood, at.mean, at.covariance)[1]) + np.asarray(matrices)
    hold(owner, "known noise adds to the covariance", total, expected)


def _expectations(likelihood: Likelihood, at: Places) -> Float[Array, "2 N"]:
    calls = likelihood.expected_log_density, likelihood.log_predictive
    return jnp.stack([call(at.y, at.mean, at.covariance) for call in calls])


def _turned(at: Places, turn: Float[np.ndarray, "q q"]) -> Places:
    covariance = turn @ np.asarray(at.covariance) @ turn.T
    return Places(*map(_as_here, (at.y @ turn.T, at.mean @ turn.T, covariance)))


def _as_here(numbers: Array | np.ndarray) -> Array:
    return jnp.asarray(numbers, precision())


def _narrow(numbers: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
    return numbers.astype(precision())


def _rounding(error: float) -> float:
    """Return how many rounding errors an error is in double precision; single precision has no fewer than 10,000."""
    return error / float(jnp.finfo(jnp.float64).eps) if precision() == np.float64 else 1e4
