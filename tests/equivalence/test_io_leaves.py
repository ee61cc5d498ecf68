"""Leaves saved without their structure come back into a template, or an error in one line."""

import math
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
import pytest

from rdgp.io import load_leaves, save, save_leaves
from tests.equivalence.files import FIELD, one_line, refuse, same


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
