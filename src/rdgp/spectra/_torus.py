"""Spectra of the flat torus: trigonometric functions of integer frequencies, in whole shells |m|² = const."""

import itertools
from functools import lru_cache

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from rdgp.core import check_count, orthogonal_complement, register
from rdgp.spaces import Torus
from rdgp.spectra._harmonics import circle_powers
from rdgp.spectra._spectrum import (
    HodgePart,
    HodgeSpectrum,
    ScalarSpectrum,
    by_tiles,
    check_parts,
    hodge_parts,
    hodge_spectrum,
    scalar_spectrum,
)


@lru_cache(maxsize=64)
def _frequencies(n: int, num_levels: int) -> tuple[Int[np.ndarray, "F n"], Int[np.ndarray, "F"]]:
    """Return the frequencies of the lowest shells, one of each pair ±m, sorted by shell, and each one's level."""
    largest = 0
    while True:  # every shell up to largest² lies wholly within |m_i| <= largest
        grid = np.array(list(itertools.product(range(-largest, largest + 1), repeat=n)))
        squared = (grid**2).sum(axis=1)
        shells = np.unique(squared[squared <= largest**2])
        if shells.size >= num_levels:
            break
        largest += 1
    first_nonzero = np.array([next((value for value in m if value), 0) for m in grid])
    keep = (first_nonzero > 0) | (squared == 0)
    grid, squared = (
        grid[keep & (squared <= shells[num_levels - 1])],
        squared[keep & (squared <= shells[num_levels - 1])],
    )
    order = np.argsort(squared, kind="stable")
    return grid[order], np.searchsorted(shells, squared[order])


def _cosines_and_sines(x: Float[Array, "N D"], frequencies: Int[np.ndarray, "F n"]) -> tuple[Array, Array]:
    """Return √2 cos(m·θ) and √2 sin(m·θ) as products of powers of (cos θ_i, sin θ_i): no angle is computed."""
    largest = int(np.abs(frequencies).max(initial=0))
    cosine = jnp.full((frequencies.shape[0], x.shape[0]), np.sqrt(2.0), x.dtype)
    sine = jnp.zeros_like(cosine)
    for i in range(frequencies.shape[1]):
        c, s = circle_powers(x[:, 2 * i], x[:, 2 * i + 1], largest)
        m = frequencies[:, i]
        c, s = c[np.abs(m)], jnp.asarray(np.sign(m), x.dtype)[:, None] * s[np.abs(m)]
        cosine, sine = cosine * c - sine * s, cosine * s + sine * c
    return cosine, sine


def _interleave(first: Float[Array, "*s F N"], second: Float[Array, "*s F N"]) -> Float[Array, "*s G N"]:
    pairs = jnp.stack([first, second], axis=-2)
    return pairs.reshape(*first.shape[:-2], 2 * first.shape[-2], first.shape[-1])


@register("rdgp:TorusSpectrum")
class TorusSpectrum(ScalarSpectrum):
    """1 and √2 cos(m·θ), √2 sin(m·θ) for the integer frequencies of the lowest shells."""

    n: int = eqx.field(static=True)
    num_levels: int = eqx.field(static=True)

    @property
    def eigenvalues(self) -> Float[np.ndarray, "K"]:
        """λ = |m|²."""
        frequencies, level = _frequencies(self.n, self.num_levels)
        return (frequencies[np.searchsorted(level, np.arange(self.num_levels))] ** 2).sum(axis=1).astype(float)

    @property
    def multiplicities(self) -> Int[np.ndarray, "K"]:
        """Number of integer vectors on each shell."""
        _, level = _frequencies(self.n, self.num_levels)
        return np.where(np.arange(self.num_levels) == 0, 1, 2) * np.bincount(level, minlength=self.num_levels)

    @property
    def homogeneous(self) -> bool:
        """True: cos² + sin² = 1."""
        return True

    @eqx.filter_jit
    def features(self, x: Float[Array, "*N D"]) -> Float[Array, "*N M"]:
        """Evaluate them, sorted by shell."""
        return by_tiles(self._rows, x)

    def lowest_features(self, x: Float[Array, "*N D"], num_levels: int) -> Float[Array, "*N m"]:
        """Evaluate those of the lowest shells."""
        return TorusSpectrum(self.n, min(num_levels, self.num_levels)).features(x)

    def _rows(self, x: Float[Array, "N D"]) -> Float[Array, "M N"]:
        frequencies, _ = _frequencies(self.n, self.num_levels)
        return jnp.concatenate(
            [jnp.ones((1, x.shape[0]), x.dtype), _interleave(*_cosines_and_sines(x, frequencies[1:]))]
        )


