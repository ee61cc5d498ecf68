"""Pictures of priors on the sphere: three vector fields, a deep sample layer by layer, the irregular function."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from rdgp.datasets import fibonacci_sphere, irregular_target
from rdgp.fields import FrameField, HodgeField, ProjectedField, ScalarField
from rdgp.kernels import Matern
from rdgp.posteriors import Interdomain
from rdgp.spaces import Sphere, latlon_to_sphere, tangent_to_wind
from rdgp_paper.hypotheses import Check
from rdgp_paper.models import double_precision
from rdgp_paper.runs import Settings
from rdgp_paper.store import Numbers

_SPACE = Sphere(2)
HYPOTHESES: tuple[Check, ...] = ()  # the pictures are looked at


def run(settings: Settings) -> Numbers:
    """Return the numbers of one picture: values on a grid, row by row, or points after each layer."""
    with double_precision():
        picture = str(settings["picture"])
        if picture == "layers":
            points, _ = _layers(settings, fibonacci_sphere(int(settings["n"])))
            return {f"x{i}_{axis}": own[:, j] for i, own in enumerate(points) for j, axis in enumerate("xyz")}
        latlon, x = _grid(float(settings["spacing"]))
        places = {"lat": latlon[:, 0], "lon": latlon[:, 1]}
        if picture == "irregular":
            return {**places, "value": irregular_target(x, str(settings["target"]))}  # type: ignore[arg-type]
        if picture == "sample":
            points, output = _layers(settings, x)
            start, end = jnp.asarray(x), jnp.asarray(points[-1])
            return {**places, "shallow": output(start), "deep": output(end)}
        draw = _field(picture, settings).sample(key=jax.random.key(int(settings["seed"])))
        wind = np.asarray(tangent_to_wind(x, draw(x)))
        return {**places, "u": wind[:, 0], "v": wind[:, 1]}


def _field(name: str, settings: Settings, variance: float = 1.0) -> Any:
    num_levels = int(settings["num_levels"])
    kernel = Matern(2.5, float(settings["lengthscale"]), variance)
    fields: dict[str, Any] = {
        "projected": lambda: ProjectedField(_SPACE, kernel, num_levels),
        "frame": lambda: FrameField(_SPACE, kernel, num_levels, frame="east_north"),
        "hodge": lambda: HodgeField(_SPACE, divergence=kernel, curl=kernel, num_levels=num_levels),
    }
    if name not in fields:
        raise ValueError(f"picture must be layers, irregular or one of {', '.join(fields)}, got {name!r}")
    return fields[name]()


def _layers(settings: Settings, start: np.ndarray) -> tuple[list[np.ndarray], Any]:
    """Return where the layers of one draw of a deep prior take points, and the draw of its output."""
    keys = jax.random.split(jax.random.key(int(settings["seed"])), int(settings["layers"]))
    points = [start]
    for key in keys[:-1]:
        layer = Interdomain(_field("hodge", settings, float(settings["variance"])))
        points.append(np.asarray(_SPACE.exp(points[-1], layer.draw(key=key)(jnp.asarray(points[-1])))))
    kernel = Matern(2.5, float(settings["lengthscale"]), 1.0)
    return points, ScalarField(_SPACE, kernel, int(settings["num_levels"])).sample(key=keys[-1])


def _grid(spacing: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the centers of the cells of a grid, latitude by latitude, in degrees and as points."""
    lat, lon = (np.arange(-half + spacing / 2.0, half, spacing) for half in (90.0, 180.0))
    latlon = np.stack(np.meshgrid(lat, lon, indexing="ij"), axis=-1).reshape(-1, 2)
    return latlon, np.asarray(latlon_to_sphere(latlon))
