"""Estimators: the rules of scikit-learn, pickles and files, units, winds."""

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from rdgp import load, metrics, save
from rdgp.estimators import SphereRegressor, VectorFieldRegressor, load_estimator
from rdgp.spaces import Sphere, latlon_to_sphere

pytestmark = pytest.mark.xdist_group("estimators")
TINY = {"num_levels": 2, "num_output_levels": 4, "steps": 1, "samples": 2, "random_state": 0}

TWO_COLUMNS = "X must be latitude and longitude, y must be u and v: the data of this check are neither"
NOT_FOR_WINDS = dict.fromkeys(
    [
        "check_dict_unchanged",
        "check_dont_overwrite_parameters",
        "check_dtype_object",
        "check_estimators_dtypes",
        "check_estimators_fit_returns_self",
        "check_estimators_nan_inf",
        "check_estimators_overwrite_params",
        "check_estimators_pickle",
        "check_f_contiguous_array_estimator",
        "check_fit2d_1feature",
        "check_fit2d_1sample",
        "check_fit2d_predict1d",
        "check_fit_check_is_fitted",
        "check_fit_idempotent",
        "check_fit_score_takes_y",
        "check_methods_sample_order_invariance",
        "check_methods_subset_invariance",
        "check_n_features_in",
        "check_n_features_in_after_fitting",
        "check_pipeline_consistency",
        "check_positive_only_tag_during_fit",
        "check_readonly_memmap_input",
        "check_regressor_data_not_an_array",
        "check_regressor_multioutput",
        "check_regressors_int",
        "check_regressors_no_decision_function",
        "check_regressors_train",
    ],
    TWO_COLUMNS,
)


def places(seed: int, n: int = 40) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.stack([np.rad2deg(np.arcsin(rng.uniform(-1.0, 1.0, n))), rng.uniform(-180.0, 180.0, n)], axis=1)


def winds(latlon: np.ndarray) -> np.ndarray:
    """Return the wind of a turning globe, about an axis that is not its own, in m/s, with errors."""
    lat, lon = np.deg2rad(latlon).T
    u = 10.0 * np.cos(lat) - 4.0 * np.sin(lat) * np.cos(lon)
    return np.stack([u, 4.0 * np.sin(lon)], axis=1) + 0.2 * np.cos(50.0 * lon[:, None] + np.array([0.0, 1.0]))


def temperatures(latlon: np.ndarray) -> np.ndarray:
    """Return temperatures that fall towards the poles, in K, with errors."""
    lat, lon = np.deg2rad(latlon).T
    return 300.0 - 40.0 * np.sin(lat) ** 2 + 0.5 * np.cos(50.0 * lon)


@pytest.fixture(scope="module")
def wind_regressor() -> VectorFieldRegressor:
    latlon = places(0, 48)
    return VectorFieldRegressor(layers=2, **TINY).fit(latlon, winds(latlon))


@pytest.fixture(scope="module")
def temperature_regressor() -> SphereRegressor:
    latlon = places(0, 47)
    return SphereRegressor(layers=1, **TINY).fit(latlon, temperatures(latlon))


@pytest.mark.xdist_group("check_estimator")
def test_scikit_learn_finds_no_fault_with_the_sphere_regressor() -> None:
    tiny = {"num_levels": 2, "num_output_levels": 2, "samples": 1, "recipe": "paper", "steps": 300}
    results = check_estimator(SphereRegressor(layers=1, coordinates="lifted", **tiny), on_skip=None)
    assert sum(result["status"] == "passed" for result in results) >= 50


def test_scikit_learn_finds_no_other_fault_with_the_vector_field_regressor() -> None:
    results = check_estimator(
        VectorFieldRegressor(layers=1, **TINY), expected_failed_checks=NOT_FOR_WINDS, on_skip=None
    )
    failed = {result["check_name"] for result in results if result["status"] == "xfail"}
    assert failed == set(NOT_FOR_WINDS)