@register("rdgp:TorusHodgeSpectrum")
class TorusHodgeSpectrum(HodgeSpectrum):
    """Trigonometric functions times constant directions.

    Along the frequency they are gradient fields, across it curl fields; constants are harmonic.
    """

    n: int = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    num_levels: int = eqx.field(static=True)

    @property
    def parts(self) -> tuple[HodgePart, ...]:
        """λ = |m|² for gradients and curls, 0 for the n harmonic fields."""
        scalar = TorusSpectrum(self.n, self.num_levels + 1)
        values, counts = scalar.eigenvalues[1:], scalar.multiplicities[1:]
        every = {
            "gradient": HodgePart.simple("gradient", values, counts),
            "curl": HodgePart.simple("curl", values, (self.n - 1) * counts),
            "harmonic": HodgePart.simple("harmonic", np.zeros(1), np.array([self.n])),
        }
        return tuple(every[name] for name in self.names)

    @property
    def isotropic_dim(self) -> int:
        """The dimension n: whole shells are isotropic."""
        return self.n

    @eqx.filter_jit
    def features(self, x: Float[Array, "*N D"]) -> Float[Array, "*N D M"]:
        """Evaluate the eigenfields."""
        return by_tiles(self._rows, x)

    def lowest_features(self, x: Float[Array, "*N D"], num_levels: int) -> Float[Array, "*N D m"]:
        """Evaluate those of the lowest shells."""
        return TorusHodgeSpectrum(self.n, self.names, min(num_levels, self.num_levels)).features(x)

    def _rows(self, x: Float[Array, "N D"]) -> Float[Array, "D M N"]:
        frequencies = _frequencies(self.n, self.num_levels + 1)[0][1:]
        rows = {"gradient": self._gradient_rows, "curl": self._curl_rows, "harmonic": self._harmonic_rows}
        angular = jnp.concatenate([rows[name](x, frequencies) for name in self.names], axis=1)  # [n, M, N]
        direction = x.reshape(-1, self.n, 2)[:, :, ::-1] * jnp.array([-1.0, 1.0], x.dtype)  # ∂x/∂θ_i
        return jnp.einsum("imp,pic->icmp", angular, direction).reshape(2 * self.n, -1, x.shape[0])

    def _gradient_rows(self, x: Float[Array, "N D"], frequencies: Int[np.ndarray, "F n"]) -> Float[Array, "n M N"]:
        unit = frequencies / np.linalg.norm(frequencies, axis=1, keepdims=True)
        cosine, sine = _cosines_and_sines(x, frequencies)
        return jnp.asarray(np.repeat(unit, 2, axis=0).T, x.dtype)[:, :, None] * _interleave(-sine, cosine)

    def _curl_rows(self, x: Float[Array, "N D"], frequencies: Int[np.ndarray, "F n"]) -> Float[Array, "n M N"]:
        functions = _interleave(*_cosines_and_sines(x, frequencies)).reshape(-1, 1, 2, x.shape[0])  # [F, 1, 2, N]
        across = jnp.asarray(
            np.array([orthogonal_complement(m) for m in frequencies.astype(float)]), x.dtype
        )  # [F, n, n - 1]
        fields = jnp.moveaxis(across, 1, 0)[:, :, :, None, None] * functions
        return fields.reshape(self.n, -1, x.shape[0])

    def _harmonic_rows(self, x: Float[Array, "N D"], _: Int[np.ndarray, "F n"]) -> Float[Array, "n M N"]:
        return jnp.broadcast_to(jnp.eye(self.n, dtype=x.dtype)[:, :, None], (self.n, self.n, x.shape[0]))


@scalar_spectrum.register
def _(space: Torus, num_levels: int) -> TorusSpectrum:
    return TorusSpectrum(space.n, check_count(num_levels, "num_levels"))


@hodge_parts.register
def _(space: Torus) -> tuple[str, ...]:
    return ("gradient", "harmonic") if space.n == 1 else ("gradient", "curl", "harmonic")


@hodge_spectrum.register
def _(space: Torus, num_levels: int, parts: tuple[str, ...]) -> TorusHodgeSpectrum:
    check_parts(space, parts)
    return TorusHodgeSpectrum(space.n, parts, check_count(num_levels, "num_levels"))
