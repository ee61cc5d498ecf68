"""The one forward pass through hidden layers x -> exp_x(g(x)), and the frames they carry along."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from jaxtyping import Array, Float

from rdgp.fields import Field, Frame, FunctionDraw


class State(NamedTuple):
    """Where the layers so far lead: points, and the frame of the starting points carried along in parallel.

    Tangent vectors at the starting points are compared with those at the end by their components in the two frames.
    `basis` is what the next layer's field needs of the points, where it is known in advance.
    """

    x: Float[Array, "N D"]
    frame: Frame
    basis: Any = None


def states(fields: Sequence[Field], state: State, draws: Sequence[FunctionDraw]) -> Iterator[State]:
    """Follow one draw of each layer's field: yield the state before the first layer and after each of them."""
    yield state
    for field, draw in zip(fields, draws, strict=True):
        v = draw(state.x) if state.basis is None else draw.at(state.x, state.basis)
        x, frame = field.bundle.move(state.x, v, state.frame)
        state = State(x, frame)
        yield state


def propagate(fields: Sequence[Field], state: State, draws: Sequence[FunctionDraw]) -> State:
    """Follow one draw of each layer's field to the end."""
    *_, last = states(fields, state, draws)
    return last
