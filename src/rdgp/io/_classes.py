"""The classes a file may name: modules and named tuples of this package.

A class exported by its room is called "fields.HodgeField" and may move between the files of the room; a private one is
called by its file, "models._exact._Conditioned".
"""

import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from functools import cache
from types import ModuleType
from typing import Any, TypeGuard

import equinox as eqx

import rdgp


def class_name(cls: type) -> str | None:
    """Return the name of a class in files, the shortest if it has two; None if it cannot be saved."""
    package, _, rest = cls.__module__.partition(".")
    if package != "rdgp":
        return None
    names = (name for name, other in _classes_of_room(rest.split(".")[0]).items() if other is cls)
    return min(names, key=len, default=None)


def find_class(name: str) -> type | None:
    """Return the class of that name, or None; only modules of this package are ever imported."""
    return _classes_of_room(name.split(".")[0]).get(name)


def field_names(cls: Any) -> tuple[str, ...]:
    """Return the names of the fields of a module or named tuple, static ones included."""
    return tuple(cls._fields) if issubclass(cls, tuple) else tuple(field.name for field in dataclasses.fields(cls))


@cache
def _classes_of_room(room: str) -> dict[str, type]:
    if room not in {info.name for info in pkgutil.iter_modules(rdgp.__path__)}:
        return {}
    modules = list(_import_all(f"rdgp.{room}"))
    classes: dict[str, type] = {}
    for module in modules:
        for value in vars(module).values():
            if _is_savable(value) and value.__module__ == module.__name__:
                add_class(classes, f"{module.__name__.removeprefix('rdgp.')}.{value.__qualname__}", value)
    for cls in list(classes.values()):
        if getattr(modules[0], cls.__name__, None) is cls:
            add_class(classes, f"{room}.{cls.__name__}", cls)
    return classes


def add_class(classes: dict[str, type], name: str, cls: type) -> None:
    """Enter a class under a name, or raise if another class has it."""
    if classes.setdefault(name, cls) is not cls:
        raise ValueError(f"two classes are named {name}, so files could mix them up; rename one of them")


def _import_all(name: str) -> Iterator[ModuleType]:
    """Import a room and its modules, the room first; leave out those whose optional dependencies are missing."""
    try:
        top = importlib.import_module(name)
    except ImportError:
        return
    yield top
    for info in pkgutil.iter_modules(getattr(top, "__path__", [])):
        if info.name != "__main__":
            yield from _import_all(f"{name}.{info.name}")


def _is_savable(cls: object) -> TypeGuard[type]:
    if not isinstance(cls, type) or inspect.isabstract(cls):
        return False
    return issubclass(cls, eqx.Module) or (issubclass(cls, tuple) and hasattr(cls, "_fields"))
