"""What the documentation says of results follows from the tables that it holds."""

from pathlib import Path

import pandas
import pytest

from rdgp_paper.benchmarks import winds
from rdgp_paper.hypotheses import check_hypotheses

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("experiment", ["synthetic", "wind", "uci", "timing", "bayesopt"])
def test_hypotheses_follow_from_the_table(experiment: str) -> None:
    table = pandas.read_csv(DOCS / "reproduction" / f"{experiment}.csv")
    if "entry" in table:  # a row for each evaluation of a run
        table = table[table["entry"] == 0]
    page = (DOCS / "reproduction.md").read_text()
    hypotheses = check_hypotheses(experiment, table)
    assert hypotheses
    for hypothesis in hypotheses:
        assert f"- {hypothesis}\n" in page


def test_tables_of_winds_follow_from_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    rows = winds.finished(DOCS / "winds.csv")
    assert len(rows) == len(winds.MODELS) * sum(map(len, winds.DATA.values()))
    winds.main(["--folder", str(DOCS), "--print"])
    printed = capsys.readouterr().out
    page = (DOCS / "winds.md").read_text()
    assert "| surface | 1 | -0.894 | -0.872 | 0.696 | -0.994 | -1.229 | **-1.284** | 0.387 |" in printed
    assert "| surface | January | -0.894 | -0.872 | 0.696 | -0.994 | -1.229 | **-1.284** | 0.387 |" in page
    assert "surface: mean over 7, 1, 4, 10, 12" in printed
