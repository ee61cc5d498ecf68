"""Scores of predictions against observations, all of the predictive distribution of y, noise included."""

from rdgp.metrics._metrics import calibration_curve, coverage, crps, energy_score, mse, nlpd, pit, region_coverage

__all__ = ["calibration_curve", "coverage", "crps", "energy_score", "mse", "nlpd", "pit", "region_coverage"]
