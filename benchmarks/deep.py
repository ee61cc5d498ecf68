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

from rdgp import (  # noqa: E402
    DeepGP,
    Gaussian,
    HodgeField,
    Interdomain,
    Matern,
    ProjectedField,
    ScalarField,
    Sphere,
    euclidean_deep_gp,
)
from rdgp.core import split_trainable  # noqa: E402
from rdgp.inference import Batch, elbo  # noqa: E402
from rdgp.inference._data import batch_of, first_carriers  # noqa: E402
from rdgp.inference._fit import _model  # noqa: E402

SAMPLES = 3


def step(model: DeepGP, x: jax.Array, y: jax.Array) -> Callable[[], Any]:
    """Return a function that computes the bound and its gradient in all parameters."""
    vector = ravel_pytree(split_trainable(model)[0])[0]
    coordinates, carriers = model.coordinates(x, y), first_carriers(model, x)

    @jax.jit
    def value_and_gradient(vector: jax.Array, x: jax.Array, y: jax.Array, carriers: Any, key: jax.Array) -> Any:
        def bound(vector: jax.Array) -> jax.Array:
            return elbo(_model(model, vector), Batch(x, y, carriers, x.shape[0]), key, SAMPLES)

        return jax.value_and_grad(bound)(vector)

    return lambda: value_and_gradient(vector, x, coordinates, carriers, jax.random.key(0))


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


def hodge(levels: int) -> Interdomain:
    return Interdomain(HodgeField(Sphere(2), Matern(variance=0.01), Matern(variance=0.01), levels=levels))


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
            output = hodge(fields) if tangent else Interdomain(ScalarField(Sphere(2), Matern(), levels=7))
            model = residual(layers, lambda fields=fields: hodge(fields), output)
            m = 2 * fields * (fields + 2)
            shapes = [(2 * n * (1 if i == 0 else SAMPLES), m) for i in range(layers - 1)]
            shapes.append((2 * n * SAMPLES, m) if tangent else (n * SAMPLES, 49))
            rivals = {"step": step(model, x, y), "products": products(shapes)}
            compilation = first_call(rivals["step"])
            ms = interleaved(rivals, repetitions=10)
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
    """Compare residual steps on S_d with Euclidean ones: batch 1000, as many harmonics as locations."""
    rows = []
    for d, levels, m in ((4, 7, 336), (6, 5, 294), (8, 4, 210)):
        x = Sphere(d).random(1000, key=jax.random.key(1))
        y = jnp.cos(3 * x[:, 0])
        for layers in (2, 3, 5):
            field = ProjectedField(Sphere(d), Matern(variance=0.01), levels=levels)
            output = Interdomain(ScalarField(Sphere(d), Matern(), levels=levels))
            model = residual(layers, lambda field=field: Interdomain(field), output)
            count = scalar_size(output)
            rival = euclidean_deep_gp(d, layers, m, x=x[:, :d])
            rivals = {"residual": step(model, x, y), "euclidean": step(rival, x[:, :d], y)}
            compilation = [first_call(run) for run in rivals.values()]
            ms = interleaved(rivals, repetitions=4)
            print(f"S_{d}, {layers} layers: {ms}", file=sys.stderr, flush=True)
            rows.append(
                (
                    f"S_{d}, {layers} layers, {count} harmonics, {m} locations",
                    f"{ms['residual']:.0f} ms ({compilation[0]:.1f} s)",
                    f"{ms['euclidean']:.0f} ms ({compilation[1]:.1f} s)",
                    f"{ms['euclidean'] / ms['residual']:.1f}x faster",
                    "at least 5x",
                )
            )
    return rows


def against_gpytorch() -> list[tuple[str, ...]]:
    """Compare steps of the Euclidean deep Gaussian process with GPyTorch's: N = 1600, d = 3, 49 locations."""
    from rival import gpytorch_step

    x = jax.random.normal(jax.random.key(0), (1600, 3))
    y = jnp.cos(3 * x[:, 0])
    rows = []
    for layers in (2, 3):
        model = euclidean_deep_gp(3, layers, 49, x=x)
        z = np.asarray(model.output.z)
        rivals = {
            "ours": step(model, x, y),
            "theirs": gpytorch_step(np.asarray(x), np.asarray(y), z, layers, SAMPLES),
        }
        compilation = [first_call(run) for run in rivals.values()]
        ms = interleaved(rivals, repetitions=10)
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
    model = residual(3, lambda: hodge(5), Interdomain(ScalarField(Sphere(2), Matern(), levels=7)))
    vector = ravel_pytree(split_trainable(model)[0])[0]

    def bound(vector: jax.Array, x: jax.Array, y: jax.Array, key: jax.Array) -> jax.Array:
        batch = batch_of(Batch(x, y, None, x.shape[0]), 1000, key, distinct=False)
        return elbo(_model(model, vector), batch, key, SAMPLES)

    rows = []
    for n in (10_000, 1_000_000):
        shapes = [jax.ShapeDtypeStruct(shape, jnp.float64) for shape in ((n, 3), (n, 1, 1))]
        compiled = jax.jit(jax.value_and_grad(bound)).lower(vector, *shapes, jax.random.key(0)).compile()
        megabytes = compiled.memory_analysis().temp_size_in_bytes / 1e6
        rows.append((f"N = {n:,}, batch 1000, 3 layers", f"{megabytes:.1f} MB of temporaries", "-", "-", "the same"))
    return rows


def scalar_size(family: Interdomain) -> int:
    return int(np.asarray(family.field.scales()).size)


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
