"""Wrong input to deep models gives one clear line."""
# ruff: noqa: E501 - one case a line reads as a table

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from rdgp.fields import HodgeField, ProjectedField, ScalarField, StackedField
from rdgp.inference import FitResult, fit
from rdgp.kernels import Matern
from rdgp.likelihoods import Bernoulli, Gaussian, Poisson, WrappedGaussian
from rdgp.models import DeepGP, ExactGP, deep_gp, euclidean_deep_gp
from rdgp.posteriors import InducingPoints, Interdomain, kmeans
from rdgp.spaces import Euclidean, Sphere, Torus
from tests.end_to_end.untyped import assert_one_line, errors_of

pytestmark = pytest.mark.xdist_group("deep bad input")  # one worker compiles what they share

SPHERE = Sphere(2)
KEY = jax.random.key(0)


def sphere_points(seed: int, n: int) -> np.ndarray:
    x = np.random.default_rng(seed).normal(size=(n, 3))
    return x / np.linalg.norm(x, axis=1, keepdims=True)


X = jnp.asarray(sphere_points(0, 12))
Y = X[:, 0]
FIELD = ScalarField(SPHERE, Matern(), 2)
HODGE = HodgeField(SPHERE, Matern(variance=0.01), Matern(variance=0.01), 1)
TORUS = HodgeField(Torus(2), Matern(), Matern(), 1)
HIDDEN = Interdomain(HODGE, std=0.1)
MODEL = DeepGP((HIDDEN,), FIELD, Gaussian())
POINTS = DeepGP((HIDDEN,), None, WrappedGaussian(SPHERE))
FLAT = InducingPoints(ProjectedField(Euclidean(2), Matern()), np.eye(2))


def run(x: object = X, y: object = Y, model: object = MODEL, **options: object) -> FitResult:
    return fit(model, x, y, key=KEY, progress=False, **options)


CASES = {
    "spaces of layers": (lambda: DeepGP((HIDDEN, Interdomain(TORUS)), None), "layer 1 leads to Sphere(2), but layer 2 starts on Torus(2)"),
    "space of output": (lambda: DeepGP((Interdomain(TORUS),), FIELD), "layer 1 leads to Torus(2), but layer 2 starts on Sphere(2)"),
    "scalar hidden layer": (lambda: DeepGP((Interdomain(FIELD),), FIELD), "a hidden layer needs a vector field, or a StackedField with outputs=3"),
    "stack of wrong size": (lambda: DeepGP((Interdomain(StackedField(SPHERE, Matern(), 2, outputs=2)),), FIELD), "a StackedField with outputs=3"),
    "no layer": (lambda: DeepGP(), "a DeepGP needs at least one layer"),
    "points need a wrapped likelihood": (lambda: DeepGP((HIDDEN,), None, Gaussian()), "a model without output needs WrappedGaussian(Sphere(2)), got Gaussian"),
    "wrapped on another space": (lambda: DeepGP((HIDDEN,), None, WrappedGaussian(Torus(2))), "needs WrappedGaussian(Sphere(2))"),
    "wrapped with output": (lambda: DeepGP((HIDDEN,), FIELD, WrappedGaussian(SPHERE)), "likelihood must be one such as Gaussian()"),
    "mean of a tangent field": (lambda: DeepGP((), HODGE, constant_mean=True), "a constant mean needs a scalar output"),
    "integrated over flat layers": (lambda: DeepGP((FLAT,), ScalarField(Euclidean(2), Matern())), "an integrated output needs hidden layers on compact spaces"),
    "x off the space": (lambda: run(x=X.at[3].mul(1.1)), "x must lie on Sphere(2): 1 of 12 rows do not, the worst is row 3"),
    "x of wrong width": (lambda: run(x=X[:, :2]), "x must have 3 numbers along its last axis for Sphere(2), got shape (12, 2)"),
    "NaN in x": (lambda: run(x=X.at[0, 0].set(jnp.nan)), "x must be finite, got 1 NaN"),
    "no points": (lambda: run(x=X[:0], y=Y[:0]), "x must hold at least one point, got none"),
    "NaN in y": (lambda: run(y=Y.at[5].set(jnp.nan)), "y must be finite, got 1 NaN or infinite values of 12, the first at index (5,)"),
    "y of wrong length": (lambda: run(y=Y[:4]), "y must have shape (12,) for 12 points, got (4,)"),
    "y of wrong width": (lambda: run(y=X), "y must have shape (12,) for 12 points, got (12, 3)"),
    "tangent y of wrong width": (lambda: run(y=Y, model=DeepGP((), HODGE)), "y must have shape (12, 3)"),
    "tangent y in a frame of wrong width": (lambda: run(y=Y, model=euclidean_deep_gp(3, 1, 4, x=X, input_space=SPHERE, output="tangent")), "y must have shape (12, 3)"),
    "y too large to square": (lambda: run(y=1e200 * Y), "in size to be squared in float64, got "),
    "y too small to square": (lambda: run(y=1e-200 * Y), "change its unit"),
    "y of an exact model too large": (lambda: ExactGP(FIELD).fit(X, 1e200 * Y), "in size to be squared in float64"),
    "y too large for single precision": (lambda: run(x=X.astype("float32"), y=1e20 * Y), "in size to be squared in float32"),
    "counts": (lambda: run(model=DeepGP((), FIELD, Poisson())), "y must hold whole numbers of at least zero for a Poisson likelihood"),
    "classes": (lambda: run(model=DeepGP((), FIELD, Bernoulli())), "y must hold zeros and ones for a Bernoulli likelihood"),
    "observed points off the space": (lambda: run(y=1.2 * X, model=POINTS), "y must lie on Sphere(2)"),
    "observed points of another number": (lambda: run(y=X[:5], model=POINTS), "one point for each of the 12 of x, got 5"),
    "batch too large": (lambda: run(batch_size=13), "batch_size must be at most the 12 points, got 13"),
    "batch of none": (lambda: run(batch_size=0), "batch_size must be a whole number of at least 1, got 0"),
    "steps 0": (lambda: run(steps=0), "steps must be a whole number of at least 1, got 0"),
    "samples 0": (lambda: run(samples=0), "samples must be a whole number of at least 1, got 0"),
    "samples of predict": (lambda: MODEL.predict(X, key=KEY, samples=0), "samples must be a whole number of at least 1, got 0"),
    "no data yet": (lambda: MODEL.predict(X, key=KEY), "has seen no data; call fit(model, x, y, key=key)"),
    "draw without data": (lambda: MODEL.draw(key=KEY), "has seen no data; call fit(model, x, y, key=key)"),
    "tail too long": (lambda: Interdomain(FIELD, tail=2), "tail must leave at least one of the field's 2 levels, got 2"),
    "negative tail": (lambda: Interdomain(FIELD, tail=-1), "tail must be a whole number of at least 0, got -1"),
    "inducing points off the space": (lambda: InducingPoints(FIELD, 2 * X), "z must lie on Sphere(2)"),
    "no inducing points": (lambda: InducingPoints(FIELD, X[:0]), "z must hold at least one point, got none"),
    "no means": (lambda: kmeans(SPHERE, X, 0, key=KEY), "num must be a whole number of at least 1, got 0"),
    "means off the space": (lambda: kmeans(SPHERE, 2 * X, 3, key=KEY), "x must lie on Sphere(2)"),
    "outputs of deep_gp": (lambda: deep_gp(SPHERE, output=0), "outputs must be a whole number of at least 1"),
    "inducing points without data": (lambda: deep_gp(SPHERE, inducing="points"), 'inducing="points" needs data to choose them from; pass x=...'),
    "layers of deep_gp": (lambda: deep_gp(SPHERE, layers=0), "layers must be a whole number of at least 1, got 0"),
    "levels of deep_gp": (lambda: deep_gp(SPHERE, num_levels=0), "num_levels must be a whole number of at least 1, got 0"),
    "Hodge on flat space": (lambda: deep_gp(Euclidean(2)), "use ProjectedField or FrameField"),
    "mean of a tangent deep_gp": (lambda: deep_gp(SPHERE, output="tangent", constant_mean=True), "a constant mean needs a scalar output"),
}  # fmt: skip

