"""What a study can be told beyond its space, and the two presets."""

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

SurrogateName = Literal["auto", "shallow", "deep"]
AcquisitionName = Literal["logei", "ei", "noisy_logei", "thompson"]
PresetName = Literal["paper", "materngabo"]
FieldName = Literal["hodge", "projected", "frame"]
InducingName = Literal["interdomain", "points"]


class Options(NamedTuple):
    """Numbers and names of a way to optimise; equal options share compilations."""

    num_levels: int = 64  # of kernels on circles, others up to the same frequency: converged down to a tenth
    nu: float = 2.5
    lengthscale: float = 0.5  # median of its prior
    standardize: bool = True  # and weakly informative priors; else the priors of the presets
    log_warp: bool = True  # of bad values
    local: bool = True  # points from trust regions, and far from all others, between those of the acquisition
    random: int = 512
    around: int = 256
    restarts: int = 24
    evaluations: int = 30
    layers: int = 2
    field: FieldName = "hodge"
    inducing: InducingName = "interdomain"
    num_inducing: int = 30
    steps: int = 150  # of training the deep surrogate
    paths: int = 16  # draws of its hidden layers


_PAPER_LAYERS: dict[int, tuple[int, FieldName]] = {2: (2, "frame")}


def options_of(settings: Mapping[str, Any], dim: int) -> Options:
    """Return the options of a study on a space of some dimension: those of its preset, and what else was chosen."""
    chosen = {name: settings[name] for name in ("field", "inducing", "layers") if settings[name] is not None}
    return _preset_options(settings["preset"], dim)._replace(**chosen)


def _preset_options(preset: PresetName | None, dim: int) -> Options:
    """Return the options of a preset: of Jaquier et al., or the paper's, which has deep surrogates too."""
    if preset is None:
        return Options()
    plain = Options(
        num_levels=10,
        lengthscale=1.0,
        standardize=False,
        log_warp=False,
        local=False,
        random=100,
        around=0,
        restarts=5,
    )
    if preset == "materngabo":
        return plain
    layers, field = _PAPER_LAYERS.get(dim, (3, "projected"))
    return plain._replace(layers=layers, field=field, inducing="points", steps=500)
