"""Scalar spectra of the spheres S_d and of the rotations S_3 / ±1, which keep every other degree."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from rdgp.core import check_count, register
from rdgp.spaces import Rotations, Sphere
from rdgp.spectra._addition import gegenbauer_sum
from rdgp.spectra._harmonics import harmonics, num_harmonics
from rdgp.spectra._spectrum import ScalarSpectrum, ambient_spectra, by_tiles, scalar_spectrum
from rdgp.spectra._synthesis import sum_harmonics


@register("rdgp:SphereSpectrum")
class SphereSpectrum(ScalarSpectrum):
    """Spherical harmonics of the given degrees on S_d."""

    d: int = eqx.field(static=True)
    degrees: tuple[int, ...] = eqx.field(static=True)

    @property
    def eigenvalues(self) -> Float[np.ndarray, "K"]:
        """λ = k (k + d - 1)."""
        return np.array([float(k * (k + self.d - 1)) for k in self.degrees])

    @property
    def multiplicities(self) -> Int[np.ndarray, "K"]:
        """Number of harmonics of each degree."""
        return np.array([num_harmonics(self.d, k) for k in self.degrees])

    @property
    def homogeneous(self) -> bool:
        """True, by the addition theorem."""
        return True

    @property
    def degree(self) -> int | None:
        """The highest degree on S_2."""
        return max(self.degrees) if self.d == 2 else None

    @eqx.filter_jit
    def features(self, x: Float[Array, "*N D"]) -> Float[Array, "*N M"]:
        """Evaluate the harmonics, sorted by degree."""
        return by_tiles(lambda tile: harmonics(tile, self.degrees), x)

    def lowest_features(self, x: Float[Array, "*N D"], num_levels: int) -> Float[Array, "*N m"]:
        """Evaluate the harmonics of the lowest degrees."""
        return SphereSpectrum(self.d, self.degrees[:num_levels]).features(x)

    def synthesize(
        self, features: Float[Array, "*N M"], x: Float[Array, "*N D"], coefficients: Float[Array, "M q"]
    ) -> Float[Array, "*N q"]:
        """Return sums of the harmonics; their derivatives in x are such sums again."""
        return sum_harmonics(features, x, coefficients, self.degrees)

    @eqx.filter_jit
    def kernel(self, weights: Float[Array, "K"], x: Float[Array, "N D"], y: Float[Array, "L D"]) -> Float[Array, "N L"]:
        """Return sum_k w_k N_k G_k(x·y)."""
        return gegenbauer_sum(by_degree(weights, self.d, self.degrees).astype(x.dtype), x @ y.T, self.d)


def by_degree(weights: Float[Array, "K"], d: int, degrees: tuple[int, ...]) -> Float[Array, "_"]:
    """Turn weights of zonal functions Z_k into weights of G_0, G_1, ...: Z_k = N_k G_k."""
    count = np.array([num_harmonics(d, k) for k in degrees], dtype=float)
    return (
        jnp.zeros(max(degrees) + 1, weights.dtype)
        .at[np.array(degrees)]
        .set(weights * jnp.asarray(count, weights.dtype))
    )


@scalar_spectrum.register
def _(space: Sphere, num_levels: int) -> SphereSpectrum:
    return SphereSpectrum(space.d, tuple(range(check_count(num_levels, "num_levels"))))


@scalar_spectrum.register
def _(space: Rotations, num_levels: int) -> SphereSpectrum:
    """Keep the even degrees: functions of a rotation take the same value at q and -q."""
    return SphereSpectrum(3, tuple(range(0, 2 * check_count(num_levels, "num_levels"), 2)))


@ambient_spectra.register
def _(space: Rotations, num_levels: int) -> tuple[SphereSpectrum, ...]:
    """Keep the odd degrees: a vector at q is minus that vector at -q."""
    return (SphereSpectrum(3, tuple(range(1, 2 * check_count(num_levels, "num_levels"), 2))),)
