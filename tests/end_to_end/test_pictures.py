"""Every figure is drawn, looks like something, and leaves the user's settings alone."""

import io
from collections.abc import Callable

import matplotlib
import numpy as np
import pytest
import xarray
from matplotlib.figure import Figure
from matplotlib.image import imread

from rdgp import plotting
from rdgp.datasets import load_coastline
from rdgp.plotting import (
    Calibration,
    draw_calibration,
    draw_displacement,
    draw_globe,
    draw_history,
    draw_map,
    draw_panels,
)
from tests.pictures import made_up_layers, made_up_winds

COAST = [np.array([[10.0, -20.0], [30.0, 10.0], [-20.0, 40.0]]), np.array([[60.0, 170.0], [65.0, -170.0]])]


@pytest.fixture(scope="module")
def winds() -> tuple[xarray.Dataset, xarray.Dataset]:
    return made_up_winds()


def picture(figure: Figure) -> np.ndarray:
    buffer = io.BytesIO()
    figure.savefig(buffer, dpi=50)
    buffer.seek(0)
    return imread(buffer)[..., :3]


def num_colors(figure: Figure) -> int:
    return len(np.unique(np.round(picture(figure) * 31).reshape(-1, 3), axis=0))


def labels(figure: Figure) -> str:
    return " | ".join(f"{axes.get_title()} {axes.get_xlabel()}" for axes in figure.axes)


@pytest.mark.parametrize("draw", [draw_map, draw_globe])
def test_maps_show_arrows_uncertainty_and_observations(
    draw: Callable[..., Figure], winds: tuple[xarray.Dataset, xarray.Dataset]
) -> None:
    prediction, truth = winds
    before, places = dict(matplotlib.rcParams), np.array([[0.0, 0.0], [10.0, 20.0]])
    full = draw(prediction, observations=places, coastline=COAST)
    assert num_colors(full) > 100
    assert "standard deviation of the wind (m s⁻¹)" in labels(full)
    bare = draw(prediction, coastline=COAST, arrows=False)
    assert np.any(picture(full) != picture(bare))
    assert "length of the difference" in labels(draw(prediction, color="difference", truth=truth, coastline=COAST))
    assert "wind speed" in labels(draw(prediction, color="speed", coastline=COAST, limits=(0.0, 3.0)))
    assert dict(matplotlib.rcParams) == before


def test_the_panels_of_a_wind_are_mean_truth_difference_and_sample(
    winds: tuple[xarray.Dataset, xarray.Dataset],
) -> None:
    prediction, truth = winds
    figure = draw_panels(prediction, truth=truth, uncertainty="wind_frobenius", coastline=COAST, title="Winds")
    for title in ("Mean and uncertainty", "Truth", "Mean minus truth", "A sample of the posterior"):
        assert title in labels(figure)
    assert "(m² s⁻²)" in labels(figure)
    assert num_colors(figure) > 200


def test_the_panels_of_a_scalar_need_only_arrays() -> None:
    lat, lon = np.linspace(-80.0, 80.0, 17), np.arange(0.0, 360.0, 10.0)
    values = lat[:, None] + 0.1 * lon[None, :]
    data = {"lat": lat, "lon": lon, "heat": values, "heat_std": 0 * values + 1.0}
    figure = draw_panels(
        data, truth={**data, "heat": values + 1.0}, coastline=[], projection="plate_carree", center=90.0
    )
    assert [axes.get_title() for axes in figure.axes if axes.get_title()] == [
        "Mean",
        "Uncertainty",
        "Truth",
        "Mean minus truth",
    ]


def test_a_region_fills_its_map(winds: tuple[xarray.Dataset, xarray.Dataset]) -> None:
    region = winds[0].sel(lat=slice(20.0, 60.0), lon=slice(150.0, 220.0))
    axes = draw_map(region, coastline=COAST).axes[0]
    assert np.diff(axes.get_xlim())[0] < 1.5
    assert num_colors(draw_globe(region, coastline=COAST)) > 50


def test_projections_of_cartopy_are_drawn(winds: tuple[xarray.Dataset, xarray.Dataset]) -> None:
    crs = pytest.importorskip("cartopy.crs")
    figure = draw_map(winds[0], projection=crs.NorthPolarStereo(), coastline=COAST)
    assert num_colors(figure) > 100


def test_coasts_come_from_the_bundle(winds: tuple[xarray.Dataset, xarray.Dataset]) -> None:
    choices = (None, load_coastline(), COAST, [])
    shown, bundled, other, without = (picture(draw_map(winds[0], coastline=lines)) for lines in choices)
    np.testing.assert_array_equal(shown, bundled)
    for different in (other, without):
        assert np.mean(np.any(shown != different, axis=-1)) > 0.01


def test_an_axes_of_the_user_is_drawn_on(winds: tuple[xarray.Dataset, xarray.Dataset]) -> None:
    mine = Figure()
    assert draw_globe(winds[0], axes=mine.add_subplot(), coastline=[]) is mine


def test_layers_calibration_and_history_are_drawn() -> None:
    figure = draw_displacement(made_up_layers(), coastline=COAST, title="Layers")
    assert "Layer 1" in labels(figure)
    assert "Layer 2" in labels(figure)
    assert num_colors(figure) > 50
    nominal = np.linspace(0.1, 0.9, 9)
    case = Calibration(nominal, nominal**0.9, np.linspace(0.0, 1.0, 200))
    assert num_colors(draw_calibration({"deep": case, "shallow": case}, title="July")) > 5
    assert num_colors(draw_calibration(case)) > 5
    assert num_colors(draw_history({"deep": -1.0 / np.arange(1.0, 200.0), "shallow": np.zeros(3)})) > 5
    assert num_colors(draw_history([1.0, np.nan, 3.0])) > 5


def test_bad_input_is_named(winds: tuple[xarray.Dataset, xarray.Dataset]) -> None:
    prediction, truth = winds
    cases: list[tuple[str, Callable[[], object]]] = [
        ("no variable 'w'; there are u, v", lambda: draw_map(prediction, color="w", coastline=[])),
        ("the difference needs the truth", lambda: draw_map(prediction, color="difference", coastline=[])),
        ("lat is missing", lambda: draw_map({"lon": [0.0], "f": [1.0]}, coastline=[])),
        ("nothing to draw", lambda: draw_map({"lat": [0.0, 1.0], "lon": [0.0], "f": [1.0, 2.0, 3.0]}, coastline=[])),
        ("every value is missing", lambda: draw_map(prediction * np.nan, coastline=[])),
        ("must lie on the grid", lambda: draw_panels(prediction, truth=truth.isel(lat=slice(5)), coastline=[])),
        ("projection must be", lambda: draw_map(prediction, projection="mercator", coastline=[])),
        (r"shape \[N, 2\], got \(3,\)", lambda: draw_map(prediction, observations=np.zeros(3), coastline=[])),
        ("of one shape, got", lambda: draw_displacement([np.zeros((3, 3))], coastline=[])),
        ("unit vectors", lambda: draw_displacement([np.zeros((3, 4)), np.zeros((3, 4))], coastline=[])),
        ("one number for each step", lambda: draw_history(np.zeros((2, 2)))),
        ("curves of the same length", lambda: draw_calibration(Calibration([0.5], [0.5, 0.6], [0.1]))),
    ]
    for message, act in cases:
        with pytest.raises(ValueError, match=message):
            act()


def test_public_names_are_there() -> None:
    assert all(hasattr(plotting, name) for name in plotting.__all__)
