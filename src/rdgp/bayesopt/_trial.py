"""One evaluation of the function that is optimised."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float

State = Literal["pending", "done", "failed"]
Origin = Literal["initial", "global", "local", "explore", "told"]


@dataclass(frozen=True, eq=False)
class Trial:
    """A point, its value once it is known, and where the point came from."""

    number: int
    x: Float[np.ndarray, "D"]
    y: float | None = None
    state: State = "pending"
    noise_variance: float | None = None
    origin: Origin = "told"
