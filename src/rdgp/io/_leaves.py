"""Checkpoints: the leaves of any tree in a file, their structure from a template."""

from itertools import zip_longest
from typing import Any, TypeVar

import jax
import numpy as np
from jax.tree_util import keystr, tree_flatten_with_path, tree_unflatten

from rdgp.io._arrays import Tensors
from rdgp.io._file import FilePath, loading, read_file, write_file
from rdgp.io._tree import decode, encode

T = TypeVar("T")
_ADVICE = "build the template as the saved tree was built"


def save_leaves(tree: object, path: FilePath, *, extra: dict[str, Any] | None = None) -> None:
    """Write the arrays and numbers of any tree, of optimizers' states too, and an extra dict to one file.

    What is not a leaf, such as static fields, is not written: `load_leaves` takes it from its template.
    """
    tensors: Tensors = {}
    named = [(_name(keys), leaf) for keys, leaf in tree_flatten_with_path(tree)[0]]
    structure = {
        "leaves": [[name, encode(leaf, name, tensors)] for name, leaf in named],
        "extra": encode({} if extra is None else extra, "extra", tensors),
    }
    write_file(path, "leaves", structure, tensors)


def load_leaves(template: T, path: FilePath) -> tuple[T, dict[str, Any]]:
    """Return a tree like the template with the leaves `save_leaves` wrote, and the extra dict.

    Leaves of the template may be `jax.ShapeDtypeStruct`s; places, shapes and dtypes must be those in the file.
    """
    pairs, structure = tree_flatten_with_path(template)
    with loading(path):
        saved, tensors = read_file(path, "leaves")
        leaves = [(name, decode(node, tensors)) for name, node in saved["leaves"]]
        _check([(_name(keys), leaf) for keys, leaf in pairs], leaves)
        return tree_unflatten(structure, [leaf for _, leaf in leaves]), decode(saved["extra"], tensors)


def _name(keys: tuple[Any, ...]) -> str:
    return f"tree{keystr(keys)}"


def _check(expected: list[tuple[str, Any]], found: list[tuple[str, Any]]) -> None:
    """Raise unless the leaves in the file are those of the template."""
    for (place, leaf), (other, saved) in zip_longest(expected, found, fillvalue=("no leaf", None)):
        if place != other:
            raise ValueError(
                f"the template has {len(expected)} leaves, the file {len(found)}, and the first that differ are "
                f"{place} in the template, {other} in the file; {_ADVICE}"
            )
        if _describe(leaf) != _describe(saved):
            raise ValueError(f"{place} is {_describe(leaf)} in the template, {_describe(saved)} in the file; {_ADVICE}")


def _describe(leaf: object) -> str:
    if isinstance(leaf, jax.Array | jax.ShapeDtypeStruct | np.ndarray | np.generic):
        return f"{leaf.dtype}{list(leaf.shape)}"
    return type(leaf).__name__
