"""What comes back from a file is what went into it, bit for bit, or an error in one line."""

import json
import math
import os
import subprocess
import sys
from collections import namedtuple
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import safetensors.numpy

import rdgp
from rdgp import ExactGP, FrameField, HodgeField, Matern, Product, Rotations, ScalarField, Sphere
from rdgp.fields import Field
from rdgp.io import _classes, _file, load, load_leaves, save, save_leaves
from rdgp.spectra import HodgePart
from tests.cases import FIELDS, fields, points

FIELD = ScalarField(Sphere(2), Matern(), levels=3)


def same(a: Any, b: Any) -> bool:
    """Compare two trees bit for bit: types, static fields, kinds of arrays, dtypes, bytes."""
    if type(a) is not type(b):
        return False
    if isinstance(a, jax.Array) and jnp.issubdtype(a.dtype, jax.dtypes.prng_key):
        return a.dtype == b.dtype and same(jax.random.key_data(a), jax.random.key_data(b))
    if isinstance(a, jax.Array) and jax.typeof(a) != jax.typeof(b):
        return False
    if isinstance(a, jax.Array | np.ndarray | np.generic):
        return (a.dtype, a.shape) == (b.dtype, b.shape) and np.asarray(a).tobytes() == np.asarray(b).tobytes()
    if isinstance(a, eqx.Module):
        return same(dict(sorted(vars(a).items())), dict(sorted(vars(b).items())))
    if isinstance(a, dict):
        return list(a) == list(b) and all(same(a[key], b[key]) for key in a)
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    return repr(a) == repr(b)


def round_trip(tree: Any, folder: Path) -> Any:
    save(tree, folder / "tree.rdgp")
    return load(folder / "tree.rdgp")


def one_line(error: pytest.ExceptionInfo) -> str:
    message = str(error.value)
    assert "\n" not in message
    return message


def refuse(path: Path) -> str:
    with pytest.raises(ValueError, match="cannot load") as error:
        load(path)
    return one_line(error)


@fields
def test_fields(field: Field, tmp_path: Path) -> None:
    loaded = round_trip(field, tmp_path)
    assert same(loaded, field)
    assert jax.tree.structure(loaded) == jax.tree.structure(field)


@pytest.mark.parametrize("name", ["scalar-product-kernel", "stacked-sphere", "projected-sphere", "hodge-torus"])
def test_numbers_of_fields(name: str, tmp_path: Path) -> None:
    """Fields are functions of their trees, which are compared above, so one field of a kind is enough here."""
    field = FIELDS[name]()
    loaded, x = round_trip(field, tmp_path), points(field.space, 0)
    assert same(loaded.covariance(x, x), field.covariance(x, x))
    assert same(loaded.features(x), field.features(x))
    assert same(loaded.scales(), field.scales())


@pytest.fixture(scope="module")
def fitted() -> ExactGP:
    x = points(Sphere(2), 0, 12)
    return ExactGP(FrameField(Sphere(2), Matern(fixed=("nu",)), levels=3)).fit(x, jnp.cross(x, x[::-1]), steps=2)


def test_exact_gp(fitted: ExactGP, tmp_path: Path) -> None:
    loaded = round_trip(fitted, tmp_path)
    assert same(loaded, fitted)
    x = points(Sphere(2), 3)
    assert same(loaded.predict(x), fitted.predict(x))
    draw = fitted.draw(key=jax.random.key(1))
    assert same(round_trip(draw, tmp_path), draw)


def test_fresh_process(fitted: ExactGP, tmp_path: Path) -> None:
    path, x = tmp_path / "model.rdgp", points(Sphere(2), 3)
    save(fitted, path)
    np.save(tmp_path / "x.npy", x)
    code = (
        "import jax, sys, numpy as np; jax.config.update('jax_enable_x64', True); import rdgp.io;"
        "p = rdgp.io.load(sys.argv[1]).predict(np.load(sys.argv[2])); np.save(sys.argv[3], p.mean)"
    )
    arguments = [path, tmp_path / "x.npy", tmp_path / "mean.npy"]
    subprocess.run([sys.executable, "-W", "error", "-c", code, *map(str, arguments)], check=True, timeout=300)
    assert same(np.load(tmp_path / "mean.npy"), np.asarray(fitted.predict(x).mean))


