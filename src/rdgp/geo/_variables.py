"""The variables of a result, with CF attributes."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from rdgp.core import require
from rdgp.estimators import DeepRegressor, Summary, VectorFieldRegressor
from rdgp.geo._targets import Targets

if TYPE_CHECKING:
    import xarray

_ABOUT_STORAGE = {
    *("_FillValue", "missing_value", "scale_factor", "add_offset", "valid_range", "valid_min", "valid_max"),
    *("actual_range", "cell_methods", "ancillary_variables", "coordinates", "grid_mapping", "bounds", "units"),
}


def kept_attributes(attributes: dict[Any, Any]) -> dict[str, Any]:
    """Return the attributes that say what a variable is, not how its numbers were stored."""
    return {str(name): value for name, value in attributes.items() if name not in _ABOUT_STORAGE}


def describe_targets(
    estimator: DeepRegressor, targets: Targets, summary: Summary, quantiles: tuple[float, ...], prefix: str
) -> dict[str, "xarray.DataArray"]:
    """Return mean, standard deviation and quantiles of each target, and the uncertainties of a wind as a whole."""
    fitted, variables = estimator.fitted_, {}
    for i, (name, units, own) in enumerate(zip(fitted.names, fitted.units, fitted.attributes, strict=True)):
        label = str(own.get("long_name", name))
        attributes = {**own, "units": units}
        mean = {**attributes, "ancillary_variables": f"{name}_std"}
        variables[name] = _on_map(targets, summary.mean[:, i], mean)
        error = {"long_name": f"standard deviation of {label}", "units": units}
        if "standard_name" in own:
            error["standard_name"] = f"{own['standard_name']} standard_error"
        variables[f"{name}_std"] = _on_map(targets, summary.std[:, i], error)
        if quantiles:
            text = {**attributes, "long_name": f"quantiles of {label}"}
            variables[f"{name}_quantile"] = _on_map(targets, summary.quantiles[:, :, i], text, quantile=quantiles)
    if isinstance(estimator, VectorFieldRegressor):
        units = fitted.units[0]
        total = {"long_name": "total standard deviation of the wind vector", "units": units}
        norm = {
            "long_name": "mean Frobenius norm of the covariance of the output layer over hidden draws",
            "units": f"({units})^2",
        }
        variables[f"{prefix}_std"] = _on_map(targets, summary.total_std, total)
        variables[f"{prefix}_frobenius"] = _on_map(targets, summary.frobenius, norm)
    return variables


def describe_samples(
    estimator: DeepRegressor, targets: Targets, drawn: Float[np.ndarray, "N P S"]
) -> dict[str, "xarray.DataArray"]:
    """Return functions drawn from the posterior, one map for each sample."""
    fitted, variables = estimator.fitted_, {}
    count = range(drawn.shape[-1])
    for i, (name, units, own) in enumerate(zip(fitted.names, fitted.units, fitted.attributes, strict=True)):
        text = {**own, "units": units, "long_name": f"samples of {own.get('long_name', name)}"}
        variables[f"{name}_sample"] = _on_map(targets, drawn[:, i].T, text, sample=count)
    return variables


def _on_map(
    targets: Targets, values: Float[np.ndarray, "... N"], attributes: dict[str, Any], **first: Sequence[float | int]
) -> "xarray.DataArray":
    """Return values at targets as an array over their dimensions, after at most one dimension more."""
    shape = (*(len(entries) for entries in first.values()), *targets.shape)
    coordinates = {**targets.coordinates, **{name: list(entries) for name, entries in first.items()}}
    dims = (*first, *targets.dims)
    return require("xarray", "geo").DataArray(values.reshape(shape), coordinates, dims, attrs=attributes)
