"""The package as a whole: its subpackages, what they import, its conventions at import, its single precision."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

import rdgp
from rdgp.core import require

SUBPACKAGES = [
    *("core", "spaces", "spectra", "kernels", "fields", "posteriors", "likelihoods", "optimize", "io", "models"),
    *("inference", "metrics", "testing", "bayesopt", "datasets", "estimators", "geo", "plotting", "cli"),
]
SOURCE = Path(rdgp.__file__).parent
MODULE = re.compile(r"rdgp(\.\w+)+")
OF_NAMED_TUPLES = ("_replace", "_fields", "_asdict", "_make")


class Use(NamedTuple):
    """A module of the package that a source uses, and what it takes from it."""

    module: str
    name: str | None


# what io imports by name, so that the classes of the package that a file names are registered
REGISTERED = [("io/_tree.py", Use(module, None)) for module in ("rdgp._public", "rdgp.estimators")]


def uses(source: str, subpackage: str) -> Iterator[Use]:
    """Find modules of the package in import statements, in chains such as rdgp.io.save, and in strings."""
    tree = ast.parse(source)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (Use(alias.name, None) for alias in names if MODULE.fullmatch(alias.name))
            case ast.ImportFrom(module=module, names=names, level=level):
                base = (["rdgp", subpackage][: 3 - level] if level else []) + ([module] if module else [])
                if base[0].split(".")[0] == "rdgp":
                    yield from (Use(".".join(base), alias.name) for alias in names)
            case ast.Attribute(value=ast.Name(id="rdgp"), attr=name):
                yield Use("rdgp", name)
            case ast.Attribute(value=ast.Attribute(value=ast.Name(id="rdgp"), attr=module), attr=name):
                yield Use(f"rdgp.{module}", name)
            case ast.Constant(value=str(text)) if id(node) not in docstrings and MODULE.fullmatch(text.rstrip(".")):
                yield Use(text.rstrip("."), None)


def subpackage_of(use: Use) -> str | None:
    """Return the subpackage from which something is taken, None for the package itself."""
    parts = use.module.split(".")
    if len(parts) > 1:
        return parts[1] if parts[1] in SUBPACKAGES else None
    return use.name if use.name in SUBPACKAGES else None


def is_private(use: Use) -> bool:
    """Tell whether something is taken from within a subpackage, or is not among what it exports."""
    _, *parts = use.module.split(".")
    if not parts:
        return use.name is not None and use.name.startswith("_") and not use.name.startswith("__")
    if parts[0] not in SUBPACKAGES:
        return parts[0].startswith("_")
    if any(part.startswith("_") for part in parts):
        return True
    return len(parts) == 1 and use.name is not None and use.name not in exported(parts[0])


def exported(subpackage: str) -> set[str]:
    """Return what a subpackage has in __all__, and the modules in it that are not private."""
    tree = ast.parse((SOURCE / subpackage / "__init__.py").read_text())
    (names,) = [
        node.value for node in tree.body if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    modules = {path.stem for path in (SOURCE / subpackage).iterdir() if not path.name.startswith(("_", "."))}
    return modules | set(ast.literal_eval(names))


def defined(source: str) -> set[str]:
    """Return the private names that a source defines: functions, classes, variables, and attributes of self."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name, ctx=ast.Store()):
                names.add(name)
    return {name for name in names if name.startswith("_") and not name.startswith("__")} - set(OF_NAMED_TUPLES)


