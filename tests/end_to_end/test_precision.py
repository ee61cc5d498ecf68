"""A process in single precision, JAX's default, gets double precision where the answer needs it."""

from pathlib import Path

import jax
import numpy as np
import pytest

from rdgp import metrics
from rdgp.bayesopt import Study
from rdgp.estimators import SphereRegressor, load_estimator
from rdgp.inference import PrecisionWarning, fit
from rdgp.models import deep_gp
from rdgp.spaces import Sphere
from rdgp.spectra import hodge_parts, hodge_spectrum, scalar_spectrum
from tests.cases import SpectrumCase, points, spectra

SPACE = Sphere(2)
TINY = {"layers": 1, "num_output_levels": 10, "steps": 3, "random_state": 0}


def places(seed: int, n: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.stack([np.rad2deg(np.arcsin(rng.uniform(-1.0, 1.0, n))), rng.uniform(-180.0, 180.0, n)], axis=1)


def smooth(latlon: np.ndarray) -> np.ndarray:
    lat, lon = np.deg2rad(latlon).T
    return 300.0 - 40.0 * np.sin(lat) ** 2 + 5.0 * np.cos(lat) * np.sin(lon)


def test_estimators_of_smooth_data_compute_in_double(tmp_path: Path) -> None:
    train, test = places(0, 60), places(1, 20)
    with jax.enable_x64(False):
        with pytest.warns(PrecisionWarning, match="the observations look free of noise"):
            estimator = SphereRegressor(**TINY).fit(train, smooth(train))
        mean, std = estimator.predict(test, return_std=True)
        prediction = estimator.predict_distribution(test)
        estimator.save(tmp_path / "model.rdgp")
        again = load_estimator(tmp_path / "model.rdgp")
        assert np.array_equal(again.predict(test), mean)
        assert np.isfinite(metrics.nlpd(prediction, smooth(test)))
        assert prediction.mean.dtype == np.float32
        assert estimator.noise_std_[0] < 0.01
    assert estimator.model_.data.x.dtype == np.float64
    assert np.abs(mean - smooth(test)).max() < 1e-3
    assert std.max() < 1e-2


def test_estimators_of_noisy_data_stay_in_single() -> None:
    train = places(0, 60)
    noisy = smooth(train) + np.random.default_rng(2).normal(size=60)
    with jax.enable_x64(False):
        estimator = SphereRegressor(**TINY).fit(train, noisy)
    assert estimator.model_.data.x.dtype == np.float32


def test_fit_warns_of_noise_below_single_precision() -> None:
    x = np.asarray(SPACE.random(60, key=jax.random.key(0)), np.float32)
    with jax.enable_x64(False), pytest.warns(PrecisionWarning, match="too little for single precision"):
        fit(deep_gp(SPACE, 1, num_output_levels=8), x, x[:, 0], key=jax.random.key(0), steps=1, progress=False)


@spectra
def test_spectra_follow_the_precision_of_the_process(case: SpectrumCase) -> None:
    scalar = scalar_spectrum(case.space, case.num_levels)
    hodge = hodge_spectrum(case.space, 2, hodge_parts(case.space))
    for double in (False, True, False, True):
        with jax.enable_x64(double):
            x = points(case.space, 0, dtype=np.float64 if double else np.float32)
            functions, fields = scalar.features(x), hodge.features(x)
        assert functions.dtype == fields.dtype == x.dtype
        tolerance = 1e-12 if double else 1e-5  # levels are whole, so squares add up to the number of features
        np.testing.assert_allclose((functions**2).sum(-1), scalar.num_features, rtol=tolerance)
        np.testing.assert_allclose((fields**2).sum((1, 2)), hodge.num_features, rtol=tolerance)


def test_deep_fits_follow_the_precision_of_the_process() -> None:
    for double in (False, True, False, True):
        with jax.enable_x64(double):
            x = points(SPACE, 0, n=30, dtype=np.float64 if double else np.float32)
            y = x[:, 0] + 0.2 * jax.random.normal(jax.random.key(0), (30,), x.dtype)
            model = fit(
                deep_gp(SPACE, 2, num_output_levels=5), x, y, key=jax.random.key(1), steps=2, progress=False
            ).model
            mean = model.predict(x, key=jax.random.key(2)).mean
        assert mean.dtype == x.dtype
        assert np.corrcoef(mean, y)[0, 1] > 0.8


def test_studies_do_not_depend_on_the_precision_of_the_process() -> None:
    def asked() -> np.ndarray:
        study = Study(SPACE, surrogate="shallow", seed=3)
        for value in (1.0, 0.3, 0.5, 2.0, 0.1):
            study.tell(study.ask(), value)
        return np.stack([study.ask().x, np.asarray(study.predict(study.trials[0].x[None]).mean).repeat(3)])

    double = asked()
    with jax.enable_x64(False):
        single = asked()
    assert np.array_equal(single[0], double[0])
    assert single[1] == pytest.approx(double[1], rel=1e-6)
