"""Targets and impostors of samples on a cluster, sought block against block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.dask._alignment import chosen
from gramian.dask._checked import Sample
from gramian.dask._cluster import Cluster
from gramian.dask._moments import Spread, about
from gramian.neighbours import nearest
from gramian.objectives.matrices import Dense
from gramian.problems.metric import kta_from_moments
from gramian.problems.moments import Moments
from gramian.run import minimize

Array = NDArray[np.floating]

ROUGH = 1e-2
"""The tolerance of the alignment that neighbours are sought by, as at home."""


@dataclass(frozen=True)
class Near:
    """For each sample of a block the k nearest found so far: squared distances, and vectors."""

    squares: Array
    vectors: Array

    def __add__(self, other: Near) -> Near:
        k = self.squares.shape[1]
        squares = np.hstack([self.squares, other.squares])
        order = np.argsort(squares, axis=1, kind="stable")[:, :k]
        vectors = np.concatenate([self.vectors, other.vectors], axis=1)
        return Near(
            np.take_along_axis(squares, order, axis=1),
            np.take_along_axis(vectors, order[:, :, None], axis=1),
        )


@dataclass(frozen=True)
class Local:
    """The samples of a block with the differences to their targets and impostors, (n, k, d)."""

    near: Array
    far: Array


def local(
    cluster: Cluster, shards: list[Any], mean: Array, k: int, factor: Array | None = None
) -> list[Any]:
    """A node for each block: its samples' k targets and k impostors, where LLᵀ measures."""
    sides = [sought(cluster, shards, mean, k, factor, same) for same in (True, False)]
    return cluster.each("local", _local, shards, cluster.shared("mean", mean), *sides)


def sought(
    cluster: Cluster, shards: list[Any], mean: Array, k: int, factor: Array | None, same: bool
) -> list[Any]:
    """A node for each block: the k nearest samples of the same class, or of others."""
    shared = cluster.shared("mean", mean)
    L = None if factor is None else cluster.shared("factor", factor)
    found = []
    for a, block in enumerate(shards):
        own = [a == b for b in range(len(shards))]
        nodes = cluster.each(
            "neighbours", _near, [block] * len(shards), shards, own, same, shared, L, k
        )
        found.append(cluster.tree("neighbours", nodes))
    return found


def alignment(cluster: Cluster, shards: list[Any], found: Spread) -> Array:
    """A factor of KTA's metric, in which neighbours are sought, for samples at unit size."""
    data = found.moments(center=True)
    size = float(np.sqrt(data.trace / (found.count * found.mean.size)))
    if size == 0:
        return np.eye(found.mean.size)
    gram = Dense(data.gram.dense() / size**2, lower=0.0)
    unit = Moments(gram, data.sums / size, data.counts, data.trace / size**2)
    lam = chosen(cluster, shards, found, unit, size=size).value
    return minimize(kta_from_moments(unit, lam), tol=ROUGH).factor / size


def _near(
    block: Sample, other: Sample, own: bool, same: bool, mean: Array, L: Array | None, k: int
) -> Near:
    A, B = about(block.X, mean), about(other.X, mean)
    Z, W = (A, B) if L is None else (A @ L, B @ L)
    squares = np.full((len(A), k), np.inf)
    vectors = np.zeros((len(A), k, A.shape[1]))
    for c in np.unique(block.y):
        asking = np.flatnonzero(block.y == c)
        asked = np.flatnonzero((other.y == c) if same else (other.y != c))
        itself = own and same
        count = min(k + itself, asked.size)
        if count == 0:
            continue
        near = nearest(W[asked], count, queries=Z[asking])
        place, far = asked[near.indices], np.array(near.sq_distances, dtype=float)
        if itself:
            far[place == asking[:, None]] = np.inf
            order = np.argsort(far, axis=1, kind="stable")[:, :k]
            far, place = (np.take_along_axis(part, order, axis=1) for part in (far, place))
        width = far.shape[1]
        squares[asking, :width], vectors[asking, :width] = far, B[place]
    return Near(squares, vectors)


def _local(block: Sample, mean: Array, near: Near, far: Near) -> Local:
    anchors = about(block.X, mean)[:, None]
    return Local(near.vectors - anchors, far.vectors - anchors)
