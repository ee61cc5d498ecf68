"""Regression of winds on the globe."""

from pathlib import Path
from typing import Any, Literal, no_type_check

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rdgp.core import compiled
from rdgp.estimators._base import DeepRegressor
from rdgp.estimators._coordinates import latlon_points, tangent_winds, wind_frame
from rdgp.estimators._distribution import in_frame
from rdgp.models import DeepGP, FieldName, Prediction, deep_gp
from rdgp.spaces import Sphere

_LEVELS_OF_BATCHES = 14  # 448 fields


class VectorFieldRegressor(DeepRegressor):
    """A residual deep Gaussian process for winds: X latitude and longitude in degrees, y winds (u east, v north).

    Winds are divided by their mean speed inside. `layers` counts the output layer, so 1 is a Gaussian process.
    `num_levels` and `num_output_levels` count the eigenvalues that hidden and output layers keep, `samples` the hidden
    draws of a prediction. With `batch_size="auto"` all points are taken at once unless there are thousands.
    """

    @no_type_check  # parameters are checked by fit, as scikit-learn wishes
    def __init__(
        self,
        layers: int = 3,
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
        tags.target_tags.single_output = False
        return tags

    def _model(self, inputs: Float[np.ndarray, "N F"], targets: Float[np.ndarray, "N ..."], batches: bool) -> DeepGP:
        if targets.ndim != 2 or targets.shape[1] != 2:
            raise ValueError(f"y must have 2 columns, winds u east and v north, got shape {targets.shape}")
        kept = _LEVELS_OF_BATCHES if batches and self.num_output_levels is None else self.num_output_levels
        return deep_gp(
            Sphere(2), self.layers, self.field, "tangent", num_levels=self.num_levels, num_output_levels=kept
        )

    def _points(self, inputs: Float[np.ndarray, "N F"]) -> Float[Array, "N D"]:
        return latlon_points(inputs)

    def _scaling(self, targets: Float[np.ndarray, "N ..."]) -> tuple[Float[np.ndarray, "P"], Float[np.ndarray, "P"]]:
        speed = float(np.linalg.norm(targets, axis=1).mean())
        return np.zeros(2), np.full(2, speed if speed > 0.0 else 1.0)

    def _observations(
        self, inputs: Float[np.ndarray, "N F"], scaled: Float[np.ndarray, "N P"]
    ) -> Float[Array, "N ..."]:
        return tangent_winds(inputs, scaled)

    def _noise(self, inputs: Float[np.ndarray, "N F"], scaled: Float[np.ndarray, "N ..."]) -> Float[Array, "N ..."]:
        noise = jnp.asarray(scaled)
        return noise if noise.ndim == 1 else wind_frame(inputs).covariance(noise)

    def _components(self, prediction: Prediction, inputs: Float[np.ndarray, "N F"]) -> Prediction:
        return compiled(in_frame, prediction, wind_frame(inputs, prediction.means.dtype))

    def _values(self, drawn: Float[Array, "N ..."], inputs: Float[np.ndarray, "N F"]) -> Float[Array, "N P"]:
        return wind_frame(inputs, drawn.dtype).coordinates(drawn)

    def _default_names(self, outputs: int) -> tuple[str, ...]:
        return ("u", "v")
