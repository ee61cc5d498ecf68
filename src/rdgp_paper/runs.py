"""Plans: which runs an experiment has at a preset."""

import hashlib
import itertools
import json
import os
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from importlib.util import find_spec
from typing import Any

EXPERIMENTS = ("synthetic", "wind", "uci", "timing", "bayesopt", "fields")
PRESETS = ("smoke", "quick", "paper")
_NEEDS = {"data": "RDGP_DATA", "era5": "RDGP_ERA5"}  # what a grid may need, and the variable that says where it is
_SAME_SHAPES = ("seed", "month")  # settings that change values, not shapes
_PLAIN = (str, int, float, bool)

Setting = str | int | float | bool
Settings = Mapping[str, Setting]


@dataclass(frozen=True)
class Run:
    """One run of an experiment: plain settings, and an estimate of its CPU seconds."""

    experiment: str
    settings: Settings
    seconds: float = field(default=1.0, compare=False)

    @property
    def key(self) -> str:
        """The name of the result: a hash of experiment and settings."""
        return _digest(self.experiment, self.settings)

    @property
    def group(self) -> str:
        """What runs have in common that differ only in seed or month, and so share compiled functions."""
        same = {name: value for name, value in self.settings.items() if name not in _SAME_SHAPES}
        return _digest(self.experiment, same)

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.settings.items())


@dataclass(frozen=True)
class Plan:
    """The runs of an experiment at a preset, and what was left out because its data are not here."""

    experiment: str
    preset: str
    runs: tuple[Run, ...]
    left_out: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """An estimate of the CPU seconds of all runs."""
        return sum(run.seconds for run in self.runs)


def read_file(experiment: str) -> dict[str, Any]:
    """Return the TOML file of an experiment: its words and, for each preset, its grids."""
    if experiment not in EXPERIMENTS:
        raise ValueError(f"experiment must be one of {', '.join(EXPERIMENTS)}, got {experiment!r}")
    text = (resources.files("rdgp_paper") / "plans" / f"{experiment}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def read_plan(experiment: str, preset: str) -> Plan:
    """Return the plan of an experiment at a preset; runs that differ only in their seed stand in a row."""
    content = read_file(experiment)
    if preset not in PRESETS:
        raise ValueError(f"preset must be one of {', '.join(PRESETS)}, got {preset!r}")
    return expand(experiment, preset, content[preset]["grid"])


def expand(experiment: str, preset: str, grids: Sequence[Mapping[str, Any]]) -> Plan:
    """Return the plan of grids: each is the product of its lists."""
    groups: dict[str, dict[str, Run]] = {}
    left_out = []
    for grid in grids:
        missing = _missing(grid.get("needs"))
        if missing:
            left_out.append(missing)
            continue
        for run in _runs(experiment, grid):
            groups.setdefault(run.group, {}).setdefault(run.key, run)
    runs = tuple(run for group in groups.values() for run in group.values())
    return Plan(experiment, preset, runs, tuple(dict.fromkeys(left_out)))


def choose(plan: Plan, only: Sequence[str]) -> Plan:
    """Keep the runs that have all the given settings: texts such as n=400, n=100,400 or, for runs without it, n=."""
    runs = plan.runs
    for text in only:
        name, equal, values = text.partition("=")
        if not equal:
            raise ValueError(f"--only takes a setting and its value, such as layers=2, got {text!r}")
        known = dict.fromkeys(_text(run.settings.get(name, "")) for run in plan.runs)
        if list(known) == [""]:
            names = dict.fromkeys(name for run in plan.runs for name in run.settings)
            raise ValueError(f"no run has a setting {name}; there are {', '.join(names)}")
        asked = values.split(",")
        for value in asked:
            if value not in known:
                raise ValueError(f"no run has {name}={value}; there are {', '.join(filter(None, known))}")
        runs = tuple(run for run in runs if _text(run.settings.get(name, "")) in asked)
    return Plan(plan.experiment, plan.preset, runs, plan.left_out)


def _runs(experiment: str, grid: Mapping[str, Any]) -> list[Run]:
    lists = {name: _as_list(name, value) for name, value in grid.items() if name not in ("seconds", "needs")}
    seconds = float(grid.get("seconds", 1.0))
    return [
        Run(experiment, dict(zip(lists, values, strict=True)), seconds) for values in itertools.product(*lists.values())
    ]


def _as_list(name: str, value: Any) -> list[Setting]:
    values = value if isinstance(value, list) else [value]
    if not values or not all(isinstance(own, _PLAIN) for own in values):
        raise ValueError(f"{name} must be numbers, texts or lists of them, got {value!r}")
    return values


def _missing(need: str | None) -> str | None:
    """Return what is missing for a grid, in words."""
    if need is None:
        return None
    if need == "botorch":
        return None if find_spec("botorch") else 'runs that need BoTorch (pip install "rdgp[bench]")'
    variable = _NEEDS[need]
    return None if os.environ.get(variable) else f"runs that need {variable}"


def _digest(experiment: str, settings: Settings) -> str:
    text = json.dumps([experiment, dict(settings)], sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _text(value: Setting) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
