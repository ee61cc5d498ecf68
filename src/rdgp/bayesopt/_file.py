"""The file of a study: readable JSON, written whole or not at all, and open in one process at a time."""

import json
import os
import weakref
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO, get_args

import numpy as np

import rdgp
from rdgp.bayesopt._checks import check_noise
from rdgp.bayesopt._trial import Origin, State, Trial
from rdgp.core import check_count
from rdgp.io import from_json, to_json, write_atomically
from rdgp.spaces import Space

FORMAT, VERSION = "rdgp-study", 2


def space_to_json(space: Space) -> dict[str, Any]:
    """Describe a space by its registered tag."""
    return to_json(space)


def space_from_json(described: Mapping[str, Any]) -> Space:
    """Build the space that was described, or raise."""
    space = from_json(described)
    if not isinstance(space, Space):
        raise ValueError(f"it names {type(space).__name__}, which is not a space")
    return space


def trial_to_json(trial: Trial) -> dict[str, Any]:
    """Describe a trial."""
    return {
        "number": trial.number,
        "state": trial.state,
        "x": trial.x.tolist(),
        "y": trial.y,
        "noise_variance": trial.noise_variance,
        "origin": trial.origin,
    }


def trial_from_json(described: Mapping[str, Any], number: int, space: Space) -> Trial:
    """Build the trial that was described, or raise if it makes no sense."""
    x = np.asarray(described["x"], dtype=float)
    y, state, origin = described["y"], described["state"], described["origin"]
    valued = isinstance(y, int | float) and bool(np.isfinite(y))
    if x.shape != (space.ambient_dim,) or not np.all(np.isfinite(x)) or described["number"] != number:
        raise ValueError(f"trial {number} has no proper point or number")
    if state not in get_args(State) or origin not in get_args(Origin) or valued != (state == "done"):
        raise ValueError(f"trial {number} has no proper state and value")
    return Trial(number, x, float(y) if valued else None, state, check_noise(described["noise_variance"]), origin)


def fits_from_json(described: Mapping[str, Any]) -> dict[str, Any]:
    """Return the parameters of fits by name, or raise if they make no sense."""
    return {name: _fit_from_json(name, held) for name, held in described.items()}


def _fit_from_json(name: str, held: Mapping[str, Any]) -> dict[str, Any]:
    parameters = np.asarray(held["parameters"], dtype=float)
    if parameters.ndim != 1 or not np.all(np.isfinite(parameters)):
        raise ValueError(f"fit {name!r} has no proper parameters")
    return {"observations": check_count(held["observations"], "observations", 0), "parameters": parameters.tolist()}


def write_study(path: Path, content: Mapping[str, Any]) -> None:
    """Write a study's content."""
    head = {"format": FORMAT, "version": VERSION, "rdgp": rdgp.__version__}
    rows = content["trials"]
    rest = json.dumps({**head, **{key: value for key, value in content.items() if key != "trials"}}, indent=2)
    trials = ",\n".join("    " + json.dumps(row, allow_nan=False) for row in rows)
    text = f'{rest[:-2]},\n  "trials": [\n{trials}\n  ]\n}}\n'
    write_atomically(path, text.encode())


def check_new(path: Path) -> None:
    """Raise if there is a file already."""
    if path.exists():
        raise ValueError(f"{path} exists already; go on with it by Study.load(path), or choose another name")


def read_study(path: Path) -> dict[str, Any]:
    """Read a study's content, or raise an error that says what is wrong with the file; it is left as it is."""
    if not path.exists():
        raise FileNotFoundError(f"there is no study at {path}; create it with Study(space, path=...)")
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"cannot load {path}: the file is damaged ({error}); restore a copy, it was left as it is"
        ) from None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"cannot load {path}: it is not a study of rdgp; pass a file written by Study.save")
    version = content.get("version")
    if isinstance(version, int) and version < VERSION:
        raise ValueError(
            f"cannot load {path}: it was written in format {version}, this rdgp reads format {VERSION}; begin a new "
            "study and tell it the trials of the file"
        )
    if not isinstance(version, int) or version > VERSION:
        raise ValueError(
            f"cannot load {path}: it was written by a newer rdgp ({content.get('rdgp')}, format {version}; this is "
            f"rdgp {rdgp.__version__}, which reads format {VERSION}); upgrade rdgp"
        )
    return content


class FileLock:
    """A claim on a study's file, which ends with `release`, with the object or with the process."""

    def __init__(self, path: Path) -> None:
        target = Path(os.path.realpath(path))
        if not target.parent.is_dir():
            raise ValueError(f"cannot save {path}: there is no folder {target.parent}; create it first")
        file = open(target.with_name(f".{target.name}.lock"), "a+", encoding="utf-8")  # noqa: SIM115 - held open
        if not _claim(file):
            file.seek(0)
            owner = file.read().strip()
            file.close()
            raise ValueError(
                f"{path} is in use by process {owner or 'unknown'}; wait for it or end it, or close() its study; to "
                "look only, use Study.load(path, read_only=True)"
            )
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        self.release = weakref.finalize(self, file.close)


def _claim(file: TextIO) -> bool:
    """Lock a file for this process if nobody has; the system frees it when the process dies."""
    try:
        import fcntl
    except ImportError:  # no such locks on this system
        return True
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True
