"""The contract of a Gaussian field: a prior on a domain with values in a bundle."""

from abc import abstractmethod
from functools import reduce
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import Numbers, as_float_array, check_finite, check_size, compiled, register
from rdgp.fields._bundle import Bundle
from rdgp.fields._process import Process, ProcessDraw
from rdgp.spaces import Space

Weights = tuple[Float[Array, "_ _"], ...]  # [copies, features] of each process


class FunctionDraw(eqx.Module):
    """A drawn function: differentiable, and the same wherever it is called."""

    @abstractmethod
    def __call__(self, x: Float[Array, "N D"]) -> Float[Array, "N ..."]:
        """Evaluate it."""

    def at(self, x: Float[Array, "N D"], basis: Any) -> Float[Array, "N ..."]:
        """Evaluate it where the field's basis is known, if that helps."""
        return self(x)


class Field(eqx.Module):
    """A zero-mean Gaussian prior over functions or vector fields on a space.

    A field is a linear image of independent processes. A field of your own defines `bundle`, `processes`, `mixing` and
    `with_scale_of`; everything else follows, and may be overridden where there is a cheaper way. Frames that its
    methods receive are those of its bundle.
    """

    space: eqx.AbstractVar[Space]

    @property
    @abstractmethod
    def bundle(self) -> Bundle:
        """Where values live."""

    @property
    @abstractmethod
    def processes(self) -> tuple[Process, ...]:
        """The independent processes of which the field is a linear image."""

    @abstractmethod
    def mixing(self, x: Float[Array, "N D"], frame: Any) -> tuple[Float[Array, "N q _ _"], ...]:
        """Return the matrices that turn values of the processes into coordinates in a frame."""

    @abstractmethod
    def with_scale_of(self, x: Float[np.ndarray, "N D"], mean_square: float) -> "Field":
        """Return the field with variances that give coordinates a mean square, and lengthscales of the data's units."""

    @property
    @abstractmethod
    def variance(self) -> Float[Array, ""]:
        """Mean square of a coordinate."""

    def with_lengthscales_of(self, x: Float[np.ndarray, "N D"]) -> "Field":
        """Return the field with lengthscales that fit the data's units, where it has units and its own are far off."""
        return self

    def features(self, x: Numbers) -> Float[Array, "..."]:
        """Evaluate the features: [N, M] scalar, [N, P, M] stacked, [N, D, M] tangent."""
        x = self.space.check(x)
        flat = compiled(type(self)._features, self, x.reshape(-1, x.shape[-1]))
        return flat.reshape(*x.shape[:-1], *flat.shape[1:])

    def _features(self, x: Float[Array, "N D"]) -> Float[Array, "N ..."]:
        frame = self.bundle.frame(x)
        columns = jnp.moveaxis(self._unscaled(x, frame), -1, 0)  # [M, N, q]
        return jnp.moveaxis(frame.values(columns), 0, -1)

    def _unscaled(self, x: Float[Array, "N D"], frame: Any) -> Float[Array, "N q M"]:
        """Return the coordinates of all features, copy after copy of each process."""
        pairs = zip(self.mixing(x, frame), self.processes, strict=True)
        blocks = [jnp.einsum("nqpr,npm->nqrm", mix, process.features(x)) for mix, process in pairs]
        return jnp.concatenate([block.reshape(*block.shape[:2], -1) for block in blocks], axis=-1)

    def scales(self) -> Float[Array, "M"]:
        """Return the prior standard deviations of the features' coefficients."""
        return compiled(type(self)._scales, self)

    def _scales(self) -> Float[Array, "M"]:
        return jnp.concatenate([jnp.tile(process.scales(), process.copies) for process in self.processes])

    def covariance(self, x: Numbers, y: Numbers) -> Float[Array, "N ..."]:
        """Return the covariance of values at x and y: [N, L] for scalars, else [N, P, L, P]."""
        return compiled(type(self)._covariance, self, *check_two(self.space, x, y))

    def _covariance(self, x: Float[Array, "N D"], y: Float[Array, "L D"]) -> Float[Array, "N ..."]:
        frame_x, frame_y = self.bundle.frame(x), self.bundle.frame(y)
        gram = self.joint_gram(x, y, frame_x, frame_y)  # [N, q, L, q]
        by_first = frame_x.values(jnp.transpose(gram, (2, 3, 0, 1)))  # [L, q, N, ...]
        last = jnp.moveaxis(by_first, 1, -1) if by_first.ndim == 3 else jnp.moveaxis(by_first, (1, 3), (3, 1))
        # now [L, N, q] or [L, P, N, q]
        values = frame_y.values(jnp.moveaxis(last, 0, -2))
        return jnp.moveaxis(values, 0, 1) if values.ndim == 4 else values

    def sample(self, *, key: PRNGKeyArray) -> FunctionDraw:
        """Draw one function from the prior."""
        single = len(self.processes) == 1
        keys = [key] if single else jax.random.split(key, len(self.processes))
        return FieldDraw(self, tuple(p.draw(key=own) for p, own in zip(self.processes, keys, strict=True)))

    @property
    def has_features(self) -> bool:
        """Whether features exist, so that draws are exact."""
        return all(process.has_features for process in self.processes)

    @property
    def degree(self) -> int | None:
        """The degree of sample functions as polynomials on S_2; None elsewhere."""
        degrees = [process.degree for process in self.processes]
        if any(degree is None for degree in degrees):
            return None
        return max(degree for degree in degrees if degree is not None) + (2 if self.bundle.tangent else 0)

    @property
    def num_weights(self) -> int:
        """Number of features of all copies of all processes."""
        return sum(process.copies * process.num_features for process in self.processes)

    @property
    def num_columns(self) -> int:
        """Number of columns of `design`."""
        return self.num_weights

    @property
    def width(self) -> int:
        """Number p of correlated numbers at a point in `split`."""
        return self.bundle.rank

    @property
    def is_one_process(self) -> bool:
        """Whether the numbers of `split` are those of the copies of one process."""
        return False

    def arrange(self, numbers: Float[Array, "_"]) -> Weights:
        """Cut `num_weights` numbers into the weights of the processes."""
        sizes = [(process.copies, process.num_features) for process in self.processes]
        pieces = jnp.split(numbers, np.cumsum([r * m for r, m in sizes])[:-1])
        return tuple(piece.reshape(size) for piece, size in zip(pieces, sizes, strict=True))

    def split(
        self, x: Float[Array, "N D"], frame: Any, coordinates: Float[Array, "*S N q"]
    ) -> Float[Array, "*S N p r"]:
        """Arrange coordinates as p correlated numbers of r independent copies that share one covariance."""
        return coordinates[..., None]

    def join(
        self, x: Float[Array, "N D"], frame: Any, mean: Float[Array, "N p r"], covariance: Float[Array, "N p p"]
    ) -> tuple[Float[Array, "N q"], Float[Array, "N q q"]]:
        """Turn mean and covariance of the correlated numbers into those of the coordinates."""
        return mean[..., 0], covariance

    def gram(
        self, x: Float[Array, "N D"], y: Float[Array, "L D"], frame_x: Any, frame_y: Any
    ) -> Float[Array, "N p L p"]:
        """Return the covariance of the p correlated numbers."""
        return self.joint_gram(x, y, frame_x, frame_y)

    def design(self, x: Float[Array, "N D"], frame: Any) -> Float[Array, "N p m"]:
        """Evaluate features times scales of the p correlated numbers."""
        return self.joint_design(x, frame)

    def joint_gram(
        self, x: Float[Array, "N D"], y: Float[Array, "L D"], frame_x: Any, frame_y: Any
    ) -> Float[Array, "N q L q"]:
        """Return the covariance of all coordinates."""
        triples = zip(self.mixing(x, frame_x), self.processes, self.mixing(y, frame_y), strict=True)
        terms = [jnp.einsum("napr,nplo,lbor->nalb", a, process.covariance(x, y), b) for a, process, b in triples]
        return reduce(jnp.add, terms)

    def joint_design(self, x: Float[Array, "N D"], frame: Any) -> Float[Array, "N q M"]:
        """Evaluate features times scales of all coordinates."""
        return self._unscaled(x, frame) * self._scales().astype(x.dtype)

    def point_variance(self, x: Float[Array, "N D"], frame: Any) -> Float[Array, "N p p"]:
        """Return the covariance of the p correlated numbers at each point alone."""
        pairs = zip(self.mixing(x, frame), self.processes, strict=True)
        return reduce(jnp.add, [jnp.einsum("napr,npo,nbor->nab", m, p.variance(x), m) for m, p in pairs])

    def basis(self, x: Float[Array, "N D"]) -> tuple[Float[Array, "..."], ...]:
        """Evaluate what `evaluate` needs of the points alone."""
        return tuple(process.basis(x) for process in self.processes)

    def evaluate(
        self, basis: tuple[Float[Array, "..."], ...], x: Float[Array, "N D"], weights: Weights
    ) -> Float[Array, "N ..."]:
        """Evaluate the function with given whitened weights; `basis` comes from `basis(x)`."""
        triples = zip(self.processes, basis, weights, strict=True)
        return self.assemble(x, tuple(process.evaluate(own, x, w) for process, own, w in triples))

    def assemble(self, x: Float[Array, "N D"], values: tuple[Float[Array, "N _ _"], ...]) -> Float[Array, "N ..."]:
        """Turn values of the processes into values of the field."""
        frame = self.bundle.frame(x)
        pairs = zip(self.mixing(x, frame), values, strict=True)
        return frame.values(reduce(jnp.add, [jnp.einsum("nqpr,npr->nq", mix, value) for mix, value in pairs]))

    def mean_and_trace(
        self, x: Float[Array, "N D"], frame: Any, means: Weights, factors: tuple[Float[Array, "r m m"], ...]
    ) -> tuple[Float[Array, "N q"], Float[Array, "N"]]:
        """Return mean coordinates and total variance of a value, given means and factors of its whitened weights."""
        value = self.evaluate(self.basis(x), x, means)
        return frame.coordinates(value), self.variance_trace(x, frame, factors)

    def variance_trace(
        self, x: Float[Array, "N D"], frame: Any, factors: tuple[Float[Array, "_ _ _"], ...]
    ) -> Float[Array, "N"]:
        """Return the total variance of a value whose whitened weights have given Cholesky factors."""
        total = jnp.zeros(x.shape[0], x.dtype)
        for mix, process, factor in zip(self.mixing(x, frame), self.processes, factors, strict=True):
            rows = process.features(x) * process.scales().astype(x.dtype)
            (n, p, m), r = rows.shape, factor.shape[0]
            columns = factor.astype(x.dtype).transpose(1, 0, 2).reshape(m, -1)
            half = (rows.reshape(n * p, m) @ columns).reshape(n, p, r, -1)
            inner = jnp.einsum("nqpr,nqor->npor", mix, mix)
            total = total + jnp.einsum("npor,nprk,nork->n", inner, half, half)
        return total

    def details(self) -> tuple[str, ...]:
        """Return what a short text about the field says between its space and its number of features."""
        return ()

    def __repr__(self) -> str:
        count = [f"{self.num_weights} features"] if self.has_features else []
        return f"{type(self).__name__}({', '.join([str(self.space), *self.details(), *count])})"

    def check_values(self, x: Float[Array, "N D"], values: Numbers, name: str = "y") -> Float[Array, "N ..."]:
        """Return values as an array, or raise a ValueError that says what is wrong with them."""
        return check_values(x, values, self.bundle.value_shape, name)


