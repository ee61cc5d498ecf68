"""Models in files, with their structure."""

import base64
from typing import Any

import numpy as np

from rdgp.io._arrays import Node, Tensors
from rdgp.io._file import FilePath, loading, read_file, read_structure, write_file
from rdgp.io._tree import array_nodes, decode, encode

_DOUBLE = ("int64", "uint64", "float64", "complex128")


def save(model: object, path: FilePath) -> None:
    """Write a model, or any tree of rdgp's classes, arrays, numbers and strings, to one file.

    The file appears whole or not at all; one that was there before is replaced.

    >>> import tempfile
    >>> from rdgp.spaces import Product, Sphere
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(Product(Sphere(2), Sphere(1)), f"{folder}/space.rdgp")
    ...     print(load(f"{folder}/space.rdgp"))
    Product(Sphere(2), Sphere(1))
    """
    tensors: Tensors = {}
    write_file(path, "model", encode(model, "model", tensors), tensors)


def load(path: FilePath) -> Any:
    """Return what `save` wrote, bit for bit; nothing is computed again and nothing in the file is executed."""
    with loading(path):
        return decode(*read_file(path, "model"))


def needs_double(path: FilePath) -> bool:
    """Tell whether a file that `save` wrote can be loaded only while JAX runs in double precision.

    >>> import tempfile
    >>> from rdgp.spaces import Sphere
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(Sphere(2), f"{folder}/space.rdgp")
    ...     print(needs_double(f"{folder}/space.rdgp"))
    False
    """
    with loading(path):
        nodes = array_nodes(read_structure(path, "model"))
        return any(node["array"] == "jax" and node["dtype"] in _DOUBLE for node in nodes)


def to_json(tree: object) -> dict[str, Any]:
    """Return a small tree of registered classes, arrays, numbers and strings as JSON, for files of other formats.

    >>> from rdgp.spaces import Sphere
    >>> to_json(Sphere(2))
    {'structure': {'class': 'rdgp:Sphere', 'fields': {'d': 2}}, 'arrays': {}}
    """
    tensors: Tensors = {}
    structure = encode(tree, "tree", tensors)
    return {"structure": structure, "arrays": {path: _array_to_json(array) for path, array in tensors.items()}}


def from_json(node: Node) -> Any:
    """Return the tree that `to_json` described, or raise."""
    match node:
        case {"structure": structure, "arrays": dict(arrays)}:
            return decode(structure, {path: _array_from_json(array) for path, array in arrays.items()})
    raise ValueError(f"a tree in JSON has a structure and arrays, got {str(node)[:60]!r}")


def _array_to_json(array: np.ndarray) -> Node:
    return {"dtype": array.dtype.name, "shape": list(array.shape), "base64": base64.b64encode(array.tobytes()).decode()}


def _array_from_json(node: Node) -> np.ndarray:
    numbers = np.frombuffer(base64.b64decode(node["base64"], validate=True), np.dtype(node["dtype"]))
    return numbers.reshape(node["shape"])
