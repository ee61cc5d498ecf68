"""Training: the evidence lower bound and the one loop that raises it."""

from rdgp.inference._bound import Batch, elbo
from rdgp.inference._fit import FitResult, PrecisionWarning, fit

__all__ = ["Batch", "FitResult", "PrecisionWarning", "elbo", "fit"]
