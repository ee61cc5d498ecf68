"""Cost of training steps, predictions and draws of this checkout, against those of another one.

`make steps OLD=...` or `python benchmarks/steps.py OLD [CASE ...]`, OLD the root of the other checkout. A case runs in
two processes, one for each checkout, which build the same model on the same data, compile, and then take turns. The
table has medians over turns: CPU milliseconds of both, and the ratio of the turns of each pair with its quartiles. The
last column is how far the results differ: the ELBO of the last step both took, or a sum of what was computed.
"""

import argparse
import inspect
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parents[1]
TURNS, LONG = 15, 0.2  # a turn takes at least so many seconds
N, MANY = 300, 20_000
FORMER = {"num_levels": "levels", "num_output_levels": "output_levels", "num_inducing": "inducing"}
HEADER = ("what", "new, ms", "old, ms", "new / old (quartiles)", "first call, s, new / old", "difference")


class Turns:
    """The clock of a process: notes what a turn cost, tells the parent, and waits for the next one."""

    def __init__(self) -> None:
        self.start, self.last = time.process_time(), 0

    def __call__(self, step: int, number: float) -> None:
        """End a turn after so many steps in all; `number` is compared between checkouts."""
        spent = time.process_time() - self.start
        if self.last and spent < LONG:
            return
        print(json.dumps([step, spent / (step - self.last), number]), flush=True)
        if not sys.stdin.readline():
            sys.exit()
        self.last, self.start = step, time.process_time()

    def repeat(self, function: Callable[[], Any]) -> None:
        """Run a function again and again; one run is a step."""
        import jax
        import jax.numpy as jnp

        step = 0
        while True:
            step += 1
            values = jax.block_until_ready(function())
            self(step, float(sum(jnp.sum(jnp.asarray(leaf)) for leaf in jax.tree.leaves(values))))


