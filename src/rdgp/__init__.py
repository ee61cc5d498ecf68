"""Residual deep Gaussian processes on manifolds.

Rooms: `rdgp.spaces` (manifolds), `rdgp.spectra` (eigenfunctions and eigenfields), `rdgp.kernels`, `rdgp.fields`
(Gaussian priors), `rdgp.models`. Importing the package changes no setting of JAX.
"""

from rdgp.fields import FrameField, HodgeField, ProjectedField, ScalarField, StackedField
from rdgp.kernels import EuclideanMatern, Heat, Matern
from rdgp.models import ExactGP, Prediction
from rdgp.spaces import Box, Circle, Euclidean, Product, Rotations, Sphere, Torus

__version__ = "0.1.0"

__all__ = [
    "Box",
    "Circle",
    "Euclidean",
    "EuclideanMatern",
    "ExactGP",
    "FrameField",
    "Heat",
    "HodgeField",
    "Matern",
    "Prediction",
    "Product",
    "ProjectedField",
    "Rotations",
    "ScalarField",
    "Sphere",
    "StackedField",
    "Torus",
    "__version__",
]
