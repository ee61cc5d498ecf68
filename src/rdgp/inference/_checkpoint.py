"""Checkpoints of training: all that it changes, and what must agree for another fit to go on with it."""

from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import jax
import numpy as np
from jaxtyping import Float

from rdgp.fields import Field
from rdgp.inference._data import Data
from rdgp.io import load_leaves, save_leaves
from rdgp.models import DeepGP

S = TypeVar("S")
Summary = dict[str, Any]


def describe_fit(model: DeepGP, data: Data) -> Summary:
    """Return what tells fits apart: points, data and key by a digest, and the sizes of all layers."""
    arrays = (data.x, data.y, jax.random.key_data(data.key))
    digest = sha256(b"".join(np.asarray(array).tobytes() for array in arrays)).hexdigest()[:12]
    layers = [_describe(layer) for layer in (*model.hidden, model.output)]
    return {"points": data.x.shape[0], "data and key": digest, "layers": layers}


def _describe(layer: Any) -> str:
    if layer is None:
        return "no output"
    field = layer if isinstance(layer, Field) else layer.field
    sizes = [latent.copies * latent.levels().size for latent in field.latents if latent.spectral]
    return f"{type(field).__name__} on {field.space} of {sum(sizes)} features"


def save_state(state: object, history: Float[np.ndarray, "T"], path: str | Path, summary: Summary) -> None:
    """Write the state of training and the bounds so far."""
    save_leaves(state, path, extra={"plan": summary, "history": history})


def load_state(state: S, path: str | Path, summary: Summary) -> tuple[S, Float[np.ndarray, "T"]]:
    """Return the state and the bounds of a file that belongs to the same fit, or raise."""
    state, extra = load_leaves(state, path)
    if extra.get("plan") != summary:
        raise ValueError(f"{path} belongs to a fit with {extra.get('plan')}, this one has {summary}; use another file")
    return state, np.asarray(extra["history"])
