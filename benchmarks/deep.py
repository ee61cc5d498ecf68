"""Cost of a training step of deep models, against bare matrix products, GPyTorch and the Euclidean deep GP.

Ratios of CPU times of one interleaved run; compilation apart. Run with `make bench`; GPyTorch needs the extra `bench`.
"""

import sys
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from timing import first_call, interleaved, print_table

jax.config.update("jax_enable_x64", True)

from rdgp.core import split_trainable  # noqa: E402
from rdgp.fields import HodgeField, ProjectedField, ScalarField  # noqa: E402
from rdgp.inference import RECIPES, Plan, advance, estimate, initial_state, with_vector  # noqa: E402
from rdgp.kernels import Matern  # noqa: E402
from rdgp.likelihoods import Gaussian  # noqa: E402
from rdgp.models import Data, DeepGP, euclidean_deep_gp  # noqa: E402
from rdgp.posteriors import Interdomain  # noqa: E402
from rdgp.spaces import Sphere  # noqa: E402

SAMPLES = 3


def step(model: DeepGP, x: jax.Array, y: jax.Array) -> Callable[[], Any]:
    """Return a function that computes the ELBO and its gradient in all parameters."""
    vector, data = ravel_pytree(split_trainable(model)[0])[0], model.check_data(x, y)
    basis = model.hidden[0].field.basis(x) if model.hidden[0].num_normals else None

    @jax.jit
    def value_and_gradient(vector: jax.Array, data: Data, basis: Any, key: jax.Array) -> Any:
        def elbo(vector: jax.Array) -> jax.Array:
            return estimate(with_vector(model, vector), data, key, SAMPLES, basis)

        return jax.value_and_grad(elbo)(vector)

    return lambda: value_and_gradient(vector, data, basis, jax.random.key(0))


def products(shapes: list[tuple[int, int]]) -> Callable[[], Any]:
    """Return the yardstick: [n, m] x [m, m] forward and both transposed products, for each layer."""
    key = jax.random.key(0)
    arrays = [tuple(jax.random.normal(key, s) for s in ((n, m), (m, m), (n, m))) for n, m in shapes]

    @jax.jit
    def run(arrays: list[tuple[jax.Array, ...]]) -> list[tuple[jax.Array, ...]]:
        return [(a @ b, c @ b.T, a.T @ c) for a, b, c in arrays]

    return lambda: run(arrays)


def residual(layers: int, hidden: Callable[[], Interdomain], output: Interdomain) -> DeepGP:
    return DeepGP(tuple(hidden() for _ in range(layers - 1)), output, Gaussian(0.01))


def hodge(num_levels: int) -> Interdomain:
    return Interdomain(HodgeField(Sphere(2), Matern(variance=0.01), Matern(variance=0.01), num_levels=num_levels))


def against_products() -> list[tuple[str, ...]]:
    """Compare steps on the sphere with the products an ordinary implementation would need."""
    rows = []
    for name, n, fields, bars in (
        ("synthetic", 1600, 5, {2: 1.5, 3: 1.5, 5: 2.0}),
        ("wind", 1440, 9, {2: 1.0, 3: 1.0}),
    ):
        x = Sphere(2).random(n, key=jax.random.key(1))
        tangent = name == "wind"
        y = Sphere(2).project(x, jnp.cos(3 * x)) if tangent else jnp.cos(3 * x[:, 0])
        for layers, bar in bars.items():
            output = hodge(fields) if tangent else Interdomain(ScalarField(Sphere(2), Matern(), num_levels=7))
            model = residual(layers, lambda fields=fields: hodge(fields), output)
            m = 2 * fields * (fields + 2)
            shapes = [(2 * n * (1 if i == 0 else SAMPLES), m) for i in range(layers - 1)]
            shapes.append((2 * n * SAMPLES, m) if tangent else (n * SAMPLES, 49))
            runs = {"step": step(model, x, y), "products": products(shapes)}
            compilation = first_call(runs["step"])
            ms = interleaved(runs, repetitions=10)
            rows.append(
                (
                    f"{name} size, {layers} layers, products {shapes}",
                    f"{ms['step']:.1f} ms ({compilation:.1f} s)",
                    f"{ms['products']:.1f} ms",
                    f"{ms['step'] / ms['products']:.2f}",
                    f"at most {bar}",
                )
            )
    return rows


