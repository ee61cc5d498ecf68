"""Regression of the irregular function on the sphere: NLPD and MSE by points, layers, field and family."""

import numpy as np

from rdgp.datasets import fibonacci_sphere, irregular_target
from rdgp.experiments._cells import Numbers
from rdgp.experiments._models import Split, build, count_parameters, precision, predict, scores, train
from rdgp.experiments._plans import Settings
from rdgp.fields import ScalarField
from rdgp.kernels import Matern
from rdgp.models import ExactGP
from rdgp.spaces import Sphere

_NOISE = 0.01  # deviation, in the test values too
_STARTS = (1e-2, 1e-4)  # variances of noise from which the exact process is fitted: its evidence can have two maxima


def run(settings: Settings) -> Numbers:
    """Fit one model to one draw of the noise and score it."""
    split = _data(settings)
    with precision(settings):
        if settings["model"] == "exact":
            return scores(_exact(split, settings).predict(split.test_x), split.test_y)
        model = build(Sphere(2), settings, split.x)
        result = train(model, split, settings)
        law = predict(result.model, split, settings)
        counted = {"variational_parameters": count_parameters(result.model), "bound": result.history[-1]}
        return {**scores(law, split.test_y), **counted, "noise_variance": result.model.noise_variance}


def _exact(split: Split, settings: Settings) -> ExactGP:
    """Fit the exact process from all starts and return the most probable."""
    field, steps = ScalarField(Sphere(2), Matern(), int(settings["output_levels"])), int(settings["steps"])
    fits = [ExactGP(field, noise).fit(split.x, split.y, steps=steps, progress=False) for noise in _STARTS]
    return max(fits, key=lambda gp: float(gp.log_marginal_likelihood(split.x, split.y)))


def _data(settings: Settings) -> Split:
    """Return training and test points on Fibonacci lattices, with noise by the seed."""
    noise = np.random.default_rng([int(settings["seed"]), int(settings["n"])])
    arrays = []
    for count in (int(settings["n"]), int(settings["num_test"])):
        x = fibonacci_sphere(count)
        y = irregular_target(x, str(settings["target"]))  # type: ignore[arg-type]
        arrays += [x, y + _NOISE * noise.normal(size=count)]
    return Split(*arrays)
