"""How well deep models predict: the released synthetic target and July surface winds along a satellite track.

Needs RDGP_DATA. Run with `make quality`, or with names of tables: `default`, `paper`, `float32`, `points`.
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

from rdgp import DeepGP, ExactGP, Matern, Sphere, StackedField, deep_gp, fit  # noqa: E402
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


def twist(x: jax.Array) -> jax.Array:
    """Turn the sphere about its axis by an angle that grows with height: a smooth map onto the whole sphere."""
    angle = 2.0 * x[:, 2] + 1.5 * jnp.tanh(4.0 * x[:, 0])
    c, s = jnp.cos(angle), jnp.sin(angle)
    return jnp.stack([c * x[:, 0] - s * x[:, 1], s * x[:, 0] + c * x[:, 1], x[:, 2]], axis=1)


def points_row(n: int) -> tuple[str, ...]:
    """Compare a manifold-valued model with a GP that lifts all values to the tangent space at their mean."""
    space, noise = Sphere(2), 0.05
    ours, theirs, densities = [], [], []
    for seed in SEEDS:
        keys = jax.random.split(jax.random.key(seed), 5)
        x, test = space.random(n, key=keys[0]), space.random(2000, key=keys[1])
        clean = twist(x)
        y = space.exp(clean, space.project(clean, noise * jax.random.normal(keys[2], clean.shape)))
        result = fit(deep_gp(space, layers=2, output="point", levels=7), x, y, key=keys[3], progress=False)
        law, truth = result.model.predict(test, key=keys[4]), twist(test)
        ours.append(float(jnp.mean(jnp.square(space.distance(law.mean, truth)))))
        densities.append(-float(jnp.mean(law.log_prob(truth))))
        base = space.nearest(jnp.mean(y, axis=0, keepdims=True))
        frame = space.frame(base)[0]
        lifted = space.log(jnp.broadcast_to(base, y.shape), y) @ frame
        field = StackedField(space, Matern(variance=1.0), levels=20, outputs=2)
        wrapped = ExactGP(field, 0.1).fit(x, lifted, progress=False)
        mean = space.exp(jnp.broadcast_to(base, test.shape), wrapped.predict(test).mean @ frame.T)
        theirs.append(float(jnp.mean(jnp.square(space.distance(mean, truth)))))
        print(f"points, N = {n}, seed {seed}: {ours[-1]:.4f} {theirs[-1]:.4f}", file=sys.stderr, flush=True)
    spread = [f"{np.mean(e):.4f} ± {np.std(e):.4f}" for e in (ours, theirs)]
    return str(n), spread[0], spread[1], f"{np.mean(densities):.3f}"


TABLES = {
    "default": lambda: [row("3 layers, default", n, 3, "default") for n in (400, 1600)],
    "paper": lambda: [
        row("2 layers, paper recipe, 70 + 49", n, 2, "paper", levels=5, output_levels=7) for n in (400, 1600)
    ],
    "float32": lambda: [row("3 layers, default, float32", 400, 3, "default", jnp.float32)],
}

if __name__ == "__main__":
    for table in sys.argv[1:] or [*TABLES, "points"]:
        if table == "points":
            header = ("N", "manifold-valued model", "GP lifted to one tangent space", "NLPD of the model")
            rows = [points_row(n) for n in (100, 400)]
            print_table("A twist of the sphere: mean squared distance to the true image", rows, header)
        else:
            print_table(f"Released target, five draws of the noise: {table}", TABLES[table](), HEADER)
