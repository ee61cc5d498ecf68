"""Datasets in, datasets out: observations to maps with their uncertainty."""

from rdgp.geo._interpolate import fit, interpolate, predict
from rdgp.geo._targets import grid

__all__ = ["fit", "grid", "interpolate", "predict"]
