"""Regression of the irregular function on the sphere: NLPD and MSE by points, layers, field and family."""

import numpy as np

from rdgp.fields import ScalarField
from rdgp.kernels import Matern
from rdgp.models import ExactGP
from rdgp.spaces import Sphere
from rdgp_paper.data import Split, make_irregular
from rdgp_paper.hypotheses import EQUAL, HODGE, Check, Hypothesis
from rdgp_paper.models import build, count_parameters, double_precision, predict, scores, train
from rdgp_paper.runs import Settings
from rdgp_paper.store import Numbers, Table
from rdgp_paper.tables import means, named, with_shallow

_STARTS = (1e-2, 1e-4)  # variances of noise from which the exact process is fitted: its evidence can have two maxima


def run(settings: Settings) -> Numbers:
    """Fit one model to one draw of the noise and score it."""
    n, seed = int(settings["n"]), int(settings["seed"])
    split = make_irregular(
        str(settings["target"]), n, int(settings["num_test"]), noise=np.random.default_rng([seed, n])
    )
    with double_precision():
        if settings["model"] == "exact":
            return scores(_exact(split, settings).predict(split.test_x), split.test_y)
        model = build(Sphere(2), settings, split.x)
        result = train(model, split, settings)
        prediction = predict(result.model, split, settings)
        counted = {"variational_parameters": count_parameters(result.model), "elbo": result.history[-1]}
        return {**scores(prediction, split.test_y), **counted, "noise_variance": result.model.noise_variance}


def _exact(split: Split, settings: Settings) -> ExactGP:
    """Fit the exact process from all starts and return the most probable."""
    field, steps = ScalarField(Sphere(2), Matern(), int(settings["num_output_levels"])), int(settings["steps"])
    fits = [ExactGP(field, noise).fit(split.x, split.y, steps=steps, progress=False) for noise in _STARTS]
    return max(fits, key=lambda gp: float(gp.log_marginal_likelihood(split.x, split.y)))


def _families(table: Table, target: str = "released") -> Table:
    """Return mean scores of the paper's own models."""
    table = with_shallow(table[table["target"] == target])
    tail = table["tail"].fillna(0) if "tail" in table else 0
    own = table[(table["model"] != "exact") & (table["training"] == "paper") & (tail == 0)]
    return means(own, ["name", "n", "layers"])


def never_worse(table: Table) -> Hypothesis:
    """Compare every depth with the shallow model of its family."""
    statement = "Deep models are never worse than shallow ones"
    found = _families(table)
    shallow = found[found["layers"] == 1].set_index(["name", "n"])["nlpd"]
    deep = found[(found["layers"] > 1) & ~found["name"].str.startswith("Euclidean")]
    pairs = [
        (row, row["nlpd"] - shallow[row["name"], row["n"]])
        for row in deep.to_dict("records")
        if (row["name"], row["n"]) in shallow.index
    ]
    if not pairs:
        return Hypothesis(statement, None, "")
    worst, loss = max(pairs, key=lambda pair: pair[1])
    worse = sum(difference > EQUAL for _, difference in pairs)
    evidence = (
        f"{len(pairs)} comparisons of mean NLPD (released target), worse by more than {EQUAL} in {worse}; "
        f"the largest difference is {loss:+.3f} ({worst['name']}, N = {worst['n']}, {worst['layers']} layers)"
    )
    return Hypothesis(statement, worse == 0, evidence)


def hodge_best(table: Table) -> Hypothesis:
    """Compare the paper's families at each size and depth."""
    statement = "Hodge fields with interdomain variables are the best of the paper's models"
    found = _families(table)
    found = found[found["layers"] > 1]
    if found["name"].nunique() < 2 or HODGE not in set(found["name"]):
        return Hypothesis(statement, None, "")
    lines, wins = [], 0
    for (n, layers), own in found.groupby(["n", "layers"]):
        scores = own.set_index("name")["nlpd"]
        wins += bool(scores.get(HODGE, np.inf) <= scores.min() + EQUAL)
        lines.append(f"N = {n}, {layers} layers: {scores.idxmin()} ({scores.min():.3f})")
    evidence = f"best or within {EQUAL} of the best in {wins} of {len(lines)}; best are {'; '.join(lines)}"
    return Hypothesis(statement, wins == len(lines), evidence)


