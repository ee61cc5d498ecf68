"""How the layers of a deep model follow each other: each posterior once, spaces that meet, what comes last."""

from rdgp.models._output import Output, Points, as_output
from rdgp.posteriors import Variational


def unique(hidden: tuple[Variational, ...]) -> tuple[tuple[Variational, ...], tuple[int, ...]]:
    """Return each posterior once, and the order in which they come; the same field in two of them is an error."""
    for layer in hidden:
        if not isinstance(layer, Variational):
            raise ValueError(
                f"hidden layers are Interdomain or InducingPoints, got {type(layer).__name__}; wrap fields in those"
            )
    layers: list[Variational] = []
    order = []
    for layer in hidden:
        known = [i for i, other in enumerate(layers) if other is layer]
        if not known and any(other.field is layer.field for other in layers):
            raise ValueError(
                "two hidden layers share one field but not their posterior; pass the same posterior twice to apply one "
                "function twice, or build a field for each"
            )
        if not known:
            layers.append(layer)
        order.append(known[0] if known else len(layers) - 1)
    return tuple(layers), tuple(order)


def output_after(hidden: tuple[Variational, ...], output: object) -> Output:
    """Return the output; None stands for the points to which the last hidden layer leads."""
    if output is not None:
        return as_output(output)
    if not hidden:
        raise ValueError("a DeepGP needs at least one layer; pass hidden=(...), output=... or both")
    last = hidden[-1].field
    return Points(last.bundle.target(last.space))


def check_chain(hidden: tuple[Variational, ...], output: Output) -> None:
    """Raise where two layers do not meet."""
    spaces = [*(layer.field.space for layer in hidden), output.space]
    for i, layer in enumerate(hidden):
        there = layer.field.bundle.target(layer.field.space)
        if there != spaces[i + 1]:
            raise ValueError(
                f"layer {i + 1} leads to {there}, but layer {i + 2} starts on {spaces[i + 1]}; use one space"
            )
    if output.joint and not all(layer.draws_are_exact for layer in hidden):
        raise ValueError("an integrated output needs hidden layers on compact spaces; pass InducingPoints as output")
