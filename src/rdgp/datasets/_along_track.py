"""Training cells under a track and test cells all over the globe."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rdgp.core import check_count, check_unmasked
from rdgp.datasets._observations import Observations, observations
from rdgp.datasets._selection import Level, Time
from rdgp.datasets._synthetic import fibonacci_sphere
from rdgp.datasets._track import Track

if TYPE_CHECKING:
    import xarray


class TrackSplit(NamedTuple):
    """Hold the cells a track passed, in the order of passing, and those of an even cover of the globe it did not."""

    train: Observations
    test: Observations


def along_track(
    dataset: "xarray.Dataset",
    track: Track,
    variables: str | Sequence[str],
    *,
    num_test: int = 5000,
    level: Level | None = None,
    time: Time | None = None,
) -> TrackSplit:
    """Split the cells of a dataset into those nearest to a track and those nearest to Fibonacci points elsewhere.

    Every observation stands at its cell's own position and counts once; test cells are none of the training cells.
    """
    from scipy.spatial import KDTree  # takes long to import

    check_unmasked(track.latlon, "track.latlon")
    cells = observations(dataset, variables, level=level, time=time)
    tree = KDTree(_unit_vectors(cells.latlon))
    train = _in_order(tree.query(_unit_vectors(track.latlon))[1])
    test = np.setdiff1d(tree.query(fibonacci_sphere(check_count(num_test, "num_test")))[1], train)
    return TrackSplit(_rows(cells, train), _rows(cells, test))


def _rows(cells: Observations, index: np.ndarray) -> Observations:
    return cells._replace(latlon=cells.latlon[index], values=cells.values[index])


def _in_order(index: np.ndarray) -> np.ndarray:
    return index[np.sort(np.unique(index, return_index=True)[1])]


def _unit_vectors(latlon: np.ndarray) -> np.ndarray:
    """Return unit vectors in double precision, so that the cells do not depend on the precision JAX is set to."""
    lat, lon = np.deg2rad(latlon).T
    return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=-1)
