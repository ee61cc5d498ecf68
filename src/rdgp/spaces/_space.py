"""The contract of a space, with the checks every space shares."""

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
)

Points = Float[Array, "*#N D"]
Tangents = Float[Array, "*#N D"]


class Isometry(eqx.Module):
    """A distance-preserving map x -> A x + b of a space onto itself."""

    matrix: Float[Array, "D D"]
    shift: Float[Array, "D"]

    def __call__(self, x: Float[Array, "*#N D"]) -> Float[Array, "*#N D"]:
        """Map points."""
        return x @ self.matrix.T + self.shift

    def push(self, v: Float[Array, "*#N D"]) -> Float[Array, "*#N D"]:
        """Map tangent vectors at x to tangent vectors at the image of x."""
        return v @ self.matrix.T


def default_tolerance(dtype: np.dtype) -> float:
    """Return how far a point may lie off its space and still count as on it."""
    return 1e-6 if jnp.finfo(dtype).bits >= 64 else 1e-4


class Space(eqx.Module):
    """A manifold in R^D. Points and tangent vectors are ambient arrays [..., D].

    A concrete space has static fields only and implements the underscored methods; arrays that reach those are checked.
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

    def exp(self, x: Numbers, v: Numbers) -> Points:
        """Walk from x along the geodesic with velocity v for unit time."""
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

    def distance(self, x: Numbers, y: Numbers) -> Float[Array, "*#N"]:
        """Return the geodesic distance, pair by pair."""
        x, y = self._check_pair(x, y, "y")
        return compiled(type(self)._distance, self, x, self.check(y, "y"))

    def frame(self, x: Numbers) -> Float[Array, "*#N D d"]:
        """Return an orthonormal basis of each tangent space, as columns."""
        return compiled(type(self)._frame, self, self.check(x))

    def nearest(self, x: Numbers) -> Points:
        """Return the point of the space nearest to an ambient vector."""
        x = as_float_array(x, "x")
        check_last_axis(x, self.ambient_dim, "x", str(self))
        check_finite(x, "x")
        return compiled(type(self)._nearest, self, x)

    def random(self, n: int, *, key: PRNGKeyArray) -> Float[Array, "N D"]:
        """Draw n points uniformly (from a standard normal on Euclidean space)."""
        return compiled(type(self)._random, self, check_count(n, "n", 0), key)

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

    def random_isometry(self, *, key: PRNGKeyArray) -> Isometry:
        """Draw a random isometry of the space."""
        return compiled(type(self)._random_isometry, self, key)

    def _error(self, x: Points) -> Float[Array, "*#N"]:
        return safe_norm(x - self._nearest(x))

    def _check_pair(self, x: Numbers, u: Numbers, name: str) -> tuple[Points, Float[Array, "*#N D"]]:
        x, u = self.check(x), as_float_array(u, name)
        check_last_axis(u, self.ambient_dim, name, str(self))
        check_same_shape(x, u, f"x and {name}", owner=str(self))
        check_finite(u, name)
        dtype = jnp.promote_types(x.dtype, u.dtype)
        return x.astype(dtype), u.astype(dtype)

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
