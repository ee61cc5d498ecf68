"""Scores of a model on held-out observations."""

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import rdgp.datasets
    import rdgp.estimators
    import rdgp.models
    import rdgp.plotting

COVERAGE_PROBABILITY = 0.9
_BLOCK = 4096  # points whose energy score is estimated at once


class Scores(NamedTuple):
    """Scores in units of the scale of training (`relative`) and of the data, and the calibration.

    MSE, CRPS and coverage are means over components; the energy score is one of whole vectors.
    """

    relative: dict[str, float]
    absolute: dict[str, float]
    calibration: "rdgp.plotting.Calibration"


def score(estimator: "rdgp.estimators.DeepRegressor", test: "rdgp.datasets.Observations") -> Scores:
    """Compare the predictive distribution with observations, whose own known noise adds to that of the model."""
    import jax
    import numpy as np

    from rdgp import metrics
    from rdgp.plotting import Calibration

    scaled = (test.values - estimator.offset_) / estimator.scale_
    values = scaled if estimator.fitted_.targets.ndim == 2 else scaled[:, 0]
    nominal = np.linspace(0.05, 0.95, 19)
    known = None if test.noise_std is None else test.noise_std**2
    with estimator.precision():
        prediction = estimator.predict_distribution(test.latlon, scaled=True, noise_variance=known)
        relative = {
            "nlpd": metrics.nlpd(prediction, values),
            "mse": metrics.mse(prediction, values),
            "crps": float(np.mean(metrics.crps(prediction, values))),
            "energy_score": _energy_score(prediction.observed, values, jax.random.key(0)),
            "coverage": float(np.mean(metrics.coverage(prediction, values, COVERAGE_PROBABILITY))),
        }
        shares = np.asarray(metrics.calibration_curve(prediction, values, nominal)).reshape(nominal.size, -1)
        curve = Calibration(nominal, shares.mean(axis=-1), np.asarray(metrics.pit(prediction, values)).ravel())
    return Scores(relative, _in_units_of_data(relative, estimator), curve)


def _in_units_of_data(relative: dict[str, float], estimator: "rdgp.estimators.DeepRegressor") -> dict[str, float]:
    import numpy as np

    scale = float(estimator.scale_[0])  # that of all components
    return {
        "nlpd": relative["nlpd"] + float(np.sum(np.log(estimator.scale_))),
        "mse": relative["mse"] * scale**2,
        "rmse": relative["mse"] ** 0.5 * scale,
        "crps": relative["crps"] * scale,
        "energy_score": relative["energy_score"] * scale,
        "coverage": relative["coverage"],
    }


def _energy_score(observed: "rdgp.models.Prediction", values: Any, key: Any) -> float:
    """Return the energy score of a distribution of observations, in blocks of points because its samples are large."""
    from dataclasses import replace

    import jax

    from rdgp import metrics

    total, count = 0.0, len(values)
    for start in range(0, count, _BLOCK):
        part = slice(start, start + _BLOCK)
        block = replace(observed, means=observed.means[:, part], covariances=observed.covariances[:, part])
        size = len(values[part])
        total += size * metrics.energy_score(block, values[part], key=jax.random.fold_in(key, start))
    return total / count
