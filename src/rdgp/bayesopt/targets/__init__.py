"""Functions to minimize on manifolds, with the minimum and where it is taken."""

from rdgp.bayesopt.targets._irregular import irregular_sphere
from rdgp.bayesopt.targets._robots import manipulability, registration
from rdgp.bayesopt.targets._standard import ackley, levy, product_of_sines, rosenbrock, styblinski_tang
from rdgp.bayesopt.targets._target import NoisyTarget, Target

__all__ = [
    "NoisyTarget",
    "Target",
    "ackley",
    "irregular_sphere",
    "levy",
    "manipulability",
    "product_of_sines",
    "registration",
    "rosenbrock",
    "styblinski_tang",
]
