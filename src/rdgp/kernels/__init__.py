"""Covariance kernels: weights of spectral levels on compact manifolds, closed forms on Euclidean space."""

from rdgp.core import Gamma, LogNormal
from rdgp.kernels._euclidean import EuclideanMatern
from rdgp.kernels._matern import Heat, Matern

__all__ = ["EuclideanMatern", "Gamma", "Heat", "LogNormal", "Matern"]
