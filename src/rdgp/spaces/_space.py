"""The contract of a space, with the checks every space shares."""

import math
from abc import abstractmethod

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from rdgp.core import (
    Numbers,
    as_float_array,
    check_count,
    check_finite,
    check_last_axis,
    check_same_shape,
    compiled,
    is_concrete,
    safe_norm,
    small_product,
)
from rdgp.spaces._maps import Isometry, Readable, UnitScaling

Points = Float[Array, "*#N D"]
Tangents = Float[Array, "*#N D"]


def default_tolerance(dtype: np.dtype) -> float:
    """Return how far a point may lie off its space and still count as on it."""
    return 1e-6 if jnp.finfo(dtype).bits >= 64 else 1e-4


class Space(eqx.Module):
    """A manifold in R^D. Points and tangent vectors are ambient arrays [..., D].

    A concrete space implements the underscored methods; arrays that reach those are checked. The metric is that of the
    ambient Euclidean space unless a space overrides `_covector` and `_gradient`. A space may hold arrays.
    """

    @property
    @abstractmethod
    def dim(self) -> int:
        """Intrinsic dimension d."""

    @property
    @abstractmethod
    def ambient_dim(self) -> int:
        """Ambient dimension D."""

    @property
    @abstractmethod
    def injectivity_radius(self) -> float:
        """The radius below which exp is invertible at every point (0 where the space has a boundary)."""

    @property
    def factors(self) -> "tuple[Space, ...]":
        """The factors of a product; any other space is its own only factor."""
        return (self,)

    @property
    def irreducible_factors(self) -> "tuple[Space, ...]":
        """The factors, cut as finely as their kernels need to have a lengthscale of each: a torus into its circles."""
        return (self,)

    @property
    def slices(self) -> tuple[slice, ...]:
        """Where each factor's coordinates stand in an ambient vector."""
        return (slice(0, self.ambient_dim),)

    @property
    def bounded(self) -> bool:
        """Whether the space has finite diameter, so that it can be searched all over."""
        return True

    @property
    def has_boundary(self) -> bool:
        """Whether geodesics end at a boundary."""
        return False

    @property
    def identifications(self) -> Float[np.ndarray, "R D D"]:
        """The ambient isometries that map a vector to another vector of the same point, the identity first.

        A tangent vector v at x and A v at A x are the same vector of the space.
        """
        return np.eye(self.ambient_dim)[None]

    def split(self, x: Float[Array, "*#N D"]) -> tuple[Float[Array, "*#N _"], ...]:
        """Cut an ambient vector into the factors' ambient vectors."""
        return tuple(x[..., part] for part in self.slices)

    def exp(self, x: Numbers, v: Numbers) -> Points:
        """Follow the geodesic from x with velocity v for unit time."""
        x, v = self._check_pair(x, v, "v")
        return compiled(type(self)._exp, self, x, v)

    def log(self, x: Numbers, y: Numbers) -> Tangents:
        """Return the shortest tangent vector at x whose exp is y (any of them on the cut locus)."""
        x, y = self._check_pair(x, y, "y")
        return compiled(type(self)._log, self, x, self.check(y, "y"))

    def project(self, x: Numbers, u: Numbers) -> Tangents:
        """Project an ambient vector orthogonally onto the tangent space at x."""
        x, u = self._check_pair(x, u, "u")
        return compiled(type(self)._project, self, x, u)

    def transport_along(self, x: Numbers, v: Numbers, u: Numbers) -> Tangents:
        """Carry the tangent vector u in parallel along the geodesic t -> exp_x(t v) from t = 0 to t = 1."""
        x, v = self._check_pair(x, v, "v")
        x, u = self._check_pair(x, u, "u")
        return compiled(type(self)._transport_along, self, x, v, u)

    def inner(self, x: Numbers, u: Numbers, v: Numbers) -> Float[Array, "*#N"]:
        """Return the inner product <u, v> of tangent vectors at x."""
        x, u = self._check_pair(x, u, "u")
        x, v = self._check_pair(x, v, "v")
        return compiled(_inner, self, x, u, v)

    def covector(self, x: Numbers, u: Numbers) -> Tangents:
        """Return the linear function <u, ·> of tangent vectors at x as an ambient vector."""
        x, u = self._check_pair(x, u, "u")
        return compiled(type(self)._covector, self, x, u)

    def gradient(self, x: Numbers, derivative: Numbers) -> Tangents:
        """Return the gradient at x of a function whose ambient derivative there is given."""
        x, derivative = self._check_pair(x, derivative, "derivative")
        return compiled(type(self)._gradient, self, x, derivative)

    def distance(self, x: Numbers, y: Numbers) -> Float[Array, "*#N"]:
        """Return the geodesic distance, pair by pair."""
        x, y = self._check_pair(x, y, "y")
        return compiled(type(self)._distance, self, x, self.check(y, "y"))

    def log_volume_ratio(self, x: Numbers, y: Numbers) -> Float[Array, "*#N"]:
        """Return log det of the derivative of exp_x at log_x(y): by how much exp stretches volumes on the way to y."""
        x, y = self._check_pair(x, y, "y")
        return compiled(type(self)._log_volume_ratio, self, x, self.check(y, "y"))

    @property
    def frame_names(self) -> tuple[str, ...]:
        """The names of the frames that the space has, "default" first."""
        return ("default",)

    def frame(self, x: Numbers, name: str = "default") -> Float[Array, "*#N D d"]:
        """Return an orthonormal basis of each tangent space, as columns; `name` is one of `frame_names`."""
        if name not in self.frame_names:
            names = " or ".join(f'"{known}"' for known in self.frame_names)
            raise ValueError(f"the frame of {self} must be {names}, got {name!r}")
        return compiled(type(self)._named_frame, self, self.check(x), name)

    def nearest(self, x: Numbers) -> Points:
        """Return the point of the space nearest to an ambient vector."""
        x = as_float_array(x, "x")
        check_last_axis(x, self.ambient_dim, "x", str(self))
        check_finite(x, "x")
        return compiled(type(self)._nearest, self, x)

    def canonical(self, x: Numbers) -> Points:
        """Return, of all ambient vectors that stand for the same point, always the same one."""
        return compiled(type(self)._canonical, self, self.check(x))

    def random(self, n: int, *, key: PRNGKeyArray) -> Float[Array, "N D"]:
        """Draw n points uniformly (from a standard normal on Euclidean space)."""
        return compiled(type(self)._random, self, check_count(n, "n", 0), key)

    def random_isometry(self, *, key: PRNGKeyArray) -> Isometry:
        """Draw a random isometry of the space."""
        return compiled(type(self)._random_isometry, self, key)

    def contains(self, x: Numbers, atol: float | None = None) -> Bool[Array, "*#N"]:
        """Tell which points lie on the space, within an absolute tolerance."""
        x = as_float_array(x, "x")
        check_last_axis(x, self.ambient_dim, "x", str(self))
        return compiled(type(self)._error, self, x) <= (default_tolerance(x.dtype) if atol is None else atol)

    def check(self, x: Numbers, name: str = "x") -> Points:
        """Return x as an array of points, or raise a ValueError that says what is wrong with which row.

        Shapes are always checked; values only outside of traces, where they can be looked at.
        """
        x = as_float_array(x, name)
        check_last_axis(x, self.ambient_dim, name, str(self))
        if is_concrete(x):
            check_finite(x, name)
            with jax.ensure_compile_time_eval():  # x may be a constant inside someone's trace
                error = np.atleast_1d(np.asarray(compiled(type(self)._error, self, x))).ravel()
            bad = np.flatnonzero(error > default_tolerance(x.dtype))
            if bad.size:
                worst = int(bad[np.argmax(error[bad])])
                raise ValueError(
                    f"{name} must lie on {self}: {bad.size} of {error.size} rows do not, the worst is row {worst}, "
                    f"off by {error[worst]:.3g}; use space.nearest({name}) if that is meant"
                )
        return x

    def unit_scaled(self) -> UnitScaling:
        """Return the space in units of order one; spaces without units are their own."""
        return UnitScaling(self, np.zeros(self.ambient_dim), np.ones(self.ambient_dim))

    def base_point(self) -> Float[np.ndarray, "D"]:
        """Return a point to start from: the nearest to the first unit vector."""
        with jax.ensure_compile_time_eval():
            return np.asarray(self.nearest(np.eye(self.ambient_dim)[0]), float)

    def cut_fraction(self, u: Float[np.ndarray, "d"]) -> float:
        """Return how far tangent coordinates u at the base point lie on the way to the cut locus, which is at 1."""
        return float(np.linalg.norm(u) / self.injectivity_radius)

    @property
    def readable(self) -> Readable:
        """The coordinates of `read`, by which people know points; ambient ones unless a space has better."""
        size = self.ambient_dim
        return Readable(tuple(f"x{i}" for i in range(size)), ((-math.inf, math.inf),) * size, (False,) * size)

    def read(self, x: Float[np.ndarray, "N D"]) -> Float[np.ndarray, "N R"]:
        """Return points in the coordinates of `readable`, angles in degrees."""
        return np.asarray(x if len(self.identifications) == 1 else self.canonical(x), float)

    def from_readable(self, coordinates: Float[np.ndarray, "N R"]) -> Float[np.ndarray, "N D"]:
        """Return the points that have given coordinates of `readable`: the inverse of `read`."""
        return np.asarray(coordinates, float)

    def __repr__(self) -> str:
        return str(self)

    def _error(self, x: Points) -> Float[Array, "*#N"]:
        return safe_norm(x - self._nearest(x))

    def _check_pair(self, x: Numbers, u: Numbers, name: str) -> tuple[Points, Float[Array, "*#N D"]]:
        x, u = self.check(x), as_float_array(u, name)
        check_last_axis(u, self.ambient_dim, name, str(self))
        check_same_shape(x, u, f"x and {name}", owner=str(self))
        check_finite(u, name)
        dtype = jnp.promote_types(x.dtype, u.dtype)
        return x.astype(dtype), u.astype(dtype)

    def _covector(self, x: Points, u: Tangents) -> Tangents:
        return u

    def _gradient(self, x: Points, derivative: Float[Array, "*#N D"]) -> Tangents:
        return self._project(x, derivative)

    def _canonical(self, x: Points) -> Points:
        return x

    def _named_frame(self, x: Points, name: str) -> Float[Array, "*#N D d"]:
        return self._frame(x)

    def _log_volume_ratio(self, x: Points, y: Points) -> Float[Array, "*#N"]:
        """Differentiate exp along the frame at x and take components in that at y."""
        x, y = jnp.broadcast_arrays(x, y)
        v, columns = self._log(x, y), jnp.moveaxis(self._frame(x), -1, 0)
        moved = jax.vmap(lambda u: jax.jvp(lambda w: self._exp(x, w), (v,), (u,))[1])(columns)
        covectors = jnp.stack([self._covector(y, column) for column in jnp.moveaxis(self._frame(y), -1, 0)], axis=-1)
        return jnp.linalg.slogdet(small_product(covectors, jnp.moveaxis(moved, 0, -1)))[1]

    @abstractmethod
    def _random_isometry(self, key: PRNGKeyArray) -> Isometry: ...

    @abstractmethod
    def _exp(self, x: Points, v: Tangents) -> Points: ...

    @abstractmethod
    def _log(self, x: Points, y: Points) -> Tangents: ...

    @abstractmethod
    def _project(self, x: Points, u: Float[Array, "*#N D"]) -> Tangents: ...

    @abstractmethod
    def _transport_along(self, x: Points, v: Tangents, u: Tangents) -> Tangents: ...

    @abstractmethod
    def _distance(self, x: Points, y: Points) -> Float[Array, "*#N"]: ...

    @abstractmethod
    def _frame(self, x: Points) -> Float[Array, "*#N D d"]: ...

    @abstractmethod
    def _nearest(self, x: Float[Array, "*#N D"]) -> Points: ...

    @abstractmethod
    def _random(self, n: int, key: PRNGKeyArray) -> Float[Array, "N D"]: ...


def _inner(space: Space, x: Points, u: Tangents, v: Tangents) -> Float[Array, "*#N"]:
    return jnp.sum(space._covector(x, u) * v, axis=-1)
