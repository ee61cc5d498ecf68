"""How well deep models predict: the released synthetic target, and a map from the sphere to the sphere.

Needs RDGP_DATA. Run with `make quality`; names of tables as arguments choose some of them.
"""

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rdgp.fields import StackedField
from rdgp.inference import fit
from rdgp.kernels import Matern
from rdgp.metrics import coverage, mse, nlpd
from rdgp.models import DeepGP, ExactGP, deep_gp
from rdgp.spaces import Sphere
from rdgp_paper.benchmarks.arguments import one_of
from rdgp_paper.data import read_released
from rdgp_paper.models import double_precision, predict_values
from rdgp_paper.tables import print_table

_SEEDS = range(5)
_HEADER = (
    "model",
    "N",
    "test NLPD, each seed",
    "mean",
    "MSE",
    "90% coverage",
    "displacement of layers",
    "CPU s of a fit",
)
_POINTS_HEADER = ("N", "manifold-valued model", "GP lifted to one tangent space", "NLPD of the model")


def displacements(model: DeepGP, x: jax.Array) -> list[float]:
    """Return the root mean square distance over which each hidden layer of one draw moves the points."""
    result = []
    keys = jax.random.split(jax.random.key(5), len(model.hidden))
    for layer, key in zip(model.hidden, keys, strict=True):
        v = layer.draw(key=key)(x)
        result.append(float(jnp.sqrt(jnp.mean(model.space.inner(x, v, v)))))
        x = model.space.exp(x, v)
    return result


def row(name: str, n: int, layers: int, recipe: Any, dtype: type = jnp.float64, **options: int) -> tuple[str, ...]:
    """Fit all seeds and return a line of the table.

    `recipe` is that of `fit`, `dtype` the precision of the data, `options` are those of `deep_gp`.
    """
    losses, errors, covered, moved, seconds = [], [], [], [], []
    for seed in _SEEDS:
        x, y, test_x, test_y = (jnp.asarray(part, dtype) for part in read_released(n, seed))
        model = deep_gp(Sphere(2), layers=layers, field="hodge", **options)  # type: ignore[arg-type]
        start = time.process_time()
        result = fit(model, x, y, key=jax.random.key(seed), recipe=recipe, progress=False)
        seconds.append(time.process_time() - start)
        prediction = predict_values(result.model, test_x, seed=100 + seed, samples=10)
        losses.append(nlpd(prediction, test_y))
        errors.append(mse(prediction, test_y))
        covered.append(float(coverage(prediction, test_y)))
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
    for seed in _SEEDS:
        keys = jax.random.split(jax.random.key(seed), 5)
        x, test = space.random(n, key=keys[0]), space.random(2000, key=keys[1])
        clean, truth = twist(x), twist(test)
        y = space.exp(clean, space.project(clean, noise * jax.random.normal(keys[2], clean.shape)))
        result = fit(deep_gp(space, layers=2, output="point", num_levels=7), x, y, key=keys[3], progress=False)
        prediction = result.model.predict(test, key=keys[4])
        ours.append(float(jnp.mean(jnp.square(space.distance(prediction.mean, truth)))))
        densities.append(-float(jnp.mean(prediction.log_prob(truth))))
        theirs.append(float(jnp.mean(jnp.square(space.distance(_lifted_mean(space, x, y, test), truth)))))
        print(f"points, N = {n}, seed {seed}: {ours[-1]:.4f} {theirs[-1]:.4f}", file=sys.stderr, flush=True)
    texts = [f"{np.mean(e):.4f} ± {np.std(e):.4f}" for e in (ours, theirs)]
    return str(n), *texts, f"{np.mean(densities):.3f}"


def _lifted_mean(space: Sphere, x: jax.Array, y: jax.Array, test: jax.Array) -> jax.Array:
    """Return predictions of a GP of the coordinates of y in the tangent space at the mean of y."""
    base = space.nearest(jnp.mean(y, axis=0, keepdims=True))
    frame = space.frame(base)[0]
    lifted = space.log(jnp.broadcast_to(base, y.shape), y) @ frame
    field = StackedField(space, Matern(variance=1.0), num_levels=20, outputs=2)
    gp = ExactGP(field, 0.1).fit(x, lifted, progress=False)
    return space.exp(jnp.broadcast_to(base, test.shape), gp.predict(test).mean @ frame.T)


_TABLES: dict[str, Callable[[], list[tuple[str, ...]]]] = {
    "default": lambda: [row("3 layers, default", n, 3, "default") for n in (400, 1600)],
    "paper": lambda: [
        row("2 layers, paper recipe, 70 + 49", n, 2, "paper", num_levels=5, num_output_levels=7) for n in (400, 1600)
    ],
    "float32": lambda: [row("3 layers, default, float32", 400, 3, "default", jnp.float32)],
    "points": lambda: [points_row(n) for n in (100, 400)],
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Fit the models and print the tables; `arguments` are by default those of the process."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", type=one_of(_TABLES), help="some of " + ", ".join(_TABLES))
    for table in parser.parse_args(arguments).tables or _TABLES:
        with double_precision():
            rows = _TABLES[table]()
        if table == "points":
            print_table("A twist of the sphere: mean squared distance to the true image", _POINTS_HEADER, rows)
        else:
            print_table(f"Released target, five draws of the noise: {table}", _HEADER, rows)


if __name__ == "__main__":
    main()
