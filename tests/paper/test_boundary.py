"""The library does not know this package, and this package knows only public names of the library."""

import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import rdgp
import rdgp_paper

LIBRARY, PAPER = (Path(str(package.__file__)).parent for package in (rdgp, rdgp_paper))


def imports(source: str) -> Iterator[tuple[str, str | None]]:
    """Give the modules that a source imports, with the name that is taken from them or None."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)


def is_public(module: str, name: str | None) -> bool:
    """Tell whether an import takes what the library or one of its subpackages exports."""
    if module.count(".") > 1 or "._" in module:
        return False
    return name is None or name in import_module(module).__all__


def private_imports(source: str) -> list[tuple[str, str | None]]:
    return [found for found in imports(source) if found[0].split(".")[0] == "rdgp" and not is_public(*found)]


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("from rdgp import Sphere, fit\nfrom rdgp.spaces import Sphere\nimport rdgp.core\nimport rdgp_paper.runs", 0),
        ("def f():\n    from rdgp.spaces._sphere import Sphere", 1),
        ("from rdgp.plotting import _canvas", 1),
        ("import rdgp.io._file", 1),
    ],
)
def test_private_imports_are_found(source: str, count: int) -> None:
    assert len(private_imports(source)) == count


def test_only_public_names_are_used() -> None:
    files = list(PAPER.rglob("*.py"))
    assert len(files) > 20
    for file in files:
        assert private_imports(file.read_text()) == [], file


def test_the_library_does_not_name_the_paper() -> None:
    for file in LIBRARY.rglob("*.py"):
        assert "rdgp_paper" not in file.read_text(), file
