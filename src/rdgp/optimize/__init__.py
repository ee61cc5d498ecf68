"""Optimisers: arrays in, arrays out; nothing here knows a model."""

from rdgp.optimize._lbfgs import Minimum, minimize_lbfgs

__all__ = ["Minimum", "minimize_lbfgs"]
