"""Bayesian optimization on spheres: our surrogates against random search and BoTorch on a Euclidean parametrization.

Each cell (task, method, seed) writes one JSON line when it is done; cells in the file are skipped, so a run that was
stopped goes on, and several processes may share a file if they do different cells. All methods of a seed begin with
the same points on the same randomly turned target. Run with names of tasks, methods and seeds:

    python benchmarks/bayesopt.py cells.jsonl --tasks "S2 irregular" --methods shallow random --seeds 0-14
    python benchmarks/bayesopt.py cells.jsonl --report --picture regret.png
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from timing import print_table

jax.config.update("jax_enable_x64", True)

from rdgp.bayesopt import Study, targets  # noqa: E402
from rdgp.plotting import draw_regret  # noqa: E402
from rdgp.spaces import Space  # noqa: E402

INITIAL = 5
SWITCH = 180  # trials, as in the paper
DECOY = 0.5439  # regret at the decoy of the irregular target, -0.2328, less a hundredth
FLOOR = 1e-12


class Task(NamedTuple):
    """A target, the deviation of its noise, the regret of a stuck run, and log10 of the authors' mean regret."""

    target: Callable[[], targets.Target]
    noise: float = 0.0
    stuck: float | None = None
    authors: float | None = None


TASKS = {
    "S3 Ackley": Task(lambda: targets.ackley(3), authors=-1.35),
    "S2 irregular": Task(targets.irregular_sphere, stuck=DECOY, authors=-1.75),
    "S3 Ackley, noise": Task(lambda: targets.ackley(3), noise=0.05),
    "S2 irregular, noise": Task(targets.irregular_sphere, noise=0.05, stuck=DECOY),
}


class Run:
    """One optimization of one seed: counts, evaluates, remembers."""

    def __init__(self, task: Task, seed: int, rotated: bool) -> None:
        keys = jax.random.split(jax.random.key(seed), 3)
        plain = task.target()
        self.target = plain.rotated(key=keys[0]) if rotated else plain
        self.noisy = self.target.noisy(task.noise, key=keys[1])
        self.start = np.asarray(self.target.space.random(INITIAL, key=keys[2]))
        self.x: list[np.ndarray] = []
        self.observed: list[float] = []
        self.asking: list[float] = []

    def evaluate(self, x: np.ndarray) -> float:
        self.x.append(np.asarray(x, float))
        self.observed.append(float(self.noisy(x)))
        return self.observed[-1]

    def timed(self, ask: Callable[[], Any]) -> Any:
        start = time.process_time()
        answer = ask()
        self.asking.append(time.process_time() - start)
        return answer

    def regret(self) -> list[float]:
        """Return the regret of each evaluated point, without noise."""
        return (np.asarray(self.target(np.stack(self.x))) - self.target.minimum).tolist()


def with_study(**options: Any) -> Callable[[Run, int, int], None]:
    def optimize(run: Run, evaluations: int, seed: int) -> None:
        study = Study(run.target.space, seed=seed, **options)
        for x in run.start:
            study.tell(x, run.evaluate(x))
        for _ in range(evaluations):
            trial = run.timed(study.ask)
            study.tell(trial, run.evaluate(trial.x))

    return optimize


def at_random(run: Run, evaluations: int, seed: int) -> None:
    more = np.asarray(run.target.space.random(evaluations, key=jax.random.fold_in(jax.random.key(seed), 7)))
    for x in [*run.start, *more]:
        run.evaluate(x)


def with_botorch(parametrization: str) -> Callable[[Run, int, int], None]:
    """Optimize with BoTorch: Matérn 5/2 with a length scale for each input, standardized values, LogEI."""

    def optimize(run: Run, evaluations: int, seed: int) -> None:
        import torch

        torch.manual_seed(seed)
        torch.set_num_threads(1)
        torch.set_default_dtype(torch.float64)
        chart = (Ambient if parametrization == "ambient" else Angles)(run.target.space)
        inputs = [chart.parameters(x) for x in run.start]
        for x in run.start:
            run.evaluate(x)
        for _ in range(evaluations):
            inputs.append(run.timed(lambda: propose(inputs, run.observed, chart)))
            run.evaluate(chart.point(inputs[-1]))

    return optimize


