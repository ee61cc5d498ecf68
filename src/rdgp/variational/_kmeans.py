"""Inducing locations from data: k-means on a manifold."""

from functools import reduce

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from rdgp.core import Numbers, check_count
from rdgp.fields import check_points
from rdgp.spaces import Product, Rotations, Space

_ROUNDS = 25
_BATCH = 4096


def kmeans(space: Space, x: Numbers, num: int, *, key: PRNGKeyArray) -> Float[Array, "m D"]:
    """Return `num` distinct points of the space that stand for the data, or all distinct data points if fewer."""
    x = check_points(space, x)
    num = check_count(num, "num")
    signs = np.asarray(_representatives(space, np.asarray(x)))
    distinct = np.unique(np.round(signs, 9), axis=0, return_index=True)[1]
    points = signs[np.sort(distinct)]
    if points.shape[0] <= num:
        return jnp.asarray(points, x.dtype)
    centers = _seeds(points, num, np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist()))
    for _ in range(_ROUNDS):
        owner = _nearest(space, points, centers)
        moved = np.asarray(_centers(space, points, owner, centers))
        done = np.max(np.abs(moved - centers)) < 1e-4
        centers = moved
        if done:
            break
    return jnp.asarray(_distinct(centers, points, num), x.dtype)


def _representatives(space: Space, x: np.ndarray) -> np.ndarray:
    """Return one array for each point: of the two quaternions of a rotation, the one with first nonzero number > 0."""
    if isinstance(space, Product):
        parts = [_representatives(f, x[:, s]) for f, s in zip(space.factors, space.slices, strict=True)]
        return np.concatenate(parts, axis=1)
    if not isinstance(space, Rotations):
        return x
    first = np.take_along_axis(x, np.argmax(np.abs(x) > 1e-9, axis=1)[:, None], axis=1)
    return x * np.where(first < 0, -1.0, 1.0)


def _similarity(space: Space, x: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return minus the squared chordal distance, up to a constant in x."""
    if isinstance(space, Product):
        parts = zip(space.factors, space.slices, strict=True)
        return reduce(np.add, [_similarity(factor, x[:, part], centers[:, part]) for factor, part in parts])
    inner = x @ centers.T
    return 2.0 * (np.abs(inner) if isinstance(space, Rotations) else inner) - np.sum(centers**2, axis=1)


def _nearest(space: Space, x: np.ndarray, centers: np.ndarray) -> np.ndarray:
    pieces = [np.argmax(_similarity(space, x[i : i + _BATCH], centers), axis=1) for i in range(0, len(x), _BATCH)]
    return np.concatenate(pieces)


def _seeds(x: np.ndarray, num: int, random: np.random.Generator) -> np.ndarray:
    """Choose well separated data points: each next one with probability proportional to its squared distance."""
    chosen = [int(random.integers(len(x)))]
    distance = np.sum((x - x[chosen[0]]) ** 2, axis=1)
    for _ in range(num - 1):
        chosen.append(int(random.choice(len(x), p=distance / distance.sum())))
        distance = np.minimum(distance, np.sum((x - x[chosen[-1]]) ** 2, axis=1))
    return x[chosen]


def _centers(space: Space, x: np.ndarray, owner: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return the center of each cluster; an empty cluster keeps its own."""
    if isinstance(space, Product):
        parts = zip(space.factors, space.slices, strict=True)
        return np.concatenate([_centers(f, x[:, s], owner, centers[:, s]) for f, s in parts], axis=1)
    count = np.bincount(owner, minlength=len(centers))
    if isinstance(space, Rotations):
        moments = np.zeros((len(centers), x.shape[1], x.shape[1]))
        np.add.at(moments, owner, x[:, :, None] * x[:, None, :])
        moved = np.linalg.eigh(moments)[1][:, :, -1]
    else:
        total = np.zeros_like(centers)
        np.add.at(total, owner, x)
        moved = np.asarray(space.nearest(np.where(count[:, None] > 0, total, 1.0) / np.maximum(count, 1)[:, None]))
    return np.where(count[:, None] > 0, moved, centers)


def _distinct(centers: np.ndarray, points: np.ndarray, num: int) -> np.ndarray:
    """Replace centers that coincide by data points."""
    keep = np.sort(np.unique(np.round(centers, 9), axis=0, return_index=True)[1])
    known = {tuple(np.round(c, 9)) for c in centers[keep]}
    spare = [p for p in points if tuple(np.round(p, 9)) not in known][: num - keep.size]
    return np.concatenate([centers[keep], np.array(spare).reshape(-1, centers.shape[1])])
