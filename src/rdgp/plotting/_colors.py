"""Color ramps of even lightness steps, the same in figures and in the report.

A ramp runs through a few anchor colors in OKLab, a space where equal distances look equal (Ottosson 2020), with
lightness moving in equal steps, so no value looks more important than its neighbors.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from jaxtyping import Float, UInt8

from rdgp.core import require

if TYPE_CHECKING:
    from matplotlib.colors import ListedColormap

_TO_CONE = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)
_TO_LAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


class Ramp(NamedTuple):
    """Anchor colors on a light page and on a dark one; a diverging ramp turns at its middle anchor."""

    light: tuple[str, ...]
    dark: tuple[str, ...]
    diverging: bool = False


RAMPS = {
    "speed": Ramp(("#f4f8f6", "#a8d5cf", "#4aa3b5", "#2b6a9b"), ("#14202b", "#1f4f6d", "#2b8790", "#6cc9b0")),
    "uncertainty": Ramp(("#fbf7ef", "#f6d5a0", "#e58f65", "#b04a5a"), ("#1c1a2b", "#542c5c", "#a5475c", "#e2905f")),
    "difference": Ramp(("#f7f5fa", "#d3c4e6", "#a07fc4", "#6c4699"), ("#1a1a2a", "#413569", "#7a58aa", "#b995e3")),
    "scalar": Ramp(("#30246e", "#8d3f8c", "#e0735c", "#fbe9a4"), ("#221a52", "#8d3f8c", "#e0735c", "#fbe9a4")),
    "signed": Ramp(
        ("#2c5f9e", "#8fb7d9", "#f7f6f3", "#e3a587", "#a8433f"),
        ("#8cc6f2", "#3d74a8", "#1a1d26", "#a8563f", "#f5b08e"),
        diverging=True,
    ),
}


def color_table(name: str, *, dark: bool = False, size: int = 256) -> UInt8[np.ndarray, "size 3"]:
    """Return the colors of a ramp as rows of red, green and blue."""
    if name not in RAMPS:
        raise ValueError(f"there is no color ramp {name!r}; choose one of {', '.join(RAMPS)}")
    ramp = RAMPS[name]
    anchors = _to_oklab(np.array([_parse(color) for color in (ramp.dark if dark else ramp.light)]))
    if not ramp.diverging:
        return _to_bytes(_interpolate(anchors, size))
    middle = len(anchors) // 2
    low = _interpolate(anchors[: middle + 1], size - size // 2)
    high = _interpolate(anchors[middle:], size // 2 + 1)
    return _to_bytes(np.concatenate([low, high[1:]]))


def colormap(name: str) -> "ListedColormap":
    """Return a ramp as a colormap of matplotlib."""
    return require("matplotlib.colors", "plot").ListedColormap(color_table(name) / 255.0, name=f"rdgp_{name}")


def lightness(colors: UInt8[np.ndarray, "n 3"]) -> Float[np.ndarray, "n"]:
    """Return how light colors look, from 0 (black) to 1 (white)."""
    return _to_oklab(colors / 255.0)[:, 0]


def _parse(color: str) -> tuple[float, ...]:
    return tuple(int(color[i : i + 2], 16) / 255.0 for i in (1, 3, 5))


def _interpolate(anchors: Float[np.ndarray, "k 3"], size: int) -> Float[np.ndarray, "size 3"]:
    """Return colors through the anchors with lightness in equal steps."""
    order = 1.0 if anchors[-1, 0] > anchors[0, 0] else -1.0
    light = np.linspace(anchors[0, 0], anchors[-1, 0], size)
    hue = [np.interp(order * light, order * anchors[:, 0], anchors[:, axis]) for axis in (1, 2)]
    return np.stack([light, *hue], axis=-1)


def _to_oklab(colors: Float[np.ndarray, "n 3"]) -> Float[np.ndarray, "n 3"]:
    linear = np.where(colors <= 0.04045, colors / 12.92, ((colors + 0.055) / 1.055) ** 2.4)
    return np.cbrt(linear @ _TO_CONE.T) @ _TO_LAB.T


def _to_bytes(lab: Float[np.ndarray, "n 3"]) -> UInt8[np.ndarray, "n 3"]:
    linear = np.clip((lab @ np.linalg.inv(_TO_LAB).T) ** 3 @ np.linalg.inv(_TO_CONE).T, 0.0, 1.0)
    colors = np.where(linear <= 0.0031308, 12.92 * linear, 1.055 * linear ** (1 / 2.4) - 0.055)
    return np.round(255.0 * colors).astype(np.uint8)
