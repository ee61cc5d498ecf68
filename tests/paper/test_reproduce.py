"""`rdgp reproduce`: all experiments at the smallest preset, and the conventions of the command."""

import json
import sys
from pathlib import Path

import pandas
import pytest
import typer

from rdgp.cli import main
from rdgp_paper import add_command
from rdgp_paper.execution import clock
from rdgp_paper.figures import draw_figures
from rdgp_paper.hypotheses import check_hypotheses
from rdgp_paper.page import with_section
from rdgp_paper.runs import choose, read_plan
from rdgp_paper.store import Store, as_table, make_record
from rdgp_paper.tables import pivot, searches, steps, with_places, with_shallow
from rdgp_paper.workers import perform

NUMBERS = ("nlpd", "mse", "cpu_ms", "wall_ms", "uncertainty_and_irregularity", "uncertainty_and_error")
NUMBERS += ("log10_regret", "log10_regret_of_observed_best", "stuck", "regret")

FIGURES = {
    "synthetic": ["released-mse", "released-nlpd"],
    "wind": ["mse", "nlpd"],
    "uci": ["mse", "nlpd"],
    "timing": ["steps"],
    "bayesopt": ["regret"],
    "fields": ["irregular", "sample", "vectors"],
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("results")


def told(capsys: pytest.CaptureFixture[str], *arguments: object, code: int = 0) -> dict:
    capsys.readouterr()
    assert main(["reproduce", *map(str, arguments), "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_help_shows_an_example(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--help"]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    for words in ("Example: rdgp reproduce synthetic", "--json", "--debug"):
        assert words in printed


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    monkeypatch.setattr("rdgp_paper.find_spec", lambda name: None if name == "distributed" else "somewhere")
    app = typer.Typer()
    with pytest.raises(ImportError, match=r"needs distributed.*pip install 'rdgp\[paper\]'"):
        add_command(app)
    assert app.registered_commands == []


@pytest.mark.parametrize("experiment", FIGURES)
def test_smoke(experiment: str, results: Path, data_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = read_plan(experiment, "smoke")
    facts = told(capsys, experiment, "--workers", 1, "--results", results)
    assert (facts["run"], facts["kept"], facts["failed"], facts["left"]) == (len(plan.runs), 0, [], 0)
    figures = [Path(name).stem.removeprefix(f"{experiment}-smoke-") for name in facts["files"] if name.endswith("png")]
    assert sorted(figures) == FIGURES[experiment]
    table = Store(results).table(plan.runs)
    assert len(table) == len(plan.runs)
    if experiment in ("synthetic", "wind", "uci"):
        written = pandas.read_csv(results / f"{experiment}-smoke.csv")
        assert written["nlpd"].tolist() == pytest.approx(table["nlpd"].tolist(), rel=1e-5)


def test_the_page_gets_a_section(results: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "reproduction.md").write_text("# Page\n\nBy hand.\n\n<!-- uci: begin -->\n<!-- uci: end -->\n")
    told(capsys, "bayesopt", "--workers", 1, "--results", results, "--docs", tmp_path)
    facts = told(capsys, "bayesopt", "--workers", 1, "--results", results, "--docs", tmp_path)
    assert (facts["run"], facts["kept"]) == (0, 2)
    page = (tmp_path / "reproduction.md").read_text()
    assert page.count("## Bayesian optimization") == 1
    assert page.index("By hand.") < page.index("uci: begin") < page.index("![regret](reproduction/bayesopt-regret.png)")
    assert "A deep surrogate in the last steps finds a better minimum" in page
    assert "not measured yet" in page
    assert "2 runs of the preset `smoke`" in page
    assert (tmp_path / "reproduction" / "bayesopt-regret.png").read_bytes().startswith(b"\x89PNG")
    assert with_section("x", "wind", "a").endswith("<!-- wind: begin -->\na\n<!-- wind: end -->\n")


def test_a_dry_run_lists_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["reproduce", "synthetic", "--preset", "quick", "--only", "n=400", "--only", "model=exact", "--dry-run"]
    assert main([*arguments, "--workers", "2", "--results", str(tmp_path)]) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert all("n=400 model=exact" in line for line in lines)
    seconds = choose(read_plan("synthetic", "quick"), ["n=400", "model=exact"]).seconds
    assert last == f"6 runs, 0 done; about {clock(seconds)} of CPU time, {clock(seconds / 2)} with 2 workers"
    assert last.endswith("with 2 workers")
    assert not list(tmp_path.iterdir())


def test_failures_end_with_code_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rdgp_paper.experiments.fields._grid", lambda spacing: 1 / 0)
    facts = told(capsys, "fields", "--workers", 1, "--results", tmp_path, "--only", "picture=irregular", code=1)
    assert [row["reason"] for row in facts["failed"]] == ["ZeroDivisionError: division by zero"]
    monkeypatch.undo()
    facts = told(capsys, "fields", "--workers", 1, "--results", tmp_path, "--only", "picture=irregular")
    assert facts["run"] == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "experiment must be one of synthetic, wind"),
        (["uci", "--preset", "large"], "preset must be one of smoke, quick, paper, got 'large'"),
        (["uci", "--only", "data=iris"], "no run has data=iris; there are yacht"),
        (["uci", "--workers", "2", "--dask", "tcp://a:1"], "exclude each other"),
        (["wind", "--era5", "missing.nc"], "there is no file missing.nc; get it with rdgp data era5"),
        (["uci", "--docs", "missing"], "there is no folder missing; create it first"),
    ],
)
def test_wrong_use_is_one_line(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", *arguments, "--dry-run"]) == 2
    printed = capsys.readouterr()
    assert message in printed.err
    assert printed.out == ""


def test_ctrl_c_stops_and_a_second_call_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls = []

    def interrupted(experiment: str, settings: dict) -> dict:
        calls.append(settings)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return perform(experiment, settings)

    monkeypatch.setattr("rdgp_paper.workers.perform", interrupted)
    facts = told(capsys, "bayesopt", "--workers", 1, "--results", tmp_path, code=130)
    assert (facts["run"], facts["left"]) == (1, 1)
    facts = told(capsys, "bayesopt", "--workers", 1, "--results", tmp_path)
    assert (facts["run"], facts["kept"], facts["left"]) == (1, 1, 0)


def rows(experiment: str, shared: dict, every: list[dict]) -> pandas.DataFrame:
    """Return a table of made-up results: settings, then numbers under the name `numbers`."""
    records = []
    for row in every:
        numbers = {name: row[name] for name in row if name in NUMBERS}
        settings = {**shared, **{name: value for name, value in row.items() if name not in numbers}}
        records.append(make_record(experiment, settings, numbers, None))
    return as_table(records)


def test_hypotheses_are_computed_from_the_table() -> None:
    shared = {"target": "released", "model": "residual", "training": "paper", "mse": 0.1}
    every = [
        {"n": n, "layers": 1, "field": "none", "inducing": kind, "nlpd": -1.0}
        for n in (100, 400)
        for kind in ("interdomain", "points")
    ]
    every += [
        {"n": n, "layers": 2, "field": field, "inducing": kind, "nlpd": -value * n / 100}
        for n in (100, 400)
        for field, kind, value in (("hodge", "interdomain", 1.3), ("hodge", "points", 1.1))
    ]
    hypotheses = check_hypotheses("synthetic", rows("synthetic", shared, every))
    assert [hypothesis.holds for hypothesis in hypotheses] == [True, True, True, None, None, None]
    assert (
        "4 comparisons of mean NLPD (released target), worse by more than 0.02 in 0; the largest difference is -0.100"
        in str(hypotheses[0])
    )
    every[-2]["nlpd"] = -0.5
    hypotheses = check_hypotheses("synthetic", rows("synthetic", shared, every))
    assert [hypothesis.holds for hypothesis in hypotheses[:3]] == [False, False, False]
    assert str(hypotheses[0]).startswith("Deep models are never worse than shallow ones: **does not hold here** — ")


def test_the_tail_is_judged_when_all_kinds_are_there() -> None:
    shared = {"target": "released", "model": "residual", "training": "paper", "mse": 0.1, "n": 400, "layers": 2}
    shared |= {"field": "hodge", "inducing": "interdomain"}
    every = [{"nlpd": -1.0}, {"nlpd": -0.8, "tail": 3, "tail_variances": "fixed"}]
    assert check_hypotheses("synthetic", rows("synthetic", shared, every))[3].holds is None
    every.append({"nlpd": -1.1, "tail": 3, "tail_variances": "learned"})
    assert check_hypotheses("synthetic", rows("synthetic", shared, every))[3].holds


def winds(model: str, layers: int, nlpd: float, level: str | int = "surface", month: int = 7) -> dict[str, object]:
    field, kind = "none" if layers == 1 else "hodge", "points" if model == "euclidean" else "interdomain"
    own = {"model": model, "layers": layers, "field": field, "inducing": kind, "pressure_level": level, "month": month}
    return {**own, "nlpd": nlpd, "mse": 0.1, "uncertainty_and_irregularity": 0.1 * layers, "uncertainty_and_error": 0.2}


def test_hypotheses_on_winds_compare_the_same_months() -> None:
    shared = {"source": "bundle", "training": "paper"}
    every = [winds("residual", 1, -1.0), winds("residual", 2, -1.5)]
    every += [winds("residual", 1, -1.0, "200"), winds("residual", 2, -1.1, "200")]
    every += [winds("residual", 2, 9.0, month=1), winds("residual", 1, 9.1, month=1), winds("euclidean", 2, -1.3)]
    table = rows("wind", shared, every)
    surface, irregular, baseline = check_hypotheses("wind", table)
    assert (surface.holds, irregular.holds, baseline.holds) == (True, True, True)
    assert "surface, bundle, 7, 2: -1.500 against -1.300" in baseline.evidence
    assert set(draw_figures("wind", table)) == {"nlpd", "mse", "months"}
    every[-1]["nlpd"], every[3]["nlpd"] = -1.6, -2.5
    surface, _, baseline = check_hypotheses("wind", rows("wind", shared, every))
    assert (surface.holds, baseline.holds) == (False, False)


def test_levels_may_be_numbers_and_words() -> None:
    every = [winds("residual", 1, -1.0), winds("residual", 1, -2.0, 500)]
    table = with_places(with_shallow(rows("wind", {"source": "a", "training": "paper"}, every)))
    assert list(pivot(table, ["layers"], "place", "nlpd")) == ["layers", "place 500 hPa, a", "place surface, a"]


def test_hypotheses_on_tables_and_times() -> None:
    shared = {"data": "yacht", "layers": 2, "bias": "one"}
    models = [("euclidean", "none", "points", -1.0), ("residual", "projected", "interdomain", -0.5)]
    every = [
        {"model": model, "field": field, "inducing": kind, "training": "paper", "nlpd": value, "mse": 0.1}
        for model, field, kind, value in models
    ]
    every.append({**every[1], "training": "default", "nlpd": -1.1})
    accuracy, closing = check_hypotheses("uci", rows("uci", shared, every))
    assert (accuracy.holds, closing.holds) == (True, True)
    every[1]["nlpd"], every[2]["nlpd"] = -1.2, -0.9
    accuracy, closing = check_hypotheses("uci", rows("uci", shared, every))
    assert (accuracy.holds, closing.holds) == (False, False)
    times = [("euclidean", 2, 4.0), ("residual", 2, 2.0), ("euclidean", 3, 9.0), ("residual", 3, 3.0)]
    every = [{"model": model, "layers": n, "cpu_ms": v, "wall_ms": 2 * v} for model, n, v in times]
    table = rows("timing", {"data": "yacht"}, every)
    assert check_hypotheses("timing", table)[0].holds
    assert steps(table)["Euclidean layers, CPU (wall) ms"].tolist() == ["4 (8)", "9 (18)"]
    every[2]["cpu_ms"] = 5.0  # still faster, but less so with more layers
    assert not check_hypotheses("timing", rows("timing", {"data": "yacht"}, every))[0].holds


def test_searches_are_compared_under_the_same_options() -> None:
    medians = {("shallow", "default"): -2.0, ("shallow then deep", "default"): -2.5, ("random", "default"): -0.5}
    medians |= {("shallow", "paper"): -1.0, ("shallow then deep", "paper"): -0.9}
    every = [
        {"surrogate": name, "options": options, "seed": seed, "log10_regret": value + 0.1 * seed, "stuck": seed == 2}
        | {"regret": [1.0, 10.0 ** (value + 0.1 * seed)], "log10_regret_of_observed_best": value}
        for (name, options), value in medians.items()
        for seed in range(3)
    ]
    table = rows("bayesopt", {"target": "irregular", "evaluations": 2}, every)
    regret, baselines = check_hypotheses("bayesopt", table)
    assert (regret.holds, baselines.holds) == (False, True)  # with the paper's options the change does not help
    assert "shallow then deep: median log10 regret -2.40, shallow: -1.90" in regret.evidence
    assert "irregular: ours at worst -0.80 (shallow then deep, paper's options)" in baselines.evidence
    summary = searches(table).set_index("method")
    assert summary.loc["shallow", "after 2"] == "-1.90 (-1.95, -1.85)"
    assert summary.loc["random", ["runs", "stuck"]].tolist() == [3, 1]
    assert list(draw_figures("bayesopt", table)) == ["regret"]


def test_growth_is_a_power_of_its_cause() -> None:
    shared = {"data": "random", "model": "residual", "samples": 3, "layers": 2, "inducing_variables": 50}
    table = rows("timing", shared, [{"n": n, "cpu_ms": 0.1 * n, "wall_ms": 0.1 * n} for n in (100, 200, 400)])
    (hypothesis,) = [hypothesis for hypothesis in check_hypotheses("timing", table) if hypothesis.evidence]
    assert "residual N^1.00 over 100..400" in hypothesis.evidence
    assert list(draw_figures("timing", table)) == ["growth"]
