"""Bayesian optimization on manifolds."""

from rdgp.bayesopt import targets

__all__ = ["targets"]
