"""The paper's experiments as data: plans -> cells -> results -> figures and a page.

A plan is a TOML file, a cell one dictionary of plain settings, a result one small file. No model and no training loop
is defined here; the tasks call the library as a user would.
"""

from rdgp.experiments._cells import run_cell
from rdgp.experiments._claim import Claim
from rdgp.experiments._claims import check_claims
from rdgp.experiments._figures import draw_figures
from rdgp.experiments._page import write_docs, write_results
from rdgp.experiments._plans import EXPERIMENTS, PRESETS, Cell, Plan, choose, read_plan
from rdgp.experiments._run import Report, run
from rdgp.experiments._store import Store

__all__ = [
    "EXPERIMENTS",
    "PRESETS",
    "Cell",
    "Claim",
    "Plan",
    "Report",
    "Store",
    "check_claims",
    "choose",
    "draw_figures",
    "read_plan",
    "run",
    "run_cell",
    "write_docs",
    "write_results",
]
