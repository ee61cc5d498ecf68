"""Model files and test data as commands take them."""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy
    import xarray

    import rdgp.datasets
    import rdgp.estimators


@contextmanager
def about(path: Path) -> Iterator[None]:
    """Put the name of a file before what is wrong with it."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


def read_places(path: Path) -> "xarray.Dataset":
    """Return a dataset whose places are latitudes and longitudes in degrees, named lat and lon."""
    from rdgp.datasets import coordinate_names, positions, read_dataset

    dataset = read_dataset(path)
    with about(path):
        positions(dataset)
        names = coordinate_names(dataset)
    dataset = dataset.set_coords([names.lat, names.lon])
    return dataset.rename({own: name for own, name in ((names.lat, "lat"), (names.lon, "lon")) if own != name})


def latlon(dataset: "xarray.Dataset") -> "numpy.ndarray":
    """Return the places of a dataset as rows of latitude and longitude."""
    import numpy as np
    import xarray

    return np.stack([array.values.ravel() for array in xarray.broadcast(dataset["lat"], dataset["lon"])], axis=-1)


def read_model(path: Path) -> "rdgp.estimators.DeepRegressor":
    """Return the estimator in a file, or raise unless it knows latitude and longitude."""
    import jax

    from rdgp import DeepGP, load
    from rdgp.estimators import SphereRegressor, load_estimator
    from rdgp.io import needs_double

    with jax.enable_x64(True) if needs_double(path) else nullcontext():
        model = load(path)
    if isinstance(model, DeepGP):
        raise ValueError(
            f"{path} holds a bare model on {model.space}, which knows no latitude, longitude and units; "
            "use what rdgp fit writes, or this model from Python"
        )
    estimator = load_estimator(path)
    if isinstance(estimator, SphereRegressor) and estimator.coordinates != "latlon":
        raise ValueError(
            f"{path} is a model on {estimator.model_.space} of {estimator.coordinates} coordinates; "
            "the command line needs one of latitude and longitude, as rdgp fit writes"
        )
    return estimator


def observed(estimator: "rdgp.estimators.DeepRegressor") -> str:
    """Say what a model is and what it has seen."""
    fitted = estimator.fitted_
    layers = len(fitted.model.hidden) + 1
    plural = "s" if layers > 1 else ""
    return f"{layers} layer{plural}, {len(fitted.inputs):,} observations of {', '.join(fitted.names)}"


def read_test(
    path: Path,
    estimator: "rdgp.estimators.DeepRegressor",
    variables: tuple[str, ...],
    noise_std: tuple[str, ...],
    pressure_level: str | None,
    when: str | int | None,
) -> "rdgp.datasets.Observations":
    """Return held-out observations of what a model predicts, with their known errors if `noise_std` names them."""
    from rdgp.datasets import read_observations

    fitted = estimator.fitted_
    names = variables or fitted.names
    if len(names) != len(fitted.names):
        raise ValueError(f"the model predicts {', '.join(fitted.names)}, got --variables {','.join(names)}")
    found = read_observations(path, names, noise_std=noise_std or None, pressure_level=pressure_level, time=when)
    for name, here, there in zip(names, found.units, fitted.units, strict=True):
        if here and there and _bare(here) != _bare(there):
            warnings.warn(f"{name} is in {here} in {path}, in {there} in the model; convert one of them", stacklevel=2)
    return found


def _bare(units: str) -> str:
    """Return units so that m s-1, m s**-1 and m s^-1 are one."""
    return units.replace("**", "").replace("^", "").replace(" ", "").lower()