def test_targets_of_any_size_come_back_in_their_units(temperature_regressor: SphereRegressor) -> None:
    latlon = places(1, 30)
    y = temperatures(latlon)
    mean, std = temperature_regressor.predict(latlon, return_std=True)
    np.testing.assert_allclose(mean, y, atol=3.0)
    assert mean.shape == std.shape == (30,)
    assert (std > 0.0).all()
    assert std.max() < 10.0
    unexplained = np.mean((y - mean) ** 2) / np.var(y)
    assert 0.0 < unexplained < 0.05
    np.testing.assert_allclose(temperature_regressor.score(latlon, y), 1.0 - unexplained)


def test_distributions_are_in_the_units_of_the_data(temperature_regressor: SphereRegressor) -> None:
    latlon = places(2, 30)
    y = temperatures(latlon)
    distribution = temperature_regressor.predict_distribution(latlon)
    scaled = temperature_regressor.predict_distribution(latlon, scaled=True)
    mean, std = temperature_regressor.predict(latlon, return_std=True)
    offset, scale = temperature_regressor.offset_[0], temperature_regressor.scale_[0]
    np.testing.assert_allclose(distribution.mean, mean)
    np.testing.assert_allclose(distribution.variance, std**2)
    np.testing.assert_allclose(distribution.observed.variance, std**2 + temperature_regressor.noise_std_**2)
    np.testing.assert_allclose(distribution.quantile(0.9), scaled.quantile(0.9) * scale + offset)
    difference = metrics.nlpd(distribution, y) - metrics.nlpd(scaled, (y - offset) / scale)
    np.testing.assert_allclose(difference, np.log(scale))
    np.testing.assert_allclose(metrics.pit(distribution, distribution.observed.quantile(0.3)), 0.3, atol=1e-6)


def test_several_targets_have_their_own_units() -> None:
    latlon = places(3)
    x = np.asarray(latlon_to_sphere(latlon))
    errors = np.cos(50.0 * latlon) / 20.0
    y = np.array([1e5, 0.0]) + np.array([1e3, 1e-3]) * (x[:, [0, 2]] + errors)
    regressor = SphereRegressor(layers=1, coordinates="ambient", **TINY).fit(x, y)
    mean, std = regressor.predict(x, return_std=True)
    np.testing.assert_allclose((mean - y) / y.std(axis=0), 0.0, atol=0.2)
    assert std[:, 0].min() > 1e3 * std[:, 1].max()
    assert regressor.sample_y(x, 3).shape == (40, 2, 3)
    distribution = regressor.predict_distribution(x)
    np.testing.assert_allclose(distribution.observed.variance, std**2 + regressor.noise_std_**2)
    assert np.isfinite(metrics.nlpd(distribution, y))


def test_winds_are_learned_everywhere(wind_regressor: VectorFieldRegressor) -> None:
    latlon = np.concatenate([places(4, 28), [[90.0, 0.0], [90.0, 70.0], [-90.0, -120.0], [3.0, 180.0]]])
    mean, std = wind_regressor.predict(latlon, return_std=True)
    np.testing.assert_allclose(mean, winds(latlon), atol=1.5)
    assert std.shape == mean.shape
    distribution = wind_regressor.predict_distribution(latlon)
    np.testing.assert_allclose(distribution.mean, mean)
    assert metrics.mse(distribution, winds(latlon)) < 0.2


def test_there_is_no_seam(wind_regressor: VectorFieldRegressor) -> None:
    latlon = np.array([[10.0, -180.0], [10.0, -0.25], [89.9, -90.0], [-60.0, -170.5]])
    np.testing.assert_allclose(
        wind_regressor.predict(latlon), wind_regressor.predict(latlon + np.array([0.0, 360.0])), rtol=1e-9
    )


