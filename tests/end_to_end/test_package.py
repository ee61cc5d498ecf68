"""The package as a whole: its rooms, its manners at import, its single precision."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import rdgp
from rdgp.core import require

ROOMS = [
    *("core", "spaces", "spectra", "kernels", "fields", "likelihoods", "variational", "optimize", "models", "io"),
    *("inference", "metrics", "bayesopt", "datasets", "estimators", "geo", "plotting", "cli"),
]
SOURCE = Path(rdgp.__file__).parent


def imported_rooms(code: str, file: Path) -> set[str]:
    """Return the rooms from which the code of a file imports, in whatever words."""
    names = set()
    for node in ast.walk(ast.parse(code)):
        if isinstance(node, ast.ImportFrom):
            outer = file.relative_to(SOURCE.parent).parts[: -node.level] if node.level else ()
            module = ".".join([*outer, *([node.module] if node.module else [])])
            names |= {f"{module}.{alias.name}" for alias in node.names}
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {room_of(name.split(".")[1]) for name in names if name.startswith("rdgp.") and name != "rdgp.__version__"}


def room_of(name: str) -> str:
    """Return a room, or the room of a name that the package exports."""
    return name if name in ROOMS else getattr(rdgp, name).__module__.split(".")[1]


@pytest.mark.parametrize(
    ("code", "rooms"),
    [
        ("import rdgp, json", set()),
        ("from rdgp import __version__", set()),
        ("import rdgp.geo", {"geo"}),
        ("from rdgp.io._file import save", {"io"}),
        ("from rdgp import plotting", {"plotting"}),
        ("def late():\n    from rdgp import Sphere, fit", {"spaces", "inference"}),
        ("from ._checks import check_count", {"core"}),
        ("from .. import metrics", {"metrics"}),
        ("from ..models import DeepGP", {"models"}),
    ],
)
def test_every_kind_of_import_is_seen(code: str, rooms: set[str]) -> None:
    assert imported_rooms(code, SOURCE / "core" / "_new.py") == rooms


def test_a_room_imports_only_from_rooms_above_it() -> None:
    assert {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"} == set(ROOMS)
    for depth, room in enumerate(ROOMS):
        for file in (SOURCE / room).rglob("*.py"):
            below = imported_rooms(file.read_text(), file) - set(ROOMS[: depth + 1])
            assert not below, f"{file.name} in {room} imports from {below}"


def run(code: str) -> str:
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=300).stdout.strip()


def test_importing_changes_no_setting_and_loads_nothing_heavy() -> None:
    printed = run(
        "import jax, sys; before = dict(jax.config.values); from rdgp import *;"
        "assert dict(jax.config.values) == before;"
        "print([m for m in ('matplotlib', 'pandas', 'xarray', 'sklearn', 'torch') if m in sys.modules])"
    )
    assert printed == "[]"


def test_names_are_looked_up_when_first_used() -> None:
    printed = run(
        "import rdgp, sys; assert 'jax' not in sys.modules; assert set(rdgp.__all__) <= set(dir(rdgp));"
        "print(rdgp.spaces.Sphere(2), rdgp.Sphere is rdgp.spaces.Sphere, hasattr(rdgp, 'nothing'))"
    )
    assert printed == "Sphere(2) True False"


def test_everything_works_in_single_precision() -> None:
    printed = run(
        "import jax, jax.numpy as jnp;"
        "from rdgp import *;"
        "field = HodgeField(Sphere(4), divergence=Matern(), curl=Matern(), levels=2);"
        "x = Sphere(4).random(20, key=jax.random.key(0)); y = field.sample(key=jax.random.key(1))(x);"
        "gp = ExactGP(field, 0.1).fit(x, y); p = gp.predict(x);"
        "print(p.mean.dtype, bool(jnp.all(jnp.isfinite(p.covariance))))"
    )
    assert printed == "float32 True"


def test_a_missing_extra_is_named() -> None:
    assert require("json", "plot").__name__ == "json"
    with pytest.raises(ImportError, match=r"needs notthere.*pip install 'rdgp\[plot\]'"):
        require("notthere.inside", "plot")