class Ambient:
    """The cube [-1, 1]^D, of which every point but the middle is normalized before the model sees it."""

    def __init__(self, space: Space) -> None:
        self.bounds = np.array([[-1.0] * space.ambient_dim, [1.0] * space.ambient_dim])

    def parameters(self, x: np.ndarray) -> np.ndarray:
        return x

    def point(self, z: np.ndarray) -> np.ndarray:
        return z / np.linalg.norm(z)

    def inputs(self, z: Any) -> Any:
        return z / z.norm(dim=-1, keepdim=True).clamp_min(1e-9)


class Angles:
    """Angles of the sphere S_d: d - 1 of them in [0, π], the last in [-π, π]."""

    def __init__(self, space: Space) -> None:
        low, high = [0.0] * (space.dim - 1) + [-np.pi], [np.pi] * space.dim
        self.bounds = np.array([low, high])

    def parameters(self, x: np.ndarray) -> np.ndarray:
        rest = np.sqrt(np.cumsum(x[::-1] ** 2)[::-1])
        return np.append(np.arctan2(rest[1:-1], x[:-2]), np.arctan2(x[-1], x[-2]))

    def point(self, z: np.ndarray) -> np.ndarray:
        sines = np.concatenate([[1.0], np.cumprod(np.sin(z))])
        return sines * np.append(np.cos(z), 1.0)

    def inputs(self, z: Any) -> Any:
        return z


def propose(inputs: Sequence[np.ndarray], values: Sequence[float], chart: Ambient | Angles) -> np.ndarray:
    """Fit a model to all values, which are to be minimized, and return where the expected improvement is largest."""
    import torch
    from botorch.acquisition import LogExpectedImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from botorch.models.transforms import Normalize, Standardize
    from botorch.optim import optimize_acqf
    from gpytorch.kernels import MaternKernel, ScaleKernel
    from gpytorch.mlls import ExactMarginalLogLikelihood

    bounds = torch.as_tensor(chart.bounds)
    x = chart.inputs(torch.as_tensor(np.stack(inputs)))
    y = -torch.as_tensor(np.asarray(values))[:, None]
    size = x.shape[-1]
    kernel = ScaleKernel(MaternKernel(2.5, ard_num_dims=size))
    model = SingleTaskGP(
        *(x, y),
        covar_module=kernel,
        input_transform=Normalize(size, bounds=bounds),
        outcome_transform=Standardize(1),
    )
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    gain = LogExpectedImprovement(model, best_f=y.max())

    class Seen(torch.nn.Module):
        def forward(self, z: torch.Tensor) -> torch.Tensor:
            return gain(chart.inputs(z))

    best, _ = optimize_acqf(Seen(), bounds, q=1, num_restarts=10, raw_samples=512)
    return chart.inputs(best)[0].detach().numpy()


METHODS: dict[str, Callable[[Run, int, int], None]] = {
    "shallow": with_study(surrogate="shallow"),
    "switch at 180": with_study(surrogate="deep", switch_at=SWITCH),
    "auto": with_study(surrogate="auto"),
    "deep": with_study(surrogate="deep"),
    "random": at_random,
    "BoTorch, ambient": with_botorch("ambient"),
    "BoTorch, angles": with_botorch("angles"),
}


def run_cell(task: str, method: str, seed: int, evaluations: int, rotated: bool) -> dict[str, Any]:
    run, start = Run(TASKS[task], seed, rotated), time.process_time()
    METHODS[method](run, evaluations, seed)
    late = run.asking[100:] or run.asking[-1:]
    return {
        **name_cell(task, method, seed, evaluations, rotated),
        "regret": run.regret(),
        "observed": run.observed,
        "seconds": time.process_time() - start,
        "seconds_of_a_late_ask": float(np.median(late)) if late else None,
        "x": [x.tolist() for x in run.x],
    }


def name_cell(task: str, method: str, seed: int, evaluations: int, rotated: bool) -> dict[str, Any]:
    return {"task": task, "method": method, "seed": seed, "evaluations": evaluations, "rotated": rotated}


def read_cells(path: Path) -> list[dict[str, Any]]:
    """Return the finished cells; a line that was cut off is not one."""
    cells = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            cells.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return cells


