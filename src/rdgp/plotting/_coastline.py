"""Coastlines, from the bundle or from the caller."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from rdgp.core import Numbers

Lines = Sequence[Numbers]  # of (latitude, longitude) rows
Pieces = list[Float[np.ndarray, "_ 2"]]


def coast(lines: Lines | None) -> Pieces:
    """Return lines of (latitude, longitude); None means the bundle, an empty list no coast at all.

    Pieces along the date line and on the poles are left out: they are cuts of the data, not coasts.
    """
    if lines is None:
        from rdgp.datasets import load_coastline

        lines = load_coastline()
    kept: Pieces = []
    for line in lines:
        line = np.asarray(line, float)
        if line.ndim != 2 or line.shape[1] != 2:
            raise ValueError(f"a coastline must be (latitude, longitude) rows of shape [n, 2], got {line.shape}")
        seam = (np.abs(line[:, 1]) > 179.99) | (np.abs(line[:, 0]) > 89.9)
        kept += [part for part in np.split(line, np.flatnonzero(seam[1:] & seam[:-1]) + 1) if len(part) > 1]
    return kept
