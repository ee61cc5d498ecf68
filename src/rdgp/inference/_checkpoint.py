"""Checkpoints of training: all that it changes, and what must agree for another fit to go on with it."""

from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

import jax
import numpy as np
from jaxtyping import Float, PRNGKeyArray

from rdgp.fields import Field
from rdgp.io import load_leaves, save_leaves
from rdgp.models import Data, DeepGP

S = TypeVar("S")
Summary = dict[str, Any]


def describe_fit(model: DeepGP, data: Data, key: PRNGKeyArray) -> Summary:
    """Return what tells fits apart: points, data and key by a digest, and the sizes of all layers."""
    arrays = (data.x, data.y, *([] if data.noise is None else [data.noise]), jax.random.key_data(key))
    digest = sha256(b"".join(np.asarray(array).tobytes() for array in arrays)).hexdigest()[:12]
    fields = [layer.field for layer in model.hidden] + ([] if model.output.bundle is None else [model.field])
    layers = [f"{type(field).__name__} on {field.space} of {_size(field)} features" for field in fields]
    return {"points": data.num_points, "data and key": digest, "layers": layers}


def _size(field: Field) -> int:
    return field.num_weights if field.has_features else 0


def save_state(state: object, history: Float[np.ndarray, "T"], path: str | Path, summary: Summary) -> None:
    """Write the state of training and the bounds so far."""
    save_leaves(state, path, extra={"plan": summary, "history": history})


def load_state(state: S, path: str | Path, summary: Summary) -> tuple[S, Float[np.ndarray, "T"]]:
    """Return the state and the bounds of a file that belongs to the same fit, or raise."""
    state, extra = load_leaves(state, path)
    if extra.get("plan") != summary:
        raise ValueError(f"{path} belongs to a fit with {extra.get('plan')}, this one has {summary}; use another file")
    return state, np.asarray(extra["history"])
