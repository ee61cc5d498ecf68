"""Trees that go to files and come back."""

from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdgp.fields import ScalarField
from rdgp.io import load, save
from rdgp.kernels import Matern
from rdgp.spaces import Sphere

FIELD = ScalarField(Sphere(2), Matern(), num_levels=3)


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
