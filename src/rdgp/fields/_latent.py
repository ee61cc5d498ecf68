"""Independent processes of which a field is made, the view that inference has of it."""

from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from rdgp.core import small_product, standard_normal
from rdgp.fields._prior import ScalarDraw, ScalarPrior
from rdgp.kernels import Matern
from rdgp.spaces import Space
from rdgp.spectra import HodgeSpectrum


class Latent(eqx.Module):
    """r independent copies of a Gaussian process with p correlated numbers at a point.

    Every field is a linear image of one or more of these. Where the space has a spectrum, a copy with weights w has the
    values features(x) @ (scales * w).
    """

    @property
    @abstractmethod
    def copies(self) -> int:
        """Number r of independent copies."""

    @property
    @abstractmethod
    def width(self) -> int:
        """Number p of correlated numbers at a point."""

    @property
    @abstractmethod
    def spectral(self) -> bool:
        """Whether features exist, so that draws are exact."""

    @abstractmethod
    def features(self, x: Float[Array, "N D"]) -> Float[Array, "N p m"]:
        """Evaluate the features shared by all copies."""

    @abstractmethod
    def scales(self) -> Float[Array, "m"]:
        """Return the prior standard deviations of the features' coefficients."""

    @abstractmethod
    def levels(self) -> Int[np.ndarray, "m"]:
        """Return the level of each feature, numbered from the lowest; parts of a Hodge field are numbered alike."""

    @abstractmethod
    def carriers(self, x: Float[Array, "N D"]) -> Float[Array, "..."]:
        """Evaluate what `evaluate` needs of the points alone."""

    @abstractmethod
    def evaluate(
        self, carriers: Float[Array, "..."], x: Float[Array, "N D"], weights: Float[Array, "r m"]
    ) -> Float[Array, "N p r"]:
        """Evaluate the copies with given whitened weights, without forming features where that is cheaper."""

    @abstractmethod
    def covariance(self, x: Float[Array, "N D"], y: Float[Array, "L D"]) -> Float[Array, "N p L p"]:
        """Return the covariance of one copy."""

    @abstractmethod
    def draw(self, *, key: PRNGKeyArray) -> "LatentDraw":
        """Draw all copies from the prior, as one function."""

    def variance(self, x: Float[Array, "N D"]) -> Float[Array, "N p p"]:
        """Return the covariance of one copy at each point alone."""
        return jax.vmap(lambda point: self.covariance(point[None], point[None])[0, :, 0, :])(x)


class LatentDraw(eqx.Module):
    """A function x [N, D] -> [N, p, r]."""

    @abstractmethod
    def __call__(self, x: Float[Array, "N D"]) -> Float[Array, "N p r"]:
        """Evaluate the drawn copies."""


class ScalarLatent(Latent):
    """Copies of a scalar process."""

    prior: ScalarPrior
    num: int = eqx.field(static=True)

    @property
    def copies(self) -> int:
        """As many as asked for."""
        return self.num

    @property
    def width(self) -> int:
        """One number at a point."""
        return 1

    @property
    def spectral(self) -> bool:
        """True off Euclidean space."""
        return self.prior.spectral

    def features(self, x: Float[Array, "N D"]) -> Float[Array, "N 1 m"]:
        """Evaluate the eigenfunctions."""
        return self.prior.features(x)[:, None, :]

    def scales(self) -> Float[Array, "m"]:
        """Return the scales of the prior."""
        return self.prior.scales()

    def levels(self) -> Int[np.ndarray, "m"]:
        """Return the level of each eigenfunction."""
        return self.prior.levels()

    def carriers(self, x: Float[Array, "N D"]) -> Float[Array, "N m"]:
        """Evaluate the eigenfunctions."""
        return self.prior.features(x)

    def evaluate(
        self, carriers: Float[Array, "N m"], x: Float[Array, "N D"], weights: Float[Array, "r m"]
    ) -> Float[Array, "N 1 r"]:
        """Combine the eigenfunctions."""
        return self.prior.combine(carriers, x, (self.scales() * weights).astype(x.dtype).T)[:, None, :]

    def covariance(self, x: Float[Array, "N D"], y: Float[Array, "L D"]) -> Float[Array, "N 1 L 1"]:
        """Return the kernel."""
        return self.prior.covariance(x, y)[:, None, :, None]

    def draw(self, *, key: PRNGKeyArray) -> LatentDraw:
        """Draw the copies; on Euclidean space by random waves."""
        return _ScalarLatentDraw(self.prior.draw(self.copies, key=key))


