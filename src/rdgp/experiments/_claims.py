"""Which claims are checked in which experiment."""

from collections.abc import Callable

from rdgp.experiments import _claims_data as data
from rdgp.experiments import _claims_synthetic as synthetic
from rdgp.experiments import _claims_timing as timing
from rdgp.experiments._claim import Claim
from rdgp.experiments._store import Table

_CHECKS: dict[str, list[Callable[[Table], Claim]]] = {
    "synthetic": [
        synthetic.never_worse,
        synthetic.hodge_best,
        synthetic.interdomain_better,
        synthetic.tail,
        synthetic.paper_beats_exact,
        synthetic.default_beats_exact,
    ],
    "wind": [data.surface, data.irregular_winds, data.baseline_winds],
    "uci": [data.euclidean_accuracy, data.closing],
    "timing": [timing.faster, timing.power_laws],
    "bayesopt": [timing.regret, timing.opponents],
    "fields": [],
}


def check_claims(experiment: str, table: Table) -> list[Claim]:
    """Return the claims of an experiment."""
    return [check(table) for check in _CHECKS[experiment]] if len(table) else []
