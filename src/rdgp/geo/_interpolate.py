"""From observations to a field everywhere."""

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from rdgp.core import check_count, check_unmasked, require
from rdgp.datasets import Observations, coordinate_names, is_wind, observations, select, variable_names
from rdgp.estimators import DeepRegressor, SphereRegressor, VectorFieldRegressor
from rdgp.geo._targets import Targets, check_size, find_targets
from rdgp.geo._variables import describe_samples, describe_targets, kept_attributes

if TYPE_CHECKING:
    import xarray

Estimators = DeepRegressor | Sequence[DeepRegressor]
Callback = Callable[[int, float], bool | None]
Names = str | Sequence[str]


def interpolate(
    dataset: "xarray.Dataset",
    variables: Names = ("u", "v"),
    to: Any = "2deg",
    *,
    noise_std: Names | None = None,
    layers: int = 3,
    pressure_level: Any = None,
    time: Any = None,
    samples: int = 0,
    quantiles: Sequence[float] = (),
    seed: int = 0,
    **options: Any,
) -> "xarray.Dataset":
    """Fit the variables of a dataset and predict them on a grid or at points, with their uncertainty.

    Two components of a wind are one vector field, any other variable is a scalar field of its own. The result holds
    `u` and `u_std`, on request `u_sample` (functions drawn from the posterior) and `u_quantile`; for a wind also
    `wind_std` and `wind_frobenius`. `to` is a Dataset or DataArray with latitudes and longitudes, a spacing such as
    "2deg", or points [N, 2]; `samples` counts the functions drawn, `quantiles` are probabilities. `noise_std`,
    `pressure_level`, `time`, `layers`, `seed` and further options are those of `fit`.
    """
    names = variable_names(variables)
    _check_request(find_targets(to), len(names), samples, quantiles)
    where = {"pressure_level": pressure_level, "time": time}
    estimators = fit(dataset, names, noise_std=noise_std, layers=layers, seed=seed, **where, **options)
    result = predict(estimators, to, samples=samples, quantiles=quantiles, seed=seed)
    chosen = select(dataset, **where)
    places = coordinate_names(chosen)[:2]
    single = {name: own for name, own in chosen.coords.items() if own.size == 1 and name not in (*places, *result.dims)}
    result = result.assign_coords({name: own.squeeze().reset_coords(drop=True) for name, own in single.items()})
    return result.assign_attrs({**result.attrs, **dataset.attrs})


def fit(
    data: "xarray.Dataset | Observations",
    variables: Names | None = None,
    *,
    noise_std: Names | None = None,
    pressure_level: Any = None,
    time: Any = None,
    layers: int = 3,
    hidden_samples: int = 10,
    seed: int = 0,
    progress: bool = True,
    callback: Callback | None = None,
    **options: Any,
) -> tuple[DeepRegressor, ...]:
    """Fit an estimator to each wind and each scalar among the variables of a dataset, or to observations.

    `noise_std` names variables beside the targets that hold the known standard deviations of their errors, one for each
    of `variables` and in their order, in the same units: ("u_err", "v_err") for ("u", "v"). Observations hold theirs.
    `pressure_level` and `time` choose the part of a dataset to fit, as in `rdgp.datasets.select`. `hidden_samples`
    counts the hidden draws of predictions, `seed` is the random state; a callback (step, ELBO) that returns True stops
    training; further options are those of the estimators.
    """
    shared = {"layers": layers, "samples": hidden_samples, "random_state": seed, "progress": progress, **options}
    if isinstance(data, Observations):
        if not (noise_std is None and pressure_level is None and time is None):
            raise ValueError(
                "noise_std, pressure_level and time choose from a dataset; observations hold what was chosen"
            )
        names = data.names if variables is None else variable_names(variables)
        chosen = [data.pick(group) for group in _groups(data, names)]
    else:
        errors = () if noise_std is None else variable_names(noise_std)
        names = _data_names(data, errors) if variables is None else variable_names(variables)
        error_of = _error_of(names, errors)
        chosen = [
            observations(
                data,
                group,
                noise_std=[error_of[name] for name in group] if errors else None,
                pressure_level=pressure_level,
                time=time,
            )
            for group in _groups(data, names)
        ]
    if len(chosen) > 1 and shared.get("checkpoint") is not None:
        raise ValueError("a checkpoint is of one fit, and these variables take several; fit them one after the other")
    return tuple(_fit_group(own, shared, callback) for own in chosen)


