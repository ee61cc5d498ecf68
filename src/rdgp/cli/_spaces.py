"""Spaces as texts: sphere:2, circle, torus:3, rotations, box:0,1;0,2, and products of them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rdgp.spaces import Space

GRAMMAR = "sphere:2, circle, torus:3, rotations, box:0,1;0,2 or a product such as rotations*box:0,1"


def as_space(text: str) -> "Space":
    """Return the space that a text names, or raise."""
    from rdgp.spaces import Product

    parts = [_factor(part.strip(), text) for part in text.split("*")]
    return parts[0] if len(parts) == 1 else Product(*parts)


def _factor(part: str, text: str) -> "Space":
    from rdgp.spaces import Circle, Rotations, Sphere, Torus

    name, colon, rest = part.partition(":")
    if name in ("circle", "rotations") and not colon:
        return Circle() if name == "circle" else Rotations()
    if name in ("sphere", "torus"):
        if not rest.isdigit() or int(rest) < 1:
            raise ValueError(f"--space {part}: {name} needs a dimension of at least 1; write {name}:2")
        return Sphere(int(rest)) if name == "sphere" else Torus(int(rest))
    if name == "box" and rest:
        return _box(part, rest)
    raise ValueError(f"--space must be {GRAMMAR}, got {text!r}")


def _box(part: str, rest: str) -> "Space":
    from rdgp.spaces import Box

    try:
        sides = [tuple(float(number) for number in side.split(",")) for side in rest.split(";")]
    except ValueError:
        sides = []
    if not sides or any(len(side) != 2 for side in sides):
        raise ValueError(f"--space {part}: a box needs lower,upper for each side, apart by semicolons, as box:0,1;0,2")
    return Box([low for low, _ in sides], [high for _, high in sides])
