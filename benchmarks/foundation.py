"""Speed of features, kernels and spectra, against GeometricKernels where it has the same thing.

Ratios of CPU times of one interleaved run; compilation apart. Run with `make bench`.
"""

import logging
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from timing import first_call, interleaved, print_table

jax.config.update("jax_enable_x64", True)
logging.getLogger("geometric_kernels").setLevel(logging.ERROR)

import geometric_kernels.jax  # noqa: E402, F401 - switches its back end on
from geometric_kernels.kernels import MaternKarhunenLoeveKernel  # noqa: E402
from geometric_kernels.spaces import Hypersphere  # noqa: E402

from rdgp.fields import HodgeField, ScalarField  # noqa: E402
from rdgp.kernels import Matern  # noqa: E402
from rdgp.spaces import Sphere  # noqa: E402
from rdgp.spectra import hodge_spectrum, scalar_spectrum  # noqa: E402

LEVELS, BATCH, SIZE = 13, 4800, 1000  # degrees 0..12
SPACE = Sphere(2)


def value_and_pullback(function: Callable[[jax.Array], jax.Array]) -> Callable[..., Any]:
    @jax.jit
    def run(x: jax.Array, cotangent: jax.Array) -> tuple[jax.Array, jax.Array]:
        value, pullback = jax.vjp(function, x)
        return value, pullback(cotangent)[0]

    return run


def features() -> list[tuple[str, ...]]:
    """Time features forward and backward: scalar, theirs, and Hodge."""
    x = SPACE.random(BATCH, key=jax.random.key(0))
    theirs = Hypersphere(2).get_eigenfunctions(LEVELS)
    functions = {
        "scalar": scalar_spectrum(SPACE, LEVELS).features,
        "theirs": lambda x: theirs(x),
        "hodge": hodge_spectrum(SPACE, LEVELS - 1, ("gradient", "curl")).features,
    }
    runs, compilation, count = {}, {}, {}
    for name, function in functions.items():
        run, shape = value_and_pullback(function), jax.eval_shape(function, x).shape
        cotangent = jax.random.normal(jax.random.key(1), shape)
        compilation[name], count[name] = first_call(run, x, cotangent), shape[-1]
        runs[name] = lambda run=run, cotangent=cotangent: run(x, cotangent)
    ms = interleaved({name: runs[name] for name in ("scalar", "theirs")})  # apart: large arrays empty the cache
    ms |= interleaved({name: runs[name] for name in ("hodge",)})
    per_feature = (ms["hodge"] / count["hodge"]) / (ms["scalar"] / count["scalar"])
    return [
        (
            f"S_2 features, degree 12, B = {BATCH}, forward + vjp",
            f"{ms['scalar']:.1f} ms ({compilation['scalar']:.1f} s)",
            f"{ms['theirs']:.1f} ms ({compilation['theirs']:.1f} s)",
            f"{ms['theirs'] / ms['scalar']:.2f}x faster",
            "at least 1x",
        ),
        (
            f"Hodge features ({count['hodge']} fields), the same",
            f"{ms['hodge']:.1f} ms ({compilation['hodge']:.1f} s)",
            f"scalar: {ms['scalar']:.1f} ms",
            f"{per_feature:.2f}x the scalar ones per feature",
            "at most 3.5x",
        ),
    ]


def covariance() -> tuple[str, ...]:
    """Time a covariance matrix and look at its temporary memory."""
    x = SPACE.random(SIZE, key=jax.random.key(0))
    field = ScalarField(SPACE, Matern(1.5, 1.0), num_levels=LEVELS)
    kernel = MaternKarhunenLoeveKernel(Hypersphere(2), LEVELS)
    numbers = {"nu": jnp.array([1.5]), "lengthscale": jnp.array([1.0])}
    ours, theirs = jax.jit(lambda x, y: field.covariance(x, y)), jax.jit(lambda x, y: kernel.K(numbers, x, y))
    compilation = [first_call(run, x, x) for run in (ours, theirs)]
    ms = interleaved({"ours": lambda: ours(x, x), "theirs": lambda: theirs(x, x)}, repetitions=10)
    memory = ours.lower(x, x).compile().memory_analysis().temp_size_in_bytes / (8 * SIZE**2)
    return (
        f"Matérn covariance {SIZE} x {SIZE} on S_2, degree 12",
        f"{ms['ours']:.1f} ms ({compilation[0]:.1f} s)",
        f"{ms['theirs']:.1f} ms ({compilation[1]:.1f} s)",
        f"{ms['theirs'] / ms['ours']:.0f}x faster, temporaries {memory:.2f}x the result",
        "at least 20x, under 3x",
    )


def construction() -> tuple[str, ...]:
    """Time building the spectrum of S_9 to degree 6 and evaluating its kernel and its features once."""
    seconds = first_call(lambda: scalar_spectrum(Sphere(9), 7).num_features)
    x = Sphere(9).random(100, key=jax.random.key(0))
    spectrum = scalar_spectrum(Sphere(9), 7)
    kernel = first_call(spectrum.kernel, jnp.ones(7), x, x)
    evaluated = first_call(spectrum.features, x)
    return (
        f"Sphere(9), scalar spectrum to degree 6 ({spectrum.num_features} harmonics)",
        f"{seconds:.3f} s",
        "-",
        f"first kernel {kernel:.1f} s, first features {evaluated:.1f} s",
        "under 5 s",
    )


def derivatives() -> tuple[str, ...]:
    """Time Hodge features with their derivative along a direction, what a second hidden layer needs."""
    x = SPACE.random(BATCH, key=jax.random.key(0))
    v = SPACE.project(x, jax.random.normal(jax.random.key(1), x.shape))
    field = HodgeField(SPACE, Matern(), Matern(), num_levels=LEVELS - 1)
    value, both = jax.jit(lambda x: field.features(x)), jax.jit(lambda x, v: jax.jvp(field.features, (x,), (v,)))
    compilation = [first_call(value, x), first_call(both, x, v)]
    ms = interleaved({"value": lambda: value(x), "both": lambda: both(x, v)})
    return (
        "Hodge features with a directional derivative (analytic)",
        f"{ms['both']:.1f} ms ({compilation[1]:.1f} s)",
        f"value alone: {ms['value']:.1f} ms",
        f"{ms['both'] / ms['value']:.2f}x the value alone",
        "-",
    )


if __name__ == "__main__":
    table = [*features(), derivatives(), covariance(), construction()]
    print_table(
        "Foundation (CPU time of a run, first call with compilation in brackets)",
        table,
        ("what", "rdgp", "GeometricKernels or yardstick", "ratio", "bar"),
    )
