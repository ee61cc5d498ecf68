"""Residual deep Gaussian processes on manifolds.

Rooms: `rdgp.spaces` (manifolds), `rdgp.spectra` (eigenfunctions and eigenfields), `rdgp.kernels`, `rdgp.fields`
(Gaussian priors), `rdgp.likelihoods`, `rdgp.variational` (approximate posteriors), `rdgp.models`, `rdgp.inference`
(training), `rdgp.metrics`, `rdgp.io`, `rdgp.datasets` (files, winds, satellite tracks). Importing the package changes
no setting of JAX.
"""

from rdgp import datasets, metrics
from rdgp.fields import FrameField, HodgeField, ProjectedField, ScalarField, StackedField
from rdgp.inference import FitResult, fit
from rdgp.io import load, save
from rdgp.kernels import EuclideanMatern, Heat, Matern
from rdgp.likelihoods import Bernoulli, Gaussian, Poisson, StudentT, WrappedGaussian
from rdgp.models import DeepGP, ExactGP, PointPrediction, Prediction, deep_gp, euclidean_deep_gp
from rdgp.spaces import Box, Circle, Euclidean, Product, Rotations, Sphere, Torus
from rdgp.variational import InducingLocations, Interdomain

__version__ = "0.1.0"

__all__ = [
    "Bernoulli",
    "Box",
    "Circle",
    "DeepGP",
    "Euclidean",
    "EuclideanMatern",
    "ExactGP",
    "FitResult",
    "FrameField",
    "Gaussian",
    "Heat",
    "HodgeField",
    "InducingLocations",
    "Interdomain",
    "Matern",
    "PointPrediction",
    "Poisson",
    "Prediction",
    "Product",
    "ProjectedField",
    "Rotations",
    "ScalarField",
    "Sphere",
    "StackedField",
    "StudentT",
    "Torus",
    "WrappedGaussian",
    "__version__",
    "datasets",
    "deep_gp",
    "euclidean_deep_gp",
    "fit",
    "load",
    "metrics",
    "save",
]
