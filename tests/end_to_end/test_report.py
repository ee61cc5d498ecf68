"""The report in a real browser, without a network: it renders, turns, zooms, and tells values."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from rdgp.plotting import Calibration, ReportContent, write_report
from tests.pictures import made_up_layers, made_up_winds

webdriver = pytest.importorskip("selenium.webdriver")
CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
needs_browser = pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="chromium and chromedriver are not installed")
COLORS = """
const canvas = document.getElementById(arguments[0]);
const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data, seen = new Set();
for (let k = 0; k < pixels.length; k += 4) seen.add((pixels[k] << 16) | (pixels[k + 1] << 8) | pixels[k + 2]);
return seen.size;
"""
PICTURE = "return document.getElementById(arguments[0]).toDataURL()"


def make_content(**changes: Any) -> ReportContent:
    prediction, truth = made_up_winds()
    nominal = np.linspace(0.1, 0.9, 9)
    case = Calibration(nominal, nominal**0.9, np.linspace(0.0, 1.0, 200))
    content = ReportContent(
        title="Winds <of> July",
        prediction=prediction,
        observations=np.array([[0.0, -20.0], [30.0, 10.0]]),
        truth=truth,
        history={"deep": -10.0 / np.arange(1.0, 200.0), "shallow": -12.0 / np.arange(1.0, 100.0)},
        calibration={"deep": case, "shallow": case},
        displacement=made_up_layers(),
        metrics=[{"model": "shallow", "NLPD": -0.4}, {"model": "deep", "NLPD": jnp.asarray(-0.6592), "points": 5}],
        settings={"layers": 3, "name": "<b>"},
        coastline=[np.array([[10.0, -20.0], [30.0, 10.0], [-20.0, 40.0]])],
    )
    return content._replace(**changes)


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_report(tmp_path_factory.mktemp("report") / "report.html", make_content())


@pytest.fixture(scope="module")
def browser(report: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM or ""
    profile = tmp_path_factory.mktemp("profile")
    flags = ("headless", "no-sandbox", "disable-gpu", "disable-background-networking", "disable-component-update")
    more = ("disable-sync", "no-first-run", "disable-dev-shm-usage", "window-size=1200,900", f"user-data-dir={profile}")
    for flag in flags + more:
        options.add_argument(f"--{flag}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    try:
        driver.get(report.as_uri())
        wait_until(driver, "return document.documentElement.dataset.ready === 'true'")
        yield driver
    finally:
        driver.quit()


def wait_until(driver: Any, script: str, *arguments: Any) -> None:
    from selenium.webdriver.support.ui import WebDriverWait

    WebDriverWait(driver, 20, 0.05).until(lambda here: here.execute_script(script, *arguments))


def wait_for_change(driver: Any, canvas: str, before: str) -> None:
    wait_until(driver, f"{PICTURE} !== arguments[1]", canvas, before)


def actions(driver: Any) -> Any:
    return webdriver.ActionChains(driver, duration=50)


@needs_browser
def test_both_globes_render(browser: Any) -> None:
    assert browser.execute_script(COLORS, "globe") > 300
    assert browser.execute_script(COLORS, "layers") > 50
    assert browser.execute_script(COLORS, "bar") > 50
    assert browser.title == "Winds <of> July"


@needs_browser
def test_the_globe_turns_zooms_and_comes_back(browser: Any) -> None:
    from selenium.webdriver.common.actions.wheel_input import ScrollOrigin

    globe = browser.find_element("id", "globe")
    start = browser.execute_script(PICTURE, "globe")
    actions(browser).move_to_element(globe).click_and_hold().move_by_offset(120, 40).release().perform()
    wait_for_change(browser, "globe", start)
    turned = browser.execute_script(PICTURE, "globe")
    actions(browser).scroll_from_origin(ScrollOrigin.from_element(globe), 0, -300).perform()
    wait_for_change(browser, "globe", turned)
    assert browser.execute_script("return window.scrollY") == 0
    actions(browser).double_click(globe).perform()
    wait_until(browser, f"{PICTURE} === arguments[1]", "globe", start)


@needs_browser
def test_hovering_tells_the_values_of_the_cell(browser: Any) -> None:
    globe, tip = browser.find_element("id", "globe"), browser.find_element("id", "tip")
    actions(browser).move_to_element(globe).perform()
    wait_until(browser, "return !document.getElementById('tip').hidden")
    rows = dict(line.split(" ", 1) for line in tip.text.replace("Mean speed", "speed").splitlines()[1:])
    place = tip.text.splitlines()[0]
    lat, lon = (float(part.split("°")[0]) * (-1 if part[-1] in "SW" else 1) for part in place.split(", "))
    cell = make_content().prediction.sel(lat=lat, lon=lon % 360.0)
    for name, key in (("u", "u"), ("v", "v"), ("Std", "wind_std"), ("Frobenius", "wind_frobenius")):
        assert float(rows[name].split()[0]) == pytest.approx(float(cell[key]), abs=0.01)
    assert rows["u"].endswith("m s⁻¹")
    assert "Difference" in rows


@needs_browser
def test_colors_arrows_streams_and_layers_can_be_chosen(browser: Any) -> None:
    for choice in ("#colors input[value=speed]", "#colors input[value=difference]", "#shown input[value=arrows]"):
        before = browser.execute_script(PICTURE, "globe")
        browser.execute_script("document.querySelector(arguments[0]).click()", choice)
        wait_for_change(browser, "globe", before)
    assert "length of the difference (m s⁻¹)" in browser.find_element("id", "bar-label").text
    browser.execute_script("document.querySelector('#shown input[value=streams]').click()")
    wait_until(browser, COLORS.replace("return seen.size", "return seen.size > 5"), "flow")
    browser.execute_script("document.querySelector('#shown input[value=streams]').click()")
    bent = browser.execute_script(PICTURE, "layers")
    slider = "const s = document.getElementById('layer'); s.value = 0; s.dispatchEvent(new Event('input'))"
    browser.execute_script(slider)
    wait_for_change(browser, "layers", bent)


@needs_browser
def test_a_dark_screen_gets_a_dark_page(browser: Any) -> None:
    background = "return getComputedStyle(document.body).backgroundColor"
    light, picture = browser.execute_script(background), browser.execute_script(PICTURE, "globe")
    feature = {"name": "prefers-color-scheme", "value": "dark"}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    wait_for_change(browser, "globe", picture)
    assert browser.execute_script(background) != light


@needs_browser
def test_a_narrow_page_does_not_overflow(browser: Any) -> None:
    size = {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": False}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    wait_until(
        browser, "return document.documentElement.scrollWidth <= 390 && document.getElementById('globe').width < 390"
    )
    assert browser.execute_script(COLORS, "globe") > 300


@needs_browser
def test_nothing_was_logged_and_nothing_was_loaded(browser: Any) -> None:
    logged = [entry for entry in browser.get_log("browser") if "readback" not in entry["message"]]  # these tests read
    assert logged == []
    events = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    asked = [event["params"]["request"]["url"] for event in events if event["method"] == "Network.requestWillBeSent"]
    assert not [address for address in asked if address.startswith(("http", "ws", "ftp"))]


def test_the_page_is_small_whole_and_escaped(report: Path) -> None:
    text = report.read_text()
    assert len(text) < 500_000
    assert "Winds &lt;of&gt; July" in text
    assert "&lt;b&gt;" in text
    assert '<td class="best">-0.6592</td>' in text
    assert "http://" not in text
    assert "https://" not in text


def test_parts_left_out_are_not_mentioned(tmp_path: Path) -> None:
    data = {"lat": np.linspace(-20.0, 20.0, 9), "lon": np.linspace(0.0, 40.0, 9), "heat": np.eye(9)}
    text = write_report(tmp_path / "small.html", ReportContent("Heat", data, coastline=[])).read_text()
    for word in ("Coverage", "PIT", "Training", "What the layers do", "Deep against shallow", "Settings"):
        assert word not in text


def test_a_report_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    path.write_text("before")
    with pytest.raises(ValueError, match="curves of the same length"):
        write_report(path, make_content(calibration=Calibration([0.5], [0.5, 0.6], [0.1])))
    assert path.read_text() == "before"
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]
    with pytest.raises(ValueError, match="there is no folder"):
        write_report(tmp_path / "nowhere" / "report.html", make_content())
