"""Regression of Euclidean tables: residual deep models on a sphere against Euclidean ones."""

import numpy as np

from rdgp.fields import ScalarField
from rdgp.kernels import Matern
from rdgp.models import ExactGP
from rdgp.spaces import Euclidean, Space, Sphere
from rdgp.spectra import scalar_spectrum
from rdgp_paper.data import Split, first, lift, lift_split, read_uci
from rdgp_paper.hypotheses import EQUAL, EUCLIDEAN, Check, Hypothesis, compare
from rdgp_paper.models import build, double_precision, predict, scores, train
from rdgp_paper.runs import Settings
from rdgp_paper.store import Numbers, Table
from rdgp_paper.tables import means, named

_LEVELS = {4: 7, 6: 5, 8: 4}  # numbers of levels of the paper, by the number of inputs
_SMALL_LEVELS = {4: 5, 6: 4, 8: 3}
_BIASES = (0.5, 1.0, 2.0, 4.0, 8.0)
_SOME = 300  # training points that choose the bias


def run(settings: Settings) -> Numbers:
    """Fit one model to one split of one table and score it on standardized values."""
    with double_precision():
        split, space, bias = load(settings)
        chosen = with_sizes(settings, split.x.shape[1] if settings["model"] == "euclidean" else space.dim)
        mean = settings["training"] == "default"
        result = train(build(space, chosen, split.x, mean=mean), split, settings)
        numbers = scores(predict(result.model, split, settings), split.test_y)
    return {**numbers, "bias_value": bias, "train": len(split.x), "test": len(split.test_x)}


def load(settings: Settings) -> tuple[Split, Space, float]:
    """Return a split as the model of the settings wants it, its space, and the bias b of x -> (x, b)/|(x, b)|."""
    whole = read_uci(str(settings["data"]), int(settings["seed"]))
    split = first(whole, int(settings.get("most", 0)) or None)
    dim = whole.x.shape[1]
    if settings["model"] == "euclidean":
        return split, Euclidean(dim), 0.0
    bias = _bias(str(settings["bias"]), whole)
    return lift_split(split, bias), Sphere(dim), bias


def with_sizes(settings: Settings, dim: int) -> Settings:
    """Add numbers of levels and of as many inducing points as there are harmonics; `dim` is that of the inputs."""
    more, usual = int(settings.get("more_levels", 0)), _SMALL_LEVELS if settings.get("size") == "small" else _LEVELS
    num_levels = int(settings.get("num_levels", 0)) or usual[dim]
    count = int(settings.get("num_inducing", 0)) or scalar_spectrum(Sphere(dim), num_levels).num_features
    sizes = {"num_levels": num_levels, "num_output_levels": num_levels + more, "num_inducing": count}
    if settings["training"] == "default" and not settings.get("num_levels", 0):
        sizes |= {"num_levels": 0, "num_output_levels": 0}  # by the library
    return {**settings, **sizes, "space": "flat"}


def _bias(name: str, split: Split) -> float:
    """Return one, the median length of x, or the bias of a few with the largest evidence on some training points."""
    if name == "one":
        return 1.0
    if name == "norm":
        return float(np.median(np.linalg.norm(split.x, axis=1)))
    if name == "evidence":
        return max(_BIASES, key=lambda bias: _evidence(split, bias))
    raise ValueError(f"bias must be one, norm or evidence, got {name!r}")


def _evidence(split: Split, bias: float) -> float:
    x, y = lift(split.x[:_SOME], bias), split.y[:_SOME]
    field = ScalarField(Sphere(x.shape[1] - 1), Matern(), _LEVELS.get(x.shape[1] - 1, 4))
    gp = ExactGP(field, 0.1).fit(x, y, steps=50, progress=False)
    return float(gp.log_marginal_likelihood(x, y))


def euclidean_accuracy(table: Table) -> Hypothesis:
    """Compare Euclidean models with the paper's, table by table."""
    statement = "Euclidean deep GPs predict the tables better than residual ones with b = 1"
    found = means(named(table), ["name", "data", "layers"])
    wide = found.pivot_table(index=["data", "layers"], columns="name", values="nlpd")
    return compare(statement, wide, EUCLIDEAN, "projected + interdomain")


def closing(table: Table) -> Hypothesis:
    """Compare all other models with the Euclidean ones."""
    statement = "Other training, levels or maps close the gap to Euclidean models (not in the paper)"
    found = means(named(table), ["name", "data", "layers"])
    wide = found.pivot_table(index=["data", "layers"], columns="name", values="nlpd")
    others = [name for name in wide if name not in (EUCLIDEAN, "projected + interdomain")]
    if EUCLIDEAN not in wide or not others:
        return Hypothesis(statement, None, "")
    lines, closed = [], []
    for name in others:
        pairs = wide[[EUCLIDEAN, name]].dropna()
        closed.append(len(pairs) > 0 and bool((pairs[name] <= pairs[EUCLIDEAN] + EQUAL).all()))
        scores = [f"{d}, {k}: {row[name]:.3f} against {row[EUCLIDEAN]:.3f}" for (d, k), row in pairs.iterrows()]
        lines.append(f"{name} ({'; '.join(scores)})")
    return Hypothesis(statement, any(closed), "; ".join(lines))


HYPOTHESES: tuple[Check, ...] = (euclidean_accuracy, closing)
