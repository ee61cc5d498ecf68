"""Independent processes of which a field is made, the view that inference has of it."""

from abc import abstractmethod
from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from rdgp.core import register
from rdgp.fields._prior import ScalarDraw, ScalarPrior


class Levels(NamedTuple):
    """Part and level of each feature; parts of a Hodge field count their levels each on its own."""

    part: Int[np.ndarray, "m"]
    level: Int[np.ndarray, "m"]

    @property
    def num_parts(self) -> int:
        """How many parts there are."""
        return int(self.part.max()) + 1

    @property
    def num_levels(self) -> int:
        """How many levels the largest part has."""
        return int(self.level.max()) + 1


class Process(eqx.Module):
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
    def has_features(self) -> bool:
        """Whether features exist, so that draws are exact."""

    @property
    @abstractmethod
    def num_features(self) -> int:
        """Number m of features."""

    @property
    @abstractmethod
    def levels(self) -> Levels:
        """Part and level of each feature."""

    @property
    @abstractmethod
    def degree(self) -> int | None:
        """The degree of the features as polynomials on S_2, before projection; None elsewhere."""

    @abstractmethod
    def features(self, x: Float[Array, "N D"]) -> Float[Array, "N p m"]:
        """Evaluate the features shared by all copies."""

    def lowest_features(self, x: Float[Array, "N D"], num_levels: int) -> Float[Array, "N p _"]:
        """Evaluate the features of the lowest levels of each part."""
        return self.features(x)[..., self.levels.level < num_levels]

    @abstractmethod
    def scales(self) -> Float[Array, "m"]:
        """Return the prior standard deviations of the features' coefficients."""

    @abstractmethod
    def basis(self, x: Float[Array, "N D"]) -> Float[Array, "..."]:
        """Evaluate what `evaluate` needs of the points alone."""

    @abstractmethod
    def evaluate(
        self, basis: Float[Array, "..."], x: Float[Array, "N D"], weights: Float[Array, "r m"]
    ) -> Float[Array, "N p r"]:
        """Evaluate the copies with given whitened weights, without forming features where that is cheaper."""

    @abstractmethod
    def covariance(self, x: Float[Array, "N D"], y: Float[Array, "L D"]) -> Float[Array, "N p L p"]:
        """Return the covariance of one copy."""

    @abstractmethod
    def variance(self, x: Float[Array, "N D"]) -> Float[Array, "N p p"]:
        """Return the covariance of one copy at each point alone."""

    @abstractmethod
    def tail_covariance(
        self, factors: Float[Array, "parts t"], x: Float[Array, "N D"], y: Float[Array, "L D"]
    ) -> Float[Array, "N p L p"]:
        """Return the covariance of the last t levels alone, the variances of each part and level times a factor."""

    @abstractmethod
    def tail_variance(self, factors: Float[Array, "parts t"], x: Float[Array, "N D"]) -> Float[Array, "N p p"]:
        """Return the tail's covariance at each point alone."""

    @abstractmethod
    def draw(self, *, key: PRNGKeyArray) -> "ProcessDraw":
        """Draw all copies from the prior, as one function."""


class ProcessDraw(eqx.Module):
    """A function x [N, D] -> [N, p, r]."""

    @abstractmethod
    def __call__(self, x: Float[Array, "N D"]) -> Float[Array, "N p r"]:
        """Evaluate the drawn copies."""


@register("rdgp:ScalarProcess")
class ScalarProcess(Process):
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
    def has_features(self) -> bool:
        """Whether the space has a discrete spectrum."""
        return self.prior.has_features

    @property
    def num_features(self) -> int:
        """Number of eigenfunctions."""
        return self.prior.level_of_feature.size

    @property
    def levels(self) -> Levels:
        """The level of each eigenfunction, in one part."""
        level = self.prior.level_of_feature
        return Levels(np.zeros_like(level), level)

    @property
    def degree(self) -> int | None:
        """That of the eigenfunctions."""
        return self.prior.degree

    def features(self, x: Float[Array, "N D"]) -> Float[Array, "N 1 m"]:
        """Evaluate the eigenfunctions."""
        return self.prior.features(x)[:, None, :]

    def lowest_features(self, x: Float[Array, "N D"], num_levels: int) -> Float[Array, "N 1 _"]:
        """Evaluate the eigenfunctions of the lowest levels."""
        return self.prior.lowest_features(x, num_levels)[:, None, :]

    def scales(self) -> Float[Array, "m"]:
        """Return the scales of the prior."""
        return self.prior.scales()

    def basis(self, x: Float[Array, "N D"]) -> Float[Array, "N m"]:
        """Evaluate the eigenfunctions."""
        return self.prior.features(x)

    def evaluate(
        self, basis: Float[Array, "N m"], x: Float[Array, "N D"], weights: Float[Array, "r m"]
    ) -> Float[Array, "N 1 r"]:
        """Combine the eigenfunctions."""
        return self.prior.synthesize(basis, x, (self.scales() * weights).astype(x.dtype).T)[:, None, :]

    def covariance(self, x: Float[Array, "N D"], y: Float[Array, "L D"]) -> Float[Array, "N 1 L 1"]:
        """Return the kernel."""
        return self.prior.covariance(x, y)[:, None, :, None]

    def variance(self, x: Float[Array, "N D"]) -> Float[Array, "N 1 1"]:
        """Return the kernel at equal points."""
        return self.prior.variance(x)[:, None, None]

    def tail_covariance(
        self, factors: Float[Array, "1 t"], x: Float[Array, "N D"], y: Float[Array, "L D"]
    ) -> Float[Array, "N 1 L 1"]:
        """Return the kernel of the tail."""
        return self.prior.tail_covariance(factors[0], x, y)[:, None, :, None]

    def tail_variance(self, factors: Float[Array, "1 t"], x: Float[Array, "N D"]) -> Float[Array, "N 1 1"]:
        """Return the variance of the tail."""
        return self.prior.tail_variance(factors[0], x)[:, None, None]

    def draw(self, *, key: PRNGKeyArray) -> ProcessDraw:
        """Draw the copies; without a spectrum by random features."""
        return _ScalarProcessDraw(self.prior.draw(self.copies, key=key))


@register("rdgp:ScalarProcessDraw")
class _ScalarProcessDraw(ProcessDraw):
    functions: ScalarDraw

    def __call__(self, x: Float[Array, "N D"]) -> Float[Array, "N 1 r"]:
        return self.functions(x)[:, None, :]


def shaped_tail(level: Int[np.ndarray, "K"], factors: Float[Array, "t"], num_levels: int) -> Float[Array, "K"]:
    """Return the factor of each set of a part: that of its level in the tail, zero before."""
    padded = jnp.concatenate([jnp.zeros(num_levels - factors.shape[0], factors.dtype), factors])
    return padded[level]