def build(function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Call a function with options under the names that it has in its checkout."""
    known = inspect.signature(function).parameters
    return function(*arguments, **{n if n in known else FORMER[n]: value for n, value in options.items()})


def data(space: Any, output: str = "scalar", n: int = N) -> tuple[Any, Any]:
    """Return points of a space with noisy values, scalars or tangent vectors."""
    import jax
    import jax.numpy as jnp

    x = space.random(n, key=jax.random.key(1))
    noise = 0.1 * jax.random.normal(jax.random.key(2), x.shape)
    values = jnp.cos(3.0 * x) + noise
    return x, space.project(x, values) if output == "tangent" else values[:, 0]


def train(model: Any, x: Any, y: Any, turns: Turns, **options: Any) -> Any:
    """Train; turns end where `fit` calls back."""
    import jax

    from rdgp.inference import fit

    return fit(model, x, y, key=jax.random.key(0), steps=100_000, progress=False, callback=turns, **options)


def deep(turns: Turns, space: Any, layers: int, field: str, output: str = "scalar", **options: Any) -> None:
    """Train a residual model by the default recipe."""
    from rdgp.models import deep_gp

    train(build(deep_gp, space, layers, field, output, **options), *data(space, output), turns)


def sphere(layers: int, field: str, output: str = "scalar", **options: Any) -> Callable[[Turns], None]:
    """Return the case of a residual model on the sphere."""

    def run(turns: Turns) -> None:
        from rdgp.spaces import Sphere

        deep(turns, Sphere(2), layers, field, output, **options)

    return run


def rotations(turns: Turns) -> None:
    """Train a residual model of scalars on SO(3)."""
    from rdgp.spaces import Rotations

    deep(turns, Rotations(), 2, "hodge")


def euclidean(turns: Turns) -> None:
    """Train the Euclidean deep GP with inducing points in all layers."""
    import jax
    import jax.numpy as jnp

    from rdgp.models import euclidean_deep_gp

    x = jax.random.normal(jax.random.key(0), (N, 3))
    y = jnp.cos(3.0 * x[:, 0]) + 0.1 * jax.random.normal(jax.random.key(1), (N,))
    train(build(euclidean_deep_gp, 3, 3, num_inducing=49, x=x), x, y, turns)


def winds_by_points(turns: Turns) -> None:
    """Train the paper's baseline of winds, whose hidden layer leaves the sphere."""
    from rdgp.models import euclidean_deep_gp
    from rdgp.spaces import Sphere

    space = Sphere(2)
    x, y = data(space, "tangent")
    options = {"num_inducing": 49, "num_levels": 9}
    train(build(euclidean_deep_gp, 3, 2, x=x, input_space=space, output="tangent", **options), x, y, turns)


def paper(field: str, output: str) -> Callable[[Turns], None]:
    """Return the case of the paper's recipe with minibatches and an explicit output posterior."""

    def run(turns: Turns) -> None:
        from rdgp.models import deep_gp
        from rdgp.spaces import Sphere

        space = Sphere(2)
        model = build(deep_gp, space, 3, field, output, num_levels=5, num_output_levels=7)
        train(model, *data(space, output, 1600), turns, batch_size=400, recipe="paper")

    return run


def exact(output: str) -> Callable[[Turns], None]:
    """Return the case of an evaluation in the fit of an exact GP: the evidence and its gradient."""

    def run(turns: Turns) -> None:
        import equinox as eqx
        import jax

        from rdgp.core import split_trainable
        from rdgp.fields import HodgeField, ScalarField
        from rdgp.kernels import Matern
        from rdgp.models import ExactGP
        from rdgp.spaces import Sphere

        space = Sphere(2)
        x, y = data(space, output)
        if output == "tangent":
            field = build(HodgeField, space, Matern(), Matern(), num_levels=20)
        else:
            field = build(ScalarField, space, Matern(), num_levels=21)
        free, rest = split_trainable(ExactGP(field))
        evaluate = jax.jit(jax.value_and_grad(lambda free: eqx.combine(free, rest).log_marginal_likelihood(x, y)))
        turns.repeat(lambda: evaluate(free))

    return run


def fitted(output: str) -> tuple[Any, Any]:
    """Return a deep model after a few steps, and many points."""
    import jax

    from rdgp.inference import fit
    from rdgp.models import deep_gp
    from rdgp.spaces import Sphere

    space = Sphere(2)
    result = fit(
        deep_gp(space, 2, "hodge", output), *data(space, output), key=jax.random.key(0), steps=5, progress=False
    )
    return result.model, space.random(MANY, key=jax.random.key(3))


def prediction(output: str) -> Callable[[Turns], None]:
    """Return the case of predictions at many points, the model conditioned anew."""

    def run(turns: Turns) -> None:
        import jax

        model, x = fitted(output)

        def predict() -> Any:
            found = model.predict(x, key=jax.random.key(4), samples=5)
            return found.means, found.covariances

        turns.repeat(predict)

    return run


def draws(output: str) -> Callable[[Turns], None]:
    """Return the case of a drawn function at many points."""

    def run(turns: Turns) -> None:
        import jax

        model, x = fitted(output)
        turns.repeat(lambda: model.draw(key=jax.random.key(4))(x))

    return run


CASES: dict[str, tuple[str, Callable[[Turns], None]]] = {
    "hodge": ("scalars on S_2, Hodge, 2 layers, a step", sphere(2, "hodge")),
    "winds": ("winds on S_2, Hodge, 3 layers, a step", sphere(3, "hodge", "tangent", num_output_levels=20)),
    "projected": ("scalars on S_2, projected, 2 layers, a step", sphere(2, "projected")),
    "frame": ("scalars on S_2, frame, 2 layers, a step", sphere(2, "frame")),
    "rotations": ("scalars on SO(3), Hodge, 2 layers, a step", rotations),
    "euclidean": ("Euclidean deep GP, 49 inducing points, 3 layers, a step", euclidean),
    "baseline": ("winds, Euclidean hidden layer, 49 inducing points, a step", winds_by_points),
    "paper": ("paper's recipe, scalars, 3 layers, 400 of 1,600 points, a step", paper("hodge", "scalar")),
    "paper-winds": ("paper's recipe, winds, 3 layers, 400 of 1,600 points, a step", paper("hodge", "tangent")),
    "paper-projected": ("the same, projected fields and winds", paper("projected", "tangent")),
    "exact": ("ExactGP, scalars, evidence and gradient", exact("scalar")),
    "exact-winds": ("ExactGP, winds, evidence and gradient", exact("tangent")),
    "prediction": (f"prediction of scalars at {MANY:,} points, 5 draws", prediction("scalar")),
    "prediction-winds": (f"prediction of winds at {MANY:,} points, 5 draws", prediction("tangent")),
    "draws": (f"a drawn function at {MANY:,} points, scalars", draws("scalar")),
    "draws-winds": (f"a drawn function at {MANY:,} points, winds", draws("tangent")),
}


def work(case: str, root: Path) -> None:
    """Be the process of one checkout."""
    import jax

    import rdgp

    if not Path(str(rdgp.__file__)).is_relative_to(root):
        raise RuntimeError(f"rdgp comes from {rdgp.__file__}, not from {root}; take it off PYTHONPATH")
    jax.config.update("jax_enable_x64", True)
    CASES[case][1](Turns())


class Worker:
    """A process that runs a case of one checkout, a turn at a time."""

    def __init__(self, root: Path, case: str) -> None:
        command = [sys.executable, str(Path(__file__).resolve()), str(root), "--work", case]
        environment = {**os.environ, "PYTHONPATH": str(root / "src")}
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root
        )

    def turn(self) -> tuple[int, float, float]:
        """Wait for the end of a turn: steps in all, seconds of a step, and the number to compare."""
        line = self.process.stdout.readline() if self.process.stdout else ""
        if not line:
            raise RuntimeError(f"a worker ended with code {self.process.wait()}; its error stands above")
        step, seconds, number = json.loads(line)
        return step, seconds, number

    def go(self) -> None:
        """Start the next turn."""
        if self.process.stdin:
            self.process.stdin.write("\n")
            self.process.stdin.flush()

    def stop(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()


def compare(case: str, old: Path, turns: int) -> tuple[str, ...]:
    """Run a case in both checkouts and return a line of the table."""
    sides = [Worker(HERE, case)]
    first = [sides[0].turn()]  # one after the other: compilation shares no core
    sides.append(Worker(old, case))
    first.append(sides[1].turn())
    seconds: list[list[float]] = [[], []]
    numbers = [{step: number} for step, _, number in first]
    try:
        for i in range(turns + 1):
            for side in (0, 1) if i % 2 else (1, 0):
                sides[side].go()
                step, spent, number = sides[side].turn()
                seconds[side].append(spent)
                numbers[side][step] = number
    finally:
        for worker in sides:
            worker.stop()
    times = np.array(seconds)[:, 1:]  # the first turn fills caches
    low, middle, high = np.quantile(times[0] / times[1], [0.25, 0.5, 0.75])
    new, former = 1e3 * np.median(times, axis=1)
    ratio = f"{middle:.3f} ({low:.3f} to {high:.3f})"
    compiling = f"{first[0][1] * first[0][0]:.1f} / {first[1][1] * first[1][0]:.1f}"
    return CASES[case][0], f"{new:.2f}", f"{former:.2f}", ratio, compiling, _difference(*numbers)


def _difference(new: dict[int, float], old: dict[int, float]) -> str:
    both = sorted(set(new) & set(old))
    if not both:
        return "-"
    return f"{abs(new[both[-1]] - old[both[-1]]) / max(abs(old[both[-1]]), 1e-12):.0e}"


def main() -> None:
    """Compare all cases or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old", type=Path, help="root of the other checkout")
    parser.add_argument("cases", nargs="*", help="some of " + ", ".join(CASES))
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(options.work, options.old)
        return
    from timing import print_table

    rows = []
    for case in options.cases or CASES:
        rows.append(compare(case, options.old.resolve(), options.turns))
        print(" | ".join(rows[-1]), file=sys.stderr, flush=True)
    print_table("This checkout against another", rows, HEADER)


if __name__ == "__main__":
    main()
