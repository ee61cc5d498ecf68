"""Finalizers: what is done once training has ended."""

from jaxtyping import PRNGKeyArray

from rdgp.inference._noise import with_best_noise
from rdgp.models import Data, DeepGP


def finalize(model: DeepGP, data: Data, key: PRNGKeyArray, *, subsampled: bool) -> DeepGP:
    """Return a trained model as users get it: with its data if its output needs them, and with the noise of all.

    A kernel of few levels may explain every subsample of the points without noise and be contradicted by all of them;
    it would then predict with far too much confidence.
    """
    if not model.output.joint:
        return model
    return (with_best_noise(model, data, key) if subsampled else model).with_data(data)
