"""Bayesian optimization on spheres: regret after each evaluation."""

from typing import Any

import jax
import numpy as np

from rdgp.bayesopt import Study, targets
from rdgp.experiments._cells import Numbers
from rdgp.experiments._models import precision
from rdgp.experiments._plans import Settings

_INITIAL = 5
_FLOOR = 1e-12


def run(settings: Settings) -> Numbers:
    """Minimize one target with one surrogate and return the simple regret after each evaluation."""
    with precision(settings):
        target = _target(str(settings["target"]))
        budget = _INITIAL + int(settings["evaluations"])
        if settings["surrogate"] == "random":
            points = np.asarray(target.space.random(budget, key=jax.random.key(int(settings["seed"]))))
        else:
            points = _search(target, budget, settings)
        values = np.array([float(target(x)) for x in points])
    regret = np.maximum(np.minimum.accumulate(values) - target.minimum, _FLOOR)
    return {"log10_regret": np.log10(regret[-1]), "regret": regret}


def _search(target: Any, budget: int, settings: Settings) -> np.ndarray:
    surrogate: Any = settings["surrogate"]
    options: dict[str, Any] = {"surrogate": "auto" if surrogate == "shallow then deep" else surrogate}
    if surrogate == "shallow then deep":
        options["switch_at"] = int(settings["switch_at"])
    if settings["options"] != "default":
        options["preset"] = settings["options"]
    for name in ("field", "inducing", "layers"):
        if name in settings:
            options[name] = settings[name]
    study = Study(target.space, seed=int(settings["seed"]), num_initial=_INITIAL, **options)
    study.run(lambda x: float(target(x)), budget)
    return np.stack([trial.x for trial in study.trials])


def _target(name: str) -> Any:
    known = {"ackley": lambda: targets.ackley(3), "irregular": targets.irregular_sphere}
    if name not in known:
        raise ValueError(f"target must be one of {', '.join(known)}, got {name!r}")
    return known[name]()
