"""The machinery common to all estimators: scaling, fitting, prediction in blocks, files."""

import contextlib
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

import equinox as eqx
import jax
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import Progress, as_here, check_count, check_unmasked, require
from rdgp.estimators._fitted import Fitted, from_bytes, plain_attributes, savable_parameters, to_bytes
from rdgp.estimators._law import Summary, join_laws, join_summaries, rescale, summarize
from rdgp.inference import FitResult, PrecisionWarning, fit
from rdgp.io import load, save
from rdgp.models import DeepGP, Prediction
from rdgp.models._builders import FieldName

base: Any = require("sklearn.base", "sklearn")
validation: Any = require("sklearn.utils.validation", "sklearn")

_BLOCK = 16384  # points predicted between two looks at the progress line
_SMALLEST = 32  # blocks are filled up to powers of two from here, so that few shapes are compiled
_BATCH = 1024
_ENOUGH = 6000  # observed numbers from which training goes by batches


class DeepRegressor(base.RegressorMixin, base.BaseEstimator, ABC):
    """What estimators share; a fitted one holds all it has learned in `fitted_`."""

    layers: int
    field: FieldName
    levels: int | None
    output_levels: int | None
    steps: int | None
    batch_size: int | Literal["auto"] | None
    samples: int
    recipe: Literal["default", "quick", "paper"]
    random_state: Any
    progress: bool
    checkpoint: str | Path | None
    fitted_: Fitted

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
    def _components(self, law: Prediction, inputs: Float[np.ndarray, "N F"]) -> Prediction:
        """Return a law of the model as one of scaled targets."""

    @abstractmethod
    def _values(self, drawn: Float[Array, "N ..."], inputs: Float[np.ndarray, "N F"]) -> Float[Array, "N P"]:
        """Return values of the model as scaled targets."""

    def fit(self, X: Any, y: Any, *, callback: Callable[[int, float], bool | None] | None = None) -> "DeepRegressor":
        """Train on inputs X and targets y; a callback (step, bound) that returns True stops training."""
        check_unmasked(X, "X")
        check_unmasked(y, "y")
        X, y = validation.validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        y = np.asarray(y, dtype=np.float64)
        if self.checkpoint is not None and self.random_state is None:
            raise ValueError(
                "checkpoint needs a whole number as random_state, got None; without it no fit can be resumed"
            )
        seed = int(validation.check_random_state(self.random_state).randint(2**31 - 1))
        result = self._trained(X, y, jax.random.key(seed), callback)
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
        )
        return self

    def _trained(
        self,
        inputs: Float[np.ndarray, "N F"],
        targets: Float[np.ndarray, "N ..."],
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

    def precision(self) -> contextlib.AbstractContextManager[Any]:
        """Return a context in which JAX computes in the precision of the fitted model."""
        return jax.enable_x64(self._dtype == np.float64 or jax.config.jax_enable_x64)  # type: ignore[attr-defined]

    @property
    def _dtype(self) -> Any:
        return jax.tree.leaves(eqx.filter(self.fitted_.model, eqx.is_inexact_array))[0].dtype

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
            parts = [summarize(law, quantiles, offset, scale) for law in self._laws(X)]
        return join_summaries(parts, len(X))

    def predict_law(self, X: Any, *, scaled: bool = False) -> Prediction:
        """Return the predictive law in the units of y: a mixture over hidden draws, for `rdgp.metrics`.

        With `scaled` it is that of (y - offset_) / scale_.
        """
        X = self._validated(X)
        with self.precision():
            law = join_laws(list(self._laws(X)), len(X))
            law = law if scaled else rescale(law, self.fitted_.offset, self.fitted_.scale)
        return as_here(law)

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

    def describe(
        self, names: tuple[str, ...], units: tuple[str, ...], attributes: tuple[dict[str, Any], ...] | None = None
    ) -> "DeepRegressor":
        """Keep names, units and further attributes of the targets with what was learned."""
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
        """The bound at each step of training."""
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
        """Standard deviation of the observation noise, in the units of y."""
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

    def _laws(self, X: Float[np.ndarray, "N F"]) -> Iterator[Prediction]:
        """Yield laws at blocks of inputs, all with the same hidden draws; blocks are filled up by copies."""
        model, key = self.fitted_.model, jax.random.fold_in(jax.random.key(self.fitted_.seed), 1)
        samples = check_count(self.samples, "samples") if model.hidden else 1
        predictor = model.prepare(key=key, samples=samples, num_points=len(X))
        for block in self._blocks(X):
            law = predictor(self._points_like_model(block))
            if not isinstance(law, Prediction):
                raise ValueError("an estimator predicts values, not points of a manifold")
            yield self._components(law, block)

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