def attributes(source: str) -> set[str]:
    """Return the names of all attributes that a source asks objects for, by a dot or by getattr."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Attribute(attr=name):
                found.add(name)
            case ast.Call(func=ast.Name(id="getattr" | "hasattr"), args=[_, ast.Constant(value=str(name)), *_]):
                found.add(name)
    return found


def files(subpackage: str) -> list[Path]:
    return sorted((SOURCE / subpackage).rglob("*.py"))


BEHIND_RDGP = {subpackage_of(use) for use in uses((SOURCE / "_public.py").read_text(), "")} - {None}


def wrong_uses(source: str, subpackage: str) -> list[Use]:
    """Return what a source of a subpackage takes from subpackages after its own, or from within others."""
    before = SUBPACKAGES[: SUBPACKAGES.index(subpackage)]

    def is_wrong(use: Use) -> bool:
        owner = subpackage_of(use)
        if owner is None and use.module == "rdgp":
            return use.name != "__version__" and (is_private(use) or not set(before) >= BEHIND_RDGP)
        return owner != subpackage and (is_private(use) or (owner is not None and owner not in before))

    return [use for use in uses(source, subpackage) if is_wrong(use)]


def wrong_attributes(source: str, subpackage: str, private: dict[str, set[str]]) -> set[str]:
    """Return the attributes that are private to other subpackages."""
    foreign = set().union(*(names for owner, names in private.items() if owner != subpackage))
    return attributes(source) & (foreign - private[subpackage])


@pytest.mark.parametrize(
    ("subpackage", "source", "count"),
    [
        ("fields", "from rdgp.spaces import Sphere\nimport rdgp.core\nfrom rdgp.fields._field import Field", 0),
        ("fields", "def f():\n    from rdgp.models import DeepGP", 1),
        ("fields", "from rdgp import models", 1),
        ("fields", "from rdgp import Sphere", 1),
        ("fields", "import rdgp.models", 1),
        ("fields", "from ..models import DeepGP", 1),
        ("fields", "from ._field import Field", 0),
        ("fields", "import rdgp\nrdgp.models.DeepGP", 2),
        ("fields", "import_module('rdgp.models')", 1),
        ("fields", "import_module(f'rdgp.models.{name}')", 1),
        ("fields", "PLACES = ('rdgp.models',)", 1),
        ("fields", "'''rdgp.models'''", 0),
        ("geo", "from rdgp import Sphere, spaces", 0),
        ("geo", "from rdgp import _public", 1),
        ("geo", "from rdgp.spaces._sphere import Sphere", 1),
        ("geo", "from rdgp.spaces import _sphere", 1),
        ("geo", "from rdgp.spaces import longitude", 1),
        ("geo", "import rdgp.spaces._sphere", 1),
        ("geo", "import_module('rdgp.spaces._sphere')", 1),
        ("cli", "from rdgp.bayesopt.targets import ackley", 0),
        ("cli", "from rdgp import DeepGP, geo, load", 0),
        ("io", "import rdgp\nrdgp.__version__", 0),
    ],
)
def test_wrong_imports_are_found(subpackage: str, source: str, count: int) -> None:
    assert len(wrong_uses(source, subpackage)) == count


def test_private_attributes_are_found() -> None:
    private = {"spaces": {"_exp", "_shared"}, "fields": {"_gram", "_shared"}}
    for source in ("space._exp(x)", "self.space._exp", "getattr(space, '_exp')", "hasattr(space, '_exp')"):
        assert wrong_attributes(source, "fields", private) == {"_exp"}
    assert wrong_attributes("space.exp(x); self._gram; record._replace(a=1); q._shared", "fields", private) == set()
    assert defined("class A:\n    _b: int\n    def _c(self):\n        self._d = 1\n_e, f = 1, 2") == {
        *("_b", "_c", "_d", "_e")
    }


def test_a_subpackage_imports_public_names_of_those_before_it() -> None:
    there = {path.name for path in SOURCE.iterdir() if path.is_dir() and path.name != "__pycache__"}
    assert there == set(SUBPACKAGES)
    wrong = [
        (str(file.relative_to(SOURCE)), use)
        for subpackage in SUBPACKAGES
        for file in files(subpackage)
        for use in wrong_uses(file.read_text(), subpackage)
    ]
    assert [found for found in wrong if found not in REGISTERED] == []


def test_no_subpackage_looks_into_another() -> None:
    private = {
        subpackage: set().union(*(defined(file.read_text()) for file in files(subpackage)))
        for subpackage in SUBPACKAGES
    }
    assert {"_exp", "_check_pair"} <= private["spaces"]
    wrong = {
        str(file.relative_to(SOURCE)): wrong_attributes(file.read_text(), subpackage, private)
        for subpackage in SUBPACKAGES
        for file in files(subpackage)
    }
    assert {file: names for file, names in wrong.items() if names} == {}


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


def test_the_package_lists_and_describes_its_subpackages() -> None:
    names = dir(rdgp)
    assert {*SUBPACKAGES, "DeepGP", "Sphere", "Study", "fit", "load", "register", "save"} <= set(names)
    assert set(names) == {*SUBPACKAGES, *rdgp.__all__}
    assert all(hasattr(rdgp, name) for name in names)
    described = re.findall(r"`rdgp\.(\w+)`", str(rdgp.__doc__))
    assert described == [*SUBPACKAGES, "register"]


def test_everything_works_in_single_precision() -> None:
    printed = run(
        "import jax, jax.numpy as jnp;"
        "from rdgp import *;"
        "field = HodgeField(Sphere(4), divergence=Matern(), curl=Matern(), num_levels=2);"
        "x = Sphere(4).random(20, key=jax.random.key(0)); y = field.sample(key=jax.random.key(1))(x);"
        "gp = ExactGP(field, 0.1).fit(x, y); p = gp.predict(x);"
        "print(p.mean.dtype, bool(jnp.all(jnp.isfinite(p.covariance))))"
    )
    assert printed == "float32 True"


def test_a_missing_extra_is_named() -> None:
    assert require("json", "plot").__name__ == "json"
    with pytest.raises(ImportError, match=r"needs notthere.*pip install 'rdgp\[plot\]'"):
        require("notthere.inside", "plot")
