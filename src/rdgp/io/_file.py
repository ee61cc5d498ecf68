"""The file: a safetensors container with one JSON text in its metadata, a checksum over all of it, atomic writing."""

import contextlib
import hashlib
import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import safetensors.numpy
from safetensors import SafetensorError

import rdgp
from rdgp.io._arrays import Node, Tensors

Content = Literal["model", "leaves"]
FilePath = str | os.PathLike[str]

FORMAT = "rdgp"
VERSION = 1
_OPENING = b'{"__metadata__":{"rdgp":'
_DAMAGED = "the file is truncated or damaged; save it again or restore a copy"
_READER = {"model": "load(path)", "leaves": "load_leaves(template, path)"}


def write_file(path: FilePath, content: Content, structure: Node, tensors: Tensors) -> None:
    """Write a structure and its arrays to a file that appears whole or not at all."""
    header = {
        "format": FORMAT,
        "version": VERSION,
        "rdgp": rdgp.__version__,
        "content": content,
        "structure": structure,
    }
    header["sha256"] = _checksum(header, tensors)
    # one key only: safetensors keeps no order among several, and equal models are to give equal files
    write_atomically(Path(path), safetensors.numpy.save(tensors, {FORMAT: json.dumps(header, allow_nan=False)}))


def read_file(path: FilePath, content: Content) -> tuple[Node, Tensors]:
    """Return the structure and the arrays of a file, checked to be what was written."""
    data = _read_bytes(path)
    header = _read_header(data)
    try:
        tensors = safetensors.numpy.load(data)
    except (SafetensorError, LookupError, ValueError):
        raise ValueError(_DAMAGED) from None
    if header.pop("sha256", None) != _checksum(header, tensors):
        raise ValueError(_DAMAGED)
    return _structure(header, content), tensors


def read_structure(path: FilePath, content: Content) -> Node:
    """Return the structure of a file alone; its arrays are neither decoded nor checked."""
    return _structure(_read_header(_read_bytes(path)), content)


def _read_bytes(path: FilePath) -> bytes:
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise FileNotFoundError(f"cannot load {path}: there is no such file; check the path") from None


def _structure(header: dict[str, Any], content: Content) -> Node:
    if header["content"] != content:
        raise ValueError(f"it was not saved for this; use {_READER[header['content']]}")
    return header["structure"]


@contextlib.contextmanager
def loading(path: FilePath) -> Iterator[None]:
    """Put the name of the file before what is wrong with it."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"cannot load {path}: {error}") from None
    except (LookupError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"cannot load {path}: its structure makes no sense here; save it again") from error


def _read_header(data: bytes) -> dict[str, Any]:
    size = int.from_bytes(data[:8], "little")
    try:
        header = json.loads(json.loads(data[8 : 8 + size])["__metadata__"][FORMAT])
        name, version, writer = header["format"], int(header["version"]), header["rdgp"]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise ValueError(_why_unreadable(data)) from None
    if name != FORMAT:
        raise ValueError(_why_unreadable(data))
    if version > VERSION:
        raise ValueError(
            f"it was written by a newer rdgp ({writer}, format {version}; this is rdgp {rdgp.__version__}, which reads "
            f"format {VERSION}); upgrade rdgp"
        )
    return dict(header)


def _why_unreadable(data: bytes) -> str:
    if not data:
        return "the file is empty; save it again or restore a copy"
    if data[8:].startswith(_OPENING):
        return _DAMAGED
    return "it is not a file of rdgp, or its beginning is damaged; pass one written by rdgp.io.save or save_leaves"


def _checksum(header: dict[str, Any], tensors: Tensors) -> str:
    digest = hashlib.sha256(json.dumps(header, allow_nan=False).encode())
    for name, array in sorted(tensors.items()):
        digest.update(f"\n{name} {array.dtype.name} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file whole or not at all, over whatever was there."""
    target = Path(os.path.realpath(path))  # a link stays a link
    if not target.parent.is_dir():
        raise ValueError(f"cannot save {path}: there is no folder {target.parent}; create it first")
    if target.is_dir():
        raise ValueError(f"cannot save {path}: it is a folder; add the name of a file")
    temporary = target.with_name(f".rdgp-{secrets.token_hex(8)}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Make the new name survive a power cut, where the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