def predict(
    estimators: Estimators, to: Any = "2deg", *, samples: int = 0, quantiles: Sequence[float] = (), seed: int = 0
) -> "xarray.Dataset":
    """Return what fitted estimators say on a grid or at points, as `interpolate` does.

    `to`, `samples` and `quantiles` are those of `interpolate`; `seed` gives the samples.
    """
    fitted = (estimators,) if isinstance(estimators, DeepRegressor) else tuple(estimators)
    for estimator in fitted:
        _check_estimator(estimator)
    targets = find_targets(to)
    _check_request(targets, sum(len(estimator.fitted_.names) for estimator in fitted), samples, quantiles)
    latlon = targets.latlon()
    winds = sum(isinstance(estimator, VectorFieldRegressor) for estimator in fitted)
    variables: dict[str, xarray.DataArray] = {}
    for estimator in fitted:
        prefix = "wind" if winds == 1 else f"wind_{'_'.join(estimator.fitted_.names)}"
        summary = estimator.summarize(latlon, quantiles)
        variables |= describe_targets(estimator, targets, summary, tuple(quantiles), prefix)
        if samples:
            drawn = estimator.sample_y(latlon, samples, random_state=seed)
            variables |= describe_samples(estimator, targets, drawn.reshape(len(latlon), -1, samples))
    return require("xarray", "geo").Dataset(variables, attrs={"Conventions": "CF-1.11"})


def _data_names(dataset: "xarray.Dataset", errors: tuple[str, ...]) -> tuple[str, ...]:
    others = (*coordinate_names(dataset), *errors)
    return tuple(str(name) for name in dataset.data_vars if name not in others)


def _error_of(names: tuple[str, ...], errors: tuple[str, ...]) -> dict[str, str]:
    """Return the variable of the errors of each variable."""
    if errors and len(errors) != len(names):
        raise ValueError(
            f"noise_std must name a variable of standard deviations for each of {', '.join(names)}, "
            f"got {', '.join(errors)}"
        )
    return dict(zip(names, errors, strict=False))


def _groups(data: "xarray.Dataset | Observations", names: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return the variables that are fitted together: pairs of a wind, east first, and single ones."""
    there = data.names if isinstance(data, Observations) else data.variables
    left, groups = list(names), []
    for pair in permutations([name for name in names if name in there], 2):
        if is_wind(data, pair) and set(pair) <= set(left):
            groups.append(pair)
            left = [name for name in left if name not in pair]
    return [*groups, *((name,) for name in left)]


def _fit_group(data: Observations, options: dict[str, Any], callback: Callback | None) -> DeepRegressor:
    variance = None if data.noise_std is None else _variances(data.noise_std)
    attributes = tuple(kept_attributes(own) for own in data.attributes or ({},) * len(data.names))
    if len(data.names) == 2:
        if data.units[0] != data.units[1]:
            raise ValueError(f"{' and '.join(data.names)} must have the same units, got {' and '.join(data.units)}")
        winds = VectorFieldRegressor(**options)
        winds.fit(data.latlon, data.values, noise_variance=variance, callback=callback)
        return winds.describe(data.names, data.units, attributes)
    estimator = SphereRegressor(**options)
    estimator.fit(data.latlon, data.values[:, 0], noise_variance=variance, callback=callback)
    return estimator.describe(data.names, data.units, attributes)


def _variances(noise_std: Float[np.ndarray, "N P"]) -> Float[np.ndarray, "N P"]:
    check_unmasked(noise_std, "noise_std")
    if (noise_std < 0.0).any():
        raise ValueError(f"noise_std must not be negative, got {noise_std.min():g}; pass standard deviations")
    return np.square(noise_std)


def _check_estimator(estimator: DeepRegressor) -> None:
    if not hasattr(estimator, "fitted_"):
        raise ValueError(f"{type(estimator).__name__} is not fitted; call fit first")
    if isinstance(estimator, SphereRegressor) and estimator.coordinates != "latlon":
        raise ValueError(
            f'maps need an estimator of latitude and longitude, got coordinates="{estimator.coordinates}"; '
            'fit one with coordinates="latlon"'
        )


def _check_request(targets: Targets, outputs: int, samples: int, quantiles: Sequence[float]) -> None:
    check_count(samples, "samples", 0)
    wrong = [p for p in quantiles if not 0.0 < p < 1.0]
    if wrong:
        raise ValueError(f"quantiles must lie between 0 and 1, got {wrong[0]}")
    check_size(targets, outputs * (3 + samples + len(quantiles)))
