"""Masked arrays of NumPy are refused: what they hide is no data."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import xarray

from rdgp import Sphere, deep_gp, geo
from rdgp.bayesopt import Study
from rdgp.datasets import Observations, Track, along_track, irregular_target, observations, split_standardized
from rdgp.datasets import write_track as write
from rdgp.estimators import SphereRegressor, VectorFieldRegressor
from tests.end_to_end.test_cli_bad_input import unfitted
from tests.end_to_end.test_datasets import make

LATLON = np.array([[10.0, 20.0], [-30.0, 40.0], [50.0, -60.0], [-70.0, 80.0]])
Y = np.array([1.0, 2.0, 3.0, -9999.0])
HIDDEN_Y = np.ma.masked_values(Y, -9999.0)
HIDDEN = np.ma.masked_greater(LATLON, 45.0)  # hides two numbers
TRACK = Track(np.arange(4).astype("datetime64[s]"), HIDDEN)
FITTED = unfitted(SphereRegressor(layers=1), deep_gp(Sphere(2), 1, num_output_levels=2))
SMALL = {"layers": 1, "steps": 1, "num_output_levels": 2}

CASES: dict[str, tuple[Callable[[], object], str]] = {
    "inputs": (lambda: SphereRegressor(**SMALL).fit(HIDDEN, Y), "X must have no masked values, got 2 of 8"),
    "targets": (lambda: SphereRegressor(**SMALL).fit(LATLON, HIDDEN_Y), "y must have no masked values, got 1 of 4"),
    "winds": (
        lambda: VectorFieldRegressor(**SMALL).fit(LATLON, np.ma.masked_equal(LATLON, 80.0)),
        "y must have no masked values, got 1 of 8",
    ),
    "list of masked": (
        lambda: SphereRegressor(**SMALL).fit(list(HIDDEN), Y),
        "X must have no masked values, got 2 of 8",
    ),
    "predict": (lambda: FITTED.predict(HIDDEN), "X must have no masked values, got 2 of 8"),
    "distribution": (lambda: FITTED.predict_distribution(HIDDEN), "X must have no masked values, got 2 of 8"),
    "samples": (lambda: FITTED.sample_y(HIDDEN), "X must have no masked values, got 2 of 8"),
    "score": (lambda: FITTED.score(LATLON, HIDDEN_Y), "y must have no masked values, got 1 of 4"),
    "geo.fit": (
        lambda: geo.fit(Observations(LATLON, HIDDEN_Y[:, None], ("t",), ("K",)), **SMALL, progress=False),
        "y must have no masked values, got 1 of 4",
    ),
    "geo.predict": (lambda: geo.predict(FITTED, HIDDEN), "target points must have no masked values, got 2 of 8"),
    "split of x": (lambda: split_standardized(HIDDEN, Y, 0, 0.3), "x must have no masked values, got 2 of 8"),
    "split of y": (lambda: split_standardized(LATLON, HIDDEN_Y, 0, 0.3), "y must have no masked values, got 1 of 4"),
    "formula": (
        lambda: irregular_target(np.ma.masked_less(np.eye(3), 0.5)),
        "x must have no masked values, got 6 of 9",
    ),
    "track": (lambda: along_track(make(), TRACK, "u"), "track.latlon must have no masked values, got 2 of 8"),
    "study": (
        lambda: Study(Sphere(2)).tell(np.ma.masked_equal([0.0, 0.0, 1.0], 1.0), 1.0),
        "a point must have no masked values, got 1 of 3",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_masked_values_are_refused_in_one_line(name: str) -> None:
    call, text = CASES[name]
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is compared below
        call()
    assert str(caught.value) == f"{text}; drop or fill them first"


def test_a_masked_track_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no masked values"):
        write(TRACK, tmp_path / "track.csv")
    assert not (tmp_path / "track.csv").exists()


def test_masks_that_hide_nothing_are_plain_arrays() -> None:
    plain = np.eye(3)
    np.testing.assert_array_equal(irregular_target(np.ma.masked_greater(plain, 2.0)), irregular_target(plain))
    split, same = (split_standardized(x, Y, 0, 0.3) for x in (np.ma.masked_greater(LATLON, 90.0), LATLON))
    np.testing.assert_array_equal(split.x_train, same.x_train)


def test_masked_values_of_a_dataset_are_missing() -> None:
    places = {"lat": ("point", LATLON[:, 0]), "lon": ("point", LATLON[:, 1])}
    found = observations(xarray.Dataset({"t": ("point", HIDDEN_Y)}, places), "t")
    np.testing.assert_array_equal(found.values[:, 0], [1.0, 2.0, 3.0])
    np.testing.assert_array_equal(found.latlon, LATLON[:3])
