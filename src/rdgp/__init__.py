"""Residual deep Gaussian processes on manifolds.

The library, each subpackage built on those before it: `rdgp.core` (parameters, priors, checks), `rdgp.spaces`
(manifolds), `rdgp.spectra` (eigenfunctions and eigenfields), `rdgp.kernels`, `rdgp.fields` (Gaussian priors),
`rdgp.posteriors`, `rdgp.likelihoods`, `rdgp.optimize`, `rdgp.io` (files), `rdgp.models`, `rdgp.inference` (training),
`rdgp.metrics` (scores), `rdgp.testing` (laws that spaces, kernels and likelihoods of your own must obey).
On top of it: `rdgp.bayesopt` (ask and tell), `rdgp.datasets` (files, winds, satellite tracks), `rdgp.estimators`
(scikit-learn), `rdgp.geo` (xarray), `rdgp.plotting`, `rdgp.cli` (the command line).
The names used most are in `rdgp` itself; `dir(rdgp)` lists them and the subpackages. `rdgp.register` lets files hold
classes of your own.
Importing the package changes no setting of JAX; JAX is imported when a name is first used, so that the command line
answers at once and can prepare its process before.
"""

from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
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
    subpackages = [module.name for module in iter_modules(__path__) if module.ispkg]  # noqa: F405
    return sorted({*subpackages, *__getattr__("__all__")})
