"""Covariance kernels: spectral densities on every space, with closed forms on flat ones."""

from rdgp.core import Gamma, LogNormal
from rdgp.kernels._closed_form import ClosedFormKernel, FlatKernel, RandomFeatures, random_fourier_features
from rdgp.kernels._kernel import Kernel, share_variance
from rdgp.kernels._matern import Heat, Matern
from rdgp.kernels._on_space import closed_form
from rdgp.kernels._sum import Sum

__all__ = [
    "ClosedFormKernel",
    "FlatKernel",
    "Gamma",
    "Heat",
    "Kernel",
    "LogNormal",
    "Matern",
    "RandomFeatures",
    "Sum",
    "closed_form",
    "random_fourier_features",
    "share_variance",
]
