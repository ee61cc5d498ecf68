"""Noise that is known of each observation: dense formulas, replications, limits, units, and what is refused."""
# ruff: noqa: E501 - one case a line reads as a table

from collections.abc import Callable

import jax
import numpy as np
import pytest
import xarray
from sklearn.model_selection import GridSearchCV

from rdgp import geo, metrics
from rdgp.datasets import Observations
from rdgp.estimators import DeepRegressor, SphereRegressor, VectorFieldRegressor, load_estimator
from tests.end_to_end.test_estimators import places, temperatures, winds

pytestmark = pytest.mark.xdist_group("estimators")  # which compile the same shapes
TINY = {"layers": 1, "num_output_levels": 4, "steps": 1, "random_state": 0}
RNG = np.random.default_rng(0)
LATLON, TEST = places(0, 24), places(1, 30)
VARIANCES = RNG.uniform(0.1, 20.0, 24)
ROOTS = RNG.normal(size=(24, 2, 2))
COVARIANCES = ROOTS @ np.swapaxes(ROOTS, 1, 2)  # of (u, v), with correlations of all signs


def unit_vectors(latlon: np.ndarray) -> np.ndarray:
    lat, lon = np.deg2rad(latlon).T
    return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=1)


def east_north(latlon: np.ndarray) -> np.ndarray:
    """Return the unit vectors to the east and to the north as rows."""
    lat, lon = np.deg2rad(latlon).T
    east = np.stack([-np.sin(lon), np.cos(lon), 0.0 * lon], axis=1)
    north = np.stack([-np.sin(lat) * np.cos(lon), -np.sin(lat) * np.sin(lon), np.cos(lat)], axis=1)
    return np.stack([east, north], axis=1)


