"""Models: exact Gaussian processes, residual deep Gaussian processes, and their predictions."""

from rdgp.models._builders import FieldName, deep_gp, euclidean_deep_gp
from rdgp.models._data import Data, known_noise
from rdgp.models._deep_gp import DeepDraw, DeepGP, Randomness
from rdgp.models._exact_gp import ExactGP
from rdgp.models._output import Explicit, Integrated, Output, Points, ProcessOutput, as_output, noise_of
from rdgp.models._prediction import PointPrediction, Prediction
from rdgp.models._predictor import Predictor
from rdgp.models._propagate import State, propagate, states
from rdgp.models._start import START_NOISE, noise_floor, scatter, search

__all__ = [
    "START_NOISE",
    "Data",
    "DeepDraw",
    "DeepGP",
    "ExactGP",
    "Explicit",
    "FieldName",
    "Integrated",
    "Output",
    "PointPrediction",
    "Points",
    "Prediction",
    "Predictor",
    "ProcessOutput",
    "Randomness",
    "State",
    "as_output",
    "deep_gp",
    "euclidean_deep_gp",
    "known_noise",
    "noise_floor",
    "noise_of",
    "propagate",
    "scatter",
    "search",
    "states",
]
