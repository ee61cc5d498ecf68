"""From values to what the surrogate sees: minimised, centred, scaled, the bad end log-warped."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float


class Scaling(NamedTuple):
    """z = (sign y - center) / scale, and log1p of it above zero if `log_warp`: good values keep their distances."""

    sign: float
    center: float
    scale: float
    log_warp: bool

    @staticmethod
    def of(y: Float[np.ndarray, "N"], sign: float, *, standardize: bool, log_warp: bool) -> "Scaling":
        """Choose the scaling of some values: median and quartiles, which one wild value does not move."""
        if not standardize or y.size == 0:
            return Scaling(sign, 0.0, 1.0, False)
        low, center, high = np.quantile(sign * y, [0.25, 0.5, 0.75])
        spread = (high - low) / 1.35
        if spread <= 1e-9 * max(abs(center), 1e-300):
            spread = float(np.std(y))
        return Scaling(sign, float(center), float(spread) if spread > 0.0 else 1.0, log_warp)

    def forward(self, y: Float[np.ndarray, "N"]) -> Float[np.ndarray, "N"]:
        """Turn values into what the surrogate sees."""
        z = (self.sign * y - self.center) / self.scale
        return np.where(z > 0.0, np.log1p(np.maximum(z, 0.0)), z) if self.log_warp else z

    def slope(self, y: Float[np.ndarray, "N"]) -> Float[np.ndarray, "N"]:
        """Return |dz/dy|, which carries noise over."""
        z = (self.sign * y - self.center) / self.scale
        warp = 1.0 / (1.0 + np.maximum(z, 0.0)) if self.log_warp else np.ones_like(z)
        return warp / self.scale

    def backward(self, z: Float[np.ndarray, "..."]) -> Float[np.ndarray, "..."]:
        """Return the value that the surrogate sees as z."""
        straight = np.where(z > 0.0, np.expm1(np.clip(z, 0.0, 50.0)), z) if self.log_warp else z
        return self.sign * (self.center + self.scale * straight)

    def moments(
        self, mean: Float[np.ndarray, "..."], variance: Float[np.ndarray, "..."]
    ) -> tuple[Float[np.ndarray, "..."], Float[np.ndarray, "..."]]:
        """Return mean and variance of the value whose scaled version is Gaussian, by quadrature where it is warped."""
        if not self.log_warp:
            return self.backward(mean), variance * self.scale**2
        nodes, weights = np.polynomial.hermite_e.hermegauss(32)
        weights = weights / weights.sum()
        values = self.backward(mean[..., None] + np.sqrt(variance)[..., None] * nodes)
        center = values @ weights
        return center, np.square(values - center[..., None]) @ weights
