"""Predictions of many points with the same draws of the hidden layers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import Numbers, check_count, compiled_quickly, register
from rdgp.fields import check_points
from rdgp.models._prediction import PointPrediction, Prediction
from rdgp.posteriors import Marginals, Posterior, expand, worth_expanding

if TYPE_CHECKING:
    from rdgp.models._deep_gp import DeepGP

_BATCH = 1024  # points predicted at once


@register("rdgp:Predictor")
class Predictor(eqx.Module):
    """A model with its hidden layers drawn and its output conditioned on the data, once for any number of calls."""

    model: DeepGP
    keys: tuple[PRNGKeyArray, ...]
    marginals: tuple[Marginals, ...]  # one for each key; none for a manifold-valued model

    def __call__(self, x: Numbers, *, noise_variance: Numbers | None = None) -> Prediction | PointPrediction:
        """Return the predictive distribution at each point; `noise_variance` is known of observations there."""
        model = self.model
        x = check_points(model.space, x)
        noise = model.check_noise(noise_variance, x)
        likelihood = model.likelihood if noise is None else model.likelihood.given(noise)
        parts = [x[i : i + _BATCH] for i in range(0, max(x.shape[0], 1), _BATCH)]
        members = [self._member(i, parts) for i in range(len(self.keys))]
        stacked = tuple(jnp.stack(part) for part in zip(*members, strict=True))
        return model.output.prediction(stacked, likelihood, model.frame(x))

    def _member(self, i: int, parts: list[Float[Array, "_ D"]]) -> tuple[Float[Array, "N ..."], ...]:
        if self.marginals:
            pieces = [_moments(self.model, self.marginals[i], self.keys[i], part) for part in parts]
        else:
            pieces = [_points(self.model, self.keys[i], part) for part in parts]
        return tuple(jnp.concatenate(piece) for piece in zip(*pieces, strict=True))


def predictor(model: DeepGP, key: PRNGKeyArray, samples: int, num_points: int) -> Predictor:
    """Draw the hidden layers and condition the output, in the form that suits the number of points."""
    keys = tuple(jax.random.split(key, check_count(samples, "samples")))
    if model.bundle is None:
        return Predictor(model, keys, ())
    if model.output.joint:
        return Predictor(model, keys, tuple(_suited(model.posterior(own), num_points) for own in keys))
    return Predictor(model, keys, (_suited(model.posterior(keys[0]), num_points),) * len(keys))


def _suited(posterior: Posterior, num_points: int) -> Marginals:
    return expand(posterior) if worth_expanding(posterior, num_points) else posterior


@compiled_quickly
def _moments(
    model: DeepGP, marginals: Marginals, key: PRNGKeyArray, x: Float[Array, "N D"]
) -> tuple[Float[Array, "N q"], Float[Array, "N q q"]]:
    state = model.at(key, x)
    mean, covariance = marginals.coordinate_moments(state.x, state.frame)
    return mean + model.offset(mean.dtype), covariance


@compiled_quickly
def _points(model: DeepGP, key: PRNGKeyArray, x: Float[Array, "N D"]) -> tuple[Float[Array, "N D"]]:
    return (model.at(key, x).x,)
