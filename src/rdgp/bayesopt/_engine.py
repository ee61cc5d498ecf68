"""From finished trials to the next point: fits, posteriors and searches, all functions of data, seed and memory."""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from rdgp.bayesopt._models import (
    deep_model,
    fit_deep,
    fit_shallow,
    local_model,
    on_top_of,
    parameters_of,
    shallow_model,
    shallow_starts,
    with_parameters,
)
from rdgp.bayesopt._options import AcquisitionName, Options
from rdgp.bayesopt._posterior import SMALLEST, Observed, Posterior, bucket, condition, filled, padded
from rdgp.bayesopt._region import Region
from rdgp.bayesopt._scaling import Scaling
from rdgp.bayesopt._search import Votes, candidates_of, log_acquisition, search, search_draw
from rdgp.core import compiled
from rdgp.models import DeepGP
from rdgp.optimize import Minima
from rdgp.spaces import Space

_NEAR, _NEAR_IF_NOISY = 6, 48  # points that the surrogate of a region of trust sees: per dimension, and in all
_NOISY, _NOISY_NEAR = 0.01, 0.3  # variance of noise that matters, over that of all values and of those in a region
_FEW_FAILURES = 3  # before the probability of failure steers the search
_NOISY_DRAWS = 16
_FAR_CANDIDATES = 1024
_LOCAL_SIZES = (256, 256, 16, 20)
_PILE = 0.05  # points of the region of trust nearer than this to a better one are left out elsewhere
_REFIT = 32  # share of new observations that call for another fit of the global surrogate
_HELD_OUT = 5  # every so many observations are held out when deep and shallow are compared

_condition = eqx.filter_jit(condition)


class Data(NamedTuple):
    """What is known, in coordinates of the inner space; values as the user gave them."""

    x: Float[np.ndarray, "n D"]
    y: Float[np.ndarray, "n"]
    noise: Float[np.ndarray, "n"]
    pending: Float[np.ndarray, "m D"]
    failed: Float[np.ndarray, "k D"]
    local: Bool[np.ndarray, "n"]  # asked for in the region of trust

    def thinned(self, sign: float) -> "Data":
        """Leave out what the region of trust has piled up in one place, but for its best points.

        A kernel with one lengthscale that has to follow them would call the rest of the space unknown.
        """
        kept = list(np.flatnonzero(~self.local))
        for i in sorted(np.flatnonzero(self.local), key=lambda i: sign * self.y[i]):
            if not kept or np.min(np.sum(np.square(self.x[kept] - self.x[i]), axis=1)) > _PILE**2:
                kept.append(i)
        rows = np.sort(kept)
        return self._replace(x=self.x[rows], y=self.y[rows], noise=self.noise[rows], local=self.local[rows])


