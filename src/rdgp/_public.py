"""The names of the package itself; `rdgp/__init__.py` looks them up here when they are first asked for."""

from rdgp import bayesopt, datasets, metrics
from rdgp.bayesopt import Study
from rdgp.fields import FrameField, HodgeField, ProjectedField, ScalarField, StackedField
from rdgp.inference import FitResult, fit
from rdgp.io import load, save
from rdgp.kernels import EuclideanMatern, Heat, Matern
from rdgp.likelihoods import Bernoulli, Gaussian, Poisson, StudentT, WrappedGaussian
from rdgp.models import DeepGP, ExactGP, PointPrediction, Prediction, deep_gp, euclidean_deep_gp
from rdgp.spaces import Box, Circle, Euclidean, Product, Rotations, Sphere, Torus
from rdgp.variational import InducingLocations, Interdomain

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
    "Study",
    "Torus",
    "WrappedGaussian",
    "bayesopt",
    "datasets",
    "deep_gp",
    "euclidean_deep_gp",
    "fit",
    "load",
    "metrics",
    "save",
]
