"""Exact neighbours of samples with few features, by a k-d tree."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.arrays.samples import BLOCK
from gramian.common import clock
from gramian.common.types import Array, Indices
from gramian.neighbours import _plain

FEATURES = {5: 1000, 8: 50_000}
"""Number of features up to which a tree is faster than brute force, with the smallest number of
samples for which this holds."""

SPARE_NEIGHBOURS, COUNT_GROWTH = 3, 6
"""Neighbours requested beyond k to detect ties, and the factor by which this number grows if the
ties extend beyond them."""


def fits(X: Any) -> bool:
    """Whether the tree is used."""
    n, d = X.shape
    return not sp.issparse(X) and any(d <= most and n >= least for most, least in FEATURES.items())


def search(X: Any, queries: Any, k: int, marks: tuple[Indices, Indices]) -> tuple[Indices, Array]:
    """The k rows of X nearest to each query, by (distance, index), and their squared distances.

    Each mark belongs to at most one sample. If there are more ties than requested neighbours, the
    tree is queried for more, and with very many ties brute force is used.
    """
    from scipy.spatial import KDTree

    tree, n = KDTree(X), queries.shape[0]
    found, distances = np.empty((n, k), dtype=np.intp), np.empty((n, k))
    rows, count = np.arange(n), min(k + 1 + SPARE_NEIGHBOURS, X.shape[0])
    while rows.size and count <= max(X.shape[0] // 4, k + 1 + SPARE_NEIGHBOURS):
        own = marks[0], marks[1][rows]
        found[rows], distances[rows], tied = _asked(tree, X, queries[rows], k, own, count)
        rows, count = rows[tied], COUNT_GROWTH * count
    if rows.size:
        own = marks[0], marks[1][rows]
        found[rows], distances[rows] = _plain.search(X, queries[rows], k, own)
    return found, distances


def _near(tree: Any, queries: Any, count: int) -> Indices:
    """The nearest neighbours of the tree, with a check of the time limit between blocks."""
    near = np.empty((queries.shape[0], count), dtype=np.intp)
    for start in range(0, queries.shape[0], BLOCK):
        if start:  # one block is short: no check of the time limit
            clock.check()
        rows = slice(start, start + BLOCK)
        found = tree.query(queries[rows], count, workers=_workers())[1]
        near[rows] = found.reshape(-1, count)
    return near


def _asked(
    tree: Any, X: Any, queries: Any, k: int, marks: tuple[Indices, Indices], count: int
) -> tuple[Indices, Array, NDArray[np.bool_]]:
    """The k nearest of `count` tree neighbours, and the mask of queries with unresolved ties."""
    n = queries.shape[0]
    near = _near(tree, queries, count)
    rows = np.repeat(np.arange(n), count)
    squares = _plain.squared_distances(X, queries, near.ravel(), rows).reshape(n, count)
    farthest = squares.max(axis=1)
    squares[marks[0][near] == marks[1][:, None]] = np.inf
    order = np.lexsort((near, squares), axis=1)[:, :k]
    found, distances = np.take_along_axis(near, order, 1), np.take_along_axis(squares, order, 1)
    # The tree has rounding errors, too: a sample that it omitted may be nearer by that amount.
    tied = distances[:, -1] >= farthest * (1.0 - 8 * X.shape[1] * np.finfo(float).eps)
    return found, distances, tied


def _workers() -> int:
    """The cores this process may use, or fewer if NUMBA_NUM_THREADS is set."""
    asked = os.environ.get("NUMBA_NUM_THREADS", "")
    mine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return int(asked) if asked.isdigit() else mine or 1
