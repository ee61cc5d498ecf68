"""Objectives and optimizers that researchers call themselves: bounds, densities, natural gradients, own recipes."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jax.scipy.stats import norm

from rdgp.core import Gamma, log_prior, split_trainable, to_vector
from rdgp.fields import ScalarField
from rdgp.inference import Recipe, elbo, estimate, fit, log_density, natural_gradient_step
from rdgp.kernels import Matern
from rdgp.likelihoods import Bernoulli, Gaussian
from rdgp.models import Data, DeepGP, ExactGP, Randomness
from rdgp.posteriors import Interdomain
from tests.equivalence.deep_models import KEY, NOISE, OUTPUTS, SPHERE, X, bound, hodge, observations, two_layers

pytestmark = pytest.mark.xdist_group("objectives")  # one worker compiles what they share

Y = observations("scalar")


def deep(variance: float = 0.05) -> DeepGP:
    field = ScalarField(SPHERE, Matern(1.5, 0.6, 1.5, prior={"lengthscale": Gamma(2.0, 1.0)}), 3)
    return DeepGP((Interdomain(hodge(variance)),), field, Gaussian(NOISE))


@pytest.mark.parametrize("kind", ["scalar", "tangent", "stacked"])
def test_the_bound_of_a_shallow_integrated_model_is_its_log_marginal_likelihood(kind: str) -> None:
    model, gp = DeepGP((), OUTPUTS[kind], Gaussian(NOISE)), ExactGP(OUTPUTS[kind], NOISE)
    expected = gp.log_marginal_likelihood(X, observations(kind))
    assert bound(model, X, observations(kind)) == pytest.approx(float(expected), rel=1e-10)


def test_the_bound_is_differentiable_outside_of_any_compilation() -> None:
    """Forward differences of the log noise: the bound is a function of the model for a key."""
    model = two_layers("scalar", False).with_data(None)

    def shifted(step: float) -> DeepGP:
        return eqx.tree_at(lambda m: m.likelihood.parameters["noise_variance"].raw, model, np.log(NOISE) + step)

    slope = eqx.filter_grad(lambda m: elbo(m, X, Y, key=KEY))(model).likelihood.parameters["noise_variance"].raw
    ahead, behind = (float(elbo(shifted(step), X, Y, key=KEY)) for step in (1e-5, -1e-5))
    assert float(slope) == pytest.approx((ahead - behind) / 2e-5, rel=1e-6)


def test_the_density_of_a_shallow_model_is_evidence_times_prior() -> None:
    kernel = Matern(1.5, 0.6, 1.5, prior={"lengthscale": Gamma(2.0, 1.0)})
    model = DeepGP((), ScalarField(SPHERE, kernel, 3), Gaussian(NOISE))
    expected = float(ExactGP(model.field, NOISE).log_marginal_likelihood(X, Y)) + float(log_prior(model))
    assert float(log_density(model, X, Y, jnp.zeros(0))) == pytest.approx(expected, rel=1e-10)
    assert float(log_prior(model)) == pytest.approx(np.log(0.6) - 0.6, rel=1e-10)


def test_the_density_of_a_deep_model_is_the_sum_of_its_parts() -> None:
    """The posterior is the prior here, so normal numbers are whitened weights."""
    model, w = deep(), jnp.asarray(np.random.default_rng(0).normal(size=16))
    assert model.num_normals == 16

    @eqx.filter_jit
    def evidence(model: DeepGP) -> jax.Array:
        state = model.propagate(model.start(X), model.draws_with(Randomness(KEY, w)))
        return model.output.log_density(model.likelihood, state, model.check_data(X, Y))

    expected = float(evidence(model)) + float(np.sum(norm.logpdf(w))) + float(log_prior(model))
    assert float(log_density(model, X, Y, w)) == pytest.approx(expected, rel=1e-10)
    still = log_density(deep(1e-16), X, Y, w)
    shallow = ExactGP(model.field, NOISE).log_marginal_likelihood(X, Y)
    assert float(still) == pytest.approx(float(shallow + log_prior(model) + np.sum(norm.logpdf(w))), abs=1e-5)


def test_the_density_of_tied_layers_has_their_weights_once() -> None:
    q, w = Interdomain(hodge()), jnp.asarray(np.random.default_rng(0).normal(size=16))
    model = DeepGP((q, q), OUTPUTS["scalar"], Gaussian(NOISE))
    twice = SPHERE.exp(X, field_of(q, w, X))
    twice = SPHERE.exp(twice, field_of(q, w, twice))
    expected = ExactGP(OUTPUTS["scalar"], NOISE).log_marginal_likelihood(twice, Y) + np.sum(norm.logpdf(w))
    assert float(log_density(model, X, Y, w)) == pytest.approx(float(expected), rel=1e-9)


def field_of(q: Interdomain, weights: jax.Array, x: jax.Array) -> jax.Array:
    return q.field.features(x) @ (q.field.scales() * weights)


def test_the_density_has_the_gradients_of_its_values() -> None:
    model, rng = deep(), np.random.default_rng(1)
    w, along = (jnp.asarray(rng.normal(size=16)) for _ in range(2))
    free, rest = split_trainable(model)
    moved = jax.tree.map(lambda leaf: jnp.asarray(rng.normal(size=leaf.shape)), free)

    @jax.jit
    def value(step: jax.Array) -> jax.Array:
        there = jax.tree.map(lambda a, b: a + step * b, free, moved)
        return log_density(eqx.combine(there, rest), X, Y, w + step * along)

    slope = float(jax.grad(value)(0.0))
    assert slope == pytest.approx(float(value(1e-5) - value(-1e-5)) / 2e-5, rel=1e-6)
    assert abs(float(jax.grad(lambda s: log_density(model, X, Y, w + s * along))(0.0))) > 1e-3


def test_the_density_of_an_explicit_output_is_refused() -> None:
    with pytest.raises(ValueError, match="log_density needs a model whose output is a field or None") as caught:
        log_density(DeepGP((), Interdomain(OUTPUTS["scalar"])), X, Y, jnp.zeros(0))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["scalar", "tangent"])
def test_a_natural_gradient_step_of_one_leads_to_the_optimum(kind: str) -> None:
    model, y = DeepGP((), Interdomain(OUTPUTS[kind], std=0.3), Gaussian(NOISE)), observations(kind)
    expected = float(ExactGP(OUTPUTS[kind], NOISE).log_marginal_likelihood(X, y))
    assert bound(model, X, y) < expected - 1.0
    best = natural_gradient_step(model, X, y, key=KEY, rate=1.0)
    assert bound(best, X, y) == pytest.approx(expected, abs=1e-7)
    again = natural_gradient_step(best, X, y, key=KEY, rate=0.5)
    assert bound(again, X, y) == pytest.approx(expected, abs=1e-7)
    assert float(best.noise_variance) == pytest.approx(NOISE, rel=1e-12)
    np.testing.assert_array_equal(to_vector(best.field), to_vector(model.field))


def test_a_natural_gradient_step_with_known_noise_leads_to_its_optimum() -> None:
    noise = np.random.default_rng(0).uniform(0.01, 2.0, 10)
    model = DeepGP((), Interdomain(OUTPUTS["scalar"]), Gaussian(NOISE))
    best = natural_gradient_step(model, X, Y, key=KEY, noise_variance=noise)
    expected = ExactGP(OUTPUTS["scalar"], NOISE).log_marginal_likelihood(X, Y, noise_variance=noise)
    assert float(elbo(best, X, Y, key=KEY, noise_variance=noise)) == pytest.approx(float(expected), abs=1e-7)


def test_small_natural_gradient_steps_never_lower_the_bound_of_classes() -> None:
    y = (Y > 0.0).astype(float)
    model = DeepGP((), Interdomain(OUTPUTS["scalar"], std=0.5), Bernoulli())
    bounds = [bound(model, X, y)]
    for _ in range(20):
        model = natural_gradient_step(model, X, y, key=KEY, rate=0.1)
        bounds.append(bound(model, X, y))
    assert np.all(np.diff(bounds) > -1e-9)
    assert bounds[-1] > bounds[0] + 0.5


def test_a_line_search_on_fixed_draws_raises_the_bound_in_every_step() -> None:
    y = jnp.sin(3.0 * X[:, 0]) + X[:, 1] * X[:, 2]
    fitted = fit(deep(), X, y, key=KEY, steps=12, optimizer=optax.lbfgs(), fixed_draws=True, progress=False)
    assert fitted.status == "ok"
    assert np.all(np.diff(fitted.history) > -1e-8)
    assert fitted.history[-1] > fitted.history[0] + 1.0


def test_draws_differ_between_steps_unless_they_are_fixed() -> None:
    """With rates of zero the bound of every step is that of its draws."""
    still = Recipe(lambda model, data: model, 5, 5, 5, variational_rate=0.0, rate=0.0, warm_up=0)
    fixed, free = (
        fit(deep(), X, Y, key=KEY, recipe=still, fixed_draws=flag, progress=False).history for flag in (True, False)
    )
    assert fixed.shape == free.shape == (5,)
    assert np.ptp(fixed) == 0.0
    assert np.ptp(free) > 1e-3


def test_a_recipe_of_ones_own_is_used() -> None:
    def start(model: DeepGP, data: Data) -> DeepGP:
        assert data.num_points == 10
        return eqx.tree_at(lambda m: m.likelihood, model, model.likelihood.with_values(noise_variance=0.123))

    recipe = Recipe(start, 7, 7, 3, variational_rate=0.0, rate=0.0, warm_up=0)
    fitted = fit(deep(), X, Y, key=KEY, recipe=recipe, progress=False)
    assert fitted.history.shape == (7,)
    assert float(fitted.model.noise_variance) == pytest.approx(0.123, rel=1e-9)
    shallow = fit(DeepGP((), OUTPUTS["scalar"], Gaussian()), X, Y, key=KEY, recipe=recipe, progress=False)
    assert shallow.history.shape == (3,)
    explicit = fit(deep(), X, Y, key=KEY, recipe=recipe._replace(explicit=True, rate=0.05), progress=False)
    assert isinstance(explicit.model.output.variational, Interdomain)
    assert float(explicit.model.noise_variance) != pytest.approx(0.123, rel=1e-3)


def test_estimates_of_batches_stand_for_all_points() -> None:
    """A shallow explicit model has no draws: bounds of two halves, each standing for all, average to that of all."""
    model = DeepGP((), Interdomain(OUTPUTS["scalar"], std=0.5), Gaussian(NOISE))
    data = model.check_data(X, Y)
    halves = [float(estimate(model, data.rows(slice(i, i + 5), 10), KEY, 1)) for i in (0, 5)]
    assert np.mean(halves) == pytest.approx(float(estimate(model, data, KEY, 1)), rel=1e-10)
