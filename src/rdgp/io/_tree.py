"""Trees as JSON: what a model is made of, with its arrays set aside by their paths."""

import contextlib
import dataclasses
import importlib
import json
import math
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from rdgp.core import class_of, tag_of
from rdgp.io._arrays import Node, Tensors, decode_array, encode_array

_NOT_FINITE = ("inf", "-inf", "nan")
_HOLDERS = ("rdgp._public", "rdgp.estimators")  # importing these registers all classes of rdgp that its extras allow


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
    tag = tag_of(cls)
    if tag is None:
        raise ValueError(
            f"cannot save {path}: it is a {cls.__module__}.{cls.__qualname__}; classes of your own are saved once they "
            'are registered by @rdgp.register("package:Name"), other trees of arrays by save_leaves'
        )
    fields = {field: encode(getattr(value, field), f"{path}.{field}", tensors) for field in _field_names(cls)}
    return {"class": tag, "fields": fields}


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


def _decode_instance(tag: str, fields: dict[str, Any]) -> Any:
    """Put an object together from its fields, and check it as equinox does; its constructor is not called."""
    cls = _class_of(tag)
    expected = _field_names(cls)
    if set(fields) != set(expected):
        raise ValueError(
            f"{tag} must have the fields {', '.join(expected) or 'none'}, got {', '.join(fields) or 'none'}; "
            "use the version it was saved with"
        )
    if issubclass(cls, tuple):
        return tuple.__new__(cls, [fields[field] for field in expected])
    instance = object.__new__(cls)
    for field in expected:
        object.__setattr__(instance, field, fields[field])
    for check in (own.__dict__.get("__check_init__") for own in cls.__mro__):
        if check is not None:
            check(instance)
    return instance


def _class_of(tag: str) -> type:
    """Return the class of a tag; nothing that a file names is imported, only packages of rdgp itself."""
    for holder in ("", *_HOLDERS):
        if holder:
            with contextlib.suppress(ImportError):
                importlib.import_module(holder)
        cls = class_of(tag)
        if cls is not None:
            return cls
    package = tag.partition(":")[0]
    if package == "rdgp":
        raise ValueError(f"it names the class {tag}, unknown here; use the rdgp and the extras it was saved with")
    raise ValueError(f"it names the class {tag}; import the package that registers it, then load again")


def _field_names(cls: Any) -> tuple[str, ...]:
    """Return the names of the fields of a module or named tuple, static ones included."""
    return tuple(cls._fields) if issubclass(cls, tuple) else tuple(field.name for field in dataclasses.fields(cls))
