"""The doubly stochastic deep Gaussian process in GPyTorch, as fast as it goes there."""

from collections.abc import Callable
from typing import Any

import gpytorch
import numpy as np
import torch
from gpytorch.distributions import MultivariateNormal
from gpytorch.models.deep_gps import DeepGP, DeepGPLayer
from gpytorch.variational import CholeskyVariationalDistribution, VariationalStrategy


class Layer(DeepGPLayer):
    """Matérn 3/2 with one lengthscale for each coordinate, shared by the outputs; trained inducing points.

    One kernel for all outputs lets GPyTorch factor one matrix instead of one for each output.
    """

    def __init__(self, z: torch.Tensor, outputs: int | None) -> None:
        shape = torch.Size([]) if outputs is None else torch.Size([outputs])
        variational = CholeskyVariationalDistribution(z.shape[0], batch_shape=shape)
        strategy = VariationalStrategy(self, z.clone(), variational, learn_inducing_locations=True)
        super().__init__(strategy, z.shape[1], outputs)
        self.mean_module = gpytorch.means.ZeroMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.MaternKernel(nu=1.5, ard_num_dims=z.shape[1]))

    def forward(self, x: torch.Tensor) -> MultivariateNormal:
        return MultivariateNormal(self.mean_module(x), self.covar_module(x))


class Residual(DeepGP):
    """Layers x + g(x), then a scalar output."""

    def __init__(self, z: torch.Tensor, layers: int) -> None:
        super().__init__()
        self.hidden = torch.nn.ModuleList(Layer(z, z.shape[1]) for _ in range(layers - 1))
        self.output = Layer(z, None)
        self.likelihood = gpytorch.likelihoods.GaussianLikelihood()

    def forward(self, x: torch.Tensor) -> MultivariateNormal:
        for i, layer in enumerate(self.hidden):
            marginal = layer(x, are_samples=i > 0)
            x = x + marginal.mean + torch.randn_like(marginal.mean) * marginal.variance.clamp_min(0.0).sqrt()
        return self.output(x, are_samples=True)


def gpytorch_step(x: np.ndarray, y: np.ndarray, z: np.ndarray, layers: int, samples: int) -> Callable[[], Any]:
    """Return a function that computes the ELBO and its gradient in all parameters, on one thread."""
    torch.set_num_threads(1)
    torch.set_default_dtype(torch.float64)
    inputs, targets = torch.tensor(x), torch.tensor(y)
    model = Residual(torch.tensor(z), layers)
    elbo = gpytorch.mlls.DeepApproximateMLL(gpytorch.mlls.VariationalELBO(model.likelihood, model, x.shape[0]))

    def run() -> float:
        model.zero_grad()
        with gpytorch.settings.num_likelihood_samples(samples):
            loss = -elbo(model(inputs), targets)
            loss.backward()
        return loss.item()

    return run
