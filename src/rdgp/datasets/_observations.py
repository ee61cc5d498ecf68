"""Turn datasets into scattered observations: places, values, known errors, names and units."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from rdgp.core import require
from rdgp.datasets._coordinates import coordinate_names, is_plainly_level, listed, positions
from rdgp.datasets._selection import PressureLevel, Time, select, time_texts

if TYPE_CHECKING:
    import xarray

Names = str | Sequence[str]

_POLE = 90.0 - 1e-6


class Observations(NamedTuple):
    """Hold values observed at places: latitude -90..90 and longitude -180..180 in degrees, one row an observation.

    `noise_std` holds the known standard deviations of the errors of the values, in the units of the values, where they
    were asked for; `attributes` what a dataset says of each variable.
    """

    latlon: Float[np.ndarray, "N 2"]
    values: Float[np.ndarray, "N P"]
    names: tuple[str, ...]
    units: tuple[str, ...]
    noise_std: Float[np.ndarray, "N P"] | None = None
    attributes: tuple[dict[str, Any], ...] | None = None

    def rows(self, index: Int[np.ndarray, "n"]) -> "Observations":
        """Return some of the observations."""
        noise = None if self.noise_std is None else self.noise_std[index]
        return self._replace(latlon=self.latlon[index], values=self.values[index], noise_std=noise)

    def pick(self, names: Sequence[str]) -> "Observations":
        """Return some of the variables, in the order asked for."""
        missing = [name for name in names if name not in self.names]
        if missing:
            raise ValueError(f"no variable {missing[0]}; there are {', '.join(self.names)}; choose among them")
        index = [self.names.index(name) for name in names]
        return self._replace(
            values=self.values[:, index],
            names=tuple(names),
            units=tuple(self.units[i] for i in index),
            noise_std=None if self.noise_std is None else self.noise_std[:, index],
            attributes=None if self.attributes is None else tuple(self.attributes[i] for i in index),
        )


def observations(
    dataset: "xarray.Dataset",
    variables: Names,
    *,
    noise_std: Names | None = None,
    pressure_level: PressureLevel | None = None,
    time: Time | None = None,
) -> Observations:
    """Return every place where all the variables are known, at one level and time.

    `variables` are names, or names with commas between them. `noise_std` names variables that hold standard deviations
    of the errors of these variables, one for each and in their order, in the same units: ("u_err", "v_err") for
    ("u", "v"). They come back as `noise_std` of the result and must be known wherever the variables are.
    `pressure_level` and `time` choose as in `select`.

    Missing values are simply not observations. On a grid a place counts once: of a repeated column (0 and 360 degrees)
    the first stays, of the row at a pole one value, and none of a wind, whose components there depend on the frame.
    """
    names = variable_names(variables)
    errors = () if noise_std is None else _noise_names(noise_std, names)
    chosen = squeeze(select(pick_variables(dataset, names, errors), pressure_level=pressure_level, time=time))
    lat, lon = positions(chosen)
    gridded = lat.dims != lon.dims
    _check_dimensions(chosen, (*names, *errors), tuple(dict.fromkeys((*lat.dims, *lon.dims))))
    wanted = [chosen[name] for name in (*names, *errors)]
    lat, lon, *arrays = require("xarray", "geo").broadcast(lat, lon, *wanted)
    latlon = np.stack([lat.values.ravel(), lon.values.ravel()], axis=-1)
    columns = np.stack([_as_numbers(array).ravel() for array in arrays], axis=-1)
    values, noise = columns[:, : len(names)], columns[:, len(names) :]
    keep = _known(values, names) & np.isfinite(latlon).all(axis=-1)
    if is_wind(chosen, names) or is_wind(chosen, names[::-1]):
        keep &= np.abs(latlon[:, 0]) < _POLE
    if not keep.any():
        raise ValueError(
            f"nothing is left of {', '.join(names)}: at every place one of them, or the position, is missing "
            "or it is a wind at a pole; choose other variables"
        )
    found = Observations(
        latlon,
        values,
        names,
        tuple(str(chosen[name].attrs.get("units", "")) for name in names),
        noise if errors else None,
        tuple({str(key): value for key, value in chosen[name].attrs.items()} for name in names),
    ).rows(np.flatnonzero(keep))
    found = found.rows(_first_of_each_place(found.latlon)) if gridded else found
    _check_noise(chosen, found, errors)
    return found


def variable_names(variables: Names) -> tuple[str, ...]:
    """Return names of variables, which may come as one text with commas."""
    return tuple(name.strip() for name in (variables.split(",") if isinstance(variables, str) else variables))


def pick_variables(dataset: "xarray.Dataset", variables: Names, noise_std: Names = ()) -> "xarray.Dataset":
    """Return a dataset of the variables alone, in the order asked for, those of errors last, with their coordinates."""
    names = variable_names(variables)
    if not names or len(set(names)) != len(names):
        raise ValueError(
            f"variables must be one or more different names, got {list(names)}; there are {_data_names(dataset)}"
        )
    names = tuple(dict.fromkeys((*names, *variable_names(noise_std))))
    for name in names:
        if name not in dataset.variables:
            raise ValueError(f"no variable {name}; there are {_data_names(dataset)}; choose among them")
        if name in dataset.indexes:
            raise ValueError(f"{name} is a coordinate, not a variable; there are {_data_names(dataset)}")
    found = coordinate_names(dataset)
    loose = [name for name in found if name in dataset.data_vars and name not in names]
    return dataset.set_coords(loose).reset_coords([name for name in names if name in dataset.coords])[list(names)]


def squeeze(dataset: "xarray.Dataset") -> "xarray.Dataset":
    """Drop dimensions of size one, but for those of the places."""
    names = coordinate_names(dataset)
    places = {*dataset[names.lat].dims, *dataset[names.lon].dims}
    return dataset.squeeze([name for name, size in dataset.sizes.items() if size == 1 and name not in places])


def is_wind(data: "xarray.Dataset | Observations", variables: Sequence[str]) -> bool:
    """Tell whether two variables are the components of a wind: eastward and northward, or u and v in their names."""
    if len(variables) != 2:
        return False
    first, second = (name.lower() for name in variables)
    east, north = (f"{name.lower()} {_standard_name(data, name)}" for name in variables)
    if any(word in east and other in north for word, other in (("eastward", "northward"), ("zonal", "meridional"))):
        return True
    different = [pair for pair in zip(first, second, strict=False) if pair[0] != pair[1]]
    return len(first) == len(second) and different == [("u", "v")]


def _standard_name(data: "xarray.Dataset | Observations", name: str) -> str:
    if not isinstance(data, Observations):
        return str(data[name].attrs.get("standard_name", ""))
    return "" if data.attributes is None else str(data.attributes[data.names.index(name)].get("standard_name", ""))


def _noise_names(noise_std: Names, names: tuple[str, ...]) -> tuple[str, ...]:
    errors = variable_names(noise_std)
    if len(errors) != len(names) or set(errors) & set(names):
        raise ValueError(
            f"noise_std must name a variable of standard deviations for each of {', '.join(names)}, "
            f"got {', '.join(errors) or 'none'}"
        )
    return errors


def _check_noise(dataset: "xarray.Dataset", found: Observations, errors: tuple[str, ...]) -> None:
    """Raise unless errors are known, not negative, and in the units of what they are errors of."""
    for i, error in enumerate(errors):
        own = str(dataset[error].attrs.get("units", found.units[i]))
        if own != found.units[i]:
            raise ValueError(
                f"{error} must be in the units of {found.names[i]}, {found.units[i] or 'none'}, got {own}; convert it"
            )
        column = found.noise_std[:, i]  # type: ignore[index]  # there are errors
        missing, negative = int((~np.isfinite(column)).sum()), int((column < 0.0).sum())
        if missing or negative:
            what = f"{missing} missing" if missing else f"{negative} negative"
            raise ValueError(
                f"{error} must hold a standard deviation of each observation of {', '.join(found.names)}, got {what} "
                f"of {column.size}; fill them or drop these observations"
            )


def _check_dimensions(dataset: "xarray.Dataset", names: tuple[str, ...], places: tuple[object, ...]) -> None:
    shapes = {name: dict(dataset[name].sizes) for name in names}
    for name in names[1:]:
        if shapes[name] != shapes[names[0]]:
            raise ValueError(
                f"{names[0]} and {name} must have one shape, got {shapes[names[0]]} and {shapes[name]}; "
                "bring them to one grid"
            )
    extra = [name for name in shapes[names[0]] if name not in places]
    if extra:
        raise ValueError(_choose(dataset, extra))
    missing = [name for name in places if name not in shapes[names[0]]]
    if missing:
        raise ValueError(f"{names[0]} has no dimension {listed(missing)}; it has {listed(shapes[names[0]])}")
    _check_one_level(dataset)


def _choose(dataset: "xarray.Dataset", extra: Sequence[object]) -> str:
    found = coordinate_names(dataset)
    for kind, name in (("pressure_level", found.pressure_level), ("time", found.time)):
        if name is not None and name in dataset.coords and dataset[name].dims == (extra[0],):
            there = time_texts(dataset[name]) if kind == "time" else dataset[name].values
            return f"choose a {kind}: there are {listed(there)} in {name}"
    return f"the dimension {extra[0]} has {dataset.sizes[str(extra[0])]} entries; select one of them first"


def _check_one_level(dataset: "xarray.Dataset") -> None:
    level = coordinate_names(dataset).pressure_level
    if level is not None and level in dataset.coords and dataset[level].ndim and is_plainly_level(level):
        there = np.unique(dataset[level].values)
        if there.size > 1:
            raise ValueError(f"choose a pressure_level: there are {listed(there)} in {level}")


def _as_numbers(array: "xarray.DataArray") -> np.ndarray:
    try:
        return array.values.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{array.name} must hold numbers, got {array.dtype}; choose another variable") from None


def _known(values: np.ndarray, names: tuple[str, ...]) -> np.ndarray:
    finite = np.isfinite(values)
    if values.shape[0] == 0:
        raise ValueError(f"no observations: {', '.join(names)} hold no values at all; check the file")
    for name, column in zip(names, finite.T, strict=True):
        if not column.any():
            raise ValueError(
                f"all {column.size} values of {name} are missing; choose another pressure_level, time or variable"
            )
    return finite.all(axis=-1)


def _first_of_each_place(latlon: np.ndarray) -> np.ndarray:
    pole = np.abs(latlon[:, :1]) >= _POLE
    place = np.where(np.hstack([np.zeros_like(pole), pole]), 0.0, latlon)
    return np.sort(np.unique(np.round(place, 7), axis=0, return_index=True)[1])


def _data_names(dataset: "xarray.Dataset") -> str:
    return listed(dataset.data_vars)
