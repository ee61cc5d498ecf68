"""Finalizers: what is done once training has ended."""

import equinox as eqx
import numpy as np
import scipy.optimize
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import compiled_quickly, log_prior
from rdgp.inference._loop import first_basis
from rdgp.inference._objective import estimate
from rdgp.models import Data, DeepGP, scatter

_LESS = 2.0  # how far below the noise to look, as a logarithm
_PRECISION = 0.2  # of the logarithm


def finalize(model: DeepGP, data: Data, key: PRNGKeyArray, *, subsampled: bool) -> DeepGP:
    """Return a trained model as users get it: with its data if its output needs them, and with the noise of all."""
    if not model.output.joint:
        return model
    return (_with_noise_of_all(model, data, key) if subsampled else model).with_data(data)


def _with_noise_of_all(model: DeepGP, data: Data, key: PRNGKeyArray) -> DeepGP:
    """Return the model with the noise under which all points are most likely, given one draw of its hidden layers.

    A kernel of few levels may explain every part of the points without noise and be contradicted by all of them; it
    would then predict with far too much confidence.
    """
    if not model.likelihood.parameters["noise_variance"].trainable:
        return model
    noise, variance = float(model.noise_variance), scatter(data)

    def changed(change: float) -> DeepGP:
        likelihood = model.likelihood.with_values(noise_variance=noise * float(np.exp(change)))
        return eqx.tree_at(lambda m: m.likelihood, model, likelihood)

    def loss(change: float) -> float:
        value = float(_bound(changed(change), data, key))
        return -value if np.isfinite(value) else np.inf

    limits = (-_LESS, float(np.log(max(variance / noise, 1.0))) + 1.0)
    best = scipy.optimize.minimize_scalar(loss, bounds=limits, method="bounded", options={"xatol": _PRECISION})
    return changed(float(best.x)) if best.fun < loss(0.0) else model


@compiled_quickly
def _bound(model: DeepGP, data: Data, key: PRNGKeyArray) -> Float[Array, ""]:
    return estimate(model, data, key, 1, first_basis(model, data)) + log_prior(model)
