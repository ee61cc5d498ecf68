"""Run every test in double precision, with shapes and types checked at run time."""

import os
from pathlib import Path

import jax
import jaxtyping
import pytest
from hypothesis import HealthCheck, settings

jax.config.update("jax_enable_x64", True)
jaxtyping.install_import_hook(["rdgp", "rdgp_paper"], "beartype.beartype")

from rdgp.core import _compile  # noqa: E402

_compile._QUICK["xla_backend_optimization_level"] = 0  # tests compile much and run little

settings.register_profile(
    "laws",
    max_examples=8,
    deadline=None,  # the first example of each shape compiles
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("laws")


@pytest.fixture(scope="session")
def data_folder() -> Path:
    """Return the folder of real data, or skip."""
    folder = os.environ.get("RDGP_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("RDGP_DATA does not point to the folder of real data")
    return Path(folder)


def pytest_runtest_teardown() -> None:
    """Forget compiled functions where they take many memory maps: Linux crashes a process that needs over 65,530."""
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > 30_000:
        jax.clear_caches()
