"""Noise that is held, and noise with a prior, in every way of training."""

from pathlib import Path

import equinox as eqx
import jax
import numpy as np
import pytest

from rdgp.core import log_prior, split_trainable
from rdgp.fields import ProjectedField, ScalarField
from rdgp.inference import fit, start_like_the_paper
from rdgp.kernels import Gamma, LogNormal, Matern
from rdgp.likelihoods import Gaussian, StudentT, WrappedGaussian
from rdgp.models import DeepGP, ExactGP, deep_gp
from rdgp.posteriors import Interdomain
from tests.equivalence.deep_models import KEY, SPHERE, X, observations
from tests.equivalence.files import round_trip, same

pytestmark = pytest.mark.xdist_group("noise")  # one worker compiles what they share

Y = observations("scalar")
NARROW = LogNormal(0.7, 1e-4)


def field() -> ScalarField:
    return ScalarField(SPHERE, Matern(1.5, 0.6, fixed=("nu",)), 2)


LIKELIHOODS = {
    "noise_variance": lambda **options: Gaussian(0.3, **options),
    "scale": lambda **options: StudentT(0.3, **options),
    "freedom": lambda **options: StudentT(0.2, 9.0, **options),
    "variance": lambda **options: WrappedGaussian(SPHERE, 0.3, **options),
}


@pytest.mark.parametrize("name", LIKELIHOODS)
def test_every_number_of_a_likelihood_may_be_held_or_have_a_prior(name: str, tmp_path: Path) -> None:
    likelihood = LIKELIHOODS[name](fixed=(name,), prior={name: Gamma(1.1, 0.05)})
    free, count = split_trainable(likelihood)[0], len(jax.tree.leaves(split_trainable(LIKELIHOODS[name]())[0]))
    assert len(jax.tree.leaves(free)) == count - 1
    value = getattr(likelihood, name)
    assert float(log_prior(likelihood)) == pytest.approx(float(Gamma(1.1, 0.05).log_density(value)), rel=1e-12)
    assert same(likelihood, round_trip(likelihood, tmp_path))
    with pytest.raises(ValueError, match="fixed takes names out of"):
        LIKELIHOODS[name](fixed=("noise",))
    with pytest.raises(ValueError, match="prior takes a dict such as"):
        LIKELIHOODS[name](prior={"noise": Gamma(1.0, 1.0)})
    with pytest.raises(ValueError, match="prior takes a dict such as"):
        ExactGP(field(), prior={"variance": Gamma(1.0, 1.0)})


def test_exact_regression_holds_fixed_noise() -> None:
    fitted = ExactGP(field(), 0.37, fixed=("noise_variance",)).fit(X, Y, progress=False)
    assert float(fitted.noise_variance) == pytest.approx(0.37, rel=1e-12)


def test_exact_regression_weighs_the_prior_of_the_noise() -> None:
    """At the optimum the slopes of evidence and prior in the logarithm of the noise cancel; a narrow prior decides."""
    decided = ExactGP(field(), prior={"noise_variance": NARROW}).fit(X, Y, progress=False)
    assert float(decided.noise_variance) == pytest.approx(0.7, rel=1e-2)
    prior = Gamma(20.0, 40.0)
    gp = ExactGP(field(), prior={"noise_variance": prior}).fit(X, Y, progress=False)

    def evidence(shift: float) -> float:
        raw = gp.likelihood.parameters["noise_variance"].raw
        moved = eqx.tree_at(lambda g: g.likelihood.parameters["noise_variance"].raw, gp, raw + shift)
        return float(moved.log_marginal_likelihood(X, Y))

    slope = (evidence(1e-4) - evidence(-1e-4)) / 2e-4
    assert slope == pytest.approx(40.0 * float(gp.noise_variance) - 19.0, abs=2e-3)
    assert abs(slope) > 0.1


def test_starts_and_fits_hold_fixed_noise() -> None:
    model = DeepGP((), field(), Gaussian(0.37, fixed=("noise_variance",)))
    assert float(start_like_the_paper(model, model.check_data(X, Y)).noise_variance) == pytest.approx(0.37, rel=1e-12)
    fitted = fit(model, X, Y, key=KEY, steps=3, progress=False)
    assert float(fitted.model.noise_variance) == pytest.approx(0.37, rel=1e-12)


def test_deep_fits_weigh_the_prior_of_the_noise() -> None:
    hidden = Interdomain(ProjectedField(SPHERE, Matern(1.5, 1.0, 0.01), 2), std=0.1)
    model = DeepGP((hidden,), field(), Gaussian(prior={"noise_variance": NARROW}))
    fitted = fit(model, X, Y, key=KEY, steps=100, progress=False)
    assert float(fitted.model.noise_variance) == pytest.approx(0.7, rel=1e-2)


def test_a_model_with_nothing_to_learn_is_left_as_it_is() -> None:
    held = ScalarField(SPHERE, Matern(1.5, 0.6, fixed=("nu", "lengthscale", "variance")), 2)
    noise = Gaussian(0.37, fixed=("noise_variance",))
    deep = fit(DeepGP((), held, noise), X, Y, key=KEY, steps=2, progress=False)
    assert deep.status == "ok"
    exact = ExactGP(held, 0.37, fixed=("noise_variance",)).fit(X, Y, progress=False)
    prediction = exact.predict(X)
    np.testing.assert_allclose(deep.model.predict(X, key=KEY, samples=1).mean, prediction.mean, atol=1e-10)
    assert float(exact.noise_variance) == pytest.approx(0.37, rel=1e-12)
    np.testing.assert_allclose(deep.history, exact.log_marginal_likelihood(X, Y), rtol=1e-10)


def test_deep_gp_takes_a_likelihood() -> None:
    noise = StudentT(0.2, fixed=("freedom",))
    assert same(deep_gp(SPHERE, num_levels=1, num_output_levels=2, likelihood=noise).likelihood, noise)
    with pytest.raises(ValueError, match="a model without output needs WrappedGaussian"):
        deep_gp(SPHERE, output="point", num_levels=1, likelihood=noise)