@register("rdgp:FieldDraw")
class FieldDraw(FunctionDraw):
    """A function drawn from the prior of a field."""

    field: Field
    draws: tuple[ProcessDraw, ...]

    @eqx.filter_jit
    def __call__(self, x: Float[Array, "*N D"]) -> Float[Array, "..."]:
        """Evaluate it."""
        flat = x.reshape(-1, x.shape[-1])
        values = self.field.assemble(flat, tuple(draw(flat) for draw in self.draws))
        return values.reshape(*x.shape[:-1], *values.shape[1:])


def check_values(x: Float[Array, "N D"], values: Numbers, shape: tuple[int, ...], name: str) -> Float[Array, "N ..."]:
    """Return values of a shape at each point as an array of the points' dtype, or raise."""
    values = as_float_array(values, name)
    if values.shape != (*x.shape[:-1], *shape):
        raise ValueError(
            f"{name} must have shape {(*x.shape[:-1], *shape)} for {x.shape[0]} points, got {values.shape}"
        )
    check_finite(values, name)
    check_size(values, x.dtype, name)
    return values.astype(x.dtype)


def check_points(space: Space, x: Numbers, name: str = "x") -> Float[Array, "N D"]:
    """Return points as an array [N, D], or raise."""
    x = space.check(x, name)
    if x.ndim != 2:
        raise ValueError(f"{name} must be a list of points [N, {space.ambient_dim}], got shape {x.shape}")
    return x


def check_two(space: Space, x: Numbers, y: Numbers) -> tuple[Float[Array, "N D"], Float[Array, "L D"]]:
    """Return two lists of points in one dtype, or raise."""
    x, y = check_points(space, x), check_points(space, y, "y")
    dtype = jnp.promote_types(x.dtype, y.dtype)
    return x.astype(dtype), y.astype(dtype)
