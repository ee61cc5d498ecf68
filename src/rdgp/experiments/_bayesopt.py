"""Bayesian optimization on spheres: regret after each evaluation."""

import time
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from rdgp.bayesopt import Study, targets
from rdgp.experiments._botorch import CHARTS, Searcher
from rdgp.experiments._cells import Numbers
from rdgp.experiments._models import precision
from rdgp.experiments._plans import Settings

_INITIAL = 5
_FLOOR = 1e-12
_LATE = 100  # asks from which their time is taken, or the last one
_DECOY = 0.5439  # regret of the irregular target at its decoy, -0.2328, less a hundredth
_TARGETS = {"ackley": lambda: targets.ackley(3), "irregular": targets.irregular_sphere}


def run(settings: Settings) -> Numbers:
    """Minimize one target by one method and return the regret of the best point after each evaluation.

    All methods begin with the same points on the same target, turned at random but for the paper's own protocol.
    """
    if settings["target"] not in _TARGETS:
        raise ValueError(f"target must be one of {', '.join(_TARGETS)}, got {settings['target']!r}")
    asking: list[float] = []
    with precision(settings):
        keys = jax.random.split(jax.random.key(int(settings["seed"])), 4)
        target = _TARGETS[str(settings["target"])]()
        if settings["options"] != "paper":
            target = target.rotated(key=keys[0])
        noisy = target.noisy(float(settings.get("noise", 0.0)), key=keys[1])
        start = np.asarray(target.space.random(_INITIAL, key=keys[2]))
        if settings["surrogate"] == "random":
            more = np.asarray(target.space.random(int(settings["evaluations"]), key=keys[3]))
            points = np.concatenate([start, more])
            observed = [float(noisy(x)) for x in points]
        else:
            points, observed, asking = _search(_searcher(target.space, settings), noisy, start, settings)
        values = np.asarray(target(points)) - target.minimum
    regret = np.maximum(np.minimum.accumulate(values), _FLOOR)
    chosen = max(float(values[int(np.argmin(observed))]), _FLOOR)
    numbers: Numbers = {"log10_regret": np.log10(regret[-1]), "log10_regret_of_observed_best": np.log10(chosen)}
    numbers |= {"ask_seconds": float(np.median(asking[_LATE:] or asking[-1:]))} if asking else {}
    stuck = settings["target"] == "irregular" and bool(regret[-1] > _DECOY)
    return {**numbers, "stuck": stuck, "regret": regret}


def _search(
    searcher: Any, function: Any, start: Float[np.ndarray, "n D"], settings: Settings
) -> tuple[Float[np.ndarray, "N D"], list[float], list[float]]:
    """Return points, values that were observed, and the CPU seconds of each ask."""
    points, observed, asking = [], [], []
    for i in range(len(start) + int(settings["evaluations"])):
        begun = time.process_time()
        trial = start[i] if i < len(start) else searcher.ask()
        if i >= len(start):
            asking.append(time.process_time() - begun)
        points.append(np.asarray(getattr(trial, "x", trial), float))
        observed.append(float(function(points[-1])))
        searcher.tell(trial, observed[-1])
    return np.stack(points), observed, asking


def _searcher(space: Any, settings: Settings) -> Any:
    surrogate, seed = str(settings["surrogate"]), int(settings["seed"])
    if surrogate in CHARTS:
        return Searcher(surrogate, space, seed)
    options: dict[str, Any] = {"surrogate": "auto" if surrogate == "shallow then deep" else surrogate}
    if surrogate == "shallow then deep":
        options["switch_at"] = int(settings["switch_at"])
    if settings["options"] != "default":
        options["preset"] = settings["options"]
    for name in ("field", "inducing", "layers"):
        if name in settings:
            options[name] = settings[name]
    return Study(space, seed=seed, num_initial=_INITIAL, **options)
