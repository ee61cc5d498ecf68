"""Gaussian priors on a space. Every prior, scalar or tangent, is features times scales."""

from rdgp.fields._bundle import Bundle, NumberBundle, TangentBundle
from rdgp.fields._field import Field, FieldDraw, FunctionDraw, Weights, check_points, check_values
from rdgp.fields._frames import Frame, NumberFrame, TangentFrame
from rdgp.fields._hodge import HodgeField
from rdgp.fields._process import Levels, Process, ProcessDraw
from rdgp.fields._scalar import CopiesField, ScalarField, StackedField
from rdgp.fields._tangent import FrameField, ProjectedField

__all__ = [
    "Bundle",
    "CopiesField",
    "Field",
    "FieldDraw",
    "Frame",
    "FrameField",
    "FunctionDraw",
    "HodgeField",
    "Levels",
    "NumberBundle",
    "NumberFrame",
    "Process",
    "ProcessDraw",
    "ProjectedField",
    "ScalarField",
    "StackedField",
    "TangentBundle",
    "TangentFrame",
    "Weights",
    "check_points",
    "check_values",
]
