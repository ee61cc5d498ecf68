"""Gaussian priors on a space. Every prior, scalar or tangent, is features times scales."""

from rdgp.fields._field import Field, FieldDraw, check_points, check_values
from rdgp.fields._hodge import HodgeField
from rdgp.fields._latent import HodgeLatent, Latent, LatentDraw, ScalarLatent
from rdgp.fields._scalar import ScalarField, StackedField
from rdgp.fields._tangent import FrameField, ProjectedField, TangentField

__all__ = [
    "Field",
    "FieldDraw",
    "FrameField",
    "HodgeField",
    "HodgeLatent",
    "Latent",
    "LatentDraw",
    "ProjectedField",
    "ScalarField",
    "ScalarLatent",
    "StackedField",
    "TangentField",
    "check_points",
    "check_values",
]
