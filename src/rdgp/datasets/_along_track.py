"""Training cells under a track and test cells all over the globe."""

from typing import TYPE_CHECKING, NamedTuple

import jax
import numpy as np

from rdgp.core import check_count, check_unmasked
from rdgp.datasets._observations import Names, Observations, observations
from rdgp.datasets._selection import PressureLevel, Time
from rdgp.datasets._synthetic import fibonacci_sphere
from rdgp.datasets._track import Track
from rdgp.spaces import latlon_to_sphere

if TYPE_CHECKING:
    import xarray


class TrackSplit(NamedTuple):
    """Hold the cells a track passed, in the order of passing, and those of an even cover of the globe it did not."""

    train: Observations
    test: Observations


def along_track(
    dataset: "xarray.Dataset",
    track: Track,
    variables: Names,
    *,
    num_test: int = 5000,
    noise_std: Names | None = None,
    pressure_level: PressureLevel | None = None,
    time: Time | None = None,
) -> TrackSplit:
    """Split the cells of a dataset into those nearest to a track and those nearest to Fibonacci points elsewhere.

    Every observation stands at its cell's own position and counts once; test cells are none of the training cells.
    `num_test` counts the Fibonacci points; the other arguments are those of `observations`.
    """
    from scipy.spatial import KDTree  # takes long to import

    check_unmasked(track.latlon, "track.latlon")
    cells = observations(dataset, variables, noise_std=noise_std, pressure_level=pressure_level, time=time)
    tree = KDTree(_unit_vectors(cells.latlon))
    train = _in_order(tree.query(_unit_vectors(track.latlon))[1])
    test = np.setdiff1d(tree.query(fibonacci_sphere(check_count(num_test, "num_test")))[1], train)
    return TrackSplit(cells.rows(train), cells.rows(test))


def _in_order(index: np.ndarray) -> np.ndarray:
    return index[np.sort(np.unique(index, return_index=True)[1])]


def _unit_vectors(latlon: np.ndarray) -> np.ndarray:
    """Return unit vectors in double precision, so that the cells do not depend on the precision JAX is set to."""
    with jax.enable_x64(True):
        return np.asarray(latlon_to_sphere(np.asarray(latlon, np.float64)))
