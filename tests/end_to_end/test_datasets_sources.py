"""The bundled sample, satellite tracks, ERA5 and small tables."""

import hashlib
import re
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from rdgp.datasets import (
    ERA5_DATASET,
    PAPER_START,
    UCI_NAMES,
    VALID_START,
    TrackWarning,
    _uci,
    along_track,
    download_era5,
    fibonacci_sphere,
    ground_track,
    irregular_target,
    load_coastline,
    load_tle,
    load_uci,
    load_wind,
    read_dataset,
    read_track,
    split_standardized,
    write_track,
)
from rdgp.datasets._bundle import bundled

ENVIRONMENT = ("CDSAPI_URL", "CDSAPI_KEY", "CDSAPI_RC", "RDGP_DATA")


def test_bundled_winds() -> None:
    for level in ("surface", 200):
        for month in (1, 7):
            wind = load_wind(level, month)
            assert dict(wind.sizes) == {"lat": 73, "lon": 144}
            assert wind.u.attrs["standard_name"] == "eastward_wind"
            assert wind.v.attrs["units"] == "m s-1"
            assert np.isfinite(wind.u.values).all()
    # westerlies: strong aloft over the winter hemisphere; trade winds at the surface
    assert float(load_wind(200, 1).u.sel(lat=32.5, lon=140.0)) > 50.0
    assert float(load_wind("surface", 7).u.sel(lat=10.0, lon=220.0)) < -3.0
    assert sum(path.stat().st_size for path in bundled("").iterdir()) < 1.5e6
    assert bundled("ATTRIBUTION.md").is_file()


def test_bundled_winds_are_the_real_ones(data_folder: Path) -> None:
    truth = read_dataset(data_folder / "wind" / "wind_global_2p5deg.nc", ("u_surface", "v_surface"), time=7)
    assert float(np.abs(truth.u_surface - load_wind().u).max()) < 0.00501
    assert float(np.abs(truth.v_surface - load_wind().v).max()) < 0.00501
    assert bundled("aeolus.tle").read_text() == (data_folder / "aeolus" / "aeolus.tle").read_text()


def test_coastline_is_of_short_steps_and_has_known_places() -> None:
    lines = load_coastline()
    points = np.concatenate(lines)
    assert 100 < len(lines) < 200
    assert (np.abs(points) <= [90.0, 180.0]).all()
    assert max(np.abs(np.diff(line[:, 1])).max() for line in lines) < 45.0
    for place in ((-34.8, 20.0), (36.0, -5.6), (-55.6, -69.0)):  # Cape Agulhas, Gibraltar, Tierra del Fuego
        assert np.linalg.norm(points - place, axis=1).min() < 1.5


def test_track_agrees_with_the_reference(data_folder: Path) -> None:
    reference = read_track(data_folder / "aeolus" / "track_20210602T18_24h.csv")
    track = ground_track(data_folder / "aeolus" / "aeolus.tle", VALID_START)
    assert (track.time == reference.time).all()
    difference = track.latlon - reference.latlon
    difference[:, 1] = (difference[:, 1] + 180.0) % 360.0 - 180.0
    assert np.abs(difference).max() < 1e-3
    decayed = pytest.warns(TrackWarning, match="1440 of 1440 minutes: the satellite has decayed")
    with pytest.warns(TrackWarning, match="883 days before the epoch"), decayed:
        paper = ground_track(load_tle(), PAPER_START)
    reference = read_track(data_folder / "aeolus" / "track_20190101T09_24h.csv")
    assert np.abs((paper.latlon - reference.latlon + 180.0) % 360.0 - 180.0).max() < 1e-3
    winds = read_dataset(data_folder / "wind" / "wind_global_2p5deg.nc")
    split = along_track(winds, track, ("u_surface", "v_surface"), time=7)
    assert (len(split.train.latlon), len(split.test.latlon)) == (1368, 4224)


def test_track_warns_far_from_the_epoch_and_is_written_and_read(tmp_path: Path) -> None:
    with pytest.warns(TrackWarning, match="days after the epoch"):
        ground_track(load_tle(), "2021-07-15T00:00", hours=0.1)
    track = ground_track(load_tle(), np.datetime64(VALID_START), hours=2.0)
    assert len(track.time) == 120
    write_track(track, tmp_path / "track.csv")
    np.testing.assert_allclose(read_track(tmp_path / "track.csv").latlon, track.latlon, atol=1e-5)


def test_cells_along_a_track_count_once() -> None:
    wind = load_wind(200, 1)
    train, test = along_track(wind, ground_track(load_tle(), hours=6.0), ("u", "v"), num_test=300)
    places = np.concatenate([train.latlon, test.latlon])
    assert len(np.unique(places, axis=0)) == len(places)
    for latlon, values in zip(train.latlon[:5], train.values[:5], strict=True):
        cell = wind.sel(lat=latlon[0], lon=latlon[1] % 360.0)
        np.testing.assert_allclose(values, [cell.u, cell.v])
    assert 0 < len(test.latlon) <= 300
    known = along_track(
        wind.assign(err=wind.u + 100.0), ground_track(load_tle(), hours=6.0), "u", noise_std="err"
    ).train
    np.testing.assert_allclose(known.noise_std, known.values + 100.0, rtol=1e-6)


