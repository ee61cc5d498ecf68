"""Foundations shared by every subpackage.

Dimension letters used in shapes: N points, D ambient dimension, d intrinsic dimension, M features, K levels (distinct
eigenvalues), S samples, P outputs.
"""

from rdgp.core._checks import (
    as_float_array,
    check_count,
    check_finite,
    check_last_axis,
    check_same_shape,
    check_size,
    check_unmasked,
    is_concrete,
)
from rdgp.core._compile import compiled, compiled_quickly
from rdgp.core._extras import require
from rdgp.core._linalg import (
    as_matrix,
    inverse_from_cholesky,
    jittered_cholesky,
    orthogonal_complement,
    outer_last_axis,
    small_product,
    solve_lower,
    square_root,
)
from rdgp.core._parameter_table import ParameterRow, ParameterTable, describe
from rdgp.core._parameters import (
    Parameter,
    Parametric,
    format_value,
    from_vector,
    log_prior,
    log_widths,
    positive_parameters,
    split_trainable,
    to_vector,
)
from rdgp.core._precision import as_here, in_double
from rdgp.core._priors import Gamma, LogNormal, Prior
from rdgp.core._progress import Progress
from rdgp.core._random import standard_normal
from rdgp.core._registry import class_of, register, tag_of
from rdgp.core._safe import angle_over_sine, normalize, safe_norm, stumpff
from rdgp.core._types import Numbers

__all__ = [
    "Gamma",
    "LogNormal",
    "Numbers",
    "Parameter",
    "ParameterRow",
    "ParameterTable",
    "Parametric",
    "Prior",
    "Progress",
    "angle_over_sine",
    "as_float_array",
    "as_here",
    "as_matrix",
    "check_count",
    "check_finite",
    "check_last_axis",
    "check_same_shape",
    "check_size",
    "check_unmasked",
    "class_of",
    "compiled",
    "compiled_quickly",
    "describe",
    "format_value",
    "from_vector",
    "in_double",
    "inverse_from_cholesky",
    "is_concrete",
    "jittered_cholesky",
    "log_prior",
    "log_widths",
    "normalize",
    "orthogonal_complement",
    "outer_last_axis",
    "positive_parameters",
    "register",
    "require",
    "safe_norm",
    "small_product",
    "solve_lower",
    "split_trainable",
    "square_root",
    "standard_normal",
    "stumpff",
    "tag_of",
    "to_vector",
]
