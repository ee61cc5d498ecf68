"""Likelihoods: distributions of observations given the latent values at their points."""

from rdgp.likelihoods._bernoulli import Bernoulli
from rdgp.likelihoods._gaussian import Gaussian, KnownNoise, log_normal
from rdgp.likelihoods._likelihood import REAL_NUMBERS, Likelihood, ObservationModel, Support, single_numbers
from rdgp.likelihoods._poisson import Poisson
from rdgp.likelihoods._student import StudentT
from rdgp.likelihoods._wrapped import WrappedGaussian

__all__ = [
    "REAL_NUMBERS",
    "Bernoulli",
    "Gaussian",
    "KnownNoise",
    "Likelihood",
    "ObservationModel",
    "Poisson",
    "StudentT",
    "Support",
    "WrappedGaussian",
    "log_normal",
    "single_numbers",
]
