"""What an estimator has learned, as a tree that files can hold."""

import os
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from rdgp.core import register
from rdgp.io import load, save
from rdgp.models import DeepGP

_PLAIN = (bool, int, float, str)


@register("rdgp:Fitted")
class Fitted(NamedTuple):
    """A fitted model, the units it works in, and the history of its training.

    The model describes (y - offset) / scale; `seed` gives the hidden draws of its predictions. `inputs`, `targets` and
    `noise_variance` are what it was fitted to, in the units of the user.
    """

    estimator: str
    parameters: dict[str, Any]
    model: DeepGP
    offset: Float[np.ndarray, "P"]
    scale: Float[np.ndarray, "P"]
    seed: int
    history: Float[np.ndarray, "T"]
    status: str
    seconds: float
    inputs: Float[np.ndarray, "N F"]
    targets: Float[np.ndarray, "N ..."]
    feature_names: tuple[str, ...] | None
    names: tuple[str, ...]
    units: tuple[str, ...]
    attributes: tuple[dict[str, Any], ...]
    noise_variance: Float[np.ndarray, "N ..."] | None = None


def savable_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """Return parameters of an estimator as files can hold them; a source of random numbers is left out."""
    return {name: _plain(value) for name, value in parameters.items()}


def plain_attributes(attributes: dict[str, Any]) -> dict[str, Any]:
    """Return those attributes that are one number or text each."""
    found = {str(name): _plain(value) for name, value in attributes.items()}
    return {name: value for name, value in found.items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, _PLAIN) else None


def to_bytes(fitted: Fitted) -> bytes:
    """Return the content of the file that `rdgp.save` would write."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "estimator.rdgp"
        save(fitted, path)
        return path.read_bytes()


def from_bytes(content: bytes) -> Fitted:
    """Return what `to_bytes` was given."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "estimator.rdgp"
        path.write_bytes(content)
        with jax.enable_x64(True):  # numbers come as they were written
            return load(path)