class Fit(NamedTuple):
    """A fitted surrogate, the scaling of its values and the padded data it is to be conditioned on."""

    model: DeepGP
    scaling: Scaling
    observed: Observed


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
        self.deep: DeepGP | None = None
        self.sizes = (options.random, options.around, options.restarts, options.evaluations)

    def scaling(self, data: Data) -> Scaling:
        """Choose how values are scaled."""
        return Scaling.of(data.y, self.sign, standardize=self.options.standardize, bend=self.options.bend)

    def observed(self, data: Data, scaling: Scaling, size: int | None = None) -> Observed:
        """Scale the values and pad the data."""
        noise = data.noise * np.square(scaling.slope(data.y))
        return padded(data.x, scaling.forward(data.y), noise, data.pending, size)

    def fit(self, data: Data, memory: Memory, key: PRNGKeyArray, *, deep: bool, whole: bool = False) -> Fit:
        """Fit a surrogate to thinned data, to be conditioned on them or, for predictions, on the `whole`."""
        thinned = data.thinned(self.sign)
        scaling = self.scaling(thinned)
        observed = self.observed(thinned, scaling)
        model = with_parameters(self.shallow, _fitted("shallow", self.shallow, observed, memory, len(data.y)))
        if deep:
            model = self._deepened(model, observed, key)
        return Fit(model, scaling, self.observed(data, scaling) if whole else observed)

    def _deepened(self, shallow: DeepGP, observed: Observed, key: PRNGKeyArray) -> DeepGP:
        if self.deep is None:
            self.deep = deep_model(self.space, self.options)
        start = on_top_of(self.deep, shallow)
        return fit_deep(start, observed, key, self.options.steps)

    def posterior(self, fit: Fit, key: PRNGKeyArray) -> Posterior:
        """Condition a fitted surrogate, for the acquisition in use."""
        noisy = self.acquisition == "noisy_logei"
        paths = self.options.paths if fit.model.hidden else 1
        return _condition(fit.model, fit.observed, key, paths, (1 if fit.model.hidden else _NOISY_DRAWS) * noisy)

    def votes(self, data: Data) -> Votes:
        """Return how evaluations ended and where; without votes until there are a few failures."""
        x = np.concatenate([data.x, data.failed])
        count, total, size = len(data.x), len(x), bucket(len(x))
        index = np.arange(size)
        voting = len(data.failed) >= _FEW_FAILURES
        reach = float(np.clip(total ** (-1.0 / self.space.dim), 0.05, 0.5))
        succeeded, failed = (index < count) & voting, (index >= count) & (index < total) & voting
        return Votes(filled(x, size), jnp.asarray(succeeded), jnp.asarray(failed), jnp.asarray(reach))

    def propose(
        self, fit: Fit, data: Data, best: Float[np.ndarray, "D"], key: PRNGKeyArray
    ) -> Float[np.ndarray, "R D"]:
        """Return candidates for the next point anywhere on the space, the best first."""
        posterior, votes = self.posterior(fit, key), self.votes(data)
        candidates = candidates_of(self.space, best, key, self.sizes)
        if self.acquisition == "thompson":
            found = search_draw(self.space, posterior, fit.observed, votes, candidates, key, self.sizes)
        else:
            plain = jnp.asarray(self.acquisition == "ei")
            found = search(self.space, plain, posterior, votes, candidates, self.sizes)
        return _sorted(found)

    def propose_near(
        self, data: Data, memory: Memory, region: Region, key: PRNGKeyArray
    ) -> tuple[Float[np.ndarray, "R D"], float]:
        """Return candidates from the region of trust around an observation, the best first, and how promising it is.

        Coordinates are turned along the valley in which the better points nearby lie: its direction has a lengthscale
        of its own. Promise is the log of the expected improvement on the best of all values, over their spread.
        """
        center, radius = region.best, region.radius
        here = jnp.asarray(data.x[center], float)
        every = np.concatenate([data.x, data.pending])
        stacked = filled(every, bucket(len(every)))
        flat = np.asarray(_flatten(self.space, here, stacked), float)[: len(every)] / radius
        count = self.neighbors(data, memory)
        near = np.argsort(np.linalg.norm(flat[: len(data.x)], axis=1), kind="stable")[:count]
        valley = flat[near[np.argsort(self.sign * data.y[near], kind="stable")[: count // 2]]]
        axes = np.linalg.eigh(valley.T @ valley)[1]
        seen, pending = flat[: len(data.x)] @ axes, flat[len(data.x) :] @ axes
        closest = np.argsort(np.linalg.norm(pending, axis=1), kind="stable")[: SMALLEST - count]
        there = Data(seen[near], data.y[near], data.noise[near], pending[closest], flat[:0], data.local[near])
        scaling = self.scaling(there)
        observed = self.observed(there, scaling)
        posterior = self._near(observed, memory, len(data.y), key)
        best = int(np.argmin(self.sign * data.y))
        if center != best:
            goal = jnp.asarray(scaling.forward(data.y[best : best + 1]), float)
            posterior = eqx.tree_at(lambda p: p.best, posterior, jnp.minimum(posterior.best, goal))
        nobody = jnp.zeros(observed.x.shape[0], bool)
        votes = Votes(observed.x, nobody, nobody, jnp.ones(()))
        candidates = candidates_of(self.cube, np.zeros(self.space.dim), key, _LOCAL_SIZES)
        found = search(self.cube, jnp.asarray(False), posterior, votes, candidates, _LOCAL_SIZES)
        points = _unflatten(self.space, here, jnp.asarray(radius * _sorted(found) @ axes.T, float))
        spread = self.scaling(data).scale
        return np.asarray(points, float), float(np.log(scaling.scale / spread) - np.min(np.asarray(found.values)))

    def is_noisy(self, data: Data, memory: Memory) -> bool:
        """Tell whether noise matters: as told, or as the last fits of the global or of a local surrogate found it."""
        told = float(np.mean(data.noise)) / self.scaling(data).scale ** 2
        everywhere = _noise_of("shallow", self.shallow, memory)
        return told + everywhere > _NOISY or _noise_of("local", self.local, memory) > _NOISY_NEAR

    def neighbors(self, data: Data, memory: Memory) -> int:
        """Return how many points the surrogate of a region of trust sees: few show the shape, many average noise."""
        return _NEAR_IF_NOISY if self.is_noisy(data, memory) else min(_NEAR * self.space.dim, _NEAR_IF_NOISY)

    def _near(self, observed: Observed, memory: Memory, count: int, key: PRNGKeyArray) -> Posterior:
        """Fit the surrogate of a region of trust and condition it."""
        parameters = _fitted("local", self.local, observed, memory, count, afresh=True)
        return _condition(with_parameters(self.local, parameters), observed, key, 1, 0)

    def propose_far(self, data: Data, key: PRNGKeyArray) -> Float[np.ndarray, "R D"]:
        """Return candidates far from everything that was tried, the farthest first."""
        tried = np.concatenate([data.x, data.pending, data.failed])
        candidates = self.space.random(_FAR_CANDIDATES, key=key)
        distance = np.asarray(compiled(_nearest_distance, self.space, candidates, filled(tried, bucket(len(tried)))))
        return np.asarray(candidates, float)[np.argsort(-distance, kind="stable")]

    def prefers_deep(self, data: Data, memory: Memory, key: PRNGKeyArray) -> bool:
        """Tell whether the deep surrogate predicts held-out observations better than the shallow one."""
        data = data.thinned(self.sign)
        kept = np.arange(len(data.y)) % _HELD_OUT != _HELD_OUT - 1
        size = bucket(len(data.y) + len(data.pending))
        observed = self.observed(data._replace(pending=data.pending[:0]), self.scaling(data), size)
        mask = jnp.asarray(np.concatenate([kept, np.zeros(observed.x.shape[0] - kept.size, bool)]))
        training = observed._replace(seen=mask)
        shallow = with_parameters(self.shallow, _fitted("shallow", self.shallow, training, Memory(memory.content), -1))
        deep = self._deepened(shallow, training, key)
        scores = [
            float(_held_out(model, training, observed.seen & ~mask, observed.y, key, paths))
            for model, paths in ((shallow, 1), (deep, self.options.paths))
        ]
        return scores[1] > scores[0]


def _sorted(found: Minima) -> Float[np.ndarray, "R D"]:
    """Return the ends of searches, the best first."""
    return np.asarray(found.points, float)[np.argsort(np.asarray(found.values), kind="stable")]


def _fitted(
    name: str, model: DeepGP, observed: Observed, memory: Memory, count: int, *, afresh: bool = False
) -> Float[Array, "P"]:
    """Fit a shallow surrogate, from its last parameters among others, unless those are of nearly the same data."""
    starts = shallow_starts(model)
    last = memory.start(name, starts.shape[1])
    if last is not None and memory.is_recent(name, count) and not afresh:
        return last
    found = fit_shallow(model, observed, jnp.concatenate([starts, (starts[0] if last is None else last)[None]]))
    if count >= 0:
        memory.keep(name, found, count)
    return found


def _noise_of(name: str, model: DeepGP, memory: Memory) -> float:
    """Return the variance of the noise that the last fit of a surrogate found."""
    parameters = memory.start(name, parameters_of(model).size)
    return 0.0 if parameters is None else float(with_parameters(model, parameters).noise_variance)


def _nearest_distance(space: Space, x: Float[Array, "R D"], tried: Float[Array, "N D"]) -> Float[Array, "R"]:
    each = jax.vmap(lambda point: jnp.min(space._distance(jnp.broadcast_to(point, tried.shape), tried)))
    return each(x)


@eqx.filter_jit
def _flatten(space: Space, center: Float[Array, "D"], x: Float[Array, "N D"]) -> Float[Array, "N d"]:
    return space._log(jnp.broadcast_to(center, x.shape), x) @ space._frame(center)


@eqx.filter_jit
def _unflatten(space: Space, center: Float[Array, "D"], flat: Float[Array, "N d"]) -> Float[Array, "N D"]:
    v = flat @ space._frame(center).T
    return space._exp(jnp.broadcast_to(center, v.shape), v)


@eqx.filter_jit
def _held_out(
    model: DeepGP, training: Observed, held: Array, y: Float[Array, "N"], key: PRNGKeyArray, paths: int
) -> Float[Array, ""]:
    """Return the log density of held-out observations, point by point."""
    mean, variance = condition(model, training, key, paths, 0).mixture(training.x)
    variance = variance + training.noise + model.noise_variance
    members = -0.5 * (jnp.square(y - mean) / variance + jnp.log(2.0 * jnp.pi * variance))
    density = jax.scipy.special.logsumexp(members, axis=0) - jnp.log(mean.shape[0])
    return jnp.sum(jnp.where(held, density, 0.0))


@eqx.filter_jit
def acquisition_at(space: Space, posterior: Posterior, votes: Votes, x: Float[Array, "R D"]) -> Float[Array, "R"]:
    """Return the log of expected improvement, and of success, at points."""
    return log_acquisition(x, space, posterior, votes)