def test_equal_models_give_equal_files(tmp_path: Path) -> None:
    for name in ("a", "b"):
        save(FIELDS["hodge-product"](), tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


DTYPES = ["bool", "int8", "uint16", "int32", "int64", "uint64", "float16", "float32", "float64"]
LEAVES = {
    "plain": [None, True, False, 0, -(2**70), 0.1, -0.0, 5e-324, "", 'a"\n\\é\U0001f30d\x00\ud800'],
    "not finite": (math.inf, -math.inf, math.nan),
    "containers": {"": [], "a.b": (), "a": {"b": ((1,), [2])}, '"]': {}},
    "named": (HodgePart("curl", np.arange(2.0), np.arange(2)), Product(Rotations(), Sphere(1))),
    "numpy": [np.arange(6).reshape(2, 3).astype(dtype) for dtype in [*DTYPES, "complex64", "complex128"]],
    "layouts": [np.asfortranarray(np.eye(3, 2)), np.arange(9.0)[::-2], np.zeros((0, 3)), np.array(2.0)],
    "empty complex": np.zeros((0, 3), complex),
    "scalars": [np.float32(0.1), np.float64(0.1), np.int8(3), np.bool_(True), np.complex128(1j)],
    "odd bits": np.array([0x7FF8000000000123, 0xFFF0000000000001, 1, 1 << 63], np.uint64).view(np.float64),
    "jax": [jnp.arange(6).reshape(2, 3).astype(dtype) for dtype in [*DTYPES, "bfloat16", "complex128"]],
    "weak": [jnp.asarray(1.5), jnp.full(3, 2.0), jnp.asarray(1)],
    "keys": [jax.random.key(3), jax.random.split(jax.random.key(4, impl="rbg"), 3), jax.random.PRNGKey(5)],
}


@pytest.mark.parametrize("name", LEAVES)
def test_leaves_of_every_kind(name: str, tmp_path: Path) -> None:
    tree = LEAVES[name]
    assert same(round_trip(tree, tmp_path), tree)


def test_loaded_numpy_arrays_can_be_written_to(tmp_path: Path) -> None:
    loaded = round_trip(np.zeros(3), tmp_path)
    loaded[0] = 1.0


def test_single_precision(tmp_path: Path) -> None:
    with jax.enable_x64(False):
        field = ScalarField(Sphere(2), Matern(), levels=3)
        assert same(round_trip(field, tmp_path), field)
        save(np.zeros(3), tmp_path / "numpy")
        assert load(tmp_path / "numpy").dtype == np.float64
    save(FIELD, tmp_path / "double")
    with jax.enable_x64(False):
        message = refuse(tmp_path / "double")
    assert "_nu.raw is float64" in message
    assert 'jax.config.update("jax_enable_x64", True)' in message


Foreign = namedtuple("Foreign", "x")


class Outside(eqx.Module):
    x: Any


UNSAVABLE = {
    "function": ({"a": [1, len]}, 'model["a"][1]: it is a builtins.builtin_function_or_method'),
    "in a module": (eqx.tree_at(lambda gp: gp.field, ExactGP(FIELD), len), "model.field: it is a builtins"),
    "module from outside": (Outside(1.0), "model: it is a tests.equivalence.test_io.Outside"),
    "tuple from outside": ((Foreign(1),), "model[0]: it is a tests.equivalence.test_io.Foreign"),
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
    "other format": (safetensors.numpy.save({}, {"rdgp": '{"format":"x","version":1,"rdgp":""}'}), "damaged"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_files(name: str, tmp_path: Path) -> None:
    data, expected = FOREIGN[name]
    (tmp_path / "file").write_bytes(data)
    assert expected in refuse(tmp_path / "file")


def test_truncated_files(fitted: ExactGP, tmp_path: Path) -> None:
    save(fitted, tmp_path / "model")
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
    header = {"format": "rdgp", "version": 1, "rdgp": "0.1.0", "content": "model", "structure": None, **changes}
    header["sha256"] = _file._checksum(header, tensors)
    path.write_bytes(safetensors.numpy.save(tensors, {"rdgp": json.dumps(header)}))
    return path


SPHERE = {"class": "spaces.Sphere", "fields": {"d": 2}}
FORGED = {
    "newer": ({"version": 2, "rdgp": "9.9"}, "written by a newer rdgp (9.9, format 2; this is rdgp"),
    "no such class": ({"structure": SPHERE | {"class": "spaces.Hyperbolic"}}, "the class spaces.Hyperbolic, unknown"),
    "no such room": ({"structure": SPHERE | {"class": "cellar.Sphere"}}, "the class cellar.Sphere, unknown"),
    "outside": ({"structure": SPHERE | {"class": "os.system"}}, "the class os.system, unknown"),
    "outside by a room": ({"structure": SPHERE | {"class": "fields._field.eqx.Module"}}, "unknown here"),
    "function": ({"structure": SPHERE | {"class": "spaces.Circle"}}, "the class spaces.Circle, unknown"),
    "abstract": ({"structure": SPHERE | {"class": "spaces.Space"}}, "the class spaces.Space, unknown"),
    "one field less": ({"structure": SPHERE | {"fields": {}}}, "must have the fields d, got none"),
    "one field more": ({"structure": SPHERE | {"fields": {"d": 2, "e": 3}}}, "must have the fields d, got d, e"),
    "tuple fields": ({"structure": {"class": "spectra.HodgePart", "fields": {"name": ""}}}, "multiplicities, got name"),
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


def test_names_of_classes_are_short_where_exported_and_lead_back() -> None:
    assert _classes.class_name(HodgeField) == "fields.HodgeField"
    assert _classes.class_name(type(ExactGP(FIELD).condition(points(Sphere(2), 0), jnp.ones(5)).posterior)) == (
        "models._conditioned.Conditioned"
    )
    assert _classes.find_class("fields._hodge.HodgeField") is HodgeField
    rooms = [path.name for path in Path(rdgp.__file__).parent.iterdir() if path.is_dir()]
    for room in rooms:
        for name, cls in _classes._classes_of_room(room).items():
            assert _classes.find_class(name) is cls
            assert _classes.find_class(_classes.class_name(cls)) is cls


def test_two_classes_of_one_name_are_found_out() -> None:
    with pytest.raises(ValueError, match=r"two classes are named spaces\.Sphere"):
        _classes.add_class({"spaces.Sphere": Sphere}, "spaces.Sphere", Rotations)


class State(NamedTuple):
    model: Any
    optimizer: Any
    key: Any
    step: Any


def state(steps: int) -> State:
    optimizer = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(optax.cosine_decay_schedule(0.1, 10)))
    model, key = FIELD, jax.random.key(steps)
    params, rest = eqx.partition(model, eqx.is_inexact_array)
    inner = optimizer.init(params)
    for _ in range(steps):
        updates, inner = optimizer.update(jax.tree.map(jnp.ones_like, params), inner, params)
        params = optax.apply_updates(params, updates)
    return State(eqx.combine(params, rest), inner, key, steps)


def test_leaves_with_a_template(tmp_path: Path) -> None:
    trained, extra = state(3), {"history": [1.0, math.nan], "status": "ok", "best": None}
    save_leaves(trained, tmp_path / "checkpoint", extra=extra)
    loaded, more = load_leaves(state(0), tmp_path / "checkpoint")
    assert same(loaded, trained)
    assert same(more, extra)
    shapes = eqx.filter_eval_shape(lambda: state(0)._replace(step=0))
    assert same(load_leaves(shapes, tmp_path / "checkpoint")[0], trained)


def test_leaves_without_extra(tmp_path: Path) -> None:
    save_leaves([], tmp_path / "checkpoint")
    assert load_leaves([], tmp_path / "checkpoint") == ([], {})


ARRAY = jnp.zeros((2, 3))
TEMPLATES = {
    "shape": ({"a": jnp.zeros((3, 2)), "b": 1.0}, "tree['a'] is float64[3, 2] in the template, float64[2, 3] in the"),
    "dtype": ({"a": jnp.zeros((2, 3), jnp.float32), "b": 1.0}, "tree['a'] is float32[2, 3] in the template, float64["),
    "type": ({"a": ARRAY, "b": 1}, "tree['b'] is int in the template, float in the file"),
    "array or not": ({"a": 0.0, "b": 1.0}, "tree['a'] is float in the template, float64[2, 3] in the file"),
    "key": ({"a": jax.random.key(0), "b": 1.0}, "tree['a'] is key<fry>[] in the template"),
    "fewer": (
        {"a": ARRAY},
        "has 1 leaves, the file 2, and the first that differ are no leaf in the template",
    ),
    "more": ({"a": ARRAY, "b": 1.0, "c": 1}, "are tree['c'] in the template, no leaf in the file"),
    "name": ({"a": ARRAY, "c": 1.0}, "are tree['c'] in the template, tree['b'] in the file"),
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_templates_that_do_not_fit(name: str, tmp_path: Path) -> None:
    template, expected = TEMPLATES[name]
    save_leaves({"a": ARRAY, "b": 1.0}, tmp_path / "checkpoint")
    with pytest.raises(ValueError, match="cannot load") as error:
        load_leaves(template, tmp_path / "checkpoint")
    assert expected in one_line(error)
    assert "build the template as the saved tree was built" in str(error.value)


def test_errors_of_leaves(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"cannot save tree\['a'\]: it is a builtins"):
        save_leaves({"a": len}, tmp_path / "checkpoint")
    save_leaves({"a": ARRAY}, tmp_path / "checkpoint")
    assert "use load_leaves(template, path)" in refuse(tmp_path / "checkpoint")
    with jax.enable_x64(False), pytest.raises(ValueError, match="jax_enable_x64"):
        load_leaves({"a": ARRAY}, tmp_path / "checkpoint")
    save(FIELD, tmp_path / "model")
    with pytest.raises(ValueError, match=r"use load\(path\)"):
        load_leaves(FIELD, tmp_path / "model")
    (tmp_path / "part").write_bytes((tmp_path / "checkpoint").read_bytes()[:-3])
    with pytest.raises(ValueError, match="truncated or damaged"):
        load_leaves({"a": ARRAY}, tmp_path / "part")