def interdomain_better(table: Table) -> Hypothesis:
    """Compare both kinds of inducing variables, pair by pair."""
    statement = "Interdomain variables almost always improve over inducing points"
    found = _families(table)
    split = found["name"].str.split(" \\+ ", expand=True).reindex(columns=[0, 1])
    found = found.assign(field=split[0], inducing=split[1])
    found = found[found["layers"] > 1].dropna(subset=["inducing"])
    wide = found.pivot_table(index=["field", "n", "layers"], columns="inducing", values="nlpd")
    if not {"interdomain", "points"} <= set(wide):
        return Hypothesis(statement, None, "")
    gain = (wide["points"] - wide["interdomain"]).dropna()
    better, worse = int((gain > EQUAL).sum()), int((gain < -EQUAL).sum())
    evidence = (
        f"of {len(gain)} pairs better in {better}, equal within {EQUAL} in {len(gain) - better - worse}, worse in "
        f"{worse}; mean gain {gain.mean():+.3f} nats"
    )
    return Hypothesis(statement, better > 0 and worse <= 0.1 * len(gain), evidence)


def tail(table: Table) -> Hypothesis:
    """Compare kernels of more levels than the family, with and without the tail."""
    statement = "More levels in the kernel than in the variational family (K > M) hurt without the tail and not with it"
    if "tail" not in table or not (table["tail"].fillna(0) > 0).any():
        return Hypothesis(statement, None, "")
    keys = ["target", "n", "layers", "field"]
    found = table.assign(tail=table["tail"].fillna(0))
    found = found[
        (found["training"] == "paper") & (found["inducing"] == "interdomain") & (found["model"] == "residual")
    ]
    kinds = np.where(found["tail"] == 0, "K = M", np.where(found["tail_variances"] == "fixed", "none", "learned"))
    wide = found.assign(kind=kinds).pivot_table(index=keys, columns="kind", values="nlpd").dropna()
    if not len(wide) or not {"K = M", "none", "learned"} <= set(wide):
        return Hypothesis(statement, None, "")
    lines = [
        f"N = {key[1]}, {key[2]} layers: {row['K = M']:.3f} with K = M, {row['none']:.3f} without the tail, "
        f"{row['learned']:.3f} with D'"
        for key, row in wide.iterrows()
    ]
    hurts = (wide["none"] > wide["K = M"] + EQUAL).all()
    cured = (wide["learned"] <= wide["K = M"] + EQUAL).all()
    return Hypothesis(statement, bool(hurts and cured), "; ".join(lines))


def paper_beats_exact(table: Table) -> Hypothesis:
    """Compare the paper's training with the exact shallow GP."""
    statement = "Deep Hodge models trained as in the paper beat the converged shallow GP (not in the paper)"
    return _beats_exact(statement, table[table["training"] == "paper"], table, HODGE)


def default_beats_exact(table: Table) -> Hypothesis:
    """Compare default training with the exact shallow GP."""
    statement = "Deep models with default training beat the converged shallow GP (not in the paper)"
    return _beats_exact(statement, table[table["training"] == "default"], table, "default training")


def _beats_exact(statement: str, deep: Table, table: Table, name: str) -> Hypothesis:
    """Compare every number of layers with the exact shallow GP of the same data."""
    exact = table[table["model"] == "exact"].groupby(["target", "n"])["nlpd"].mean()
    found = named(deep[deep["layers"] > 1]) if len(deep) else deep
    found = means(found[found["name"] == name], ["target", "n", "layers"]) if len(found) else found
    pairs = [(row, exact[key]) for row in found.to_dict("records") if (key := (row["target"], row["n"])) in exact.index]
    lines = [
        f"{row['target']}, N = {row['n']}, {row['layers']} layers: {row['nlpd']:.3f} against {shallow:.3f}"
        for row, shallow in pairs
    ]
    if not pairs:
        return Hypothesis(statement, None, "")
    wins = sum(row["nlpd"] < shallow - EQUAL for row, shallow in pairs)
    return Hypothesis(
        statement, wins == len(pairs), f"by more than {EQUAL} in {wins} of {len(pairs)} ({'; '.join(lines)})"
    )


HYPOTHESES: tuple[Check, ...] = (
    never_worse,
    hodge_best,
    interdomain_better,
    tail,
    paper_beats_exact,
    default_beats_exact,
)
