"""Scores of predictions against observations, all of the law of y, noise included."""

from rdgp.metrics._calibration import pit
from rdgp.metrics._metrics import coverage, crps, energy_score, mse, nlpd, region_coverage

__all__ = ["coverage", "crps", "energy_score", "mse", "nlpd", "pit", "region_coverage"]
