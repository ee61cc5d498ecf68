"""From finished trials to the next point: fits, posteriors and searches, all functions of data, seed and memory."""

from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.bayesopt._acquisition import Feasibility
from rdgp.bayesopt._mixture import Mixture, condition
from rdgp.bayesopt._options import AcquisitionName, Options
from rdgp.bayesopt._region import Region
from rdgp.bayesopt._scaling import Scaling
from rdgp.bayesopt._search import candidates_of, log_acquisition, search, search_draw
from rdgp.bayesopt._surrogates import (
    deep_model,
    fit_deep,
    fit_shallow,
    local_model,
    on_top_of,
    parameters_of,
    shallow_model,
    shallow_starts,
)
from rdgp.bayesopt._trial import SMALLEST, Padded, TrialData, bucket, filled
from rdgp.core import compiled
from rdgp.fields import TangentBundle, TangentFrame
from rdgp.inference import with_vector
from rdgp.likelihoods import log_normal
from rdgp.models import DeepGP
from rdgp.optimize import Minima
from rdgp.spaces import Space

_NEAR, _NEAR_IF_NOISY = 6, 48  # points that the surrogate of a trust region sees: per dimension, and in all
_NOISY, _NOISY_NEAR = 0.01, 0.3  # variance of noise that matters, over that of all values and of those in a region
_FEW_FAILURES = 3  # before the probability of failure steers the search
_NOISY_DRAWS = 16
_FAR_CANDIDATES = 1024
_LOCAL_SIZES = (256, 256, 16, 20)
_REFIT = 32  # share of new observations that call for another fit of the global surrogate
_HELD_OUT = 5  # every so many observations are held out when deep and shallow are compared

_condition = eqx.filter_jit(condition)


class Fit(NamedTuple):
    """A fitted surrogate, the scaling of its values and the padded data it is to be conditioned on."""

    model: DeepGP
    scaling: Scaling
    padded: Padded


