"""Models: exact Gaussian processes and their predictions."""

from rdgp.models._exact import ExactGP
from rdgp.models._prediction import Prediction

__all__ = ["ExactGP", "Prediction"]
