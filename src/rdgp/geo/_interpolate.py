"""From observations to a field everywhere."""

from collections.abc import Callable, Sequence
from itertools import permutations
from typing import TYPE_CHECKING, Any

from rdgp.core import check_count, require
from rdgp.datasets import Observations, coordinate_names, is_wind, observations, select
from rdgp.estimators import DeepRegressor, SphereRegressor, VectorFieldRegressor
from rdgp.geo._targets import Targets, check_size, find_targets
from rdgp.geo._variables import describe_samples, describe_targets, kept_attributes

if TYPE_CHECKING:
    import xarray

Estimators = DeepRegressor | Sequence[DeepRegressor]
Callback = Callable[[int, float], bool | None]


def interpolate(
    dataset: "xarray.Dataset",
    variables: str | Sequence[str] = ("u", "v"),
    to: Any = "2deg",
    *,
    layers: int = 3,
    level: Any = None,
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
    "2deg", or points [N, 2]. Options are those of `fit`.
    """
    names = _names(variables)
    _check_request(find_targets(to), len(names), samples, quantiles)
    estimators = fit(dataset, names, level=level, time=time, layers=layers, seed=seed, **options)
    result = predict(estimators, to, samples=samples, quantiles=quantiles, seed=seed)
    chosen = select(dataset, level=level, time=time)
    places = coordinate_names(chosen)[:2]
    single = {name: own for name, own in chosen.coords.items() if own.size == 1 and name not in (*places, *result.dims)}
    result = result.assign_coords({name: own.squeeze().reset_coords(drop=True) for name, own in single.items()})
    return result.assign_attrs({**result.attrs, **dataset.attrs})


def fit(
    data: "xarray.Dataset | Observations",
    variables: str | Sequence[str] | None = None,
    *,
    level: Any = None,
    time: Any = None,
    layers: int = 3,
    hidden_samples: int = 10,
    seed: int = 0,
    progress: bool = True,
    callback: Callback | None = None,
    **options: Any,
) -> tuple[DeepRegressor, ...]:
    """Fit an estimator to each wind and each scalar among the variables of a dataset, or to observations.

    `hidden_samples` counts the hidden draws of predictions; a callback (step, bound) that returns True stops training;
    further options are those of the estimators.
    """
    shared = {"layers": layers, "samples": hidden_samples, "random_state": seed, "progress": progress, **options}
    chosen: list[tuple[Observations, tuple[dict[str, Any], ...]]]
    if isinstance(data, Observations):
        names = data.names if variables is None else _names(variables)
        groups = [_some(data, group) for group in _groups(_as_dataset(data), names)]
        chosen = [(found, tuple({} for _ in found.names)) for found in groups]
    else:
        names = _names(_data_names(data) if variables is None else variables)
        chosen = [
            (observations(data, group, level=level, time=time), _attributes(data, group))
            for group in _groups(data, names)
        ]
    if len(chosen) > 1 and shared.get("checkpoint") is not None:
        raise ValueError("a checkpoint is of one fit, and these variables take several; fit them one after the other")
    return tuple(_fit_group(*own, shared, callback) for own in chosen)


def predict(
    estimators: Estimators, to: Any = "2deg", *, samples: int = 0, quantiles: Sequence[float] = (), seed: int = 0
) -> "xarray.Dataset":
    """Return what fitted estimators say on a grid or at points, as `interpolate` does."""
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


def _names(variables: str | Sequence[str]) -> tuple[str, ...]:
    names = variables.split(",") if isinstance(variables, str) else variables
    return tuple(name.strip() for name in names)


def _data_names(dataset: "xarray.Dataset") -> tuple[str, ...]:
    places = coordinate_names(dataset)
    return tuple(str(name) for name in dataset.data_vars if name not in places)


def _groups(dataset: "xarray.Dataset", names: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return the variables that are fitted together: pairs of a wind, east first, and single ones."""
    left, groups = list(names), []
    for pair in permutations([name for name in names if name in dataset.variables], 2):
        if is_wind(dataset, pair) and set(pair) <= set(left):
            groups.append(pair)
            left = [name for name in left if name not in pair]
    return [*groups, *((name,) for name in left)]


def _as_dataset(data: Observations) -> "xarray.Dataset":
    """Return a dataset in which the names of observations can be looked up."""
    return require("xarray", "geo").Dataset(dict.fromkeys(data.names, ((), 0.0)))


def _some(data: Observations, group: tuple[str, ...]) -> Observations:
    missing = [name for name in group if name not in data.names]
    if missing:
        raise ValueError(f"no variable {missing[0]}; there are {', '.join(data.names)}; choose among them")
    index = [data.names.index(name) for name in group]
    return Observations(data.latlon, data.values[:, index], group, tuple(data.units[i] for i in index))


def _attributes(dataset: "xarray.Dataset", group: tuple[str, ...]) -> tuple[dict[str, Any], ...]:
    return tuple(kept_attributes(dataset[name].attrs) for name in group)


def _fit_group(
    data: Observations, attributes: tuple[dict[str, Any], ...], options: dict[str, Any], callback: Callback | None
) -> DeepRegressor:
    if len(data.names) == 2:
        if data.units[0] != data.units[1]:
            raise ValueError(f"{' and '.join(data.names)} must have the same units, got {' and '.join(data.units)}")
        winds = VectorFieldRegressor(**options).fit(data.latlon, data.values, callback=callback)
        return winds.describe(data.names, data.units, attributes)
    estimator = SphereRegressor(**options).fit(data.latlon, data.values[:, 0], callback=callback)
    return estimator.describe(data.names, data.units, attributes)


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
