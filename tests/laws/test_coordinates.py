"""Laws of places: a dataset gives the same observations wherever its longitudes begin and however it is ordered."""

import numpy as np
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

from rdgp.datasets import Track, along_track, fibonacci_sphere, observations


def dataset(seed: int, turns: int = 0, reverse: bool = False) -> xr.Dataset:
    values = np.random.default_rng(seed).normal(size=(7, 12))
    lat, lon = np.linspace(-75.0, 75.0, 7), np.arange(12) * 30.0
    made = xr.Dataset({"t": (("lat", "lon"), values)}, {"lat": lat, "lon": lon + 360.0 * turns})
    return made.isel(lat=slice(None, None, -1), lon=slice(None, None, -1)) if reverse else made


def rows(data: xr.Dataset) -> np.ndarray:
    found = observations(data, "t")
    table = np.hstack([found.latlon, found.values])
    return table[np.lexsort(table.T)]


@given(seed=st.integers(0, 100), turns=st.integers(-2, 2), reverse=st.booleans())
def test_order_and_turns_do_not_matter(seed: int, turns: int, reverse: bool) -> None:
    np.testing.assert_allclose(rows(dataset(seed, turns, reverse)), rows(dataset(seed)), atol=1e-9)


@given(seed=st.integers(0, 100), n=st.integers(1, 60))
def test_train_and_test_cells_are_apart_and_nearest(seed: int, n: int) -> None:
    generator = np.random.default_rng(seed)
    latlon = np.column_stack([generator.uniform(-70.0, 70.0, n), generator.uniform(-180.0, 180.0, n)])
    split = along_track(dataset(seed), Track(np.zeros(n, "datetime64[s]"), latlon), "t", num_test=50)
    trained, tested = ({tuple(place) for place in part.latlon.tolist()} for part in split)
    assert not trained & tested
    assert len(trained) == len(split.train.latlon) <= n
    assert len(tested) == len(split.test.latlon) <= 50


@given(n=st.integers(1, 500))
def test_fibonacci_points_are_even(n: int) -> None:
    x = fibonacci_sphere(n)
    np.testing.assert_allclose(np.linalg.norm(x, axis=-1), 1.0, rtol=1e-12)
    assert np.linalg.norm(x.mean(axis=0)) <= 2.0 / n