# of wrong types, or names that are none: the type checker of the tests would refuse them first
UNTYPED = {
    "field as hidden layer": (lambda: DeepGP((HODGE,), FIELD), "hidden layers are Interdomain or InducingPoints, got HodgeField"),
    "output of wrong type": (lambda: DeepGP((HIDDEN,), "scalar"), "output must be a field, Interdomain, InducingPoints or None, got str"),
    "not a deep model": (lambda: run(model=ExactGP(FIELD)), "fit needs a DeepGP, got ExactGP"),
    "unknown recipe": (lambda: run(recipe="fast"), "recipe must be one of default, quick, paper or a Recipe, got 'fast'"),
    "unknown optimizer": (lambda: run(optimizer="adam"), "optimizer must come from optax, such as optax.adam(0.01), got 'adam'"),
    "class of optimizers": (lambda: run(optimizer=optax.adam), "optimizer must come from optax"),
    "steps 1.5": (lambda: run(steps=1.5), "steps must be a whole number of at least 1, got 1.5"),
    "kind of tail": (lambda: Interdomain(FIELD, tail=1, tail_variances="free"), 'tail_variances must be "learned" or "fixed", got'),
    "field of deep_gp": (lambda: deep_gp(SPHERE, field="curl"), 'field must be "hodge", "projected" or "frame", got \'curl\''),
    "output of deep_gp": (lambda: deep_gp(SPHERE, output="vector"), 'output must be "scalar", "tangent", "point" or a number of outputs, got \'vector\''),
    "inducing of deep_gp": (lambda: deep_gp(SPHERE, inducing="locations"), 'inducing must be "interdomain" or "points", got \'locations\''),
    "field of a shallow tangent deep_gp": (lambda: deep_gp(SPHERE, layers=1, output="tangent", field="curl"), 'field must be "hodge", "projected" or "frame"'),
    "inducing of a shallow deep_gp": (lambda: deep_gp(SPHERE, layers=1, inducing="locations"), 'inducing must be "interdomain" or "points"'),
    "list of nu": (lambda: Matern([1.5, 2.5]), "one number each for nu and variance; got a list"),
    "truth for fixed": (lambda: Gaussian(0.1, fixed=True), "fixed takes names out of noise_variance, got True"),
    "prior of no name": (lambda: Gaussian(0.1, prior=3.0), "prior takes a dict such as"),
    "truth as number of outputs": (lambda: deep_gp(SPHERE, layers=1, output=True), "output must be"),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_wrong_input_is_explained_in_one_line(name: str) -> None:
    call, message = CASES[name]
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the text is checked below, as plain text
        call()
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.fixture(scope="module")
def errors() -> dict[str, str]:
    return errors_of(__name__)


@pytest.mark.parametrize("name", UNTYPED)
def test_wrong_types_and_names_are_explained_in_one_line(errors: dict[str, str], name: str) -> None:
    assert_one_line(errors[name], UNTYPED[name][1])
