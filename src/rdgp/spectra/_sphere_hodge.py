"""Hodge spectra of the spheres S_d and of the rotations S_3 / ±1, which keep every other degree."""

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from rdgp.core import check_count, register
from rdgp.spaces import Rotations, Sphere
from rdgp.spectra._addition import derivative_weights, gegenbauer_sum
from rdgp.spectra._coexact import check_basis_size, coexact_coefficients, num_coexact
from rdgp.spectra._generators import rotation_generators
from rdgp.spectra._harmonics import harmonics, harmonics_and_gradients, num_harmonics
from rdgp.spectra._spectrum import HodgePart, HodgeSpectrum, by_tiles, check_parts, hodge_parts, hodge_spectrum
from rdgp.spectra._sphere import SphereSpectrum, by_degree
from rdgp.spectra._synthesis import ambient_weights, circle_matrix, curl_matrices, gradient_matrices, sum_harmonics
from rdgp.spectra._variance import variance_by_harmonics


@register("rdgp:SphereHodgeSpectrum")
class SphereHodgeSpectrum(HodgeSpectrum):
    """Eigenfields of the Hodge Laplacian on S_d: gradient and curl fields, on the circle gradient and harmonic ones."""

    d: int = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    gradient_degrees: tuple[int, ...] = eqx.field(static=True)
    curl_degrees: tuple[int, ...] = eqx.field(static=True)

    @property
    def parts(self) -> tuple[HodgePart, ...]:
        """λ = k (k + d - 1) for gradients, (k + 1)(k + d - 2) for curls, 0 for the circle's harmonic field."""
        return tuple(self._part(name) for name in self.names)

    def _part(self, name: str) -> HodgePart:
        if name == "gradient":
            scalar = SphereSpectrum(self.d, self.gradient_degrees)
            return HodgePart.simple(name, scalar.eigenvalues, scalar.multiplicities)
        if name == "curl":
            values = [float((k + 1) * (k + self.d - 2)) for k in self.curl_degrees]
            return HodgePart.simple(
                name, np.array(values), np.array([num_coexact(self.d, k) for k in self.curl_degrees])
            )
        return HodgePart.simple(name, np.zeros(1), np.ones(1, dtype=int))

    @property
    def degree(self) -> int | None:
        """The highest degree on S_2."""
        return max(self._degrees) if self.d == 2 else None

    @property
    def isotropic_dim(self) -> int:
        """The dimension d."""
        return self.d

    @property
    def _degrees(self) -> tuple[int, ...]:
        """The degrees of gradient and curl fields together."""
        kept = {"gradient": self.gradient_degrees, "curl": self.curl_degrees}
        return tuple(sorted({degree for name in self.names for degree in kept.get(name, ())}))

    @eqx.filter_jit
    def features(self, x: Float[Array, "*N D"]) -> Float[Array, "*N D M"]:
        """Evaluate the eigenfields."""
        return by_tiles(self._surface_rows if self.d == 2 else self._rows, x)

    def lowest_features(self, x: Float[Array, "*N D"], num_levels: int) -> Float[Array, "*N D m"]:
        """Evaluate the eigenfields of the lowest degrees."""
        gradient, curl = self.gradient_degrees[:num_levels], self.curl_degrees[:num_levels]
        return SphereHodgeSpectrum(self.d, self.names, gradient, curl).features(x)

    def basis(self, x: Float[Array, "*N D"]) -> Float[Array, "*N m"]:
        """Evaluate the scalar harmonics of which every eigenfield is the projection of a combination."""
        return by_tiles(lambda tile: harmonics(tile, self._basis_degrees), x)

    def synthesize(
        self, basis: Float[Array, "*N m"], x: Float[Array, "*N D"], coefficients: Float[Array, "M"]
    ) -> Float[Array, "*N D"]:
        """Return P_x (φ(x) W)."""
        weights = ambient_weights(self._terms, self._basis_degrees, coefficients).astype(x.dtype)
        ambient = sum_harmonics(basis, x, weights, self._basis_degrees)
        return ambient - jnp.sum(ambient * x, axis=-1, keepdims=True) * x

    def variance_trace(self, x: Float[Array, "*N D"], factor: Float[Array, "M r"]) -> Float[Array, "*N"]:
        """Return the sum of |F(x) A_j|², on S_2 by scalar harmonics alone."""
        if self.d != 2:
            return super().variance_trace(x, factor)
        return variance_by_harmonics(self, max(self._degrees), x, factor)

    @property
    def _terms(self) -> list[tuple[int, Float[np.ndarray, "_ _ D"]]]:
        """Degree of the harmonics and their combination, for each level of each part."""
        every = {
            "gradient": lambda: [(k - 1, gradient_matrices(self.d, k)) for k in self.gradient_degrees],
            "curl": lambda: [(k, curl_matrices(self.d, k)) for k in self.curl_degrees],
            "harmonic": lambda: [(1, circle_matrix())],
        }
        return [term for name in self.names for term in every[name]()]

    @property
    def _basis_degrees(self) -> tuple[int, ...]:
        return tuple(sorted({degree for degree, _ in self._terms}))

    def _surface_rows(self, x: Float[Array, "N D"]) -> Float[Array, "D M N"]:
        """On S_2: curl fields x × ∇φ / √λ by the rotation generators, gradient fields -x × curl."""
        degrees = self._degrees
        scale = np.concatenate([np.full(2 * k + 1, (k * (k + 1)) ** -0.5) for k in degrees])
        u, v, w = rotation_generators(jnp.asarray(scale, x.dtype)[:, None] * harmonics(x, degrees), degrees)
        a, b, c = x.T
        rows = {"gradient": (c * v - b * w, a * w - c * u, b * u - a * v), "curl": (u, v, w)}
        own = {"gradient": self.gradient_degrees, "curl": self.curl_degrees}
        components = [_of_degrees(rows[name][axis], degrees, own[name]) for axis in range(3) for name in self.names]
        return jnp.concatenate(components).reshape(3, -1, x.shape[0])

    def _rows(self, x: Float[Array, "N D"]) -> Float[Array, "D M N"]:
        rows = {"gradient": self._gradient_rows, "curl": self._curl_rows, "harmonic": _circle_direction}
        return jnp.concatenate([rows[name](x) for name in self.names], axis=1)

    def _gradient_rows(self, x: Float[Array, "N D"]) -> Float[Array, "D M N"]:
        _, slopes = harmonics_and_gradients(x, self.gradient_degrees)
        scale = jnp.asarray(1.0 / np.sqrt(self._feature_eigenvalues("gradient")), x.dtype)[:, None]
        radial = sum(x[:, i] * slope for i, slope in enumerate(slopes))
        return jnp.stack([scale * (slope - x[:, i] * radial) for i, slope in enumerate(slopes)])

    def _curl_rows(self, x: Float[Array, "N D"]) -> Float[Array, "D M N"]:
        check_basis_size(self.d, max(self.curl_degrees))
        rows, fields, start = harmonics(x, self.curl_degrees), [], 0
        for k in self.curl_degrees:
            coefficients = jnp.asarray(coexact_coefficients(self.d, k), x.dtype)
            fields.append(jnp.einsum("dcm,mn->dcn", coefficients, rows[start : start + coefficients.shape[2]]))
            start += coefficients.shape[2]
        return jnp.concatenate(fields, axis=1)

    def _feature_eigenvalues(self, name: str) -> Float[np.ndarray, "_"]:
        part = self._part(name)
        return np.repeat(part.eigenvalues, part.multiplicities)

    @eqx.filter_jit
    def kernel(
        self,
        weights: tuple[Float[Array, "_"], ...],
        x: Float[Array, "N D"],
        y: Float[Array, "L D"],
        along_x: Float[Array, "N D p"],
        along_y: Float[Array, "L D q"],
    ) -> Float[Array, "N p L q"]:
        """Sum all parts with two Clenshaw passes, whatever the number of fields.

        With t = x·y, every part is A(t) P_x P_y + B'(t) P_x P_y + B''(t) (P_x y)(P_y x)ᵀ with sums A and B of zonal
        polynomials, and A P P and B'' do not need the features.
        """
        plain, potential = self._kernel_weights(dict(zip(self.names, weights, strict=True)))
        t = x @ y.T
        first = derivative_weights(potential, self.d)
        second = derivative_weights(first, self.d + 2)
        parallel = gegenbauer_sum(first.astype(x.dtype), t, self.d + 2)
        if plain is not None:
            parallel = parallel + gegenbauer_sum(plain.astype(x.dtype), t, self.d)
        crossed = gegenbauer_sum(second.astype(x.dtype), t, self.d + 4)
        columns_x, columns_y = (jnp.moveaxis(along, -1, 0) for along in (along_x, along_y))
        blocks = [
            jnp.stack([parallel * (a @ b.T) + crossed * (a @ y.T) * (x @ b.T) for b in columns_y]) for a in columns_x
        ]
        kernel = jnp.transpose(jnp.stack(blocks), (2, 0, 3, 1))  # written by whole rows of pairs, which is fast
        if "harmonic" in self.names:
            along = [jnp.einsum("dn,ndp->np", _circle_direction(z)[:, 0], e) for z, e in ((x, along_x), (y, along_y))]
            kernel = kernel + weights[-1][0].astype(x.dtype) * jnp.einsum("np,lq->nplq", *along)
        return kernel

    def _kernel_weights(self, weights: dict[str, Float[Array, "_"]]) -> tuple[Float[Array, "_"] | None, Array]:
        """Return the weights of G_k in A (from curls only) and in the potential B."""
        d, some = self.d, next(iter(weights.values()))
        potential = jnp.zeros(2, some.dtype)
        if "gradient" in weights:
            ratio = weights["gradient"] / jnp.asarray(self._part("gradient").eigenvalues, some.dtype)
            potential = by_degree(ratio, d, self.gradient_degrees)
        if "curl" not in weights:
            return None, potential
        curls = np.array(self.curl_degrees)
        size = max(potential.shape[0], curls.max() + 2)
        potential = jnp.pad(potential, (0, int(size - potential.shape[0])))
        for shift, divisor in ((1, (curls + 1) * (2 * curls + d + 1)), (-1, (curls + d - 2) * (2 * curls + d - 3))):
            keep = curls + shift > 0
            degree = (curls + shift)[keep]
            count = np.array([num_harmonics(d, int(k)) for k in degree], dtype=float)
            term = weights["curl"][np.flatnonzero(keep)] * jnp.asarray(count / divisor[keep], some.dtype)
            potential = potential.at[degree].add(-term)
        return by_degree(weights["curl"], d, self.curl_degrees), potential


