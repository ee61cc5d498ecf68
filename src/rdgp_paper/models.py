"""Models by their settings, trained and scored: calls of the library that experiments and benchmarks share."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rdgp.inference import FitResult, fit
from rdgp.likelihoods import Gaussian
from rdgp.metrics import calibration_curve, mse, nlpd
from rdgp.models import DeepGP, Prediction, deep_gp, euclidean_deep_gp
from rdgp.posteriors import InducingPoints, Interdomain, WhitenedGaussian, kmeans
from rdgp.spaces import Space
from rdgp_paper.data import Split
from rdgp_paper.runs import Settings

_WIDTH = {"hodge": 2}  # inducing variables of an inducing point; else one for each scalar function
_PROBABILITY = 0.9


@contextmanager
def double_precision() -> Iterator[None]:
    """Compute in 64 bits for a while; the setting of JAX stays as it is."""
    with jax.enable_x64(True):
        yield


def build(space: Space, settings: Settings, x: np.ndarray, output: str = "scalar", mean: bool = False) -> DeepGP:
    """Return the model that settings describe.

    `x` are the training points, from which inducing points are chosen; `output` is scalar or tangent; `mean` adds a
    constant mean.
    """
    layers, model = int(settings["layers"]), settings["model"]
    if model == "euclidean":
        inside = None if settings.get("space") == "flat" else space
        kept, count = int(settings["num_output_levels"]), int(settings["num_inducing"])
        return euclidean_deep_gp(x.shape[1], layers, count, x=x, input_space=inside, output=output, num_levels=kept)  # type: ignore[arg-type]
    if model != "residual":
        raise ValueError(f"model must be residual, euclidean or exact, got {model!r}")
    field: Any = settings.get("field", "hodge")
    field = "hodge" if field == "none" else field  # which hidden fields a model without hidden layers has not
    tail = int(settings.get("tail", 0))
    sizes = {name: _plus(settings.get(name, 0), tail) for name in ("num_levels", "num_output_levels")}
    base = deep_gp(space, layers, field, output, constant_mean=mean, **sizes)  # type: ignore[arg-type]
    if settings["training"] == "default":
        return base
    if settings["inducing"] == "points":
        return _with_points(base, settings, x, field)
    return _with_tail(base, tail, str(settings.get("tail_variances", "learned")))


def _plus(num_levels: Any, tail: int) -> int | None:
    """Return a number of levels, None (by the space) where the settings say 0."""
    return int(num_levels) + tail if num_levels else None


def _with_points(base: DeepGP, settings: Settings, x: np.ndarray, field: str) -> DeepGP:
    """Return a model with inducing points in all layers, as many variables in each as there are harmonics."""
    count = int(settings["num_inducing"])
    hidden = int(settings.get("num_hidden", count)) // _WIDTH.get(field, 1)
    key, points = jax.random.key(0), jnp.asarray(x)
    inside = kmeans(base.space, points, hidden if base.hidden else 1, key=key)
    families = [InducingPoints(layer.field, inside) for layer in base.hidden]
    last = InducingPoints(base.field, kmeans(base.space, points, count, key=key))
    return DeepGP(tuple(families), last, Gaussian(0.1), constant_mean=base.mean is not None)


def _with_tail(base: DeepGP, tail: int, variances: Any) -> DeepGP:
    """Return a model whose last levels have only variances, learned or those of the prior."""
    if not tail:
        return base
    hidden = [Interdomain(layer.field, tail, variances) for layer in base.hidden]
    return DeepGP(tuple(hidden), Interdomain(base.field, tail, variances), Gaussian(0.1))


def train(model: DeepGP, split: Split, settings: Settings, **options: Any) -> FitResult:
    """Train by the recipe of the settings; what does not end well is an error. `options` are those of `fit`."""
    recipe: Any = settings["training"]
    steps, batch = int(settings.get("steps", 0)) or None, int(settings.get("batch", 0)) or None
    if batch is not None and batch >= len(split.x):
        batch = None
    key = jax.random.key(int(settings["seed"]))
    result = fit(
        model, split.x, split.y, key=key, steps=steps, batch_size=batch, recipe=recipe, progress=False, **options
    )
    if result.status == "stopped":
        raise KeyboardInterrupt  # which the loop of training takes for a wish to stop training alone
    if result.status != "ok":
        raise ArithmeticError(f"training ended with status {result.status} after {len(result.history)} steps")
    return result


def predict(model: DeepGP, split: Split, settings: Settings) -> Prediction:
    """Return the predictive distribution at the test points of a run."""
    seed, samples = 1000 + int(settings["seed"]), int(settings.get("samples", 10))
    return predict_values(model, split.test_x, seed=seed, samples=samples)


def predict_values(model: DeepGP, x: Any, *, seed: int, samples: int) -> Prediction:
    """Return the predictive distribution at points, a mixture over so many draws of the hidden layers."""
    prediction = model.predict(x, key=jax.random.key(seed), samples=samples if model.hidden else 1)
    if not isinstance(prediction, Prediction):
        raise ValueError("models of points have no distribution of values; choose another output")
    return prediction


def scores(prediction: Prediction, test_y: np.ndarray) -> dict[str, Any]:
    """Return NLPD, MSE and the coverage of 90 % intervals."""
    inside = float(np.mean(np.asarray(calibration_curve(prediction, test_y, [_PROBABILITY]))))
    return {"nlpd": nlpd(prediction, test_y), "mse": mse(prediction, test_y), "coverage": inside}


def count_parameters(model: DeepGP) -> int:
    """Return how many numbers training changes, factors of covariances counted as triangles."""
    nodes = jax.tree.leaves(model, is_leaf=lambda node: isinstance(node, WhitenedGaussian))
    sizes = [node.mean.shape for node in nodes if isinstance(node, WhitenedGaussian)]
    return sum(copies * (size * (size + 3) // 2) for copies, size in sizes)
