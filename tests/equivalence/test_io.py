"""What comes back from a file is what went into it, bit for bit."""

import math
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdgp.fields import Field, FrameField, ScalarField
from rdgp.inference import FitResult
from rdgp.io import load, save
from rdgp.kernels import Matern
from rdgp.models import ExactGP
from rdgp.spaces import Product, Rotations, Sphere
from tests.cases import FIELDS, fields, points
from tests.equivalence.files import FIELD, refuse, round_trip, same


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
    y = np.cross(x, np.asarray(x)[::-1])
    return ExactGP(FrameField(Sphere(2), Matern(fixed=("nu",)), num_levels=3)).fit(x, y, steps=2)


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
    "named": (FitResult(Sphere(2), np.arange(2.0), "ok", 1.5), Product(Rotations(), Sphere(1))),
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
        field = ScalarField(Sphere(2), Matern(), num_levels=3)
        assert same(round_trip(field, tmp_path), field)
        save(np.zeros(3), tmp_path / "numpy")
        assert load(tmp_path / "numpy").dtype == np.float64
    save(FIELD, tmp_path / "double")
    with jax.enable_x64(False):
        message = refuse(tmp_path / "double")
    assert 'parameters["nu"].raw is float64' in message
    assert 'jax.config.update("jax_enable_x64", True)' in message
