"""What cannot be saved or loaded is refused in one line, and harms no file."""

import importlib
import inspect
import json
import os
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import safetensors.numpy

from rdgp.core import class_of, register, tag_of
from rdgp.fields import HodgeField
from rdgp.io import _file, load, save
from rdgp.models import ExactGP
from rdgp.spaces import Sphere
from tests.cases import points
from tests.equivalence.files import FIELD, one_line, refuse

Foreign = namedtuple("Foreign", "x")


class Outside(eqx.Module):
    x: Any


UNSAVABLE = {
    "function": ({"a": [1, len]}, 'model["a"][1]: it is a builtins.builtin_function_or_method'),
    "in a module": (eqx.tree_at(lambda gp: gp.field, ExactGP(FIELD), len), "model.field: it is a builtins"),
    "module from outside": (Outside(1.0), "model: it is a tests.equivalence.test_io_refused.Outside"),
    "tuple from outside": ((Foreign(1),), "model[0]: it is a tests.equivalence.test_io_refused.Foreign"),
    "optimizer": (optax.adam(0.1).init(jnp.zeros(2)), "by save_leaves"),
    "key of a dict": ({"a": {1: 2}}, 'model["a"]: keys of a dict must be strings, got 1'),
    "objects": (np.array([None]), "model: it has dtype dtype('O')"),
    "text": (np.array(["a"]), "model: it has dtype dtype('<U1')"),
    "byte order": (np.zeros(2, ">f8"), "native byte order"),
    "subclass": (np.ma.zeros(2), "it is a MaskedArray"),
    "set": ([{1}], "model[0]: it is a builtins.set"),
}


@pytest.mark.parametrize("name", UNSAVABLE)
def test_what_cannot_be_saved_is_named(name: str, tmp_path: Path) -> None:
    tree, expected = UNSAVABLE[name]
    with pytest.raises(ValueError, match="cannot save") as error:
        save(tree, tmp_path / "tree")
    assert expected in one_line(error)
    assert not list(tmp_path.iterdir())


def test_tracers_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"model\[0\]: it is being traced"):
        jax.jit(lambda x: save([x], tmp_path / "tree"))(1.0)


def test_a_failing_save_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "model"
    save(FIELD, path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match="cannot save"):
        save(len, path)

    def fail(*_: object) -> None:
        raise KeyboardInterrupt

    for function in ("fsync", "replace"):
        monkeypatch.setattr(os, function, fail)
        with pytest.raises(KeyboardInterrupt):
            save(Sphere(2), path)
        monkeypatch.undo()
        assert path.read_bytes() == before
        assert [entry.name for entry in tmp_path.iterdir()] == ["model"]
    save(Sphere(2), path)
    assert load(path) == Sphere(2)


