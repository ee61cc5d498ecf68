"""The page `reproduction.md`: figures beside what the paper says, hypotheses with numbers, machine time."""

import io
from pathlib import Path

from rdgp.io import write_atomically
from rdgp_paper.figures import draw_figures
from rdgp_paper.hypotheses import check_hypotheses
from rdgp_paper.runs import EXPERIMENTS, Plan, read_file
from rdgp_paper.store import Store, Table, tidy
from rdgp_paper.tables import markdown, named, pivot, searches, steps, with_places, with_shallow

_START = """# Reproduction

Each figure of the paper stands beside what the paper says of it, with the numbers reached here. What is between the
marks of an experiment is written by `rdgp reproduce EXPERIMENT --preset quick --docs docs`, from the results alone.
"""


def write_results(store: Store, plan: Plan, folder: Path) -> list[Path]:
    """Write the table and the figures of a plan as `experiment-preset...` and return their paths."""
    table = store.table(plan.runs)
    name = f"{plan.experiment}-{plan.preset}"
    return _write(plan.experiment, table, folder, name) if len(table) else []


def write_docs(store: Store, plan: Plan, docs: Path) -> Path:
    """Write the table and the figures of a plan below a folder of documentation, and its section of the page."""
    table, page = store.table(plan.runs), docs / "reproduction.md"
    if not len(table):
        raise ValueError(f"there are no results of {plan.experiment} at {plan.preset} yet; run it without --docs first")
    folder = docs / "reproduction"
    paths = _write(plan.experiment, table, folder, plan.experiment)
    pictures = [path.name for path in paths if path.suffix == ".png"]
    text = page.read_text(encoding="utf-8") if page.exists() else _START
    write_atomically(page, with_section(text, plan.experiment, _section(plan, table, pictures)).encode())
    return page


def with_section(text: str, experiment: str, section: str) -> str:
    """Return a page with the section of an experiment put in place of the one it has, or at its place in the order."""
    begin, end = (f"<!-- {experiment}: {word} -->" for word in ("begin", "end"))
    whole = f"{begin}\n{section}\n{end}"
    if begin in text and end in text:
        before, _, rest = text.partition(begin)
        return before + whole + rest.partition(end)[2]
    later = EXPERIMENTS[EXPERIMENTS.index(experiment) + 1 :]
    following = next((mark for name in later if (mark := f"<!-- {name}: begin -->") in text), None)
    if following is None:
        return f"{text.rstrip()}\n\n{whole}\n"
    before, mark, after = text.partition(following)
    return f"{before}{whole}\n\n{mark}{after}"


def _write(experiment: str, table: Table, folder: Path, name: str) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    if experiment != "fields":  # whose numbers are pictures
        paths.append(folder / f"{name}.csv")
        write_atomically(paths[-1], tidy(table).to_csv(index=False, float_format="%.6g").encode())
    for picture, figure in draw_figures(experiment, table).items():
        paths.append(folder / f"{name}-{picture}.png")
        content = io.BytesIO()
        figure.savefig(content, format="png", dpi=90)
        write_atomically(paths[-1], content.getvalue())
    return paths


def _section(plan: Plan, table: Table, pictures: list[str]) -> str:
    words = read_file(plan.experiment)["words"]
    lines = [f"## {words['title']}", "", words["about"], ""]
    for picture in pictures:
        name = picture.removesuffix(".png").removeprefix(f"{plan.experiment}-")
        lines += [f"![{name}](reproduction/{picture})", ""]
        said = words["paper"].get(name)
        lines += [f"*The paper*: {said}", ""] if said else []
    hypotheses = check_hypotheses(plan.experiment, table)
    if hypotheses:
        lines += ["**Hypotheses**", "", *(f"- {hypothesis}" for hypothesis in hypotheses), ""]
    lines += _numbers(plan.experiment, table)
    return "\n".join([*lines, _time(plan, table)])


def _numbers(experiment: str, table: Table) -> list[str]:
    """Return tables of mean scores."""
    if experiment == "bayesopt":
        return ["log10 regret, median (quartiles) over runs:", "", _markdown(searches(table)), ""]
    if experiment == "timing":
        return ["A training step:", "", _markdown(steps(table)), ""]
    if experiment == "synthetic":
        table, rows, column = with_shallow(table), ["target", "name", "layers"], "n"
    elif experiment == "wind":
        table, rows, column = with_places(with_shallow(table)), ["name", "layers", "month"], "place"
    elif experiment == "uci":
        table, rows, column = named(table), ["name", "layers"], "data"
    else:
        return []
    lines = []
    for score in ("nlpd", "mse"):
        order = [name for name in ("layers", "month") if name in rows]
        wide = pivot(table.sort_values(order, kind="stable"), rows, column, score)
        lines += [f"{score.upper()}, mean ± standard deviation over runs:", "", _markdown(wide), ""]
    return lines


def _markdown(table: Table) -> str:
    return markdown(list(map(str, table.columns)), table.itertuples(index=False))


def _time(plan: Plan, table: Table) -> str:
    hours = table["cpu_seconds"].sum() / 3600.0
    versions = ", ".join(sorted(set(table["version"])))
    amount = f"{60 * hours:.1f} CPU minutes" if hours < 2 else f"{hours:.1f} CPU hours"
    part = "" if len(table) == len(plan.runs) else f" of {len(plan.runs)}"
    return f"*{len(table)}{part} runs of the preset `{plan.preset}`, {amount}, rdgp {versions}.*"
