"""Pictures of fields on the globe, and a report in one HTML file.

Figures are plain `matplotlib.figure.Figure` objects: save them with `figure.savefig("map.png")`. No setting of
matplotlib is changed and nothing is downloaded. The report needs no extra package.
"""

from rdgp.plotting._diagnostics import Calibration, draw_calibration, draw_history
from rdgp.plotting._displacement import draw_displacement
from rdgp.plotting._maps import draw_globe, draw_map, draw_panels
from rdgp.plotting._report import ReportContent, write_report

__all__ = [
    "Calibration",
    "ReportContent",
    "draw_calibration",
    "draw_displacement",
    "draw_globe",
    "draw_history",
    "draw_map",
    "draw_panels",
    "write_report",
]
