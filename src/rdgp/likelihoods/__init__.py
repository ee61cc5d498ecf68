"""Likelihoods: laws of observations given the latent values at their points."""

from rdgp.likelihoods._bernoulli import Bernoulli
from rdgp.likelihoods._gaussian import Gaussian, log_normal
from rdgp.likelihoods._likelihood import Likelihood
from rdgp.likelihoods._poisson import Poisson
from rdgp.likelihoods._student import StudentT
from rdgp.likelihoods._wrapped import WrappedGaussian, log_volume_correction

__all__ = [
    "Bernoulli",
    "Gaussian",
    "Likelihood",
    "Poisson",
    "StudentT",
    "WrappedGaussian",
    "log_normal",
    "log_volume_correction",
]
