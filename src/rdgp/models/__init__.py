"""Models: exact Gaussian processes, residual deep Gaussian processes, and their predictions."""

from rdgp.models._builders import deep_gp, euclidean_deep_gp
from rdgp.models._deep import DeepDraw, DeepGP, Observations
from rdgp.models._exact import ExactGP
from rdgp.models._prediction import PointPrediction, Prediction

__all__ = [
    "DeepDraw",
    "DeepGP",
    "ExactGP",
    "Observations",
    "PointPrediction",
    "Prediction",
    "deep_gp",
    "euclidean_deep_gp",
]
