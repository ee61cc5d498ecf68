"""Residual deep Gaussian processes on manifolds.

Rooms: `rdgp.spaces` (manifolds), `rdgp.spectra` (eigenfunctions and eigenfields), `rdgp.kernels`, `rdgp.fields`
(Gaussian priors), `rdgp.likelihoods`, `rdgp.variational` (approximate posteriors), `rdgp.models`, `rdgp.inference`
(training), `rdgp.metrics`, `rdgp.io`, `rdgp.bayesopt` (ask and tell), `rdgp.datasets` (files, winds, satellite tracks),
`rdgp.estimators` (scikit-learn), `rdgp.geo` (xarray), `rdgp.plotting`.
Importing the package changes no setting of JAX; it is imported when a name is first used, so that the shell answers at
once and can prepare its process before.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rdgp._public import *  # noqa: F403

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if not name.startswith("_") and find_spec(f"rdgp.{name}") is not None:
        return import_module(f"rdgp.{name}")
    if name == "__all__":
        return [*import_module("rdgp._public").__all__, "__version__"]
    if name.startswith("_") or name not in (public := import_module("rdgp._public")).__all__:
        raise AttributeError(f"module 'rdgp' has no attribute {name!r}")
    globals()[name] = value = getattr(public, name)
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__getattr__("__all__")])
