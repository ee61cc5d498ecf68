"""The noise under which a model explains its data best, all else as it is."""

import equinox as eqx
import numpy as np
import scipy.optimize
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import compiled_quickly, log_prior
from rdgp.inference._objective import estimate
from rdgp.models import Data, DeepGP, noise_floor, scatter

_LESS = 2.0  # how far below the noise to look, as a logarithm
_PRECISION = 0.2  # of the logarithm
_NEAR = 4.0  # noise below so many times its floor counts as none


def with_best_noise(model: DeepGP, data: Data, key: PRNGKeyArray) -> DeepGP:
    """Return the model with the noise under which all points are most likely, given one draw of its hidden layers."""
    if not model.likelihood.parameters["noise_variance"].trainable:
        return model
    noise = float(model.noise_variance)

    def changed(change: float) -> DeepGP:
        likelihood = model.likelihood.with_values(noise_variance=noise * float(np.exp(change)))
        return eqx.tree_at(lambda m: m.likelihood, model, likelihood)

    def loss(change: float) -> float:
        value = float(_bound(changed(change), data, key))
        return -value if np.isfinite(value) else np.inf

    limits = (-_LESS, float(np.log(max(scatter(data) / noise, 1.0))) + 1.0)
    best = scipy.optimize.minimize_scalar(loss, bounds=limits, method="bounded", options={"xatol": _PRECISION})
    return changed(float(best.x)) if best.fun < loss(0.0) else model


def with_noise_of_hidden_layers(model: DeepGP, data: Data, key: PRNGKeyArray) -> DeepGP:
    """Return a deep model that starts without noise with as much as random hidden layers call for.

    The output layer alone may explain the data without noise. Once points move it does not, and gradients from there
    would be of the size of the data over rounding errors.
    """
    if not model.order or model.output.bundle is None or not model.likelihood.conjugate:
        return model
    return model if float(model.noise_variance) > _NEAR * noise_floor(data) else with_best_noise(model, data, key)


@compiled_quickly
def _bound(model: DeepGP, data: Data, key: PRNGKeyArray) -> Float[Array, ""]:
    return estimate(model, data, key, 1) + log_prior(model)
