"""Gaussian priors on a space. Every prior, scalar or tangent, is features times scales."""

from rdgp.fields._field import Field, FieldDraw, check_points
from rdgp.fields._scalar import ScalarField, StackedField
from rdgp.fields._tangent import FrameField, HodgeField, ProjectedField, TangentField

__all__ = [
    "Field",
    "FieldDraw",
    "FrameField",
    "HodgeField",
    "ProjectedField",
    "ScalarField",
    "StackedField",
    "TangentField",
    "check_points",
]
