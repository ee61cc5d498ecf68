"""Arrays in files: NumPy and JAX arrays, NumPy scalars and random keys, each coming back as the kind it was."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.core.primitives import convert_element_type_p

from rdgp.core import is_concrete

Node = Any
"""A piece of JSON that describes a piece of a tree."""

Tensors = dict[str, np.ndarray]
"""The arrays of a file by name."""

_INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
_NATIVE = ("bool", *_INTEGERS, "float16", "float32", "float64", "complex64")
_AS_BYTES = ("bfloat16", "complex128")  # safetensors cannot hold these; a last axis of bytes does
_KEY_IMPLEMENTATIONS = ("threefry2x32", "rbg", "unsafe_rbg")


def encode_array(value: jax.Array | np.ndarray | np.generic, path: str, tensors: Tensors) -> Node:
    """Put an array into `tensors` under its path and return the node that describes it."""
    if not is_concrete(value):
        raise ValueError(f"cannot save {path}: it is being traced; save outside of jit, grad and vmap")
    if isinstance(value, jax.Array) and jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
        return _encode_key(value, path, tensors)
    node: dict[str, Any] = {"array": _kind(value, path), "dtype": value.dtype.name, "tensor": path}
    if isinstance(value, jax.Array) and jax.typeof(value).weak_type:
        node["weak"] = True
    _store(value, path, tensors)
    return node


def _kind(value: jax.Array | np.ndarray | np.generic, path: str) -> str:
    if isinstance(value, jax.Array):
        return "jax"
    if isinstance(value, np.generic):
        return "scalar"
    if type(value) is np.ndarray:
        return "numpy"
    raise ValueError(f"cannot save {path}: it is a {type(value).__name__}; convert it by numpy.asarray")


def _encode_key(value: jax.Array, path: str, tensors: Tensors) -> Node:
    implementation = str(jax.random.key_impl(value))
    if implementation not in _KEY_IMPLEMENTATIONS:
        known = ", ".join(_KEY_IMPLEMENTATIONS)
        raise ValueError(f"cannot save {path}: it is a random key of kind {implementation}; use one of {known}")
    _store(jax.random.key_data(value), path, tensors)
    return {"array": "key", "dtype": "uint32", "tensor": path, "implementation": implementation}


def _store(value: jax.Array | np.ndarray | np.generic, path: str, tensors: Tensors) -> None:
    dtype = np.dtype(value.dtype)
    if dtype.name not in (*_NATIVE, *_AS_BYTES) or not dtype.isnative:
        raise ValueError(f"cannot save {path}: it has dtype {dtype!r}; convert it to numbers in native byte order")
    if path in tensors:
        raise ValueError(f"cannot save {path}: two arrays of the tree have this path; give them different names")
    array = np.asarray(value, order="C")
    if dtype.name in _AS_BYTES:
        array = array.reshape(-1).view(np.uint8).reshape(*array.shape, dtype.itemsize)
    tensors[path] = array


def decode_array(node: dict[str, Any], tensors: Tensors) -> Any:
    """Return the array a node describes."""
    array = _fetch(node, tensors)
    match node["array"]:
        case "numpy":
            return array
        case "scalar":
            return array[()]
        case "jax":
            return _as_jax(array, weak=node.get("weak", False), path=node["tensor"])
        case "key" if node["implementation"] in _KEY_IMPLEMENTATIONS:
            return jax.random.wrap_key_data(jnp.array(array), impl=node["implementation"])
    raise ValueError(f"{node['tensor']} is an array of a kind unknown here; save it again by this version")


def _fetch(node: dict[str, Any], tensors: Tensors) -> np.ndarray:
    array, dtype = tensors[node["tensor"]], node["dtype"]
    if dtype in _AS_BYTES and array.dtype == np.uint8:
        array = array.view(np.dtype(dtype))[..., 0]
    if array.dtype.name != dtype:
        raise ValueError(f"{node['tensor']} must have dtype {dtype}, got {array.dtype}; save it again")
    return array


def _as_jax(array: np.ndarray, *, weak: bool, path: str) -> jax.Array:
    if jax.dtypes.canonicalize_dtype(array.dtype) != array.dtype:
        raise ValueError(
            f"{path} is {array.dtype} but JAX runs in single precision; "
            'call jax.config.update("jax_enable_x64", True) before loading'
        )
    result = jnp.array(array)
    if weak:  # jax.numpy makes weakly typed scalars only, its primitive weakly typed arrays too
        result = convert_element_type_p.bind(result, new_dtype=result.dtype, weak_type=True, sharding=None)
    return result
