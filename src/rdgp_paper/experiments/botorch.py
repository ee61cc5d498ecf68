"""Searches by BoTorch on Euclidean parametrizations of spheres, the baselines of studies."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from rdgp.core import require
from rdgp.spaces import Space

Point = Float[np.ndarray, "D"]
_RESTARTS, _RAW = 10, 512  # searches for the best point of the acquisition, and points among which they start


class Ambient:
    """The cube [-1, 1]^D, of which every point but the middle is normalized before the model sees it."""

    def __init__(self, space: Space) -> None:
        self.bounds = np.array([[-1.0] * space.ambient_dim, [1.0] * space.ambient_dim])

    def parameters(self, x: Point) -> Point:
        """Return the parameters of a point."""
        return x

    def point(self, z: Point) -> Point:
        """Return the point with given parameters."""
        return z / np.linalg.norm(z)

    def inputs(self, z: Any) -> Any:
        """Return parameters as the model sees them."""
        return z / z.norm(dim=-1, keepdim=True).clamp_min(1e-9)


class Angles:
    """Angles of the sphere S_d: d - 1 of them in [0, π], the last in [-π, π]."""

    def __init__(self, space: Space) -> None:
        low, high = [0.0] * (space.dim - 1) + [-np.pi], [np.pi] * space.dim
        self.bounds = np.array([low, high])

    def parameters(self, x: Point) -> Point:
        """Return the angles of a point."""
        rest = np.sqrt(np.cumsum(x[::-1] ** 2)[::-1])
        return np.append(np.arctan2(rest[1:-1], x[:-2]), np.arctan2(x[-1], x[-2]))

    def point(self, z: Point) -> Point:
        """Return the point with given angles."""
        sines = np.concatenate([[1.0], np.cumprod(np.sin(z))])
        return sines * np.append(np.cos(z), 1.0)

    def inputs(self, z: Any) -> Any:
        """Return angles as they are."""
        return z


CHARTS: dict[str, Callable[[Space], Ambient | Angles]] = {"BoTorch (ambient)": Ambient, "BoTorch (angles)": Angles}


class Searcher:
    """Asks for points as a study does: Matérn 5/2 with a lengthscale for each input, standardized values, LogEI."""

    def __init__(self, name: str, space: Space, seed: int) -> None:
        torch = require("torch", "bench")
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        torch.set_default_dtype(torch.float64)
        self.chart = CHARTS[name](space)
        self._inputs: list[np.ndarray] = []
        self._values: list[float] = []

    def tell(self, x: Point, y: float) -> None:
        """Report the value at a point."""
        self._inputs.append(self.chart.parameters(x))
        self._values.append(y)

    def ask(self) -> Point:
        """Return the point with the largest expected improvement."""
        return self.chart.point(_propose(self._inputs, self._values, self.chart))


def _propose(inputs: Sequence[np.ndarray], values: Sequence[float], chart: Ambient | Angles) -> Point:
    """Fit a model to all values, which are to be minimized, and return where the expected improvement is largest."""
    torch, botorch, gpytorch = (require(name, "bench") for name in ("torch", "botorch", "gpytorch"))
    bounds = torch.as_tensor(chart.bounds)
    x = chart.inputs(torch.as_tensor(np.stack(inputs)))
    y = -torch.as_tensor(np.asarray(values))[:, None]
    size = x.shape[-1]
    models, transforms = botorch.models, botorch.models.transforms
    model = models.SingleTaskGP(
        *(x, y),
        covar_module=gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(2.5, ard_num_dims=size)),
        input_transform=transforms.Normalize(size, bounds=bounds),
        outcome_transform=transforms.Standardize(1),
    )
    botorch.fit.fit_gpytorch_mll(gpytorch.mlls.ExactMarginalLogLikelihood(model.likelihood, model))
    gain = botorch.acquisition.LogExpectedImprovement(model, best_f=y.max())
    seen = type("Seen", (torch.nn.Module,), {"forward": lambda _, z: gain(chart.inputs(z))})()
    best, _ = botorch.optim.optimize_acqf(seen, bounds, q=1, num_restarts=_RESTARTS, raw_samples=_RAW)
    return best[0].detach().numpy()
