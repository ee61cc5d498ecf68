"""Measure the architecture: what is written once, who imports whom, and which words are left.

Run `python tools/architecture.py`; it prints a table and fails where a goal is missed.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src"

# A subpackage imports those before it.
ORDER = (
    *("core", "spaces", "spectra", "kernels", "fields", "posteriors", "likelihoods", "optimize", "io", "models"),
    *("inference", "metrics", "testing", "bayesopt", "datasets", "estimators", "geo", "plotting", "cli"),
)
SPACES = ("Box", "Circle", "Euclidean", "Flat", "Product", "Rotations", "Sphere", "Torus")
CONTRACTS = {"fields": "Field", "posteriors": "Marginals", "models": "Output", "likelihoods": "Likelihood"}
_OF_PYTHON = {"_replace", "_fields", "_asdict", "_make", "_cached", "_cache_size"}
_LONG, _SHORT = 300, 40  # lines of a file

# Words of the table in the vocabulary, as patterns; "law" stays the word for property tests.
WORDS = (
    *(r"predict_law", r"the law (of|at) (each|the|a|an|y|f|values|observations)\b", r"\brooms?\b", r"\bmanners\b"),
    *(r"\bdear(er|est)?\b", r"\b(walk_draws|walks? (the|along) layers?)\b", r"\bcarriers?\b", r"\btabulated\b"),
    *(r"\bdeviations?\b(?<!standard deviation)(?<!standard deviations)", r"random waves?\b", r"NUM_WAVES"),
    *(r"InducingLocations", r"inducing locations?", r"regions? of trust", r"\brivals?\b", r"\bvalleys?\b"),
    *(r"\bdecoys?\b", r"\bvotes?\b", r"\bpiles?\b", r"\binward\b", r"\boutward\b", r"\bchords?\b"),
    *(r"\bduels?\b", r"\bopponents?\b", r"comes? along\b", r"\bhonest\b", r"who ha(s|ve) them"),
    *(r"\boutput_levels\b(?<!num_output_levels)", r"the shell\b", r"EuclideanMatern", r"mean_and_spread"),
)
WORDS_OF_PAGES = (r"\bzonal (sums?|functions?|kernels?)\b",)  # fine in the mathematics of the sources
_STATED = (
    r"(stated once|^FORMER|inducing points z \(the paper's locations\))"  # where a page names the paper's own word
)


class Module(NamedTuple):
    """A file of the library, parsed."""

    path: Path
    package: str  # its subpackage, "" at the top
    tree: ast.Module
    text: str


def modules() -> list[Module]:
    """Parse every file of the library."""
    found = []
    for path in sorted((SOURCE / "rdgp").rglob("*.py")):
        parts = path.relative_to(SOURCE / "rdgp").parts
        text = path.read_text()
        found.append(Module(path, parts[0] if len(parts) > 1 else "", ast.parse(text), text))
    return found


def calls(module: Module) -> Iterator[ast.Call]:
    """Yield all calls of a file."""
    return (node for node in ast.walk(module.tree) if isinstance(node, ast.Call))


def called(call: ast.Call) -> str:
    """Return the last name of what is called."""
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def places(files: list[Module], names: set[str], packages: set[str] | None = None) -> list[str]:
    """Return where functions of given names are called, in some subpackages or all."""
    chosen = [module for module in files if packages is None or module.package in packages]
    return [where(module, call) for module in chosen for call in calls(module) if called(call) in names]


def where(module: Module, node: ast.AST) -> str:
    """Return file and line."""
    return f"{module.path.relative_to(ROOT)}:{getattr(node, 'lineno', 0)}"


def classes_under(files: list[Module], package: str, root: str) -> set[str]:
    """Return the names of a contract and of all classes of its subpackage that derive from it."""
    names = {root}
    while True:
        new = {
            node.name
            for module in files
            if module.package == package
            for node in ast.walk(module.tree)
            if isinstance(node, ast.ClassDef) and any(getattr(base, "id", "") in names for base in node.bases)
        }
        if new <= names:
            return names
        names |= new


def isinstance_lines(files: list[Module], classes: set[str], packages: set[str]) -> list[str]:
    """Return where isinstance asks for one of some classes."""
    found = []
    for module in files:
        if module.package not in packages:
            continue
        for call in calls(module):
            if called(call) == "isinstance" and len(call.args) == 2:
                asked = {getattr(node, "id", getattr(node, "attr", "")) for node in ast.walk(call.args[1])}
                if asked & classes:
                    found.append(where(module, call))
    return found


def imports(module: Module) -> Iterator[tuple[ast.AST, str]]:
    """Yield what a file imports of rdgp, as dotted names, whichever way it is written."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "rdgp":
            yield from ((node, f"{node.module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names if alias.name.split(".")[0] == "rdgp")
        elif isinstance(node, ast.Call) and called(node) == "import_module" and node.args:
            name = getattr(node.args[0], "value", "")
            if isinstance(name, str) and name.split(".")[0] == "rdgp":
                yield node, name


def private_imports(files: list[Module]) -> list[str]:
    """Return where private names cross subpackages: imports, and attributes that only another subpackage defines."""
    found = []
    for module in files:
        for node, name in imports(module):
            parts = name.split(".")[1:]
            crosses = len(parts) > 1 and parts[0] != module.package
            if module.package and crosses and any(part.startswith("_") for part in parts[1:]):
                found.append(where(module, node))
    return found + private_attributes(files)


def private_attributes(files: list[Module]) -> list[str]:
    """Return where `something._name` is used though its own subpackage defines no such name."""
    own: dict[str, set[str]] = {}
    for module in files:
        names = own.setdefault(module.package, set())
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                names.add(node.name)
            elif isinstance(node, ast.AnnAssign | ast.Assign):
                for target in [node.target] if isinstance(node, ast.AnnAssign) else node.targets:
                    names.add(getattr(target, "id", getattr(target, "attr", "")))
    return [
        where(module, node)
        for module in files
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Attribute)
        and re.fullmatch(r"_[a-z]\w*", node.attr)
        and node.attr not in own[module.package] | _OF_PYTHON
    ]


def upward_imports(files: list[Module]) -> list[str]:
    """Return where a subpackage imports one that comes after it."""
    rank = {name: i for i, name in enumerate(ORDER)}
    found = []
    for module in files:
        for node, name in imports(module):
            target = name.split(".")[1] if "." in name else ""
            if module.package in rank and target in rank and rank[target] > rank[module.package]:
                found.append(f"{where(module, node)} ({module.package} -> {target})")
    return found


def forbidden_words() -> list[str]:
    """Return where words of the old vocabulary are left in sources, tests, documentation and examples."""
    pattern = re.compile("|".join(WORDS), re.IGNORECASE)
    in_pages = re.compile("|".join((*WORDS, *WORDS_OF_PAGES)), re.IGNORECASE)
    kept = re.compile(_STATED)
    folders = ("src", "tests", "docs", "examples", "benchmarks")
    files = [path for name in folders for path in sorted((ROOT / name).rglob("*")) if path.suffix in (".py", ".md")]
    found = []
    for path in [*files, *sorted(ROOT.glob("*.md"))]:
        if path.name in ("experiments.md", "CHANGELOG.md"):
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if (match := (in_pages if path.suffix == ".md" else pattern).search(line)) and not kept.search(line):
                found.append(f"{path.relative_to(ROOT)}:{number} ({match.group().strip()})")
    return found


class Row(NamedTuple):
    """One question with its goal and what was found."""

    question: str
    goal: int
    found: list[str]


def table(files: list[Module]) -> list[Row]:
    """Measure everything."""
    contracts = set().union(*(classes_under(files, package, root) for package, root in CONTRACTS.items()))
    everywhere = {module.package for module in files}
    factorizations = {"evidence_by_kernel", "posterior_by_kernel", "jittered_cholesky"}
    outside = everywhere - {"posteriors", "core"}
    return [
        Row("forward passes through hidden layers", 1, places(files, {"move"}, everywhere - {"fields"})),
        Row("training loops", 1, optimizer_steps(files)),
        Row("evidence computations outside posteriors", 0, places(files, factorizations, outside)),
        Row(
            "isinstance on contracts in models + inference",
            5,
            isinstance_lines(files, contracts, {"models", "inference"}),
        ),
        Row(
            "isinstance on concrete spaces outside spaces + spectra",
            0,
            isinstance_lines(files, set(SPACES), everywhere - {"spaces", "spectra"}),
        ),
        Row("private names across subpackages", 0, private_imports(files)),
        Row("imports upward", 0, upward_imports(files)),
        Row(
            f"files over {_LONG} lines", 0, [f"{m.path.relative_to(ROOT)}" for m in files if m.text.count("\n") > _LONG]
        ),
        Row("words of the old vocabulary", 0, forbidden_words()),
    ]


def optimizer_steps(files: list[Module]) -> list[str]:
    """Return where an optimizer of optax takes a step."""
    found = []
    for module in files:
        for call in calls(module):
            if (
                called(call) == "update" and any(keyword.arg in ("value_fn", "params") for keyword in call.keywords)
            ) or called(call) == "apply_updates":
                found.append(where(module, call))
    return found


def main() -> int:
    """Print the table and the lines of code; return 1 where a goal is missed."""
    files = modules()
    rows = table(files)
    width = max(len(row.question) for row in rows)
    print(f"{'question'.ljust(width)}  found  goal")
    for row in rows:
        print(f"{row.question.ljust(width)}  {len(row.found):5d}  {row.goal:4d}")
    lines = sum(module.text.count("\n") for module in files)
    short = [m for m in files if m.text.count("\n") < _SHORT and not m.path.name.startswith("__")]
    print(f"{len(files)} files, {lines} lines in src/rdgp; {len(short)} files under {_SHORT} lines")
    missed = [row for row in rows if len(row.found) > row.goal]
    for row in missed:
        print(f"\n{row.question}: at most {row.goal}, found {len(row.found)}")
        print("\n".join(f"  {place}" for place in row.found[:40]))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
