"""Interpolation of winds from cells under a satellite's track: NLPD and MSE by month, pressure level and layers."""

import jax.numpy as jnp
import numpy as np

from rdgp.models import Prediction
from rdgp.spaces import Sphere
from rdgp_paper.data import Split, read_winds
from rdgp_paper.hypotheses import EQUAL, EUCLIDEAN, HODGE, Check, Hypothesis, compare
from rdgp_paper.models import build, count_parameters, double_precision, predict, scores, train
from rdgp_paper.runs import Settings
from rdgp_paper.store import Numbers, Table
from rdgp_paper.tables import means, with_places, with_shallow

_NEIGHBORS = 8


def run(settings: Settings) -> Numbers:
    """Fit one model to the winds of one month and pressure level and score it on cells elsewhere."""
    when = settings["month"]
    winds = read_winds(
        str(settings["source"]),
        str(settings["pressure_level"]),
        when if isinstance(when, str) else int(when),
        hours=float(settings["hours"]),
        num_test=int(settings["num_test"]),
    )
    with double_precision():
        split = winds.on_sphere(every=int(settings["stride"]))
        model = build(Sphere(2), settings, split.x, "tangent")
        result = train(model, split, settings)
        prediction = predict(result.model, split, settings)
        numbers = {**scores(prediction, split.test_y), **_uncertainty(prediction, split)}
        counted = {"variational_parameters": count_parameters(result.model), "elbo": result.history[-1]}
    sizes = {"train": len(split.x), "test": len(split.test_x), "scale": winds.scale}
    return {**numbers, "rmse_in_units": winds.scale * numbers["mse"] ** 0.5, **sizes, **counted}


def _uncertainty(prediction: Prediction, split: Split) -> dict[str, float]:
    """Return rank correlations of the paper's uncertainty with errors and with how irregular the true winds are.

    Uncertainty is the mean over draws of the Frobenius norm of the last layer's covariance; irregular is the distance
    of a wind from the mean of those at the nearest test cells.
    """
    from scipy.spatial import KDTree
    from scipy.stats import spearmanr

    norms = np.asarray(jnp.mean(jnp.linalg.norm(prediction.covariances, axis=(-2, -1)), axis=0))
    error = np.linalg.norm(split.test_y - np.asarray(prediction.mean), axis=-1)
    near = KDTree(split.test_x).query(split.test_x, k=min(_NEIGHBORS + 1, len(split.test_x)))[1][:, 1:]
    irregular = np.linalg.norm(split.test_y - split.test_y[near].mean(axis=1), axis=-1)
    return {
        "uncertainty_and_error": float(spearmanr(norms, error).statistic),
        "uncertainty_and_irregularity": float(spearmanr(norms, irregular).statistic),
    }


def _hodge_winds(table: Table) -> Table:
    found = with_places(with_shallow(table))
    return found[found["name"] == HODGE]


def surface(table: Table) -> Hypothesis:
    """Compare gains near the surface with those aloft."""
    statement = "Deep models improve on shallow Hodge fields, most near the surface"
    found = means(_hodge_winds(table), ["place", "layers"])
    shallow = found[found["layers"] == 1].set_index("place")["nlpd"]
    deep = [row for row in found.to_dict("records") if row["layers"] > 1 and row["place"] in shallow.index]
    if not deep:
        return Hypothesis(statement, None, "")
    near: list[float] = []
    aloft: list[float] = []
    lines = []
    for row in deep:
        gain = shallow[row["place"]] - row["nlpd"]
        (near if row["place"].startswith(("surface", "1000")) else aloft).append(gain)
        lines.append(f"{row['place']}, {row['layers']} layers: gain {gain:+.3f} nats on {shallow[row['place']]:.3f}")
    most = not aloft or not near or np.mean(near) >= np.mean(aloft)
    return Hypothesis(statement, bool(min([*near, *aloft]) > EQUAL and most), "; ".join(lines))


def irregular_winds(table: Table) -> Hypothesis:
    """Compare how uncertainties rank with irregularity and with errors."""
    statement = "The uncertainty of deep models follows irregular winds, that of shallow ones cannot"
    found = _hodge_winds(table)
    if not len(found) or found["layers"].max() == 1:
        return Hypothesis(statement, None, "")
    columns = ["uncertainty_and_irregularity", "uncertainty_and_error"]
    rows = found.assign(deep=found["layers"] > 1).groupby(["place", "deep"], sort=False)[columns].mean()
    lines, holds = [], True
    for place in dict.fromkeys(found["place"]):
        if (place, True) in rows.index and (place, False) in rows.index:
            deep, shallow = rows.loc[(place, True)], rows.loc[(place, False)]
            holds &= bool(deep[columns[0]] > shallow[columns[0]] + 0.05)
            lines.append(
                f"{place}: rank correlation with irregularity {deep[columns[0]]:.2f} deep, {shallow[columns[0]]:.2f} "
                f"shallow, with errors {deep[columns[1]]:.2f} and {shallow[columns[1]]:.2f}"
            )
    return Hypothesis(statement, holds if lines else None, "; ".join(lines))


def baseline_winds(table: Table) -> Hypothesis:
    """Compare residual and Euclidean hidden layers, month by month."""
    statement = "Residual layers are better than Euclidean ones on winds"
    found = means(with_places(with_shallow(table)), ["name", "place", "month", "layers"])
    wide = found[found["layers"] > 1].pivot_table(index=["place", "month", "layers"], columns="name", values="nlpd")
    return compare(statement, wide, HODGE, EUCLIDEAN)


HYPOTHESES: tuple[Check, ...] = (surface, irregular_winds, baseline_winds)
