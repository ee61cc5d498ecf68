"""Inducing points from data: k-means on a manifold."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, PRNGKeyArray

from rdgp.core import Numbers, check_count
from rdgp.fields import check_points
from rdgp.spaces import Space

_ROUNDS = 25
_BATCH = 4096


def kmeans(space: Space, x: Numbers, num: int, *, key: PRNGKeyArray) -> Float[Array, "m D"]:
    """Return `num` distinct points of the space that stand for the data, or all distinct data points if fewer."""
    x = check_points(space, x)
    num = check_count(num, "num")
    canonical = np.asarray(space.canonical(x))
    points = canonical[np.sort(np.unique(np.round(canonical, 9), axis=0, return_index=True)[1])]
    if points.shape[0] <= num:
        return jnp.asarray(points, x.dtype)
    maps = space.identifications.astype(points.dtype)
    centers = _seeds(points, maps, num, np.random.default_rng(np.asarray(jax.random.key_data(key)).tolist()))
    for _ in range(_ROUNDS):
        owner, same = _nearest(points, maps, centers)
        moved = np.asarray(space.canonical(_centers(space, same, owner, centers)))
        done = np.max(np.abs(moved - centers)) < 1e-4
        centers = moved
        if done:
            break
    return jnp.asarray(_distinct(centers, points, num), x.dtype)


def _nearest(
    x: Float[np.ndarray, "N D"], maps: Float[np.ndarray, "R D D"], centers: Float[np.ndarray, "m D"]
) -> tuple[Int[np.ndarray, "N"], Float[np.ndarray, "N D"]]:
    """Return the nearest center of each point by chordal distance, and of its ambient vectors the one nearest to it."""
    owners, vectors = [], []
    targets = np.concatenate([centers @ matrix.T for matrix in maps])  # x·(A c) = (Aᵀ x)·c
    half_squares = np.tile(np.sum(np.square(centers), axis=1) / 2.0, len(maps))
    for start in range(0, len(x), _BATCH):
        part = x[start : start + _BATCH]
        map_index, owner = np.divmod(np.argmax(part @ targets.T - half_squares, axis=1), len(centers))
        owners.append(owner)
        vectors.append(np.einsum("nij,ni->nj", maps[map_index], part))
    return np.concatenate(owners), np.concatenate(vectors)


def _seeds(
    x: Float[np.ndarray, "N D"], maps: Float[np.ndarray, "R D D"], num: int, random: np.random.Generator
) -> Float[np.ndarray, "m D"]:
    """Choose well separated data points: each next one with probability proportional to its squared distance."""

    def squared_distance(chosen: int) -> Float[np.ndarray, "N"]:
        return np.min([np.sum(np.square(x - x[chosen] @ matrix.T), axis=1) for matrix in maps], axis=0)

    seeds = [int(random.integers(len(x)))]
    distance = squared_distance(seeds[0])
    for _ in range(num - 1):
        seeds.append(int(random.choice(len(x), p=distance / distance.sum())))
        distance = np.minimum(distance, squared_distance(seeds[-1]))
    return x[seeds]


def _centers(
    space: Space, x: Float[np.ndarray, "N D"], owner: Int[np.ndarray, "N"], centers: Float[np.ndarray, "m D"]
) -> Float[np.ndarray, "m D"]:
    """Return the point of the space nearest to the mean of each cluster; an empty cluster keeps its own."""
    count = np.bincount(owner, minlength=len(centers))[:, None]
    total = np.zeros_like(centers)
    np.add.at(total, owner, x)
    return np.asarray(space.nearest(np.where(count > 0, total / np.maximum(count, 1), centers)))


def _distinct(
    centers: Float[np.ndarray, "m D"], points: Float[np.ndarray, "N D"], num: int
) -> Float[np.ndarray, "m D"]:
    """Replace centers that coincide by data points."""
    keep = np.sort(np.unique(np.round(centers, 9), axis=0, return_index=True)[1])
    known = {tuple(np.round(center, 9)) for center in centers[keep]}
    spare = [point for point in points if tuple(np.round(point, 9)) not in known][: num - keep.size]
    return np.concatenate([centers[keep], np.array(spare).reshape(-1, centers.shape[1])])