def against_euclidean() -> list[tuple[str, ...]]:
    """Compare residual steps on S_d with Euclidean ones: batch 1000, as many harmonics as inducing points."""
    rows = []
    for d, num_levels, m in ((4, 7, 336), (6, 5, 294), (8, 4, 210)):
        x = Sphere(d).random(1000, key=jax.random.key(1))
        y = jnp.cos(3 * x[:, 0])
        for layers in (2, 3, 5):
            field = ProjectedField(Sphere(d), Matern(variance=0.01), num_levels=num_levels)
            output = Interdomain(ScalarField(Sphere(d), Matern(), num_levels=num_levels))
            model = residual(layers, lambda field=field: Interdomain(field), output)
            count = output.field.num_weights
            baseline = euclidean_deep_gp(d, layers, m, x=x[:, :d])
            runs = {"residual": step(model, x, y), "euclidean": step(baseline, x[:, :d], y)}
            compilation = [first_call(run) for run in runs.values()]
            ms = interleaved(runs, repetitions=4)
            print(f"S_{d}, {layers} layers: {ms}", file=sys.stderr, flush=True)
            rows.append(
                (
                    f"S_{d}, {layers} layers, {count} harmonics, {m} inducing points",
                    f"{ms['residual']:.0f} ms ({compilation[0]:.1f} s)",
                    f"{ms['euclidean']:.0f} ms ({compilation[1]:.1f} s)",
                    f"{ms['euclidean'] / ms['residual']:.1f}x faster",
                    "at least 5x",
                )
            )
    return rows


def against_gpytorch() -> list[tuple[str, ...]]:
    """Compare steps of the Euclidean deep Gaussian process with GPyTorch's: N = 1600, d = 3, 49 inducing points."""
    from gpytorch_baseline import gpytorch_step

    x = jax.random.normal(jax.random.key(0), (1600, 3))
    y = jnp.cos(3 * x[:, 0])
    rows = []
    for layers in (2, 3):
        model = euclidean_deep_gp(3, layers, 49, x=x)
        z = np.asarray(model.output.variational.z)
        runs = {
            "ours": step(model, x, y),
            "theirs": gpytorch_step(np.asarray(x), np.asarray(y), z, layers, SAMPLES),
        }
        compilation = [first_call(run) for run in runs.values()]
        ms = interleaved(runs, repetitions=10)
        rows.append(
            (
                f"Euclidean deep GP, {layers} layers",
                f"{ms['ours']:.0f} ms ({compilation[0]:.1f} s)",
                f"{ms['theirs']:.0f} ms",
                f"{ms['ours'] / ms['theirs']:.2f}",
                "at most 1",
            )
        )
    return rows


def minibatch_memory() -> list[tuple[str, ...]]:
    """Look at the temporary memory of one step with 1000 of N points."""
    model = residual(3, lambda: hodge(5), Interdomain(ScalarField(Sphere(2), Matern(), num_levels=7)))
    plan = Plan(RECIPES["paper"], None, 1, SAMPLES, 1000)
    state = initial_state(ravel_pytree(split_trainable(model)[0])[0], plan)

    def one_step(x: jax.Array, y: jax.Array, key: jax.Array) -> jax.Array:
        return advance(state, model, Data(x, y), key, plan, 1, 1)[0].parameters

    rows = []
    for n in (10_000, 1_000_000):
        shapes = [jax.ShapeDtypeStruct(shape, jnp.float64) for shape in ((n, 3), (n, 1))]
        compiled = jax.jit(one_step).lower(*shapes, jax.random.key(0)).compile()
        megabytes = compiled.memory_analysis().temp_size_in_bytes / 1e6
        rows.append((f"N = {n:,}, batch 1000, 3 layers", f"{megabytes:.1f} MB of temporaries", "-", "-", "the same"))
    return rows


if __name__ == "__main__":
    header = ("what", "step", "yardstick", "ratio", "bar")
    which = sys.argv[1:] or ["products", "euclidean", "gpytorch", "memory"]
    if "products" in which:
        print_table("A training step against bare matrix products", against_products(), header)
    if "euclidean" in which:
        print_table("A residual step against a Euclidean one (batch 1000, 3 samples)", against_euclidean(), header)
    if "gpytorch" in which:
        print_table("A Euclidean step against GPyTorch 1.15 (one thread)", against_gpytorch(), header)
    if "memory" in which:
        print_table("Memory of a step with minibatches", minibatch_memory(), header)
