"""Pictures of fields on the globe and of optimizations, and a report in one HTML file.

Figures are plain `matplotlib.figure.Figure` objects: save them with `figure.savefig("map.png")`. No setting of
matplotlib is changed and nothing is downloaded. The report needs no extra package.
"""

from rdgp.plotting._canvas import new_figure, styled
from rdgp.plotting._diagnostics import CURVES, Calibration, draw_calibration, draw_history
from rdgp.plotting._displacement import draw_displacement
from rdgp.plotting._maps import draw_globe, draw_map, draw_panels
from rdgp.plotting._regret import draw_progress, draw_regret
from rdgp.plotting._report import ReportContent, write_report
from rdgp.plotting._search import Surface, draw_coordinates, draw_surfaces, draw_surrogate, draw_trials
from rdgp.plotting._trials import surface_points

__all__ = [
    "CURVES",
    "Calibration",
    "ReportContent",
    "Surface",
    "draw_calibration",
    "draw_coordinates",
    "draw_displacement",
    "draw_globe",
    "draw_history",
    "draw_map",
    "draw_panels",
    "draw_progress",
    "draw_regret",
    "draw_surfaces",
    "draw_surrogate",
    "draw_trials",
    "new_figure",
    "styled",
    "surface_points",
    "write_report",
]