def test_saving_through_a_link_keeps_the_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "model")
    save(Sphere(2), tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert load(tmp_path / "model") == Sphere(2)


def test_wrong_places(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"there is no folder .*missing; create it first"):
        save(FIELD, tmp_path / "missing" / "model")
    with pytest.raises(ValueError, match="it is a folder; add the name of a file"):
        save(FIELD, tmp_path)
    with pytest.raises(FileNotFoundError, match="there is no such file"):
        load(tmp_path / "model")


FOREIGN = {
    "empty": (b"", "the file is empty"),
    "text": (b"hello world, this is some text\n", "it is not a file of rdgp"),
    "short": (b"abc", "it is not a file of rdgp"),
    "numbers": (bytes(range(256)), "it is not a file of rdgp"),
    "json": (b"\x02\0\0\0\0\0\0\0{}", "it is not a file of rdgp"),
    "safetensors": (safetensors.numpy.save({"a": np.zeros(3)}), "it is not a file of rdgp"),
    "metadata": (safetensors.numpy.save({"a": np.zeros(3)}, {"format": "pt"}), "it is not a file of rdgp"),
    "no header": (safetensors.numpy.save({}, {"rdgp": "1"}), "truncated or damaged"),
    "other format": (safetensors.numpy.save({}, {"rdgp": '{"format":"x","version":2,"rdgp":""}'}), "damaged"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_files(name: str, tmp_path: Path) -> None:
    data, expected = FOREIGN[name]
    (tmp_path / "file").write_bytes(data)
    assert expected in refuse(tmp_path / "file")


def test_truncated_files(tmp_path: Path) -> None:
    save(ExactGP(FIELD).condition(points(Sphere(2), 0), np.ones(5)), tmp_path / "model")
    data = (tmp_path / "model").read_bytes()
    for size in [*range(60), *range(60, len(data), 97), len(data) - 1]:
        (tmp_path / "part").write_bytes(data[:size])
        message = refuse(tmp_path / "part")
        assert size < 40 or "truncated" in message
    (tmp_path / "part").write_bytes(data + b"\0")
    assert "damaged" in refuse(tmp_path / "part")


def test_damaged_files(tmp_path: Path) -> None:
    tree = {"field": FIELD, "array": np.arange(20.0), "flag": True, "name": "abc"}
    save(tree, tmp_path / "model")
    data = (tmp_path / "model").read_bytes()
    random = np.random.default_rng(0)
    for position in [*range(200), *range(200, len(data), 5)]:
        damaged = bytearray(data)
        damaged[position] ^= int(random.choice([1, 2, 16, 64, 128, 255]))
        (tmp_path / "damaged").write_bytes(damaged)
        refuse(tmp_path / "damaged")


def forge(path: Path, tensors: dict[str, np.ndarray] | None = None, **changes: Any) -> Path:
    """Write a file with a valid checksum and a header to order."""
    tensors = tensors or {}
    header = {"format": "rdgp", "version": 2, "rdgp": "0.1.0", "content": "model", "structure": None, **changes}
    header["sha256"] = _file._checksum(header, tensors)
    path.write_bytes(safetensors.numpy.save(tensors, {"rdgp": json.dumps(header)}))
    return path


SPHERE = {"class": "rdgp:Sphere", "fields": {"d": 2}}
FORGED = {
    "newer": ({"version": 3, "rdgp": "9.9"}, "written by a newer rdgp (9.9, format 3; this is rdgp"),
    "older": ({"version": 1}, "written in format 1, before classes had stable names; this rdgp reads format 2"),
    "no such class": ({"structure": SPHERE | {"class": "rdgp:Hyperbolic"}}, "the class rdgp:Hyperbolic, unknown"),
    "another package": ({"structure": SPHERE | {"class": "cellar:Sphere"}}, "import the package that registers it"),
    "outside": ({"structure": SPHERE | {"class": "os:system"}}, "the class os:system; import the package that"),
    "a path": ({"structure": SPHERE | {"class": "os.system"}}, "the class os.system; import the package that"),
    "a module": ({"structure": SPHERE | {"class": "rdgp:spaces.Sphere"}}, "the class rdgp:spaces.Sphere, unknown"),
    "function": ({"structure": SPHERE | {"class": "rdgp:Circle"}}, "the class rdgp:Circle, unknown"),
    "abstract": ({"structure": SPHERE | {"class": "rdgp:Space"}}, "the class rdgp:Space, unknown"),
    "one field less": ({"structure": SPHERE | {"fields": {}}}, "must have the fields d, got none"),
    "one field more": ({"structure": SPHERE | {"fields": {"d": 2, "e": 3}}}, "must have the fields d, got d, e"),
    "tuple fields": ({"structure": {"class": "rdgp:FitResult", "fields": {"model": 1}}}, "seconds, got model"),
    "no such node": ({"structure": [1]}, "its structure holds '[1]'"),
    "float": ({"structure": {"float": "1e3"}}, "its structure holds"),
    "no tensor": ({"structure": {"array": "jax", "dtype": "float64", "tensor": "x"}}, "its structure holds"),
    "kind": ({"structure": {"array": "cow", "dtype": "float64", "tensor": "a"}}, "a kind unknown here"),
    "dtype": ({"structure": {"array": "jax", "dtype": "int8", "tensor": "a"}}, "must have dtype int8, got float64"),
    "key": ({"structure": {"array": "key", "dtype": "float64", "tensor": "a"}}, "its structure makes no sense here"),
    "content": ({"content": "cow"}, "its structure makes no sense here"),
    "leaves": ({"content": "leaves"}, "use load_leaves(template, path)"),
}


@pytest.mark.parametrize("name", FORGED)
def test_files_that_ask_for_what_is_not_there(name: str, tmp_path: Path) -> None:
    changes, expected = FORGED[name]
    assert expected in refuse(forge(tmp_path / "file", {"a": np.zeros(2)}, **changes))


def test_forged_file_without_fault_loads(tmp_path: Path) -> None:
    assert load(forge(tmp_path / "file", structure=SPHERE)) == Sphere(2)


def test_files_name_classes_by_tags_that_lead_back() -> None:
    assert tag_of(HodgeField) == "rdgp:HodgeField"
    posterior = ExactGP(FIELD).condition(points(Sphere(2), 0), np.ones(5)).posterior
    assert tag_of(type(posterior)) == "rdgp:Exact"
    assert class_of("rdgp:HodgeField") is HodgeField


LIBRARY = ("core", "spaces", "spectra", "kernels", "fields", "posteriors", "likelihoods", "models", "inference")


def modules(cls: type) -> Iterator[type]:
    """Yield all concrete classes below one, wherever they are defined."""
    for own in cls.__subclasses__():
        abstract = inspect.isabstract(own) or getattr(own, "__abstractvars__", ())
        if own.__module__.split(".")[0] == "rdgp" and not abstract:
            yield own
        yield from modules(own)


def test_every_module_of_the_library_has_a_tag_of_its_own() -> None:
    for name in LIBRARY:
        importlib.import_module(f"rdgp.{name}")
    found = {own for own in modules(eqx.Module) if own.__module__.split(".")[1] in LIBRARY}
    assert HodgeField in found
    untagged = sorted(own.__qualname__ for own in found if tag_of(own) is None)
    assert untagged == ["_Shallow"]  # which lives inside a search only
    tags = {own: tag_of(own) for own in found if tag_of(own)}
    assert len(tags) == len(set(tags.values()))
    assert all(class_of(tag) is own for own, tag in tags.items())


def test_two_classes_of_one_tag_are_found_out() -> None:
    with pytest.raises(ValueError, match=r"the tag rdgp:Sphere belongs to rdgp\.spaces\._sphere\.Sphere") as error:
        register("rdgp:Sphere")(Outside)
    one_line(error)
    assert class_of("rdgp:Sphere") is Sphere
    with pytest.raises(ValueError, match='a tag must have the form "package:Name"'):
        register("Sphere")


def test_a_class_keeps_its_former_tags(tmp_path: Path) -> None:
    @register("tests:Renamed", "tests:FormerName")
    class Renamed(eqx.Module):
        x: Any

    structure = {"class": "tests:FormerName", "fields": {"x": 1.5}}
    loaded = load(forge(tmp_path / "file", structure=structure))
    assert type(loaded) is Renamed
    assert loaded.x == 1.5
    save(loaded, tmp_path / "again")
    assert b"tests:Renamed" in (tmp_path / "again").read_bytes()
