"""Approximate posteriors of fields through whitened inducing variables."""

from rdgp.variational._interdomain import Interdomain
from rdgp.variational._kmeans import kmeans
from rdgp.variational._locations import InducingLocations
from rdgp.variational._variational import Conditional, Variational
from rdgp.variational._whitened import WhitenedGaussian

__all__ = ["Conditional", "InducingLocations", "Interdomain", "Variational", "WhitenedGaussian", "kmeans"]
