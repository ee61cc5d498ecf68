"""Bayesian optimisation on manifolds: ask for points, tell their values, resume at any time."""

from rdgp.bayesopt import targets
from rdgp.bayesopt._file import FileLock
from rdgp.bayesopt._study import Study
from rdgp.bayesopt._trial import Trial

__all__ = ["FileLock", "Study", "Trial", "targets"]
