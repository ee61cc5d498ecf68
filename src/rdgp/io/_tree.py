"""Trees as JSON: what a model is made of, with its arrays set aside by their paths."""

import json
import math
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from rdgp.io._arrays import Node, Tensors, decode_array, encode_array
from rdgp.io._classes import class_name, field_names, find_class

_NOT_FINITE = ("inf", "-inf", "nan")


def encode(value: object, path: str, tensors: Tensors) -> Node:
    """Return the node that describes a tree, and put the arrays in it into `tensors` under their paths."""
    if value is None or type(value) in (bool, int, str):
        return value
    if type(value) is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if isinstance(value, jax.Array | np.ndarray | np.generic):
        return encode_array(value, path, tensors)
    if type(value) is list or type(value) is tuple:
        return {type(value).__name__: [encode(item, f"{path}[{i}]", tensors) for i, item in enumerate(value)]}
    if type(value) is dict:
        return {"dict": _encode_dict(value, path, tensors)}
    return _encode_instance(value, path, tensors)


def _encode_dict(value: dict[Any, Any], path: str, tensors: Tensors) -> dict[str, Node]:
    wrong = [key for key in value if type(key) is not str]
    if wrong:
        raise ValueError(f"cannot save {path}: keys of a dict must be strings, got {wrong[0]!r}; use str(key)")
    return {key: encode(item, f"{path}[{json.dumps(key)}]", tensors) for key, item in value.items()}


def _encode_instance(value: object, path: str, tensors: Tensors) -> Node:
    cls = type(value)
    name = class_name(cls)
    if name is None:
        raise ValueError(
            f"cannot save {path}: it is a {cls.__module__}.{cls.__qualname__}; models of rdgp's own classes, arrays, "
            "numbers and strings can be saved, other trees of arrays by save_leaves"
        )
    fields = {field: encode(getattr(value, field), f"{path}.{field}", tensors) for field in field_names(cls)}
    return {"class": name, "fields": fields}


def decode(node: Node, tensors: Tensors) -> Any:
    """Return the tree a node describes."""
    match node:
        case None | bool() | int() | float() | str():
            return node
        case {"float": str(name)} if name in _NOT_FINITE:
            return float(name)
        case {"list": list(items)}:
            return [decode(item, tensors) for item in items]
        case {"tuple": list(items)}:
            return tuple(decode(item, tensors) for item in items)
        case {"dict": dict(items)}:
            return {key: decode(item, tensors) for key, item in items.items()}
        case {"array": str(), "dtype": str(), "tensor": str(tensor)} if tensor in tensors:
            return decode_array(node, tensors)
        case {"class": str(name), "fields": dict(fields)}:
            return _decode_instance(name, {key: decode(item, tensors) for key, item in fields.items()})
    raise ValueError(f"its structure holds {str(node)[:60]!r}, which means nothing here; save it again")


def array_nodes(node: Node) -> Iterator[Node]:
    """Yield the nodes of all arrays of a tree, without decoding any."""
    match node:
        case {"list": list(items)} | {"tuple": list(items)}:
            inner = items
        case {"dict": dict(named)} | {"class": str(), "fields": dict(named)}:
            inner = list(named.values())
        case {"array": str(), "dtype": str(), "tensor": str()}:
            yield node
            return
        case _:
            return
    for item in inner:
        yield from array_nodes(item)


def _decode_instance(name: str, fields: dict[str, Any]) -> Any:
    """Put an object together from its fields; its constructor is not called, so nothing is computed again."""
    cls = find_class(name)
    if cls is None:
        raise ValueError(f"it names the class {name}, unknown here; use the rdgp and the extras it was saved with")
    expected = field_names(cls)
    if set(fields) != set(expected):
        raise ValueError(
            f"{name} must have the fields {', '.join(expected) or 'none'}, got {', '.join(fields) or 'none'}; "
            "use the rdgp it was saved with"
        )
    if issubclass(cls, tuple):
        return tuple.__new__(cls, [fields[field] for field in expected])
    instance = object.__new__(cls)
    for field in expected:
        object.__setattr__(instance, field, fields[field])
    return instance
