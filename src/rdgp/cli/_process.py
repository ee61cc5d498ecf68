"""What the command line sets for its own process before JAX is imported; the library itself sets nothing."""

import ctypes
import hashlib
import os
import platform
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

# numbers of the options of mallopt in glibc's malloc.h, and what they become, in bytes
_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = (-1, 2**31 - 1), (-2, 2**28), (-3, 2**30)
_DEADLOCK = "--xla_cpu_enable_concurrency_optimized_scheduler=false"


def prepare_process() -> None:
    """Keep freed memory and compiled functions, and choose flags of XLA, unless JAX is there already."""
    if "jax" not in sys.modules:
        _keep_memory()
        _calm_blas()
        _avoid_deadlock()
        _keep_compilations()


def _keep_memory() -> None:
    """Let glibc keep freed arrays: handed back to the system, each costs a page fault for every 4 kB when next used."""
    if platform.libc_ver()[0] != "glibc":
        return
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):
        return
    for option, value in (_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD):
        mallopt(ctypes.c_int(option), ctypes.c_int(value))


def _calm_blas() -> None:
    """Give OpenBLAS one thread: where others work too, its threads wait for each other longer than they compute.

    A Cholesky factor of size 300 took 200 ms instead of 0.6, one of size 2700 took 3.4 s instead of 0.2.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _avoid_deadlock() -> None:
    """Switch off a scheduler of XLA that stands still on two cores in jax 0.10."""
    flags = os.environ.get("XLA_FLAGS", "")
    name = _DEADLOCK.partition("=")[0]
    if _jax_version().startswith("0.10.") and name not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {_DEADLOCK}".strip()


def _keep_compilations() -> None:
    """Let JAX keep what takes long to compile in the user's cache, apart for each kind of processor."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    folder = cache / "rdgp" / f"compiled-{_processor()}"
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder))
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # XLA complains of every function that comes from the cache
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    known = next((line for line in lines if line.startswith(("flags", "Features"))), platform.processor())
    return hashlib.sha256(f"{platform.machine()} {known}".encode()).hexdigest()[:8]


def _jax_version() -> str:
    try:
        return version("jax")
    except PackageNotFoundError:
        return ""