def run_cells(path: Path, cells: Iterator[dict[str, Any]]) -> None:
    """Run the cells that are not in the file and append each to it."""
    for cell in cells:
        finished = [{name: done[name] for name in cell} for done in read_cells(path)]
        if cell in finished:
            continue
        print(", ".join(f"{name} {value}" for name, value in cell.items()), file=sys.stderr, flush=True)
        result = run_cell(**cell)
        ragged = path.exists() and not path.read_bytes().endswith(b"\n") and path.stat().st_size > 0
        with path.open("a") as file:
            file.write("\n" * ragged + json.dumps(result) + "\n")
        print(f"  log10 regret {np.log10(max(min(result['regret']), FLOOR)):.3f}", file=sys.stderr, flush=True)


def best_regrets(cells: Sequence[dict[str, Any]], step: int) -> np.ndarray:
    """Return log10 of the least regret after so many evaluations, initial ones included, for each seed."""
    return np.log10(np.maximum([min(cell["regret"][:step]) for cell in cells], FLOOR))


def chosen_regrets(cells: Sequence[dict[str, Any]]) -> np.ndarray:
    """Return log10 of the regret of the point whose observed value is best: what a user of noisy values would take."""
    chosen = [cell["regret"][int(np.argmin(cell["observed"]))] for cell in cells]
    return np.log10(np.maximum(chosen, FLOOR))


def quartiles(values: np.ndarray) -> str:
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    return f"**{middle:.2f}** ({low:.2f}, {high:.2f})"


def report(cells: Sequence[dict[str, Any]]) -> None:
    """Print a table for each task: medians and quartiles of log10 regret over seeds."""
    for task in [name for name in TASKS if any(cell["task"] == name for cell in cells)]:
        rows = []
        evaluations = max(cell["evaluations"] for cell in cells if cell["task"] == task)
        steps = sorted({INITIAL + step for step in (50, 100, 180, evaluations) if step <= evaluations})
        for method in METHODS:
            own = select(cells, task, method)
            if own:
                limit = TASKS[task].stuck
                stuck = sum(min(cell["regret"]) > limit for cell in own) if limit else None
                asks = [cell["seconds_of_a_late_ask"] for cell in own if cell["seconds_of_a_late_ask"] is not None]
                rows.append(
                    (
                        method,
                        str(len(own)),
                        *(quartiles(best_regrets(own, step)) for step in steps),
                        quartiles(chosen_regrets(own)) if TASKS[task].noise else "",
                        "" if stuck is None else str(stuck),
                        f"{np.median(asks):.2f}" if asks else "",
                    )
                )
        header = ("method", "seeds", *(f"after {step}" for step in steps))
        print_table(
            f"{task}: log10 regret, median (quartiles)",
            rows,
            (*header, "of the best observed", "stuck", "CPU s of an ask"),
        )


def select(cells: Sequence[dict[str, Any]], task: str, method: str) -> list[dict[str, Any]]:
    """Return the cells of a task and method with the most evaluations there are for the task."""
    most = max(cell["evaluations"] for cell in cells if cell["task"] == task)
    return [cell for cell in cells if (cell["task"], cell["method"]) == (task, method) and cell["evaluations"] == most]


def draw(cells: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw the regret of all methods, a panel for each task."""
    names = [task for task in TASKS if any(cell["task"] == task for cell in cells)]
    curves = {
        task: {method: [c["regret"] for c in own] for method in METHODS if (own := select(cells, task, method))}
        for task in names
    }
    references = {task: {"authors' mean": TASKS[task].authors} for task in names if TASKS[task].authors is not None}
    draw_regret(curves, initial=INITIAL, references=references).savefig(path)


def as_seeds(text: str) -> range:
    first, _, last = text.partition("-")
    return range(int(first), int(last or first) + 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cells", type=Path, help="file of finished cells, JSON lines")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--seeds", type=as_seeds, default=range(15), help="such as 0-14")
    parser.add_argument("--evaluations", type=int, default=200, help=f"after the first {INITIAL}")
    parser.add_argument("--unrotated", action="store_true", help="the targets as the paper has them")
    parser.add_argument("--report", action="store_true", help="run nothing")
    parser.add_argument("--picture", type=Path)
    chosen = parser.parse_args()
    if not chosen.report:
        every = ((task, seed, method) for task in chosen.tasks for seed in chosen.seeds for method in chosen.methods)
        run_cells(
            chosen.cells,
            (name_cell(task, method, seed, chosen.evaluations, not chosen.unrotated) for task, seed, method in every),
        )
    cells = read_cells(chosen.cells)
    report(cells)
    if chosen.picture:
        draw(cells, chosen.picture)


if __name__ == "__main__":
    main()
