"""Expected improvement and its logarithm, against quadrature and against each other."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from rdgp.bayesopt._acquisition import Feasibility, log_expected_improvement, log_improvement
from rdgp.bayesopt._scaling import Scaling
from rdgp.core import compiled
from rdgp.spaces import Sphere


def reference(z: float) -> float:
    """Return log h(z) = log of the integral of u φ(u - z) over u > 0, the exponent's largest part taken out."""
    value, _ = integrate.quad(lambda u: u * np.exp(-0.5 * u * u + u * z), 0.0, max(40.0 + z, 40.0 / max(-z, 1.0)))
    return float(np.log(value) - 0.5 * z * z - 0.5 * np.log(2.0 * np.pi))


value_and_slope = jax.jit(jax.vmap(jax.value_and_grad(log_improvement)))  # of six numbers, for one compilation


def test_log_improvement_is_that_of_quadrature() -> None:
    z = np.array([-30.0, -20.5, -19.5, -8.0, -5.0, -3.0, -1.01, -0.99, -0.3, 0.0, 1.5, 6.0])
    found = np.concatenate([value_and_slope(part)[0] for part in np.split(z, 2)])
    np.testing.assert_allclose(found, [reference(each) for each in z], rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
def test_log_improvement_and_its_slope_stay_finite(dtype: type) -> None:
    z = np.array([-1e4, -1e3, -20.0, -1.0, 0.0, 10.0], dtype)
    value, slope = value_and_slope(z)
    assert value.dtype == slope.dtype == dtype
    assert np.all(np.isfinite(value))
    assert np.all(np.isfinite(slope))
    assert np.all(np.diff(value) > 0.0)
    np.testing.assert_allclose(slope[:2], -z[:2], rtol=1e-2)


def test_the_slope_is_that_of_the_value() -> None:
    z = np.array([-25.0, -10.0, -1.5, -0.5, 2.0, 4.0])
    step = 1e-5
    above, below = (np.asarray(value_and_slope(z + shift)[0]) for shift in (step, -step))
    np.testing.assert_allclose(value_and_slope(z)[1], (above - below) / (2.0 * step), rtol=1e-5)


def test_a_mixture_averages_improvements_and_not_their_logs() -> None:
    mean, variance = np.array([[0.0], [3.0]]), np.array([[1.0], [0.01]])
    found = float(jax.jit(log_expected_improvement)(mean, variance, np.full((2, 1), -0.5))[0])
    z = -0.5
    one = stats.norm.pdf(z) + z * stats.norm.cdf(z)
    assert found == pytest.approx(np.log(one / 2.0), abs=1e-10)


def test_success_is_likely_where_nothing_failed() -> None:
    x, failed = np.eye(3), np.array([True, True, False])
    model = Feasibility(*map(jnp.asarray, (x[[0, 0, 2]], ~failed, failed, 0.3)))
    chance = np.exp(compiled(Feasibility.log_probability, model, Sphere(2), jnp.asarray(x)))
    assert chance[0] == pytest.approx(1.0 / 3.0, abs=1e-3)
    assert chance[1] > 0.95
    assert chance[2] > 0.95


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_scaling_goes_forth_and_back(sign: float) -> None:
    y = np.array([-3.0, 0.1, 0.2, 0.4, 7.0, 1e5])
    scaling = Scaling.of(y, sign, standardize=True, log_warp=True)
    z = scaling.forward(y)
    np.testing.assert_allclose(scaling.backward(z), y, rtol=1e-9)
    assert np.array_equal(np.argsort(z), np.argsort(sign * y))
    step = 1e-6
    slope = np.abs(scaling.forward(y + step) - scaling.forward(y - step)) / (2.0 * step)
    np.testing.assert_allclose(scaling.slope(y)[:5], slope[:5], rtol=1e-4)
    mean, variance = scaling.moments(z, np.full(6, 1e-8))
    np.testing.assert_allclose(mean, y, rtol=1e-4)
    np.testing.assert_allclose(variance, 1e-8 / scaling.slope(y) ** 2, rtol=1e-3)


def test_values_that_are_all_equal_scale_to_zero() -> None:
    y = np.full(4, 2.5)
    assert np.array_equal(Scaling.of(y, 1.0, standardize=True, log_warp=True).forward(y), np.zeros(4))
