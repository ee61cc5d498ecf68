"""A table of the numbers of a model."""

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
from jaxtyping import Array, PyTree

from rdgp.core._parameters import Parameter, format_value
from rdgp.core._priors import Prior


class ParameterRow(NamedTuple):
    """One number or array of a model."""

    name: str
    value: Array
    trainable: bool
    prior: Prior | None


class ParameterTable:
    """The numbers of a model by name; it prints as a table.

    >>> from rdgp.core import Parameter, describe
    >>> describe({"kernel": Parameter(2.0, name="variance")})
    name    value  trained  prior
    kernel      2      yes   none
    """

    def __init__(self, rows: tuple[ParameterRow, ...]) -> None:
        self.rows = rows

    def __iter__(self) -> Iterator[ParameterRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, name: str) -> ParameterRow:
        """Return the row of a name."""
        found = [row for row in self.rows if row.name == name]
        if not found:
            raise KeyError(f"no parameter is named {name!r}; the names are {', '.join(row.name for row in self.rows)}")
        return found[0]

    def __repr__(self) -> str:
        cells = [("name", "value", "trained", "prior")]
        for row in self.rows:
            prior = "none" if row.prior is None else str(row.prior)
            cells.append((row.name, format_value(row.value), "yes" if row.trainable else "no", prior))
        widths = [max(len(line[i]) for line in cells) for i in range(4)]
        lines = [
            "  ".join([line[0].ljust(widths[0]), *(line[i].rjust(widths[i]) for i in range(1, 4))]) for line in cells
        ]
        return "\n".join(lines)


def describe(tree: PyTree) -> ParameterTable:
    """Return a table of all parameters of a tree, named by where they stand."""
    pairs = jax.tree_util.tree_flatten_with_path(tree, is_leaf=lambda node: isinstance(node, Parameter))[0]
    held = [(path, node) for path, node in pairs if isinstance(node, Parameter)]
    return ParameterTable(tuple(ParameterRow(_name(path), p.value, p.trainable, p.prior) for path, p in held))


def _name(path: tuple[Any, ...]) -> str:
    """Return a path in short: layers[0].field.kernels[1].lengthscale."""
    text = jax.tree_util.keystr(path)
    text = re.sub(r"(\.parameters)?\['(\w+)'\]", r".\2", text)
    return re.sub(r"\._(\w)", r".\1", text).lstrip(".")
