"""What an estimator has learned, as a tree that files can hold."""

import contextlib
import os
import tempfile
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Float

from rdgp.core import register, require
from rdgp.io import load, save
from rdgp.models import DeepGP

base: Any = require("sklearn.base", "sklearn")
validation: Any = require("sklearn.utils.validation", "sklearn")

E = TypeVar("E", bound="FittedEstimator")

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


class FittedEstimator(base.BaseEstimator):
    """What an estimator tells of all it has learned, which is in `fitted_`; pickles and files hold it."""

    fitted_: Fitted

    def precision(self) -> contextlib.AbstractContextManager[Any]:
        """Return a context in which JAX computes in the precision of the fitted model."""
        return jax.enable_x64(self._dtype == np.float64 or jax.config.jax_enable_x64)  # type: ignore[attr-defined]

    @property
    def _dtype(self) -> Any:
        return jax.tree.leaves(eqx.filter(self.fitted_.model, eqx.is_inexact_array))[0].dtype

    def describe(
        self: E, names: tuple[str, ...], units: tuple[str, ...], attributes: tuple[dict[str, Any], ...] | None = None
    ) -> E:
        """Keep names, units and further attributes of the targets with what was learned, and return the estimator."""
        validation.check_is_fitted(self)
        outputs = self.fitted_.offset.size
        attributes = ({},) * outputs if attributes is None else tuple(plain_attributes(own) for own in attributes)
        if not len(names) == len(units) == len(attributes) == outputs:
            raise ValueError(f"names and units must be one for each of {outputs} targets, got {names} and {units}")
        self.fitted_ = self.fitted_._replace(names=tuple(names), units=tuple(units), attributes=attributes)
        return self

    def save(self, path: str | Path) -> None:
        """Write the fitted estimator to one file, for `load_estimator`."""
        validation.check_is_fitted(self)
        save(self.fitted_, path)

    @property
    def model_(self) -> DeepGP:
        """The fitted model, of scaled targets; compute with it inside `with estimator.precision():`."""
        return self.fitted_.model

    @property
    def history_(self) -> Float[np.ndarray, "T"]:
        """The ELBO at each step of training."""
        return self.fitted_.history

    @property
    def status_(self) -> str:
        """How training ended: ok, nan, diverged or stopped."""
        return self.fitted_.status

    @property
    def offset_(self) -> Float[np.ndarray, "P"]:
        """What is subtracted from targets."""
        return self.fitted_.offset

    @property
    def scale_(self) -> Float[np.ndarray, "P"]:
        """By what targets are divided."""
        return self.fitted_.scale

    @property
    def noise_std_(self) -> Float[np.ndarray, "P"]:
        """Standard deviation of the learned observation noise, to which known noise adds, in the units of y."""
        with self.precision():
            return float(np.sqrt(self.fitted_.model.noise_variance)) * self.fitted_.scale

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "fitted_" in state:
            state["fitted_"] = to_bytes(state["fitted_"])
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "fitted_" in state:
            state = {**state, "fitted_": from_bytes(state["fitted_"])}
        super().__setstate__(state)
