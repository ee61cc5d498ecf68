"""Optimisers: arrays in, arrays out; nothing here knows a model."""

from rdgp.optimize._lbfgs import Minimum, minimize_lbfgs
from rdgp.optimize._riemannian import Minima, minimize_on_space

__all__ = ["Minima", "Minimum", "minimize_lbfgs", "minimize_on_space"]
