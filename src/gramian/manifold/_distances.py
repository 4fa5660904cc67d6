"""Precomputed distances: validation, and neighbour graphs from them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.common import clock
from gramian.graph import CONNECT, Graph, disconnected
from gramian.neighbours import Neighbours

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

ALIKE = 1e-6
"""Relative tolerance of d(i, j) and d(j, i)."""


def refuse_not_square(X: Any) -> None:
    """Raise ValueError for a matrix that is not square."""
    if X.shape[0] != X.shape[1]:
        raise ValueError(
            f'metric="precomputed" takes a square matrix of distances, got shape {X.shape}: pass '
            'metric="euclidean" for samples and their features'
        )


def refuse_negative(X: Array) -> None:
    """Raise ValueError for negative distances, naming the first."""
    if np.any(X < 0):
        i, j = np.unravel_index(int(np.argmax(X < 0)), X.shape)
        raise ValueError(f"distances must be at least 0, but d({i}, {j}) = {X[i, j]:g}")


def refuse_asymmetric(X: Array) -> None:
    """Raise ValueError for asymmetric distances, or a nonzero diagonal."""
    own = np.diag(X)
    if np.any(own != 0):
        i = int(np.argmax(own != 0))
        raise ValueError(
            f"distances must be 0 from a sample to itself, but d({i}, {i}) = {own[i]:g}"
        )
    off = np.abs(X - X.T) > ALIKE * np.maximum(X, X.T)
    if np.any(off):
        i, j = map(int, np.unravel_index(int(np.argmax(off)), X.shape))
        raise ValueError(
            f"distances must be symmetric, but d({i}, {j}) = {X[i, j]:g} and "
            f"d({j}, {i}) = {X[j, i]:g}: pass (D + D.T) / 2 if that is intended"
        )


def both_ways(X: Any) -> sp.csr_array:
    """Lengths of edges stored in one direction or in both, as a symmetric matrix without loops."""
    stored = sp.coo_array(X)
    i, j = (axis.astype(np.int64) for axis in stored.coords)
    data = np.asarray(stored.data, dtype=float)
    for k in np.flatnonzero((data <= 0) & ((i != j) | (data < 0)))[:1]:
        raise ValueError(
            f"edges must have positive lengths, but ({i[k]}, {j[k]}) has {data[k]:g}: remove one "
            "of two equal samples"
        )
    ends = np.sort(np.column_stack([i, j])[i != j], axis=1)
    lengths = data[i != j]
    edges, first, of = np.unique(ends, axis=0, return_index=True, return_inverse=True)
    once = lengths[first]
    for k in np.flatnonzero(np.abs(lengths - once[of.ravel()]) > ALIKE * lengths)[:1]:
        raise ValueError(
            f"both directions of an edge must have the same length, but {ends[k, 0]} and "
            f"{ends[k, 1]} have {once[of.ravel()[k]]:g} and {lengths[k]:g}"
        )
    half = sp.coo_array((once, tuple(edges.T)), shape=stored.shape)
    return sp.csr_array(half + half.T)


def by_rows(D: Array, k: int) -> Neighbours:
    """The k smallest of each row, smallest first."""
    clock.phase(f"the neighbours of {len(D):,} samples")
    found = np.argpartition(D, k - 1, axis=1)[:, :k]
    near = np.take_along_axis(D, found, axis=1)
    order = np.lexsort((found, near), axis=1)
    found = np.take_along_axis(found, order, axis=1)
    return Neighbours(found, np.take_along_axis(D, found, axis=1).astype(float) ** 2)


def distance_graph(D: Array, k: int, connect: str) -> Graph:
    """The graph that joins each sample to its nearest ones, given all distances."""
    if connect not in CONNECT:
        raise ValueError(f"connect must be one of {CONNECT}, got {connect!r}")
    others = D.copy()
    np.fill_diagonal(others, np.inf)
    near = by_rows(others, k).indices
    graph = _of_pairs(D, np.column_stack([np.repeat(np.arange(len(D)), k), near.ravel()]))
    if connect == "error" and graph.n_parts > 1:
        raise ValueError(disconnected(graph, k))
    while connect == "mst" and graph.n_parts > 1:
        graph = _of_pairs(D, np.vstack([graph.edges, _bridges(others, graph.labels)]))
    return graph


def _bridges(D: Array, labels: Indices) -> Indices:
    """The shortest edge out of every component but the largest (Borůvka)."""
    asking = np.flatnonzero(labels != np.argmax(np.bincount(labels)))
    away = np.where(labels[asking, None] == labels, np.inf, D[asking])
    there = np.argmin(away, axis=1)
    order = np.lexsort((away[np.arange(asking.size), there], labels[asking]))
    chosen = order[np.unique(labels[asking][order], return_index=True)[1]]
    return np.column_stack([asking[chosen], there[chosen]])


def _of_pairs(D: Array, pairs: Indices) -> Graph:
    edges = np.unique(np.sort(pairs, axis=1), axis=0).astype(np.int64)
    i, j = edges.T
    return Graph(len(D), edges, D[i, j].astype(float) ** 2)
