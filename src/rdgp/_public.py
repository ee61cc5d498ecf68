"""The names of the package itself; `rdgp/__init__.py` looks them up here when they are first asked for."""

from rdgp import bayesopt, datasets, metrics
from rdgp.bayesopt import Study
from rdgp.core import register
from rdgp.fields import (
    Field,
    FrameField,
    HodgeField,
    NumberBundle,
    ProjectedField,
    ScalarField,
    StackedField,
    TangentBundle,
)
from rdgp.inference import FitResult, PrecisionWarning, Recipe, elbo, fit, log_density, natural_gradient_step
from rdgp.io import load, save
from rdgp.kernels import Gamma, Heat, Kernel, LogNormal, Matern, Sum
from rdgp.likelihoods import Bernoulli, Gaussian, Likelihood, Poisson, StudentT, WrappedGaussian
from rdgp.models import DeepGP, ExactGP, PointPrediction, Prediction, deep_gp, euclidean_deep_gp
from rdgp.posteriors import InducingPoints, Interdomain, kmeans
from rdgp.spaces import Box, Circle, Euclidean, Product, Rotations, Space, Sphere, Torus

__all__ = [
    "Bernoulli",
    "Box",
    "Circle",
    "DeepGP",
    "Euclidean",
    "ExactGP",
    "Field",
    "FitResult",
    "FrameField",
    "Gamma",
    "Gaussian",
    "Heat",
    "HodgeField",
    "InducingPoints",
    "Interdomain",
    "Kernel",
    "Likelihood",
    "LogNormal",
    "Matern",
    "NumberBundle",
    "PointPrediction",
    "Poisson",
    "PrecisionWarning",
    "Prediction",
    "Product",
    "ProjectedField",
    "Recipe",
    "Rotations",
    "ScalarField",
    "Space",
    "Sphere",
    "StackedField",
    "StudentT",
    "Study",
    "Sum",
    "TangentBundle",
    "Torus",
    "WrappedGaussian",
    "bayesopt",
    "datasets",
    "deep_gp",
    "elbo",
    "euclidean_deep_gp",
    "fit",
    "kmeans",
    "load",
    "log_density",
    "metrics",
    "natural_gradient_step",
    "register",
    "save",
]
