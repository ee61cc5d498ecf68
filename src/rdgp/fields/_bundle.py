"""Bundles: where the values of a field live."""

from abc import abstractmethod
from collections.abc import Sequence

import equinox as eqx
import numpy as np
from jaxtyping import Array, Float

from rdgp.core import register
from rdgp.fields._frames import Frame, NumberFrame, TangentFrame, embed, tangent_frame
from rdgp.spaces import Euclidean, Space


class Bundle(eqx.Module):
    """Numbers, or vectors tangent to a space; a residual layer moves points along the values of its field."""

    @property
    @abstractmethod
    def value_shape(self) -> tuple[int, ...]:
        """Shape of one value."""

    @property
    @abstractmethod
    def rank(self) -> int:
        """Number q of coordinates of a value."""

    @property
    @abstractmethod
    def tangent(self) -> bool:
        """Whether values are tangent vectors."""

    @abstractmethod
    def frame(self, x: Float[Array, "N D"]) -> Frame:
        """Return the frame in which values at x have coordinates."""

    @abstractmethod
    def target(self, space: Space) -> Space:
        """Return the space to which a residual layer leads from a space, or raise if there is no such layer."""

    @abstractmethod
    def move(self, x: Float[Array, "N D"], v: Float[Array, "N ..."], frame: Frame) -> tuple[Float[Array, "N D"], Frame]:
        """Move points along values, and carry a frame."""


@register("rdgp:NumberBundle")
class NumberBundle(Bundle):
    """Values are one number, shape (), or several, shape (P,)."""

    shape: tuple[int, ...] = eqx.field(static=True)

    @property
    def value_shape(self) -> tuple[int, ...]:
        """() or (P,)."""
        return self.shape

    @property
    def rank(self) -> int:
        """The number of numbers."""
        return int(np.prod(self.shape, dtype=int))

    @property
    def tangent(self) -> bool:
        """False."""
        return False

    def frame(self, x: Float[Array, "N D"]) -> NumberFrame:
        """Numbers are their own coordinates."""
        return NumberFrame(self.shape)

    def target(self, space: Space) -> Euclidean:
        """Return R^D, reached by x + h(x) with D scalar functions h."""
        if self.shape != (space.ambient_dim,):
            raise ValueError(
                f"a hidden layer needs a vector field, or a StackedField with outputs={space.ambient_dim}; "
                f"got values of shape {self.shape} on {space}"
            )
        return Euclidean(space.ambient_dim)

    def move(self, x: Float[Array, "N D"], v: Float[Array, "N ..."], frame: Frame) -> tuple[Float[Array, "N D"], Frame]:
        """Add the values to the ambient vectors; the frame stays."""
        return x + v, frame


@register("rdgp:TangentBundle")
class TangentBundle(Bundle):
    """Values are vectors tangent to all factors of a space, or to chosen ones: winds over sphere x time to the sphere.

    Values are ambient vectors of the chosen factors, one after the other; `frame` is one of `space.frame_names`.
    """

    space: Space
    factors: tuple[int, ...] = eqx.field(static=True)
    frame_name: str = eqx.field(static=True)

    def __init__(self, space: Space, factors: Sequence[int] | None = None, *, frame: str = "default") -> None:
        chosen = tuple(range(len(space.factors))) if factors is None else tuple(factors)
        if not chosen or list(chosen) != sorted(set(chosen)) or not set(chosen) <= set(range(len(space.factors))):
            raise ValueError(
                f"factors must be increasing numbers of the {len(space.factors)} factors of {space}, got {factors}"
            )
        if frame not in space.frame_names:
            names = " or ".join(f'"{known}"' for known in space.frame_names)
            raise ValueError(f"frame must be {names} on {space}, got {frame!r}")
        self.space, self.factors, self.frame_name = space, chosen, frame

    @property
    def value_shape(self) -> tuple[int, ...]:
        """(V,), the ambient dimension of the chosen factors."""
        return (sum(self.space.factors[factor].ambient_dim for factor in self.factors),)

    @property
    def rank(self) -> int:
        """The dimension of the chosen factors."""
        return sum(self.space.factors[factor].dim for factor in self.factors)

    @property
    def tangent(self) -> bool:
        """True."""
        return True

    def frame(self, x: Float[Array, "N D"]) -> TangentFrame:
        """Return the frame of the space."""
        dims = np.cumsum([0, *(factor.dim for factor in self.space.factors)])
        columns = np.concatenate([np.arange(dims[factor], dims[factor + 1]) for factor in self.factors])
        whole = self.space.frame(x, self.frame_name)
        chosen = whole if columns.size == self.space.dim else whole[..., columns]
        return tangent_frame(self.space, self.factors, x, chosen)

    def details(self) -> tuple[str, ...]:
        """Return the factors and the frame, where they are chosen."""
        factors = [] if len(self.factors) == len(self.space.factors) else [f"factors={self.factors}"]
        return (*factors, *([] if self.frame_name == "default" else [f'frame="{self.frame_name}"']))

    def target(self, space: Space) -> Space:
        """Return the space itself."""
        return space

    def move(self, x: Float[Array, "N D"], v: Float[Array, "N ..."], frame: Frame) -> tuple[Float[Array, "N D"], Frame]:
        """Follow geodesics, and carry the frame along them."""
        whole = embed(self.space, self.factors, v)
        y = self.space.exp(x, whole)
        return y, frame.transported(self.space, x, whole, y)