def test_synthetic_target_is_that_of_the_draws(data_folder: Path) -> None:
    with np.load(data_folder / "synthetic" / "synth_N400_seed0.npz") as draw:
        np.testing.assert_allclose(fibonacci_sphere(400), draw["train_x"], atol=1e-12)
        np.testing.assert_allclose(irregular_target(draw["test_x"]), draw["test_f"], atol=1e-12)
    x = fibonacci_sphere(20000)
    assert irregular_target(x).std() == pytest.approx(0.212, abs=5e-4)
    assert irregular_target(x, "printed").std() == pytest.approx(0.572, abs=5e-4)


@pytest.fixture
def nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("pooch.os_cache", lambda name: tmp_path / "cache" / name)
    return tmp_path


def test_era5_needs_an_account(nowhere: Path) -> None:
    with pytest.raises(
        ValueError, match=r"needs an account: register at .* accept the license .* 'key: YOUR-TOKEN' to .*cdsapirc"
    ):
        download_era5(2010, [500], nowhere / "era5.nc")


def test_era5_arrives_whole_or_not_at_all(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (nowhere / ".cdsapirc").write_text("url: https://example.org/api\nkey: none\n")
    path, asked = nowhere / "era5.nc", []

    def retrieve(name: str, request: dict, target: str) -> None:
        asked.append((name, request))
        Path(target).write_text("content")

    monkeypatch.setattr("cdsapi.Client", lambda **_: SimpleNamespace(retrieve=retrieve))
    assert download_era5(2010, [500, 850, 1000], path) == path
    assert path.read_text() == "content"
    assert asked[0][0] == ERA5_DATASET
    assert asked[0][1]["pressure_level"] == ["500", "850", "1000"]
    assert len(asked[0][1]["month"]) == 12
    with pytest.raises(ValueError, match="is there already"):
        download_era5(2010, [500], path)

    def refuse(name: str, request: dict, target: str) -> None:
        Path(target).write_text("half")
        raise RuntimeError("403 Client Error: required licences not accepted")

    monkeypatch.setattr("cdsapi.Client", lambda **_: SimpleNamespace(retrieve=refuse))
    with pytest.raises(ValueError, match="accept the license"):
        download_era5(2010, [500], path, overwrite=True)
    assert path.read_text() == "content"
    assert sorted(file.name for file in nowhere.iterdir()) == [".cdsapirc", "era5.nc"]


def test_tables(data_folder: Path) -> None:
    shapes = {name: load_uci(name, data_folder / "uci")[0].shape for name in UCI_NAMES}
    assert shapes == {
        "yacht": (308, 6),
        "energy": (768, 8),
        "concrete": (1030, 8),
        "kin8nm": (8192, 8),
        "power": (9568, 4),
    }
    x, y = load_uci("energy", data_folder / "uci")
    assert y[0] == 15.55  # heating, not cooling
    split = split_standardized(x, y, seed=3)
    assert len(split.x_train) == 691
    assert len(split.y_test) == 77
    np.testing.assert_allclose(split.x_train.mean(axis=0), 0.0, atol=1e-10)
    np.testing.assert_allclose(split.y_train.std(), 1.0)
    back = np.sort(np.concatenate([split.y_train, split.y_test]) * split.y_scale + split.y_mean)
    np.testing.assert_allclose(back, np.sort(y))
    np.testing.assert_array_equal(split.x_test, split_standardized(x, y, seed=3).x_test)


def test_tables_without_a_network_say_where_to_put_the_file(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> str:
        raise OSError("no network")

    monkeypatch.setattr("pooch.retrieve", fail)
    place = re.escape(str(nowhere / "cache" / "rdgp" / "uci"))
    for name in UCI_NAMES:
        with pytest.raises(FileNotFoundError, match=rf"put {name}.csv \(a header line, .* into {place}"):
            load_uci(name)
    with pytest.raises(ValueError, match="no table 'other'; there are yacht"):
        load_uci("other")


def test_a_download_is_kept_only_with_the_known_numbers(nowhere: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = np.random.default_rng(0).normal(size=(308, 7)).round(4)
    table = _uci._TABLES["yacht"]
    cache = nowhere / "cache" / "rdgp" / "uci"

    def retrieve(url: str, *, fname: str, path: Path, **_: object) -> str:
        path.mkdir(parents=True, exist_ok=True)
        text = "\n".join(" ".join(map(str, row)) for row in numbers.tolist()) + "\n \n"
        with zipfile.ZipFile(path / fname, "w") as archive:
            archive.writestr("yacht_hydrodynamics.data", text)
        return str(path / fname)

    monkeypatch.setattr("pooch.retrieve", retrieve)
    with pytest.raises(ValueError, match=r"are not those known as yacht; put yacht\.csv"):
        load_uci("yacht")
    assert list(cache.iterdir()) == []
    known = hashlib.sha256(numbers.astype("<f8").tobytes()).hexdigest()
    monkeypatch.setitem(_uci._TABLES, "yacht", table._replace(sha256=known))
    x, y = load_uci("yacht")
    np.testing.assert_array_equal(np.column_stack([x, y]), numbers)
    assert [path.name for path in cache.iterdir()] == ["yacht.csv"]
    monkeypatch.setattr("pooch.retrieve", None)
    np.testing.assert_array_equal(load_uci("yacht")[1], y)
    monkeypatch.setitem(_uci._TABLES, "yacht", table)
    with pytest.warns(UserWarning, match="are not those known as yacht"):
        load_uci("yacht", cache)
    (cache / "yacht.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="must hold 308 rows of 7 numbers, got 1 rows of 2"):
        load_uci("yacht")
