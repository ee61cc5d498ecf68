"""Types of what users pass in."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Array

Numbers = Array | np.ndarray | np.generic | float | int | Sequence[Any]
"""Anything that turns into an array of numbers; the doors of the library convert and check it."""
