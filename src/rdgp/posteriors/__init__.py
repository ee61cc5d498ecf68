"""Gaussian posteriors of fields: exact given observations, or variational through whitened variables."""

from rdgp.posteriors._exact import Exact, ExactDraw, log_evidence, uses_features
from rdgp.posteriors._harmonic import HarmonicExpansion, expand, worth_expanding
from rdgp.posteriors._inducing_points import InducingPoints
from rdgp.posteriors._interdomain import Interdomain, WeightsDraw
from rdgp.posteriors._kmeans import kmeans
from rdgp.posteriors._noise import Noise
from rdgp.posteriors._posterior import Marginals, Posterior
from rdgp.posteriors._variational import Conditional, IndependentDraw, Variational
from rdgp.posteriors._whitened import WhitenedGaussian

__all__ = [
    "Conditional",
    "Exact",
    "ExactDraw",
    "HarmonicExpansion",
    "IndependentDraw",
    "InducingPoints",
    "Interdomain",
    "Marginals",
    "Noise",
    "Posterior",
    "Variational",
    "WeightsDraw",
    "WhitenedGaussian",
    "expand",
    "kmeans",
    "log_evidence",
    "uses_features",
    "worth_expanding",
]
