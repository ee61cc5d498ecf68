"""How well deep models predict: the released synthetic target and July surface winds along a satellite track.

Needs RDGP_DATA. Run with `make quality`, or with names of tables: `default`, `paper`, `float32`.
"""

import os
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from timing import print_table

jax.config.update("jax_enable_x64", True)

from rdgp import DeepGP, Sphere, deep_gp, fit  # noqa: E402
from rdgp.metrics import coverage, mse, nlpd  # noqa: E402

SEEDS = range(5)
HEADER = (
    "model",
    "N",
    "test NLPD, each seed",
    "mean",
    "MSE",
    "90% coverage",
    "displacement of layers",
    "CPU s of a fit",
)


def synthetic(n: int, seed: int, dtype: type) -> list[jax.Array]:
    """Read one draw of the released target: training points and values, test points and noisy values."""
    with np.load(Path(os.environ["RDGP_DATA"]) / "synthetic" / f"synth_N{n}_seed{seed}.npz") as file:
        return [jnp.asarray(file[name], dtype) for name in ("train_x", "train_y", "test_x", "test_y")]


def displacements(model: DeepGP, x: jax.Array) -> list[float]:
    """Return the root mean square distance over which each hidden layer of one draw moves the points."""
    result = []
    for draw in model.hidden_draws(jax.random.key(5)):
        v = draw(x)
        result.append(float(jnp.sqrt(jnp.mean(jnp.sum(v * v, axis=-1)))))
        x = model.space.exp(x, v)
    return result


def row(name: str, n: int, layers: int, recipe: str, dtype: type = jnp.float64, **options: int) -> tuple[str, ...]:
    """Fit all seeds and summarize."""
    losses, errors, covered, moved, seconds = [], [], [], [], []
    for seed in SEEDS:
        x, y, test_x, test_y = synthetic(n, seed, dtype)
        model = deep_gp(Sphere(2), layers=layers, field="hodge", **options)
        start = time.process_time()
        result = fit(model, x, y, key=jax.random.key(seed), recipe=recipe, progress=False)
        seconds.append(time.process_time() - start)
        law = result.model.predict(test_x, key=jax.random.key(100 + seed))
        losses.append(nlpd(law, test_y))
        errors.append(mse(law, test_y))
        covered.append(float(coverage(law, test_y)))
        moved.append(displacements(result.model, test_x))
        print(f"{name}, N = {n}, seed {seed}: {losses[-1]:.3f} ({result.status})", file=sys.stderr, flush=True)
    return (
        name,
        str(n),
        ", ".join(f"{loss:.3f}" for loss in losses),
        f"**{np.mean(losses):.3f}**",
        f"{np.mean(errors):.2e}",
        f"{np.mean(covered):.1%}",
        ", ".join(f"{m:.3f}" for m in np.mean(moved, axis=0)),
        f"{np.min(seconds):.0f}",
    )


TABLES = {
    "default": lambda: [row("3 layers, default", n, 3, "default") for n in (400, 1600)],
    "paper": lambda: [
        row("2 layers, paper recipe, 70 + 49", n, 2, "paper", levels=5, output_levels=7) for n in (400, 1600)
    ],
    "float32": lambda: [row("3 layers, default, float32", 400, 3, "default", jnp.float32)],
}

if __name__ == "__main__":
    for table in sys.argv[1:] or TABLES:
        print_table(f"Released target, five draws of the noise: {table}", TABLES[table](), HEADER)
