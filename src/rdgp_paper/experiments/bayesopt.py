"""Bayesian optimization on spheres: regret after each evaluation."""

import time
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from rdgp.bayesopt import Study, targets
from rdgp_paper.experiments.botorch import CHARTS, Searcher
from rdgp_paper.hypotheses import EQUAL, Check, Hypothesis
from rdgp_paper.models import double_precision
from rdgp_paper.runs import Settings
from rdgp_paper.store import Numbers, Table
from rdgp_paper.tables import named_searches

_INITIAL = 5
_FLOOR = 1e-12
_LATE = 100  # asks from which their time is taken, or the last one
_LOCAL_OPTIMUM = 0.5439  # regret of the irregular target at its local optimum, -0.2328, less a hundredth
_TARGETS = {"ackley": lambda: targets.ackley(3), "irregular": targets.irregular_sphere}


def run(settings: Settings) -> Numbers:
    """Minimize one target by one method and return the regret of the best point after each evaluation.

    All methods begin with the same points on the same target, rotated at random but for the paper's own protocol.
    """
    if settings["target"] not in _TARGETS:
        raise ValueError(f"target must be one of {', '.join(_TARGETS)}, got {settings['target']!r}")
    asking: list[float] = []
    with double_precision():
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
    stuck = settings["target"] == "irregular" and bool(regret[-1] > _LOCAL_OPTIMUM)
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


def deep_in_last_steps(table: Table) -> Hypothesis:
    """Compare the change to a deep surrogate with the shallow one, for each target under the same options."""
    statement = "A deep surrogate in the last steps finds a better minimum of the irregular function"
    wide = _medians(table, "irregular")
    pairs = [(name, name.replace("shallow then deep", "shallow")) for name in wide.index if "shallow then deep" in name]
    pairs = [(deep, shallow) for deep, shallow in pairs if shallow in wide.index]
    lines = [f"{deep}: median log10 regret {wide[deep]:.2f}, {shallow}: {wide[shallow]:.2f}" for deep, shallow in pairs]
    holds = all(wide[deep] < wide[shallow] - EQUAL for deep, shallow in pairs) if pairs else None
    return Hypothesis(statement, holds, "; ".join(lines))


def baselines(table: Table) -> Hypothesis:
    """Compare every method of this library with random search and with BoTorch, task by task."""
    statement = "Studies find better minima than random search and BoTorch (not in the paper)"
    lines, holds = [], []
    for task in dict.fromkeys(named_searches(table)["task"]):
        wide = _medians(table, task)
        theirs = wide[[name == "random" or name.startswith("BoTorch") for name in wide.index]]
        ours = wide.drop(theirs.index)
        if len(ours) and len(theirs):
            holds.append(bool(ours.max() < theirs.min()))
            best, worst = theirs.idxmin(), ours.idxmax()
            lines.append(
                f"{task}: ours at worst {ours.max():.2f} ({worst}), theirs at best {theirs.min():.2f} ({best})"
            )
    return Hypothesis(statement, all(holds) if holds else None, "; ".join(lines))


def _medians(table: Table, task: str) -> Table:
    """Return the median log10 regret of each method."""
    found = named_searches(table)
    return found[found["task"] == task].groupby("name", sort=False)["log10_regret"].median()


HYPOTHESES: tuple[Check, ...] = (deep_in_last_steps, baselines)
