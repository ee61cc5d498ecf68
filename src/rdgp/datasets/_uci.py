"""Small regression tables: yacht, energy, concrete, kin8nm, power.

What is checked is the sha256 of the *numbers* (float64, little-endian, row by row), not of a file: the same table
comes as text, zip or ARFF from its sources, and one checksum serves them all.
"""

import hashlib
import os
import warnings
import zipfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from rdgp.core import check_unmasked, require
from rdgp.datasets._files import FilePath


class _Table(NamedTuple):
    rows: int
    columns: int
    target: int
    sha256: str
    url: str | None


_UCI = "https://archive.ics.uci.edu/static/public"
_TABLES = {
    "yacht": _Table(
        *(308, 7, 6, "ec08588637fd93582116a1ead33f0c1e787dae755168073608e030e5282a3f4e"),
        f"{_UCI}/243/yacht+hydrodynamics.zip",
    ),
    "energy": _Table(
        *(768, 10, 8, "9911e8d48851b4c8189c02346a26d6f42eadf7a56c43ccc4331f7ab9c4f75fa4"), f"{_UCI}/242/data.csv"
    ),
    # its source is a spreadsheet of an old format: convert it by hand
    "concrete": _Table(*(1030, 9, 8, "8b9a7af0366e0f437ad04cfba6bb729ec0c3ea76fa780ff3d3f4d057356b6af6"), None),
    "kin8nm": _Table(
        *(8192, 9, 8, "7fad37438fc1228ed099177766b084fb5577bf7457d7a6460f8d0389b21681ab"),
        "https://www.openml.org/data/get_csv/3626/dataset_2175_kin8nm.arff",
    ),
    "power": _Table(
        *(9568, 5, 4, "99a3e1a8b4d8640155030577f49c00789d0d390e4e5b4cd8e28f1a6a288abab2"), f"{_UCI}/294/data.csv"
    ),
}
UCI_NAMES = tuple(_TABLES)


class StandardizedSplit(NamedTuple):
    """Hold training and test parts, standardized by the mean and standard deviation of the training part."""

    x_train: Float[np.ndarray, "N d"]
    y_train: Float[np.ndarray, " N"]
    x_test: Float[np.ndarray, "T d"]
    y_test: Float[np.ndarray, " T"]
    y_mean: float
    y_scale: float


def load_uci(name: str, folder: FilePath | None = None) -> tuple[Float[np.ndarray, "N d"], Float[np.ndarray, " N"]]:
    """Return inputs and target of a table, from `folder`, $RDGP_DATA/uci, the user's cache, or else by download.

    A download is kept only if its numbers have the known checksum; a file of yours with other numbers gives a warning.
    """
    if name not in _TABLES:
        raise ValueError(f"no table {name!r}; there are {', '.join(UCI_NAMES)}")
    table = _TABLES[name]
    for place in _places(folder):
        path = place / f"{name}.csv"
        if path.is_file():
            numbers = _read_numbers(path, table)
            if _checksum(numbers) != table.sha256:
                warnings.warn(f"the numbers of {path} are not those known as {name}; results will differ", stacklevel=2)
            return _inputs_and_target(numbers, table)
    return _inputs_and_target(_download(name, table), table)


def split_standardized(
    x: Float[np.ndarray, "N d"], y: Float[np.ndarray, " M"], seed: int, test_fraction: float = 0.1
) -> StandardizedSplit:
    """Split at random into nine tenths and one tenth and standardize by the statistics of the training part.

    Inputs that are constant in training are centered only.
    """
    check_unmasked(x, "x")
    check_unmasked(y, "y")
    if len(x) != len(y):
        raise ValueError(f"x and y must have one length, got {len(x)} and {len(y)}")
    num_train = round(len(x) * (1.0 - test_fraction))
    if not 1 < num_train < len(x):
        raise ValueError(f"test_fraction must leave two training points and a test point, got {test_fraction:g}")
    order = np.random.default_rng(seed).permutation(len(x))
    train, test = order[:num_train], order[num_train:]
    center, std = x[train].mean(axis=0), x[train].std(axis=0)
    std = np.where(std > 1e-12 * (1.0 + np.abs(center)), std, 1.0)
    mean, scale = float(y[train].mean()), float(y[train].std())
    scaled_x, scaled_y = (x - center) / std, (y - mean) / (scale or 1.0)
    return StandardizedSplit(scaled_x[train], scaled_y[train], scaled_x[test], scaled_y[test], mean, scale or 1.0)


def _places(folder: FilePath | None) -> list[Path]:
    places = [] if folder is None else [Path(folder)]
    shared = os.environ.get("RDGP_DATA")
    return [*places, *([Path(shared) / "uci"] if shared else []), _cache()]


def _cache() -> Path:
    return Path(require("pooch", "data").os_cache("rdgp")) / "uci"


def _download(name: str, table: _Table) -> np.ndarray:
    place = (
        f"put {name}.csv (a header line, {table.rows} rows of {table.columns} numbers, inputs first) into "
        f"{_cache()}, or pass folder=..."
    )
    if table.url is None:
        raise FileNotFoundError(f"{name} cannot be downloaded as text; {place}")
    pooch = require("pooch", "data")
    raw = f"{name}.download"
    try:
        path = Path(pooch.retrieve(table.url, known_hash=None, fname=raw, path=_cache(), progressbar=False))
    except (OSError, ValueError) as error:
        raise FileNotFoundError(f"cannot download {name} ({type(error).__name__}: {table.url}); {place}") from None
    try:
        numbers = _read_numbers(path, table)
    finally:
        path.unlink(missing_ok=True)
    if _checksum(numbers) != table.sha256:
        raise ValueError(f"the numbers downloaded from {table.url} are not those known as {name}; {place}")
    np.savetxt(_cache() / f"{name}.csv", numbers, fmt="%.17g", delimiter=",", header="numbers", comments="")
    return numbers


def _read_numbers(path: Path, table: _Table) -> np.ndarray:
    """Read rows of numbers apart by commas or blanks, after any lines of names (CSV, plain text, ARFF, or zipped)."""
    rows: list[list[float]] = []
    for line in _text(path).splitlines():
        fields = line.replace(",", " ").split()
        try:
            row = [float(field) for field in fields]
        except ValueError:
            if rows:
                raise ValueError(f"{path} has a row that is not of numbers: {line[:60]!r}") from None
            continue
        if row:
            rows.append(row)
    if len(rows) != table.rows or any(len(row) != table.columns for row in rows):
        raise ValueError(
            f"{path} must hold {table.rows} rows of {table.columns} numbers, got {len(rows)} rows of "
            f"{len(rows[0]) if rows else 0}; get the file again"
        )
    return np.array(rows) + 0.0  # no negative zeros


def _text(path: Path) -> str:
    if not zipfile.is_zipfile(path):
        return path.read_text(encoding="utf-8", errors="replace")
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.endswith((".data", ".csv", ".arff"))]
        if not names:
            raise ValueError(f"{path} holds no table as text")
        return archive.read(names[0]).decode(errors="replace")


def _checksum(numbers: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(numbers, dtype="<f8").tobytes()).hexdigest()


def _inputs_and_target(numbers: np.ndarray, table: _Table) -> tuple[np.ndarray, np.ndarray]:
    return numbers[:, : min(table.target, table.columns - 1)], numbers[:, table.target]