class _ScalarLatentDraw(LatentDraw):
    functions: ScalarDraw

    def __call__(self, x: Float[Array, "N D"]) -> Float[Array, "N 1 r"]:
        return self.functions(x)[:, None, :]


class HodgeLatent(Latent):
    """A Hodge field, in components of the space's frame."""

    space: Space
    spectrum: HodgeSpectrum
    kernels: tuple[Matern, ...]

    @property
    def level_scales(self) -> tuple[Float[Array, "_"], ...]:
        """The prior standard deviation of a coefficient of each level, part by part."""
        return tuple(
            kernel.level_scales(part.eigenvalues, part.multiplicities, self.space.dim)
            for kernel, part in zip(self.kernels, self.spectrum.parts, strict=True)
        )

    @property
    def copies(self) -> int:
        """One field."""
        return 1

    @property
    def width(self) -> int:
        """As many numbers as the space has dimensions."""
        return self.space.dim

    @property
    def spectral(self) -> bool:
        """Always true."""
        return True

    def features(self, x: Float[Array, "N D"]) -> Float[Array, "N p m"]:
        """Evaluate the eigenfields in the frame."""
        return small_product(self.space.frame(x), self.spectrum.features(x))

    def scales(self) -> Float[Array, "m"]:
        """Return the scales of all parts."""
        parts = zip(self.level_scales, self.spectrum.parts, strict=True)
        return jnp.concatenate([scale[part.level_of_feature()] for scale, part in parts])

    def levels(self) -> Int[np.ndarray, "m"]:
        """Return the level of each eigenfield in its part."""
        return np.concatenate([part.level_of_feature() for part in self.spectrum.parts])

    def carriers(self, x: Float[Array, "N D"]) -> Float[Array, "..."]:
        """Evaluate what sums of eigenfields need."""
        return self.spectrum.carriers(x)

    def evaluate(
        self, carriers: Float[Array, "..."], x: Float[Array, "N D"], weights: Float[Array, "1 m"]
    ) -> Float[Array, "N p 1"]:
        """Combine the eigenfields and take components."""
        return jnp.einsum("ndp,nd->np", self.space.frame(x), self.vectors(carriers, x, weights[0]))[..., None]

    def vectors(
        self, carriers: Float[Array, "..."], x: Float[Array, "N D"], weights: Float[Array, "m"]
    ) -> Float[Array, "N D"]:
        """Combine the eigenfields into ambient vectors."""
        return self.spectrum.combine(carriers, x, (self.scales() * weights).astype(x.dtype))

    def covariance(self, x: Float[Array, "N D"], y: Float[Array, "L D"]) -> Float[Array, "N p L p"]:
        """Sum the zonal kernels of all parts."""
        weights = tuple(jnp.square(scale) for scale in self.level_scales)
        return self.spectrum.zonal(weights, x, y, self.space.frame(x), self.space.frame(y))

    def draw(self, *, key: PRNGKeyArray) -> LatentDraw:
        """Draw the field."""
        return _HodgeLatentDraw(self, standard_normal(key, (1, self.spectrum.num_features)))


class _HodgeLatentDraw(LatentDraw):
    latent: HodgeLatent
    weights: Float[Array, "1 m"]

    def __call__(self, x: Float[Array, "N D"]) -> Float[Array, "N p 1"]:
        return self.latent.evaluate(self.latent.carriers(x), x, self.weights)
