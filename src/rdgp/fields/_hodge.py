"""Hodge-compositional Gaussian vector fields."""

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import small_product, standard_normal
from rdgp.fields._field import FieldDraw
from rdgp.fields._latent import HodgeLatent
from rdgp.fields._tangent import TangentField
from rdgp.kernels import Matern
from rdgp.spaces import Space
from rdgp.spectra import HodgeSpectrum, hodge_spectrum


class HodgeField(TangentField):
    """The Hodge-compositional Matérn field: independent gradient (`divergence`), `curl` and `harmonic` parts.

    Each part has its own kernel or is None; `levels` counts the eigenvalues kept of each. The variance of a part is
    E|g|² = σ²; of a harmonic kernel only the variance matters.
    """

    space: Space
    kernels: tuple[Matern, ...]
    spectrum: HodgeSpectrum

    def __init__(
        self,
        space: Space,
        divergence: Matern | None = None,
        curl: Matern | None = None,
        levels: int = 5,
        *,
        harmonic: Matern | None = None,
    ) -> None:
        named = {"gradient": divergence, "curl": curl, "harmonic": harmonic}
        given = {name: kernel for name, kernel in named.items() if kernel is not None}
        wrong = [type(kernel).__name__ for kernel in given.values() if not isinstance(kernel, Matern)]
        if wrong:
            raise ValueError(f"HodgeField takes Matern or Heat kernels, got {', '.join(wrong)}")
        self.space = space
        self.kernels = tuple(given.values())
        self.spectrum = hodge_spectrum(space, levels, tuple(given))

    def _features(self, x: Float[Array, "*N D"]) -> Float[Array, "*N D M"]:
        """Evaluate the eigenfields, part after part."""
        return self.spectrum.features(x)

    def _scales(self) -> Float[Array, "M"]:
        return self.latents[0].scales()

    def _level_scales(self) -> tuple[Float[Array, "_"], ...]:
        return self.latents[0].level_scales

    def covariance_along(
        self,
        x: Float[Array, "N D"],
        y: Float[Array, "L D"],
        along_x: Float[Array, "N D p"],
        along_y: Float[Array, "L D q"],
    ) -> Float[Array, "N p L q"]:
        """Sum the zonal kernels of all parts."""
        weights = tuple(jnp.square(scale) for scale in self._level_scales())
        return self.spectrum.zonal(weights, x, y, along_x, along_y)

    @property
    def latents(self) -> tuple[HodgeLatent]:
        """The field, in components of the space's frame."""
        return (HodgeLatent(self.space, self.spectrum, self.kernels),)

    def assemble(self, x: Float[Array, "N D"], latents: tuple[Float[Array, "N d 1"], ...]) -> Float[Array, "N D"]:
        """Combine the components."""
        return jnp.einsum("ndp,np->nd", self.basis(x), latents[0][..., 0])

    def mixing(
        self, x: Float[Array, "N D"], basis: Float[Array, "N D q"] | None
    ) -> tuple[Float[Array, "N q d 1"]] | None:
        """Return the components of the space's frame in the basis."""
        return None if basis is None else (small_product(basis, self.basis(x))[..., None],)

    def evaluate(
        self,
        carriers: tuple[Float[Array, "..."], ...],
        x: Float[Array, "N D"],
        weights: tuple[Float[Array, "1 m"], ...],
    ) -> Float[Array, "N D"]:
        """Combine the eigenfields, no frame needed."""
        return self.latents[0].vectors(carriers[0], x, weights[0][0])

    def squares(self, x: Float[Array, "N D"], factors: tuple[Float[Array, "1 m m"], ...]) -> Float[Array, "N"]:
        """Return the total variance, no frame needed."""
        return self.spectrum.squares(x, self.scales()[:, None] * factors[0][0])

    def sample(self, *, key: PRNGKeyArray) -> FieldDraw:
        """Draw a vector field x [N, D] -> [N, D]."""
        scales = self.scales()
        return _HodgeDraw(self.spectrum, scales * standard_normal(key, scales.shape))


class _HodgeDraw(eqx.Module):
    spectrum: HodgeSpectrum
    coefficients: Float[Array, "M"]

    @eqx.filter_jit
    def __call__(self, x: Float[Array, "*N D"]) -> Float[Array, "*N D"]:
        return self.spectrum.combine(self.spectrum.carriers(x), x, self.coefficients.astype(x.dtype))
