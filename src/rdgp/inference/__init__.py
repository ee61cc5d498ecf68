"""Training: initializers, objectives, the one loop that raises them, and finalizers."""

from rdgp.inference._fit import FitResult, PrecisionWarning, fit
from rdgp.inference._initialize import start_like_the_paper, start_shallow
from rdgp.inference._loop import LoopState, Plan, advance, initial_state, with_vector
from rdgp.inference._natural import natural_gradient_step
from rdgp.inference._objective import elbo, estimate, log_density
from rdgp.inference._recipe import RECIPES, Recipe

__all__ = [
    "RECIPES",
    "FitResult",
    "LoopState",
    "Plan",
    "PrecisionWarning",
    "Recipe",
    "advance",
    "elbo",
    "estimate",
    "fit",
    "initial_state",
    "log_density",
    "natural_gradient_step",
    "start_like_the_paper",
    "start_shallow",
    "with_vector",
]
