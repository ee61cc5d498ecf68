"""The machinery common to all estimators: scaling, fitting, prediction in blocks."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import Progress, as_here, check_count, check_unmasked, require
from rdgp.estimators._distribution import (
    Summary,
    join_predictions,
    join_summaries,
    rescale,
    summarize,
    with_known_noise,
)
from rdgp.estimators._fitted import Fitted, FittedEstimator, savable_parameters
from rdgp.estimators._noise import known_covariances, scaled_noise
from rdgp.inference import FitResult, PrecisionWarning, fit
from rdgp.io import load
from rdgp.models import DeepGP, FieldName, Prediction

base: Any = require("sklearn.base", "sklearn")
validation: Any = require("sklearn.utils.validation", "sklearn")

_BLOCK = 16384  # points predicted between two looks at the progress line
_SMALLEST = 32  # blocks are filled up to powers of two from here, so that few shapes are compiled
_BATCH = 1024
_ENOUGH = 6000  # scalar observations from which training goes by batches


class DeepRegressor(base.RegressorMixin, FittedEstimator, ABC):
    """What estimators share; a fitted one holds all it has learned in `fitted_`."""

    layers: int
    field: FieldName
    num_levels: int | None
    num_output_levels: int | None
    steps: int | None
    batch_size: int | Literal["auto"] | None
    samples: int
    recipe: Literal["default", "quick", "paper"]
    random_state: Any
    progress: bool
    checkpoint: str | Path | None

    @abstractmethod
    def _model(self, inputs: Float[np.ndarray, "N F"], targets: Float[np.ndarray, "N ..."], batches: bool) -> DeepGP:
        """Return the model to train, or raise if inputs or targets are of the wrong kind."""

    @abstractmethod
    def _points(self, inputs: Float[np.ndarray, "N F"]) -> Float[Array, "N D"]:
        """Return inputs as points of the space."""

    @abstractmethod
    def _scaling(self, targets: Float[np.ndarray, "N ..."]) -> tuple[Float[np.ndarray, "P"], Float[np.ndarray, "P"]]:
        """Return the offset and the scale by which targets are brought to a common size."""

    @abstractmethod
    def _observations(
        self, inputs: Float[np.ndarray, "N F"], scaled: Float[np.ndarray, "N P"]
    ) -> Float[Array, "N ..."]:
        """Return scaled targets as values that the model knows."""

    @abstractmethod
    def _noise(self, inputs: Float[np.ndarray, "N F"], scaled: Float[np.ndarray, "N ..."]) -> Float[Array, "N ..."]:
        """Return known noise of scaled targets, [N] or [N, P, P], as the model takes it."""

    @abstractmethod
    def _components(self, prediction: Prediction, inputs: Float[np.ndarray, "N F"]) -> Prediction:
        """Return a prediction of the model as one of scaled targets."""

    @abstractmethod
    def _values(self, drawn: Float[Array, "N ..."], inputs: Float[np.ndarray, "N F"]) -> Float[Array, "N P"]:
        """Return values of the model as scaled targets."""

    def fit(
        self,
        X: Any,
        y: Any,
        *,
        noise_variance: Any = None,
        callback: Callable[[int, float], bool | None] | None = None,
    ) -> "DeepRegressor":
        """Train on inputs X and targets y.

        `noise_variance` is the known variance of the error of each observation, in the squared units of y: [N], or
        [N, P] with one variance for each of P targets, or covariance matrices [N, P, P] of the targets; for winds the
        targets are (u, v). It adds to the noise that is learned, which stands for all that is not known. It is not a
        `sample_weight`: a weight of w counts an observation w times, whereas an observation of larger variance counts
        once and says less. A callback (step, ELBO) that returns True stops training.
        """
        check_unmasked(X, "X")
        check_unmasked(y, "y")
        X, y = validation.validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        y = np.asarray(y, dtype=np.float64)
        if self.checkpoint is not None and self.random_state is None:
            raise ValueError(
                "checkpoint needs a whole number as random_state, got None; without it no fit can be resumed"
            )
        noise = None if noise_variance is None else known_covariances(noise_variance, len(y), y[:1].size)
        seed = int(validation.check_random_state(self.random_state).randint(2**31 - 1))
        result = self._trained(X, y, noise, jax.random.key(seed), callback)
        offset, scale = self._scaling(y)
        _warn_unless_ok(result.status)
        features = getattr(self, "feature_names_in_", None)
        outputs = offset.size
        self.fitted_ = Fitted(
            estimator=type(self).__name__,
            parameters=savable_parameters(self.get_params(deep=False)),
            model=result.model,
            offset=offset,
            scale=scale,
            seed=seed,
            history=np.asarray(result.history),
            status=result.status,
            seconds=float(result.seconds),
            inputs=X,
            targets=y,
            feature_names=None if features is None else tuple(str(name) for name in features),
            names=self._default_names(outputs),
            units=("1",) * outputs,
            attributes=({},) * outputs,
            noise_variance=noise,
        )
        return self

    def _trained(
        self,
        inputs: Float[np.ndarray, "N F"],
        targets: Float[np.ndarray, "N ..."],
        noise: Float[np.ndarray, "N ..."] | None,
        key: PRNGKeyArray,
        callback: Callable[[int, float], bool | None] | None,
    ) -> FitResult:
        """Train in the precision of the process, or in double precision if the noise turns out to be that small."""
        batch_size = self._batch_size(targets)

        def train() -> FitResult:
            model = self._model(inputs, targets, batch_size is not None)
            offset, scale = self._scaling(targets)
            return fit(
                model,
                self._points(inputs),
                self._observations(inputs, (targets.reshape(len(targets), -1) - offset) / scale),
                key=key,
                noise_variance=None if noise is None else self._noise(inputs, scaled_noise(noise, scale)),
                steps=self.steps,
                batch_size=batch_size,
                recipe=self.recipe,
                progress=bool(self.progress),
                checkpoint=self.checkpoint,
                callback=callback,
            )

        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", PrecisionWarning)
                return train()
        except PrecisionWarning:
            with jax.enable_x64(True):
                return train()

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return the mean at each input; with `return_std` also the standard deviation of the latent value."""
        summary = self.summarize(X)
        shape = (len(summary.mean), *self.fitted_.targets.shape[1:])
        mean, std = summary.mean.reshape(shape), summary.std.reshape(shape)
        return (mean, std) if return_std else mean

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the coefficient of determination R² of the mean at inputs X as predictions of y."""
        check_unmasked(y, "y")
        return float(super().score(X, y, sample_weight))

    def summarize(self, X: Any, quantiles: Sequence[float] = ()) -> Summary:
        """Return moments and quantiles of the latent values at inputs, in the units of y, block by block."""
        X = self._validated(X)
        scale, offset = self.fitted_.scale, self.fitted_.offset
        with self.precision():
            parts = [summarize(part, quantiles, offset, scale) for part in self._predictions(X)]
        return join_summaries(parts, len(X))

    def predict_distribution(self, X: Any, *, scaled: bool = False, noise_variance: Any = None) -> Prediction:
        """Return the predictive distribution in the units of y: a mixture over hidden draws, for `rdgp.metrics`.

        Its moments are those of the latent values; `observed` is the predictive distribution of new observations, which
        have the learned noise. Noise that was known in `fit` belongs to the observations there and is no part of it;
        `noise_variance` adds what is known of observations at X, given as in `fit`. With `scaled` the distribution is
        that of (y - offset_) / scale_.
        """
        X = self._validated(X)
        offset, scale = self.fitted_.offset, self.fitted_.scale
        noise = None if noise_variance is None else known_covariances(noise_variance, len(X), scale.size)
        with self.precision():
            found = join_predictions(list(self._predictions(X)), len(X))
            found = with_known_noise(found, None if noise is None else jnp.asarray(scaled_noise(noise, scale)))
            found = found if scaled else rescale(found, offset, scale)
        return as_here(found)

    def sample_y(self, X: Any, n_samples: int = 1, random_state: Any = 0) -> Float[np.ndarray, "N ..."]:
        """Draw latent functions and evaluate them at all inputs: [N, n_samples], or [N, P, n_samples].

        The same `random_state` gives the same functions, whatever the inputs.
        """
        X = self._validated(X)
        count = check_count(n_samples, "n_samples")
        seed = int(validation.check_random_state(random_state).randint(2**31 - 1))
        with self.precision():
            draws = [self._draw(X, key) for key in jax.random.split(jax.random.key(seed), count)]
        values = np.stack(draws, axis=-1) * self.fitted_.scale[:, None] + self.fitted_.offset[:, None]
        return values.reshape(len(X), *self.fitted_.targets.shape[1:], count)

    def _default_names(self, outputs: int) -> tuple[str, ...]:
        return ("y",) if outputs == 1 else tuple(f"y{i}" for i in range(outputs))

    def _batch_size(self, targets: Float[np.ndarray, "N ..."]) -> int | None:
        """Return the size of batches, or None where all points at once are few enough."""
        if self.batch_size == "auto":
            return _BATCH if targets.size > _ENOUGH else None
        if self.batch_size is None:
            return None
        if isinstance(self.batch_size, str):
            raise ValueError(f'batch_size must be a number, None or "auto", got {self.batch_size!r}')
        size = check_count(self.batch_size, "batch_size")
        return size if size < len(targets) else None

    def _validated(self, X: Any) -> Float[np.ndarray, "N F"]:
        validation.check_is_fitted(self)
        check_unmasked(X, "X")
        return validation.validate_data(self, X, dtype=np.float64, reset=False)

    def _predictions(self, X: Float[np.ndarray, "N F"]) -> Iterator[Prediction]:
        """Yield predictions at blocks of inputs, all with the same hidden draws; blocks are filled up by copies."""
        model, key = self.fitted_.model, jax.random.fold_in(jax.random.key(self.fitted_.seed), 1)
        samples = check_count(self.samples, "samples") if model.order else 1
        predictor = model.prepare(key=key, samples=samples, num_points=len(X))
        for block in self._blocks(X):
            found = predictor(self._points_like_model(block))
            if not isinstance(found, Prediction):
                raise ValueError("an estimator predicts values, not points of a manifold")
            yield self._components(found, block)

    def _draw(self, X: Float[np.ndarray, "N F"], key: PRNGKeyArray) -> Float[np.ndarray, "N P"]:
        draw = self.fitted_.model.draw(key=key)
        parts = [self._values(draw(self._points_like_model(block)), block) for block in self._blocks(X)]
        return np.concatenate([np.asarray(part, np.float64) for part in parts])[: len(X)]

    def _blocks(self, X: Float[np.ndarray, "N F"]) -> Iterator[Float[np.ndarray, "_ F"]]:
        with Progress("predict", len(X), enabled=bool(self.progress)) as bar:
            for start in range(0, len(X), _BLOCK):
                block = X[start : start + _BLOCK]
                size = _SMALLEST
                while size < len(block):
                    size *= 2
                yield np.concatenate([block, np.repeat(block[:1], size - len(block), axis=0)])
                bar.update(start + len(block))

    def _points_like_model(self, X: Float[np.ndarray, "N F"]) -> Float[Array, "N D"]:
        return self._points(X).astype(self._dtype)


def load_estimator(path: str | Path) -> DeepRegressor:
    """Return the estimator that `save` wrote."""
    with jax.enable_x64(True):  # numbers come as they were written
        fitted = load(path)
    classes = {cls.__name__: cls for cls in DeepRegressor.__subclasses__()}
    if not isinstance(fitted, Fitted) or fitted.estimator not in classes:
        raise ValueError(f"cannot load {path}: it holds no estimator; use rdgp.load for models")
    estimator = classes[fitted.estimator](**fitted.parameters)
    estimator.fitted_ = fitted
    estimator.n_features_in_ = fitted.inputs.shape[1]
    if fitted.feature_names is not None:
        estimator.feature_names_in_ = np.asarray(fitted.feature_names, dtype=object)
    return estimator


def _warn_unless_ok(status: str) -> None:
    if status in ("nan", "diverged"):
        category = require("sklearn.exceptions", "sklearn").ConvergenceWarning
        text = f"training ended with status {status!r}; check the data for outliers or take fewer layers"
        warnings.warn(text, category, stacklevel=3)