class Memory:
    """Where fits start: parameters of earlier fits, by name, and how many observations they have seen."""

    def __init__(self, content: dict[str, Any] | None = None) -> None:
        self.content: dict[str, Any] = {} if content is None else content

    def copy(self) -> "Memory":
        """Return a memory of the same fits that goes its own way."""
        return Memory(dict(self.content))

    def start(self, name: str, size: int) -> Float[Array, "P"] | None:
        """Return the parameters of the last fit, if there is one of the right size."""
        held = self.content.get(name)
        return jnp.asarray(held["parameters"], float) if held and len(held["parameters"]) == size else None

    def is_of(self, name: str, count: int) -> bool:
        """Tell whether the last fit saw just so many observations."""
        return bool(name in self.content and self.content[name]["observations"] == count)

    def is_recent(self, name: str, count: int) -> bool:
        """Tell whether the last fit saw nearly so many observations: few more do not change it."""
        return bool(name in self.content and 0 <= count - self.content[name]["observations"] <= count // _REFIT)

    def keep(self, name: str, parameters: Float[Array, "P"], count: int) -> None:
        """Remember a fit."""
        self.content[name] = {"observations": count, "parameters": np.asarray(parameters, float).tolist()}


class Engine:
    """A way to choose points on a space; it holds no data."""

    def __init__(self, space: Space, options: Options, acquisition: AcquisitionName, sign: float) -> None:
        self.space, self.options, self.acquisition, self.sign = space, options, acquisition, sign
        self.shallow = shallow_model(space, options)
        self.cube, self.local = local_model(space.dim, options)
        self.starts = {"shallow": shallow_starts(self.shallow), "local": shallow_starts(self.local)}
        self.deep: DeepGP | None = None
        self.sizes = (options.random, options.around, options.restarts, options.evaluations)

    def scaling(self, observations: TrialData) -> Scaling:
        """Choose how values are scaled."""
        options = self.options
        return Scaling.of(observations.y, self.sign, standardize=options.standardize, log_warp=options.log_warp)

    def fit(
        self, observations: TrialData, memory: Memory, key: PRNGKeyArray, *, deep: bool, whole: bool = False
    ) -> Fit:
        """Fit a surrogate to thinned data, to be conditioned on them or, for predictions, on the `whole`."""
        thinned = observations.thinned(self.sign)
        scaling = self.scaling(thinned)
        padded = thinned.padded(scaling)
        model = self._fitted("shallow", padded, memory, len(observations.y))
        if deep:
            model = self._deepened(model, padded, key)
        return Fit(model, scaling, observations.padded(scaling) if whole else padded)

    def _fitted(
        self, name: Literal["shallow", "local"], padded: Padded, memory: Memory, count: int, *, afresh: bool = False
    ) -> DeepGP:
        """Fit a shallow surrogate, from its last parameters among others, unless those are of nearly the same data."""
        model, starts = self.shallow if name == "shallow" else self.local, self.starts[name]
        last = memory.start(name, starts.shape[1])
        if last is not None and memory.is_recent(name, count) and not afresh:
            return with_vector(model, last)
        first = starts[0] if last is None else last
        found = fit_shallow(model, padded.data, jnp.concatenate([starts, first[None]]))
        if count >= 0:
            memory.keep(name, found, count)
        return with_vector(model, found)

    def _deepened(self, shallow: DeepGP, padded: Padded, key: PRNGKeyArray) -> DeepGP:
        if self.deep is None:
            self.deep = deep_model(self.space, self.options)
        return fit_deep(on_top_of(self.deep, shallow), padded.data, key, self.options.steps)

    def mixture(self, fit: Fit, key: PRNGKeyArray) -> Mixture:
        """Condition a fitted surrogate, for the acquisition in use."""
        noisy = self.acquisition == "noisy_logei"
        paths = self.options.paths if fit.model.order else 1
        return _condition(fit.model, fit.padded, key, paths, (1 if fit.model.order else _NOISY_DRAWS) * noisy)

    def feasibility(self, observations: TrialData) -> Feasibility:
        """Return the feasibility model, which calls everything feasible until there are a few failures."""
        x = np.concatenate([observations.x, observations.failed])
        count, total, size = len(observations.x), len(x), bucket(len(x))
        index = np.arange(size)
        enough = len(observations.failed) >= _FEW_FAILURES
        bandwidth = float(np.clip(total ** (-1.0 / self.space.dim), 0.05, 0.5))
        succeeded, failed = (index < count) & enough, (index >= count) & (index < total) & enough
        return Feasibility(filled(x, size), jnp.asarray(succeeded), jnp.asarray(failed), jnp.asarray(bandwidth))

    def propose(
        self, fit: Fit, observations: TrialData, best: Float[np.ndarray, "D"], key: PRNGKeyArray
    ) -> Float[np.ndarray, "R D"]:
        """Return candidates for the next point anywhere on the space, the best first."""
        feasibility = self.feasibility(observations)
        candidates = candidates_of(self.space, best, key, self.sizes)
        if self.acquisition == "thompson":
            model = fit.model.with_data(fit.padded.data)
            found = search_draw(self.space, model, feasibility, candidates, key, self.sizes)
        else:
            plain = jnp.asarray(self.acquisition == "ei")
            found = search(self.space, plain, self.mixture(fit, key), feasibility, candidates, self.sizes)
        return _sorted(found)

    def propose_near(
        self, observations: TrialData, memory: Memory, region: Region, key: PRNGKeyArray
    ) -> tuple[Float[np.ndarray, "R D"], float]:
        """Return candidates from the trust region around an observation, the best first, and how promising it is.

        Coordinates are turned along the basin in which the better points nearby lie: its direction has a lengthscale
        of its own. Promise is the log of the expected improvement on the best of all values, over their spread.
        """
        y, center, radius = observations.y, region.best, region.radius
        here = jnp.asarray(observations.x[center], float)
        every = np.concatenate([observations.x, observations.pending])
        stacked = filled(every, bucket(len(every)))
        flat = np.asarray(_flatten(self.space, here, stacked), float)[: len(every)] / radius
        count = self.neighbors(observations, memory)
        near = np.argsort(np.linalg.norm(flat[: len(y)], axis=1), kind="stable")[:count]
        basin = flat[near[np.argsort(self.sign * y[near], kind="stable")[: count // 2]]]
        axes = np.linalg.eigh(basin.T @ basin)[1]
        pending = flat[len(y) :] @ axes
        closest = np.argsort(np.linalg.norm(pending, axis=1), kind="stable")[: SMALLEST - count]
        seen = (flat[near] @ axes, y[near], observations.noise[near])
        there = TrialData(*seen, pending[closest], flat[:0], observations.local[near])
        scaling = self.scaling(there)
        padded = there.padded(scaling)
        mixture = self._near(padded, memory, len(y), key)
        best = int(np.argmin(self.sign * y))
        if center != best:
            goal = jnp.asarray(scaling.forward(y[best : best + 1]), float)
            mixture = eqx.tree_at(lambda m: m.best, mixture, jnp.minimum(mixture.best, goal))
        nothing = jnp.zeros(padded.data.num_points, bool)
        feasibility = Feasibility(padded.data.x, nothing, nothing, jnp.ones(()))
        candidates = candidates_of(self.cube, np.zeros(self.space.dim), key, _LOCAL_SIZES)
        found = search(self.cube, jnp.asarray(False), mixture, feasibility, candidates, _LOCAL_SIZES)
        points = _unflatten(self.space, here, jnp.asarray(radius * _sorted(found) @ axes.T, float))
        spread = self.scaling(observations).scale
        return np.asarray(points, float), float(np.log(scaling.scale / spread) - np.min(np.asarray(found.values)))

    def is_noisy(self, observations: TrialData, memory: Memory) -> bool:
        """Tell whether noise matters: as told, or as the last fits of the global or of a local surrogate found it."""
        told = float(np.mean(observations.noise)) / self.scaling(observations).scale ** 2
        everywhere = _noise_of("shallow", self.shallow, memory)
        return told + everywhere > _NOISY or _noise_of("local", self.local, memory) > _NOISY_NEAR

    def neighbors(self, observations: TrialData, memory: Memory) -> int:
        """Return how many points the surrogate of a trust region sees: few show the shape, many average noise."""
        noisy = self.is_noisy(observations, memory)
        return _NEAR_IF_NOISY if noisy else min(_NEAR * self.space.dim, _NEAR_IF_NOISY)

    def _near(self, padded: Padded, memory: Memory, count: int, key: PRNGKeyArray) -> Mixture:
        """Fit the surrogate of a trust region and condition it."""
        return _condition(self._fitted("local", padded, memory, count, afresh=True), padded, key, 1, 0)

    def propose_far(self, observations: TrialData, key: PRNGKeyArray) -> Float[np.ndarray, "R D"]:
        """Return candidates far from everything that was tried, the farthest first."""
        tried = np.concatenate([observations.x, observations.pending, observations.failed])
        candidates = self.space.random(_FAR_CANDIDATES, key=key)
        distance = np.asarray(compiled(_nearest_distance, self.space, candidates, filled(tried, bucket(len(tried)))))
        return np.asarray(candidates, float)[np.argsort(-distance, kind="stable")]

    def prefers_deep(self, observations: TrialData, memory: Memory, key: PRNGKeyArray) -> bool:
        """Tell whether the deep surrogate predicts held-out observations better than the shallow one."""
        observations = observations.thinned(self.sign)
        size = bucket(len(observations.y) + len(observations.pending))
        whole = observations._replace(pending=observations.pending[:0]).padded(self.scaling(observations), size)
        held = whole.observed & jnp.asarray(np.arange(size) % _HELD_OUT == _HELD_OUT - 1)
        training = whole.without(held)
        shallow = self._fitted("shallow", training, memory.copy(), -1)
        deep = self._deepened(shallow, training, key)
        scores = [
            float(_held_out(model, training, held, key, paths))
            for model, paths in ((shallow, 1), (deep, self.options.paths))
        ]
        return scores[1] > scores[0]


def _sorted(found: Minima) -> Float[np.ndarray, "R D"]:
    """Return the ends of searches, the best first."""
    return np.asarray(found.points, float)[np.argsort(np.asarray(found.values), kind="stable")]


def _noise_of(name: str, model: DeepGP, memory: Memory) -> float:
    """Return the variance of the noise that the last fit of a surrogate found."""
    parameters = memory.start(name, parameters_of(model).size)
    return 0.0 if parameters is None else float(with_vector(model, parameters).noise_variance)


def _nearest_distance(space: Space, x: Float[Array, "R D"], tried: Float[Array, "N D"]) -> Float[Array, "R"]:
    each = jax.vmap(lambda point: jnp.min(space.distance(jnp.broadcast_to(point, tried.shape), tried)))
    return each(x)


def _frame(space: Space, center: Float[Array, "D"]) -> TangentFrame:
    return TangentBundle(space).frame(center[None])


@eqx.filter_jit
def _flatten(space: Space, center: Float[Array, "D"], x: Float[Array, "N D"]) -> Float[Array, "N d"]:
    """Return the coordinates of points in the tangent space of a center."""
    v = space.log(jnp.broadcast_to(center, x.shape), x)
    return _frame(space, center).coordinates(v[:, None])[:, 0]


@eqx.filter_jit
def _unflatten(space: Space, center: Float[Array, "D"], flat: Float[Array, "N d"]) -> Float[Array, "N D"]:
    """Return the points of coordinates in the tangent space of a center."""
    v = _frame(space, center).values(flat[:, None])[:, 0]
    return space.exp(jnp.broadcast_to(center, v.shape), v)


@eqx.filter_jit
def _held_out(model: DeepGP, training: Padded, held: Array, key: PRNGKeyArray, paths: int) -> Float[Array, ""]:
    """Return the log density of held-out observations, point by point."""
    data = training.data
    mean, variance = condition(model, training, key, paths, 0).moments(data.x)
    total = variance + model.noise_variance + (0.0 if data.noise is None else data.noise)
    members = log_normal(data.y, mean[..., None], total[..., None, None])
    return jnp.sum(jnp.where(held, logsumexp(members, axis=0) - jnp.log(members.shape[0]), 0.0))


@eqx.filter_jit
def acquisition_at(
    space: Space, mixture: Mixture, feasibility: Feasibility, x: Float[Array, "R D"]
) -> Float[Array, "R"]:
    """Return the log of expected improvement, and of success, at points."""
    return log_acquisition(x, space, mixture, feasibility)