def kernel(estimator: DeepRegressor, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the prior covariance of targets in their units, that of u and v at one place next to each other."""
    values = np.asarray(estimator.model_.field.covariance(unit_vectors(first), unit_vectors(second)))
    if values.ndim == 2:
        return values * estimator.scale_[0] ** 2
    turned = np.einsum("nip,npmq,mjq->nimj", east_north(first), values, east_north(second))
    return turned.reshape(2 * len(first), 2 * len(second)) * estimator.scale_[0] ** 2


def dense(estimator: DeepRegressor, y: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and standard deviation at the test places by the formula of Gaussian conditioning."""
    mean = estimator.offset_ + estimator.scale_ * np.asarray(estimator.model_.offset(np.dtype(float)))
    k = kernel(estimator, LATLON, LATLON) + estimator.noise_std_[0] ** 2 * np.eye(y.size) + noise
    across = kernel(estimator, TEST, LATLON)
    found = across @ np.linalg.solve(k, (y - mean if y.ndim == 1 else y).ravel())
    here = np.diag(kernel(estimator, TEST, TEST) - across @ np.linalg.solve(k, across.T))
    shape = (len(TEST), *y.shape[1:])
    return (found + (mean if y.ndim == 1 else 0.0)).reshape(shape), np.sqrt(here).reshape(shape)


def blocks(covariances: np.ndarray) -> np.ndarray:
    n, p, _ = covariances.shape
    full = np.zeros((n, p, n, p))
    full[np.arange(n), :, np.arange(n), :] = covariances
    return full.reshape(n * p, n * p)


def test_temperatures_follow_the_dense_formula() -> None:
    y = temperatures(LATLON)
    estimator = SphereRegressor(**TINY).fit(LATLON, y, noise_variance=VARIANCES)
    mean, std = estimator.predict(TEST, return_std=True)
    expected = dense(estimator, y, np.diag(VARIANCES))
    np.testing.assert_allclose(mean, expected[0], rtol=1e-7)
    np.testing.assert_allclose(std, expected[1], rtol=1e-6)
    other = dense(estimator, y, np.diag(VARIANCES[::-1]))[0]
    assert np.abs(mean - other).max() > 0.01 * y.std()


WIND_NOISE = {
    "isotropic": (VARIANCES, VARIANCES[:, None, None] * np.eye(2)),
    "variances": (np.diagonal(COVARIANCES, axis1=1, axis2=2), COVARIANCES * np.eye(2)),
    "covariances": (COVARIANCES, COVARIANCES),
}


@pytest.mark.parametrize("kind", WIND_NOISE)
def test_winds_follow_the_dense_formula(kind: str) -> None:
    y, (given, full) = winds(LATLON), WIND_NOISE[kind]
    estimator = VectorFieldRegressor(**TINY).fit(LATLON, y, noise_variance=given)
    mean, std = estimator.predict(TEST, return_std=True)
    expected = dense(estimator, y, blocks(full))
    np.testing.assert_allclose(mean, expected[0], rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(std, expected[1], rtol=1e-6)


def at_parameters_of(estimator: DeepRegressor, other: DeepRegressor) -> DeepRegressor:
    """Return an estimator of the same scaling with the parameters of another, conditioned on its own data."""
    np.testing.assert_allclose(estimator.scale_, other.scale_)
    np.testing.assert_allclose(estimator.offset_, other.offset_, atol=1e-9)
    estimator.fitted_ = estimator.fitted_._replace(model=other.model_.with_data(estimator.model_.data))
    return estimator


def both(kind: str) -> tuple[Callable[[], DeepRegressor], np.ndarray, np.ndarray]:
    """Return an estimator, targets, and known noise as covariance matrices of the targets."""
    if kind == "winds":
        return lambda: VectorFieldRegressor(**TINY), winds(LATLON), COVARIANCES
    return lambda: SphereRegressor(**TINY), temperatures(LATLON), VARIANCES[:, None, None]


@pytest.mark.parametrize("kind", ["temperatures", "winds"])
def test_one_observation_equals_several_of_larger_noise(kind: str) -> None:
    make, y, noise = both(kind)
    one, count = make().fit(LATLON, y, noise_variance=noise), 3
    own = one.noise_std_[0] ** 2 * np.eye(noise.shape[1])
    larger = np.tile(count * (own + noise) - own, (count, 1, 1))
    several = make().fit(np.tile(LATLON, (count, 1)), np.concatenate([y] * count), noise_variance=larger)
    several = at_parameters_of(several, one)
    for first, second in zip(several.predict(TEST, True), one.predict(TEST, True), strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kind", ["temperatures", "winds"])
def test_observations_of_enormous_noise_say_nothing(kind: str) -> None:
    make, y, noise = both(kind)
    few = make().fit(LATLON, y, noise_variance=noise)
    useless = np.array([[few.scale_[0], 0.0], [0.0, few.scale_[0]]])  # of the mean speed
    if kind == "temperatures":
        useless = y.mean() + y.std() * np.array([1.0, -1.0])  # keep mean and standard deviation
    more_noise = np.concatenate([noise, 1e14 * np.repeat(np.eye(noise.shape[1])[None], 2, axis=0)])
    more = make().fit(np.concatenate([LATLON, TEST[:2]]), np.concatenate([y, useless]), noise_variance=more_noise)
    more = at_parameters_of(more, few)
    for first, second in zip(more.predict(TEST, True), few.predict(TEST, True), strict=True):
        np.testing.assert_allclose(first, second, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("batch_size", [None, 16])
def test_the_noisy_half_is_trusted_less(batch_size: int | None) -> None:
    """Two halves contradict each other at the same places; where one wind is wrong only in u, the other keeps its v."""
    latlon, truth = np.concatenate([LATLON, LATLON]), winds(LATLON)
    wrong = truth * [-1.0, 1.0]
    noise = np.tile([0.01, 0.01], (48, 1))
    noise[24:, 0] = 1e4
    tiny = {**TINY, "batch_size": batch_size, "steps": 30, "recipe": "default"}
    right = VectorFieldRegressor(**tiny).fit(latlon, np.concatenate([truth, wrong]), noise_variance=noise)
    left = VectorFieldRegressor(**tiny).fit(latlon, np.concatenate([truth, wrong]), noise_variance=noise[::-1])
    for estimator, believed, other in ((right, truth, wrong), (left, wrong, truth)):
        u, v = estimator.predict(LATLON).T
        near, far = (np.sqrt(np.mean((u - half[:, 0]) ** 2)) for half in (believed, other))
        assert near < 0.3 * far
        assert np.sqrt(np.mean((v - truth[:, 1]) ** 2)) < 1.0


def test_noise_has_the_units_of_the_targets() -> None:
    y = temperatures(LATLON)
    kelvin = SphereRegressor(**TINY).fit(LATLON, y, noise_variance=VARIANCES)
    milli = SphereRegressor(**TINY).fit(LATLON, 1e3 * (y - 273.15), noise_variance=1e6 * VARIANCES)
    for first, second, offset in zip(milli.predict(TEST, True), kelvin.predict(TEST, True), (273.15, 0.0), strict=True):
        np.testing.assert_allclose(first / 1e3 + offset, second, rtol=1e-5)
    together = SphereRegressor(**TINY).fit(LATLON, np.stack([y, 1e3 * y], axis=1), noise_variance=VARIANCES)
    apart = np.stack([VARIANCES, VARIANCES], axis=1)
    same = SphereRegressor(**TINY).fit(LATLON, np.stack([y, 1e3 * y], axis=1), noise_variance=apart)
    np.testing.assert_array_equal(together.predict(TEST), same.predict(TEST))
    matched = SphereRegressor(**TINY).fit(
        LATLON, np.stack([y, 1e3 * y], axis=1), noise_variance=apart * np.array([1.0, 1e6])
    )
    mean, std = matched.predict(TEST, return_std=True)
    np.testing.assert_allclose(mean[:, 1], 1e3 * mean[:, 0], rtol=1e-6)
    np.testing.assert_allclose(std[:, 1], 1e3 * std[:, 0], rtol=1e-6)
    assert np.abs(same.predict(TEST)[:, 1] - 1e3 * same.predict(TEST)[:, 0]).max() > 1.0


def test_new_observations_have_no_known_noise_unless_it_is_given() -> None:
    estimator = VectorFieldRegressor(**TINY).fit(LATLON, winds(LATLON), noise_variance=COVARIANCES)
    _, std = estimator.predict(LATLON, return_std=True)
    learned = std**2 + estimator.noise_std_**2
    plain = estimator.predict_distribution(LATLON)
    np.testing.assert_allclose(plain.observed.variance, learned)
    known = estimator.predict_distribution(LATLON, noise_variance=COVARIANCES)
    np.testing.assert_allclose(known.variance, std**2)
    own = estimator.noise_std_[0] ** 2 * np.eye(2)
    np.testing.assert_allclose(known.observed.covariance, plain.covariance + own + COVARIANCES, rtol=1e-9)
    y = winds(LATLON)
    covariance = np.asarray(plain.covariance) + own + COVARIANCES
    residual = y - np.asarray(plain.mean)
    squares = np.einsum("ni,nij,nj->n", residual, np.linalg.inv(covariance), residual)
    expected = 0.5 * np.mean(squares + np.linalg.slogdet(2.0 * np.pi * covariance)[1])
    np.testing.assert_allclose(metrics.nlpd(known, y), expected)
    scaled = estimator.predict_distribution(LATLON, scaled=True, noise_variance=COVARIANCES)
    difference = metrics.nlpd(known, y) - metrics.nlpd(scaled, y / estimator.scale_)
    np.testing.assert_allclose(difference, 2.0 * np.log(estimator.scale_[0]))


def test_noise_is_split_with_the_observations() -> None:
    search = GridSearchCV(SphereRegressor(**TINY), {"steps": [1]}, cv=2, error_score="raise")
    search.fit(LATLON, temperatures(LATLON), noise_variance=VARIANCES)
    np.testing.assert_array_equal(search.best_estimator_.fitted_.noise_variance, VARIANCES)


def test_single_precision_takes_noise_of_all_sizes() -> None:
    """One half has a million times the noise variance of the other, which it must not blur."""
    noise = np.where(np.arange(24)[:, None, None] % 2, 1e5, 0.1) * np.eye(2)
    double = VectorFieldRegressor(**TINY).fit(LATLON, winds(LATLON), noise_variance=noise)
    with jax.enable_x64(False):
        single = VectorFieldRegressor(**TINY).fit(LATLON, winds(LATLON), noise_variance=noise)
        mean, std = single.predict(TEST, return_std=True)
    assert single.model_.data.x.dtype == np.float32
    np.testing.assert_allclose(mean, double.predict(TEST), atol=0.05)
    np.testing.assert_allclose(std, double.predict(TEST, return_std=True)[1], rtol=0.05)


def test_files_hold_the_noise(tmp_path: object) -> None:
    estimator = VectorFieldRegressor(**TINY).fit(LATLON, winds(LATLON), noise_variance=COVARIANCES)
    estimator.save(f"{tmp_path}/winds.rdgp")
    again = load_estimator(f"{tmp_path}/winds.rdgp")
    np.testing.assert_array_equal(again.fitted_.noise_variance, COVARIANCES)
    np.testing.assert_array_equal(again.predict(TEST), estimator.predict(TEST))


def dataset() -> xarray.Dataset:
    u, v = winds(LATLON).T
    columns = {"u": u, "v": v, "t": temperatures(LATLON), "t_err": np.sqrt(VARIANCES)}
    columns |= {"u_err": np.sqrt(COVARIANCES[:, 0, 0]), "v_err": np.sqrt(COVARIANCES[:, 1, 1])}
    places = {"lat": ("point", LATLON[:, 0]), "lon": ("point", LATLON[:, 1])}
    return xarray.Dataset({name: ("point", column) for name, column in columns.items()}, places)


def test_variables_of_a_dataset_have_errors_beside_them() -> None:
    tiny = {**{name: value for name, value in TINY.items() if name != "random_state"}, "progress": False}
    wind, scalar = geo.fit(dataset(), ("v", "t", "u"), noise_std=("v_err", "t_err", "u_err"), **tiny)
    variances = np.diagonal(COVARIANCES, axis1=1, axis2=2)
    expected = VectorFieldRegressor(**TINY).fit(LATLON, winds(LATLON), noise_variance=variances)
    np.testing.assert_allclose(wind.predict(TEST), expected.predict(TEST))
    expected = SphereRegressor(**TINY).fit(LATLON, temperatures(LATLON), noise_variance=VARIANCES)
    np.testing.assert_allclose(scalar.predict(TEST), expected.predict(TEST))
    result = geo.interpolate(dataset(), "t", TEST, noise_std="t_err", **tiny)
    np.testing.assert_allclose(result.t, expected.predict(TEST))
    observed = Observations(LATLON, temperatures(LATLON)[:, None], ("t",), ("K",), np.sqrt(VARIANCES)[:, None])
    (again,) = geo.fit(observed, **tiny)
    np.testing.assert_allclose(again.predict(TEST), expected.predict(TEST))


def fit_temperatures(noise: object) -> None:
    SphereRegressor(**TINY).fit(LATLON, temperatures(LATLON), noise_variance=noise)


def fit_winds(noise: object) -> None:
    VectorFieldRegressor(**TINY).fit(LATLON, winds(LATLON), noise_variance=noise)


def fit_observations(std: np.ndarray) -> None:
    geo.fit(Observations(LATLON, temperatures(LATLON)[:, None], ("t",), ("K",), std[:, None]), progress=False)


HOLE = np.where(np.arange(24) == 3, np.nan, VARIANCES)
HIDDEN = np.ma.masked_invalid(HOLE)
ASKEW = np.where(np.arange(24)[:, None, None] == 5, [[1.0, 0.5], [0.0, 1.0]], COVARIANCES)
REFUSED: dict[str, tuple[Callable[[], object], str]] = {
    "NaN": (lambda: fit_temperatures(HOLE), "noise_variance must be finite, got 1 NaN or infinite values of 24"),
    "infinite": (lambda: fit_winds(VARIANCES / 0.0), "noise_variance must be finite, got 24 NaN or infinite values of 24"),
    "masked": (lambda: fit_temperatures(HIDDEN), "noise_variance must have no masked values, got 1 of 24"),
    "negative": (lambda: fit_temperatures(-VARIANCES), "noise_variance must not be negative, got -"),
    "shape": (lambda: fit_winds(VARIANCES[:5]), "must have shape (24,) or (24, 2) or (24, 2, 2) for 24 observations, got (5,)"),
    "targets": (lambda: fit_temperatures(COVARIANCES), "must have shape (24,) or (24, 1) or (24, 1, 1)"),
    "not symmetric": (lambda: fit_winds(ASKEW), "got 1 other matrices of 24, the first at index 5"),
    "not positive": (lambda: fit_winds(-COVARIANCES), "got 24 other matrices of 24"),
    "new": (lambda: fitted().predict_distribution(TEST, noise_variance=VARIANCES), "must have shape (30,) or (30, 1)"),
    "new NaN": (lambda: fitted().predict_distribution(LATLON, noise_variance=HOLE), "noise_variance must be finite"),
    "std NaN": (lambda: fit_observations(HOLE), "noise_variance must be finite, got 1"),
    "std masked": (lambda: fit_observations(HIDDEN), "noise_std must have no masked values, got 1 of 24"),
    "std negative": (lambda: fit_observations(-VARIANCES), "noise_std must not be negative"),
    "names": (lambda: geo.fit(dataset(), "u,v", noise_std="u_err"), "noise_std must name a variable of standard deviations for each of u, v, got u_err"),
    "twice": (lambda: geo.fit(Observations(LATLON, LATLON, ("u", "v"), ("", "")), noise_std="u_err,v_err"), "observations hold what was chosen"),
}  # fmt: skip


def fitted() -> SphereRegressor:
    return SphereRegressor(**TINY).fit(LATLON, temperatures(LATLON))


@pytest.mark.parametrize("name", REFUSED)
def test_noise_that_is_none_is_refused_in_one_line(name: str) -> None:
    call, text = REFUSED[name]
    with pytest.raises(ValueError) as caught, np.errstate(all="ignore"):  # noqa: PT011 - the text is compared below
        call()
    assert text in str(caught.value)
    assert "\n" not in str(caught.value)
