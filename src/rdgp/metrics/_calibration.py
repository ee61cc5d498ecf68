"""Where observations fall within their predictive laws."""

import jax.numpy as jnp
from jax.scipy.special import ndtr
from jaxtyping import Array, Float

from rdgp.core import Numbers, compiled
from rdgp.metrics._metrics import _check, _in_coordinates
from rdgp.models import Prediction


def pit(prediction: Prediction, y: Numbers) -> Float[Array, "N ..."]:
    """Return the probability integral transform P(Y <= y) of each component; uniform where laws are right.

    One number for each point for scalars, else one for each component.
    """
    values = compiled(_pit, *_check(prediction, y))
    return values[:, 0] if prediction.scalar else values


def _pit(prediction: Prediction, y: Float[Array, "N ..."]) -> Float[Array, "N q"]:
    law, y = _in_coordinates(prediction, y)
    means, deviations = law._marginals()
    return jnp.mean(ndtr((y - means) / deviations), axis=0)
