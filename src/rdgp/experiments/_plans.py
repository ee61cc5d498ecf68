"""Plans: which cells an experiment has at a preset."""

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
_SAME_PROGRAM = ("seed", "month")  # settings that change numbers, not shapes
_PLAIN = (str, int, float, bool)

Setting = str | int | float | bool
Settings = Mapping[str, Setting]


@dataclass(frozen=True)
class Cell:
    """One run of an experiment: plain settings, and the seconds that it takes by guess."""

    experiment: str
    settings: Settings
    seconds: float = field(default=1.0, compare=False)

    @property
    def key(self) -> str:
        """The name of the result: a hash of experiment and settings."""
        return _digest(self.experiment, self.settings)

    @property
    def group(self) -> str:
        """What cells have in common that differ only in seed or month, and so run the same programs."""
        same = {name: value for name, value in self.settings.items() if name not in _SAME_PROGRAM}
        return _digest(self.experiment, same)

    def __str__(self) -> str:
        return " ".join(f"{name}={value}" for name, value in self.settings.items())


@dataclass(frozen=True)
class Plan:
    """The cells of an experiment at a preset, and what was left out because its data are not here."""

    experiment: str
    preset: str
    cells: tuple[Cell, ...]
    left_out: tuple[str, ...] = ()

    @property
    def seconds(self) -> float:
        """CPU seconds of all cells, by guess."""
        return sum(cell.seconds for cell in self.cells)


def read_plan(experiment: str, preset: str) -> Plan:
    """Return the cells of an experiment, those that differ only in their seed in a row."""
    if experiment not in EXPERIMENTS:
        raise ValueError(f"experiment must be one of {', '.join(EXPERIMENTS)}, got {experiment!r}")
    if preset not in PRESETS:
        raise ValueError(f"preset must be one of {', '.join(PRESETS)}, got {preset!r}")
    text = (resources.files("rdgp.experiments") / "plans" / f"{experiment}.toml").read_text(encoding="utf-8")
    return expand(experiment, preset, tomllib.loads(text)[preset]["grid"])


def expand(experiment: str, preset: str, grids: Sequence[Mapping[str, Any]]) -> Plan:
    """Return the plan of grids: each is the product of its lists."""
    groups: dict[str, dict[str, Cell]] = {}
    left_out = []
    for grid in grids:
        missing = _missing(grid.get("needs"))
        if missing:
            left_out.append(missing)
            continue
        for cell in _cells(experiment, grid):
            groups.setdefault(cell.group, {}).setdefault(cell.key, cell)
    cells = tuple(cell for group in groups.values() for cell in group.values())
    return Plan(experiment, preset, cells, tuple(dict.fromkeys(left_out)))


def choose(plan: Plan, only: Sequence[str]) -> Plan:
    """Keep the cells that have all the given settings: texts such as n=400, n=100,400 or, for cells without it, n=."""
    cells = plan.cells
    for text in only:
        name, equal, values = text.partition("=")
        if not equal:
            raise ValueError(f"--only takes a setting and its value, such as layers=2, got {text!r}")
        known = dict.fromkeys(_text(cell.settings.get(name, "")) for cell in plan.cells)
        if list(known) == [""]:
            names = dict.fromkeys(name for cell in plan.cells for name in cell.settings)
            raise ValueError(f"no cell has a setting {name}; there are {', '.join(names)}")
        asked = values.split(",")
        for value in asked:
            if value not in known:
                raise ValueError(f"no cell has {name}={value}; there are {', '.join(filter(None, known))}")
        cells = tuple(cell for cell in cells if _text(cell.settings.get(name, "")) in asked)
    return Plan(plan.experiment, plan.preset, cells, plan.left_out)


def _cells(experiment: str, grid: Mapping[str, Any]) -> list[Cell]:
    lists = {name: _as_list(name, value) for name, value in grid.items() if name not in ("seconds", "needs")}
    seconds = float(grid.get("seconds", 1.0))
    return [
        Cell(experiment, dict(zip(lists, values, strict=True)), seconds)
        for values in itertools.product(*lists.values())
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
        return None if find_spec("botorch") else 'cells that need BoTorch (pip install "rdgp[bench]")'
    variable = _NEEDS[need]
    return None if os.environ.get(variable) else f"cells that need {variable}"


def _digest(experiment: str, settings: Settings) -> str:
    text = json.dumps([experiment, dict(settings)], sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _text(value: Setting) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
