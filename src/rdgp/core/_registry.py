"""Stable names of the classes that files may hold.

A file names a class by its tag, never by the module it lives in, so classes may move and be renamed. Tags have the form
"package:Name"; a class keeps its former tags, so that older files load.
"""

from collections.abc import Callable
from typing import TypeVar

C = TypeVar("C", bound=type)

_CLASSES: dict[str, type] = {}
_TAGS: dict[type, str] = {}


def register(tag: str, *former: str) -> Callable[[C], C]:
    """Return a decorator that lets files hold instances of a class.

    `tag` is the name files give the class, "package:Name"; `former` are tags it had before. A file that names a class
    loads once the package that registers the class is imported.

    >>> @register("docs:Point")
    ... class Point:
    ...     pass
    >>> tag_of(Point)
    'docs:Point'
    """
    for name in (tag, *former):
        package, colon, rest = name.partition(":")
        if not (package and colon and rest):
            raise ValueError(f'a tag must have the form "package:Name", got {name!r}')

    def enter(cls: C) -> C:
        for name in (tag, *former):
            held = _CLASSES.setdefault(name, cls)
            if (held.__module__, held.__qualname__) != (cls.__module__, cls.__qualname__):
                raise ValueError(f"the tag {name} belongs to {held.__module__}.{held.__qualname__}; choose another")
            _CLASSES[name] = cls
        _TAGS[cls] = tag
        return cls

    return enter


def tag_of(cls: type) -> str | None:
    """Return the tag of a class, or None if files cannot hold it."""
    return _TAGS.get(cls)


def class_of(tag: str) -> type | None:
    """Return the class of a tag, or None if no imported package registers it."""
    return _CLASSES.get(tag)
