"""Regression of Euclidean tables: residual deep models on a sphere against Euclidean ones."""

import numpy as np

from rdgp.datasets import StandardizedSplit, load_uci, split_standardized
from rdgp.experiments._cells import Numbers
from rdgp.experiments._models import Split, build, precision, predict, scores, train
from rdgp.experiments._plans import Settings
from rdgp.fields import ScalarField
from rdgp.kernels import Matern
from rdgp.models import ExactGP
from rdgp.spaces import Euclidean, Space, Sphere
from rdgp.spectra import scalar_spectrum

LEVELS = {4: 7, 6: 5, 8: 4}  # of the paper, by the number of inputs
SMALL_LEVELS = {4: 5, 6: 4, 8: 3}
_BIASES = (0.5, 1.0, 2.0, 4.0, 8.0)
_SOME = 300  # training points that choose the bias


def run(settings: Settings) -> Numbers:
    """Fit one model to one split of one table and score it on standardized values."""
    with precision(settings):
        split, space, bias = load(settings)
        chosen = with_sizes(settings, split.x.shape[1] if settings["model"] == "euclidean" else space.dim)
        mean = settings["training"] == "default"
        result = train(build(space, chosen, split.x, mean=mean), split, settings)
        numbers = scores(predict(result.model, split, settings), split.test_y)
    return {**numbers, "bias_value": bias, "train": len(split.x), "test": len(split.test_x)}


def load(settings: Settings) -> tuple[Split, Space, float]:
    """Return a split as the model of the settings wants it, its space, and the bias b of x -> (x, b)/|(x, b)|."""
    parts = split_standardized(*load_uci(str(settings["data"])), seed=int(settings["seed"]))
    most = int(settings.get("most", 0)) or None
    x, y = parts.x_train[:most], parts.y_train[:most]
    if settings["model"] == "euclidean":
        return Split(x, y, parts.x_test, parts.y_test), Euclidean(x.shape[1]), 0.0
    bias = _bias(str(settings["bias"]), parts)
    split = Split(lift(x, bias), y, lift(parts.x_test, bias), parts.y_test)
    return split, Sphere(x.shape[1]), bias


def lift(x: np.ndarray, bias: float) -> np.ndarray:
    """Return the points (x, b)/|(x, b)| of the sphere."""
    longer = np.concatenate([x, np.full((len(x), 1), bias)], axis=1)
    return longer / np.linalg.norm(longer, axis=1, keepdims=True)


def with_sizes(settings: Settings, dim: int) -> Settings:
    """Add numbers of levels and of as many locations as there are harmonics."""
    more, usual = int(settings.get("more_levels", 0)), SMALL_LEVELS if settings.get("size") == "small" else LEVELS
    levels = int(settings.get("levels", 0)) or usual[dim]
    count = int(settings.get("num_inducing", 0)) or scalar_spectrum(Sphere(dim), levels).num_features
    sizes = {"levels": levels, "output_levels": levels + more, "num_inducing": count}
    if settings["training"] == "default" and not settings.get("levels", 0):
        sizes |= {"levels": 0, "output_levels": 0}  # by the library
    return {**settings, **sizes, "space": "flat"}


def _bias(name: str, parts: StandardizedSplit) -> float:
    """Return one, the median length of x, or the bias of a few with the largest evidence on some training points."""
    if name == "one":
        return 1.0
    if name == "norm":
        return float(np.median(np.linalg.norm(parts.x_train, axis=1)))
    if name == "evidence":
        return max(_BIASES, key=lambda bias: _evidence(parts, bias))
    raise ValueError(f"bias must be one, norm or evidence, got {name!r}")


def _evidence(parts: StandardizedSplit, bias: float) -> float:
    x, y = lift(parts.x_train[:_SOME], bias), parts.y_train[:_SOME]
    field = ScalarField(Sphere(x.shape[1] - 1), Matern(), LEVELS.get(x.shape[1] - 1, 4))
    gp = ExactGP(field, 0.1).fit(x, y, steps=50, progress=False)
    return float(gp.log_marginal_likelihood(x, y))
