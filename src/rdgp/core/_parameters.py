"""Numbers that training may change.

A model is a tree; the numbers in it that training may change are `Parameter`s, everything else is constant.
"""

from collections.abc import Collection, Mapping
from typing import Literal, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PyTree

from rdgp.core._checks import is_concrete
from rdgp.core._priors import Prior
from rdgp.core._registry import register
from rdgp.core._types import Numbers

T = TypeVar("T")
P = TypeVar("P", bound="Parametric")


@register("rdgp:Parameter")
class Parameter(eqx.Module):
    """A number or array stored unconstrained: `positive` ones by their logarithm.

    >>> round(float(Parameter(2.0, "positive", name="variance").value), 3)
    2.0
    """

    raw: Float[Array, "..."]
    constraint: Literal["positive", "real"] = eqx.field(static=True)
    trainable: bool = eqx.field(static=True)
    prior: Prior | None = eqx.field(static=True)

    def __init__(
        self,
        value: Numbers,
        constraint: Literal["positive", "real"] = "positive",
        *,
        name: str,
        trainable: bool = True,
        prior: Prior | None = None,
    ) -> None:
        number = np.asarray(value, dtype=np.float64)
        if not np.all(np.isfinite(number)) or (constraint == "positive" and not np.all(number > 0.0)):
            wanted = "a positive finite number" if constraint == "positive" else "a finite number"
            raise ValueError(f"{name} must be {wanted}, got {value}; choose a value such as {name}=1.0")
        self.raw = jnp.asarray(np.log(number) if constraint == "positive" else number, dtype=float)
        self.constraint = constraint
        self.trainable = trainable
        self.prior = prior

    @property
    def value(self) -> Float[Array, "..."]:
        """The number itself, after the constraint."""
        return jnp.exp(self.raw) if self.constraint == "positive" else self.raw

    def with_value(self, value: Numbers) -> "Parameter":
        """Return the parameter with another value, in its own shape and dtype."""
        number = jnp.log(jnp.asarray(value)) if self.constraint == "positive" else jnp.asarray(value)
        raw = jnp.broadcast_to(number, self.raw.shape).astype(self.raw.dtype)
        return eqx.tree_at(lambda parameter: parameter.raw, self, raw)

    def __repr__(self) -> str:
        return format_value(self.value) if is_concrete(self.raw) else f"{self.raw}"


class Parametric(eqx.Module):
    """What has positive numbers that training may change, by name: kernels and likelihoods."""

    parameters: eqx.AbstractVar[dict[str, Parameter]]

    def with_values(self: P, **values: Numbers) -> P:
        """Return a copy with other values of the named numbers; those that are fixed stay as they are."""
        changed = {name: self.parameters[name].with_value(value) for name, value in values.items()}
        kept = {name: new if new.trainable else self.parameters[name] for name, new in changed.items()}
        return eqx.tree_at(lambda own: own.parameters, self, {**self.parameters, **kept})

    def __repr__(self) -> str:
        order = sorted(self.parameters, key=lambda name: (name == "variance", name != "nu", name))
        numbers = ", ".join(f"{name}={self.parameters[name]}" for name in order)
        return f"{type(self).__name__}({numbers})"


def format_value(value: Numbers) -> str:
    """Return a number, or a short list of them, in four digits; of a long one its shape and range."""
    numbers = np.asarray(value, float)
    if numbers.ndim == 0:
        return f"{float(numbers):.4g}"
    if numbers.ndim == 1 and numbers.size <= 6:
        return f"[{', '.join(f'{number:.4g}' for number in numbers)}]"
    shape = " x ".join(map(str, numbers.shape))
    return f"{shape} numbers from {numbers.min():.4g} to {numbers.max():.4g}" if numbers.size else "no numbers"


def positive_parameters(
    values: Mapping[str, Numbers], fixed: Collection[str], prior: Mapping[str, Prior] | None
) -> dict[str, Parameter]:
    """Return positive numbers by name as parameters: those in `fixed` are held, those in `prior` have a density."""
    held, priors = _check_fixed(fixed, tuple(values)), _check_prior(prior, tuple(values))
    return {
        name: Parameter(value, name=name, trainable=name not in held, prior=priors.get(name))
        for name, value in values.items()
    }


def _check_fixed(fixed: Collection[str], names: tuple[str, ...]) -> frozenset[str]:
    held = (fixed,) if isinstance(fixed, str) else fixed
    if not isinstance(held, Collection) or not set(held) <= set(names):
        raise ValueError(f"fixed takes names out of {', '.join(names)}, got {fixed!r}")
    return frozenset(held)


def _check_prior(prior: Mapping[str, Prior] | None, names: tuple[str, ...]) -> Mapping[str, Prior]:
    given = {} if prior is None else prior
    known = isinstance(given, Mapping) and all(isinstance(value, Prior) for value in given.values())
    if not known or not set(given) <= set(names):
        raise ValueError(
            f'prior takes a dict such as {{"{names[-1]}": Gamma(2.0, 0.15)}} over {", ".join(names)}, got {prior}'
        )
    return given


def split_trainable(tree: T) -> tuple[T, T]:
    """Split a tree into what training may change and the rest; `equinox.combine` joins them again."""

    def mark(node: PyTree) -> PyTree:
        trainable = isinstance(node, Parameter) and node.trainable
        return jax.tree.map(lambda leaf: trainable and eqx.is_array(leaf), node)

    spec = jax.tree.map(mark, tree, is_leaf=lambda node: isinstance(node, Parameter))
    trainable, rest = eqx.partition(tree, spec)
    return trainable, rest


def to_vector(tree: PyTree) -> Float[np.ndarray, "n"]:
    """Join the arrays of a tree into one vector, by NumPy, so that nothing is compiled for it."""
    return np.concatenate([np.zeros(0, np.float32), *(np.ravel(leaf) for leaf in jax.tree.leaves(tree))])


def from_vector(like: T, vector: Float[Array | np.ndarray, "n"]) -> T:
    """Cut a vector into the arrays of a tree."""
    leaves, structure = jax.tree.flatten(like)
    pieces = np.split(np.asarray(vector), np.cumsum([leaf.size for leaf in leaves]))
    arrays = [jnp.asarray(piece.reshape(leaf.shape), leaf.dtype) for leaf, piece in zip(leaves, pieces, strict=False)]
    return jax.tree.unflatten(structure, arrays)


def log_widths(tree: PyTree, widths: Mapping[str, float]) -> Float[np.ndarray, "n"]:
    """Return how far the logarithm of each number of `to_vector` may move, by the name of its parameter."""
    nodes = jax.tree_util.tree_flatten_with_path(tree, is_leaf=lambda node: isinstance(node, Parameter))[0]
    names = [(getattr(path[-1], "key", "") if path else "", node) for path, node in nodes]
    pieces = [np.full(leaf.size, widths.get(name, np.inf)) for name, node in names for leaf in jax.tree.leaves(node)]
    return np.concatenate([np.zeros(0), *pieces])


def log_prior(tree: PyTree) -> Float[Array, ""] | float:
    """Return the log density of all parameters of a tree that have a prior, zero if none has."""
    nodes = jax.tree.leaves(tree, is_leaf=lambda node: isinstance(node, Parameter))
    held = [node for node in nodes if isinstance(node, Parameter) and node.prior is not None]
    return sum((jnp.sum(node.prior.log_density(node.value)) for node in held if node.prior), start=0.0)