def test_samples_are_functions(wind_regressor: VectorFieldRegressor) -> None:
    latlon = places(5, 30)
    drawn = wind_regressor.sample_y(latlon, 2, random_state=1)
    assert drawn.shape == (30, 2, 2)
    np.testing.assert_allclose(wind_regressor.sample_y(latlon[7:9], 2, random_state=1), drawn[7:9], rtol=1e-7)
    assert np.abs(drawn[..., 0] - drawn[..., 1]).max() > 0.0


def test_pickles_and_files_hold_all(wind_regressor: VectorFieldRegressor, tmp_path: object) -> None:
    latlon = places(6, 10)
    wind_regressor.describe(("u10", "v10"), ("m s-1", "m s-1"), ({"standard_name": "eastward_wind"}, {}))
    path = f"{tmp_path}/winds.rdgp"
    wind_regressor.save(path)
    for copy in (load_estimator(path), pickle.loads(pickle.dumps(wind_regressor))):
        np.testing.assert_array_equal(copy.predict(latlon), wind_regressor.predict(latlon))
        np.testing.assert_array_equal(copy.history_, wind_regressor.history_)
        assert copy.fitted_.names == ("u10", "v10")
        assert copy.fitted_.attributes[0] == {"standard_name": "eastward_wind"}
        assert copy.get_params() == wind_regressor.get_params()
    assert load(path).estimator == "VectorFieldRegressor"
    assert not hasattr(clone(wind_regressor), "fitted_")


def test_grids_are_searched_in_pipelines() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(3.0, 2.0, (24, 2))
    tiny = {"num_output_levels": 3, "steps": 1, "samples": 1, "random_state": 0}
    pipeline = make_pipeline(StandardScaler(), SphereRegressor(1, "lifted", **tiny))
    search = GridSearchCV(pipeline, {"sphereregressor__batch_size": [None, "auto"]}, cv=2, refit=False).fit(x, x[:, 0])
    assert search.best_score_ > 0.9
    assert cross_val_score(pipeline, x, x[:, 0], cv=2).min() > 0.8


def test_many_points_are_taken_in_batches() -> None:
    assert SphereRegressor()._batch_size(np.zeros(10_000)) == 1024
    assert SphereRegressor()._batch_size(np.zeros(1000)) is None
    assert SphereRegressor(batch_size=50)._batch_size(np.zeros(50)) is None
    assert SphereRegressor(batch_size=20)._batch_size(np.zeros(50)) == 20


def fit_one(**options: object) -> None:
    latlon = places(0, 5)
    SphereRegressor(**{"steps": 1, **options}).fit(latlon, latlon[:, 0])


def test_wrong_input_is_answered_in_one_line(tmp_path: object) -> None:
    latlon = places(0, 5)
    with pytest.raises(ValueError, match="coordinates must be one of latlon, ambient, lifted, got 'polar'"):
        fit_one(coordinates="polar")
    with pytest.raises(ValueError, match="must lie on"):
        fit_one(coordinates="ambient")
    with pytest.raises(ValueError, match="batch_size must be"):
        fit_one(batch_size="some")
    with pytest.raises(ValueError, match="checkpoint needs a whole number as random_state"):
        fit_one(checkpoint=f"{tmp_path}/state", random_state=None)
    with pytest.raises(ValueError, match="X must have 2 columns, latitude and longitude in degrees, got 3"):
        SphereRegressor(steps=1).fit(np.zeros((4, 3)), np.zeros(4))
    with pytest.raises(ValueError, match="latitude must lie within ±90"):
        SphereRegressor(steps=1).fit(latlon[:, ::-1] * [2.0, 1.0], np.zeros(5))
    with pytest.raises(ValueError, match=r"y must have 2 columns, winds u east and v north, got shape \(5, 3\)"):
        VectorFieldRegressor(steps=1).fit(latlon, np.zeros((5, 3)))
    save(Sphere(2), f"{tmp_path}/space.rdgp")
    with pytest.raises(ValueError, match=r"space\.rdgp: it holds no estimator"):
        load_estimator(f"{tmp_path}/space.rdgp")