def _of_degrees(rows: Float[Array, "M N"], degrees: tuple[int, ...], wanted: tuple[int, ...]) -> Float[Array, "_ N"]:
    """Return the rows of some of the degrees of S_2."""
    if degrees == wanted:
        return rows
    of_row = np.repeat(degrees, [2 * degree + 1 for degree in degrees])
    return rows[np.flatnonzero(np.isin(of_row, wanted))]


def _circle_direction(x: Float[Array, "N 2"]) -> Float[Array, "2 1 N"]:
    return jnp.stack([-x[:, 1], x[:, 0]])[:, None]


@hodge_parts.register
def _(space: Sphere) -> tuple[str, ...]:
    return ("gradient", "harmonic") if space.d == 1 else ("gradient", "curl")


@hodge_spectrum.register
def _(space: Sphere, num_levels: int, parts: tuple[str, ...]) -> SphereHodgeSpectrum:
    check_parts(space, parts)
    degrees = tuple(range(1, check_count(num_levels, "num_levels") + 1))
    return SphereHodgeSpectrum(space.d, parts, degrees, degrees)


@hodge_parts.register
def _(space: Rotations) -> tuple[str, ...]:
    return ("gradient", "curl")


@hodge_spectrum.register
def _(space: Rotations, num_levels: int, parts: tuple[str, ...]) -> SphereHodgeSpectrum:
    check_parts(space, parts)
    last = 2 * check_count(num_levels, "num_levels")
    return SphereHodgeSpectrum(3, parts, tuple(range(2, last + 1, 2)), tuple(range(1, last, 2)))
