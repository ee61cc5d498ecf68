"""Regressors with the interface of scikit-learn: fit, predict, sample_y; they clone, search grids, pickle and save."""

from rdgp.estimators._base import DeepRegressor, load_estimator
from rdgp.estimators._distribution import Rescaled, Summary, in_frame
from rdgp.estimators._fitted import Fitted
from rdgp.estimators._sphere import SphereRegressor
from rdgp.estimators._winds import VectorFieldRegressor

__all__ = [
    "DeepRegressor",
    "Fitted",
    "Rescaled",
    "SphereRegressor",
    "Summary",
    "VectorFieldRegressor",
    "in_frame",
    "load_estimator",
]
