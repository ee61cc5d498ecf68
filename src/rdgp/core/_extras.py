"""Optional dependencies, asked for where they are used."""

from importlib import import_module
from types import ModuleType


def require(module: str, extra: str) -> ModuleType:
    """Import a module of an optional extra, or raise an error that names the extra."""
    try:
        return import_module(module)
    except ModuleNotFoundError:
        package = module.split(".")[0]
        raise ImportError(f"this needs {package}, which is not installed; run: pip install 'rdgp[{extra}]'") from None
