"""A space, a kernel and a likelihood of another package: held to the laws, fitted deep, saved, loaded elsewhere."""

import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rdgp import DeepGP, FrameField, Interdomain, ProjectedField, ScalarField, fit, load, save
from rdgp.spaces import Circle, Product
from rdgp.spectra import ambient_spectra
from rdgp.testing import check_field, check_likelihood, check_space, check_spectrum
from tests.cases import precisions, set_to
from tests.laws.outside import Laplace, ProjectivePlane, Rational

SPACE = ProjectivePlane()
pytestmark = pytest.mark.xdist_group("outside")


@precisions
def test_the_space_obeys_the_laws(precision: str) -> None:
    with set_to(precision):
        check_space(SPACE)
        check_space(Product(SPACE, Circle()))


@precisions
def test_its_spectra_obey_the_laws(precision: str) -> None:
    """There is no quadrature for it, so orthonormality is that of random points."""
    with set_to(precision):
        check_spectrum(SPACE, 3)


@precisions
@pytest.mark.parametrize("kind", [ScalarField, ProjectedField])
def test_fields_with_the_kernel_obey_the_laws(kind: type, precision: str) -> None:
    with set_to(precision):
        check_field(kind(SPACE, Rational(0.5, 1.3), 3))


@precisions
def test_the_likelihood_obeys_the_laws(precision: str) -> None:
    with set_to(precision):
        check_likelihood(Laplace(0.4))


def test_a_frame_that_differs_between_vectors_of_a_point_is_refused() -> None:
    with pytest.raises(ValueError, match=r"the frame of ProjectivePlane\(\) differs between vectors of one point"):
        FrameField(SPACE, Rational(), 3)


def test_a_projected_field_without_functions_of_its_own_is_refused() -> None:
    class Unregistered(ProjectivePlane):
        pass

    ambient_spectra.register(Unregistered, ambient_spectra.dispatch(object))
    with pytest.raises(ValueError, match=r"several vectors for a point, .* register them with ambient_spectra"):
        ProjectedField(Unregistered(), Rational(), 3)


@pytest.fixture(scope="module")
def fitted() -> DeepGP:
    """Return a deep model of a few steps."""
    rng = np.random.default_rng(0)
    x = np.asarray(SPACE.nearest(rng.normal(size=(60, 3))))
    y = 3.0 * x[:, 0] * x[:, 1] + 0.1 * rng.laplace(size=60)
    hidden = [Interdomain(ProjectedField(SPACE, Rational(0.5, 0.01), 2)) for _ in range(2)]
    model = DeepGP(hidden, Interdomain(ScalarField(SPACE, Rational(0.5), 4)), Laplace(0.2))
    result = fit(model, x, y, key=jax.random.key(0), steps=80, progress=False)
    assert result.history[-1] > result.history[0] + 10.0
    mean = np.asarray(result.model.predict(x, key=jax.random.key(1)).mean)
    assert np.corrcoef(mean, y)[0, 1] > 0.8
    return result.model


def _mean(model: DeepGP, x: np.ndarray) -> np.ndarray:
    return np.asarray(model.predict(x, key=jax.random.key(2), samples=3).mean)


def test_a_deep_model_predicts_the_same_at_all_vectors_of_a_point(fitted: DeepGP) -> None:
    x = np.asarray(SPACE.random(20, key=jax.random.key(3)))
    np.testing.assert_allclose(_mean(fitted, -x), _mean(fitted, x), atol=1e-9)


_LOADING = """
import jax, numpy, sys
import rdgp
{imports}
x = numpy.load(sys.argv[2])
model = rdgp.load(sys.argv[1])
numpy.save(sys.argv[3], model.predict(x, key=jax.random.key(2), samples=3).mean)
"""


def _load_elsewhere(imports: str, *paths: Path) -> subprocess.CompletedProcess:
    root = Path(__file__).parents[2]
    code = f"import sys; sys.path[:0] = [{str(root)!r}, {str(root / 'src')!r}]" + _LOADING.format(imports=imports)
    command = [sys.executable, "-c", f"import os; os.environ['JAX_ENABLE_X64'] = '1'\n{code}", *map(str, paths)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_a_deep_model_loads_in_a_fresh_process(fitted: DeepGP, tmp_path: Path) -> None:
    x = np.asarray(SPACE.random(20, key=jax.random.key(3)))
    save(fitted, tmp_path / "model.rdgp")
    np.save(tmp_path / "x.npy", x)
    paths = tmp_path / "model.rdgp", tmp_path / "x.npy", tmp_path / "mean.npy"
    done = _load_elsewhere("import tests.laws.outside", *paths)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load(paths[2]), _mean(fitted, x), rtol=1e-9)
    assert jnp.array_equal(_mean(load(paths[0]), x), _mean(fitted, x))


def test_a_file_whose_package_is_not_imported_is_refused(fitted: DeepGP, tmp_path: Path) -> None:
    save(fitted, tmp_path / "model.rdgp")
    np.save(tmp_path / "x.npy", np.eye(3))
    done = _load_elsewhere("", tmp_path / "model.rdgp", tmp_path / "x.npy", tmp_path / "mean.npy")
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert "import the package that registers it" in last
    assert "outside:" in last
