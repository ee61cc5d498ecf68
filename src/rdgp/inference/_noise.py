"""The noise of models that were trained on parts of the data."""

import equinox as eqx
import numpy as np
import scipy.optimize
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import compiled_quickly, log_prior
from rdgp.inference._bound import Batch, elbo
from rdgp.inference._data import Data, first_carriers
from rdgp.likelihoods import Gaussian
from rdgp.models import DeepGP
from rdgp.models._start import with_noise

_LESS = 2.0  # how far below the noise to look, as a logarithm
_PRECISION = 0.2  # of the logarithm


def noise_of_all(model: DeepGP, data: Data) -> DeepGP:
    """Return the model with the noise under which all points are most likely, given one draw of its hidden layers.

    A kernel of few levels may explain every part of the points without noise and be contradicted by all of them; it
    would then predict with far too much confidence.
    """
    likelihood = model.likelihood
    if not isinstance(likelihood, Gaussian) or not likelihood._noise_variance.trainable:
        return model
    batch = Batch(data.x, data.y, first_carriers(model, data.x), data.x.shape[0])
    noise, variance = float(model.noise_variance), float(np.mean(np.var(np.asarray(data.y, float), axis=0)))

    def changed(change: float) -> DeepGP:
        return eqx.tree_at(lambda m: m.likelihood, model, with_noise(likelihood, noise * float(np.exp(change))))

    def loss(change: float) -> float:
        value = float(_bound(changed(change), batch, data.key))
        return -value if np.isfinite(value) else np.inf

    limits = (-_LESS, float(np.log(max(variance / noise, 1.0))) + 1.0)
    best = scipy.optimize.minimize_scalar(loss, bounds=limits, method="bounded", options={"xatol": _PRECISION})
    return changed(float(best.x)) if best.fun < loss(0.0) else model


@compiled_quickly
def _bound(model: DeepGP, batch: Batch, key: PRNGKeyArray) -> Float[Array, ""]:
    return elbo(model, batch, key, 1) + log_prior(model)
