"""Regression of scalars on spheres."""

from pathlib import Path
from typing import Any, Literal, no_type_check

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rdgp.estimators._base import DeepRegressor
from rdgp.estimators._coordinates import latlon_points
from rdgp.models import DeepGP, FieldName, Prediction, deep_gp
from rdgp.spaces import Sphere

_COORDINATES = ("latlon", "ambient", "lifted")


class SphereRegressor(DeepRegressor):
    """A residual deep Gaussian process for one or several scalar targets on a sphere, with a constant mean.

    `coordinates` says what the columns of X are: "latlon" latitude and longitude in degrees; "ambient" unit vectors in
    any dimension; "lifted" any d features, which are put on the sphere S_d as (x, 1) / |(x, 1)|: scale them to about
    one before. Targets are standardized inside. `layers` counts the output layer, so 1 is a Gaussian process.
    `num_levels` and `num_output_levels` count the eigenvalues that hidden and output layers keep, `samples` the hidden
    draws of a prediction. With `batch_size="auto"` all points are taken at once unless there are thousands.
    """

    coordinates: Literal["latlon", "ambient", "lifted"]

    @no_type_check  # parameters are checked by fit, as scikit-learn wishes
    def __init__(
        self,
        layers: int = 2,
        coordinates: Literal["latlon", "ambient", "lifted"] = "latlon",
        *,
        field: FieldName = "hodge",
        num_levels: int | None = None,
        num_output_levels: int | None = None,
        steps: int | None = None,
        batch_size: int | Literal["auto"] | None = "auto",
        samples: int = 10,
        recipe: Literal["default", "quick", "paper"] = "default",
        random_state: Any = None,
        progress: bool = False,
        checkpoint: str | Path | None = None,
    ) -> None:
        self.layers = layers
        self.coordinates = coordinates
        self.field = field
        self.num_levels = num_levels
        self.num_output_levels = num_output_levels
        self.steps = steps
        self.batch_size = batch_size
        self.samples = samples
        self.recipe = recipe
        self.random_state = random_state
        self.progress = progress
        self.checkpoint = checkpoint

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _model(self, inputs: Float[np.ndarray, "N F"], targets: Float[np.ndarray, "N ..."], batches: bool) -> DeepGP:
        if self.coordinates not in _COORDINATES:
            raise ValueError(f"coordinates must be one of {', '.join(_COORDINATES)}, got {self.coordinates!r}")
        columns = inputs.shape[1]
        if self.coordinates == "ambient" and columns < 2:
            raise ValueError(f"ambient coordinates must have at least 2 columns, got {columns}")
        outputs = 1 if targets.ndim == 1 else targets.shape[1]
        return deep_gp(
            Sphere({"latlon": 2, "ambient": columns - 1, "lifted": columns}[self.coordinates]),
            self.layers,
            self.field,
            "scalar" if outputs == 1 else outputs,
            num_levels=self.num_levels,
            num_output_levels=self.num_output_levels,
            constant_mean=True,
        )

    def _points(self, inputs: Float[np.ndarray, "N F"]) -> Float[Array, "N D"]:
        if self.coordinates == "latlon":
            return latlon_points(inputs)
        if self.coordinates == "lifted":
            size = np.hypot(np.linalg.norm(inputs, axis=1, keepdims=True), 1.0)
            inputs = np.concatenate([inputs, np.ones((len(inputs), 1))], axis=1) / size
        return jnp.asarray(inputs)

    def _scaling(self, targets: Float[np.ndarray, "N ..."]) -> tuple[Float[np.ndarray, "P"], Float[np.ndarray, "P"]]:
        columns = targets.reshape(len(targets), -1)
        offset, std = columns.mean(axis=0), columns.std(axis=0)
        smallest = np.finfo(np.float32).eps * np.abs(offset)  # constant but for rounding
        return offset, np.where(std > smallest, std, 1.0)

    def _observations(
        self, inputs: Float[np.ndarray, "N F"], scaled: Float[np.ndarray, "N P"]
    ) -> Float[Array, "N ..."]:
        return jnp.asarray(scaled[:, 0] if scaled.shape[1] == 1 else scaled)

    def _noise(self, inputs: Float[np.ndarray, "N F"], scaled: Float[np.ndarray, "N ..."]) -> Float[Array, "N ..."]:
        return jnp.asarray(scaled)

    def _components(self, prediction: Prediction, inputs: Float[np.ndarray, "N F"]) -> Prediction:
        return prediction

    def _values(self, drawn: Float[Array, "N ..."], inputs: Float[np.ndarray, "N F"]) -> Float[Array, "N P"]:
        return drawn.reshape(len(inputs), -1)
