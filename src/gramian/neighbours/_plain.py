"""Exact neighbours of few samples by plain numpy: nothing to compile, nothing to wait for.

Products in float64 give scores ‖y‖² − 2x·y, those within their rounding of the k-th are computed
again from the differences, and sorted.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

BLOCK = 2_000_000
"""Scores held at a time: 16 MB."""


def search(X: Any, queries: Any, k: int, marks: tuple[Indices, Indices]) -> tuple[Indices, Array]:
    """The k rows of X nearest to each query, by (distance, index), and their squared distances.

    Pairs of equal marks are left out.
    """
    n = queries.shape[0]
    found, distances = np.empty((n, k), dtype=np.intp), np.empty((n, k))
    origin = np.zeros(X.shape[1]) if sp.issparse(X) else X.mean(axis=0, dtype=np.float64)
    moved = _moved(X, origin)
    squares = _squares(moved)
    for rows in _blocks(n, X.shape[0]):
        few = _moved(queries[rows], origin)
        scores = squares - 2.0 * _dense(few @ moved.T)
        scores[marks[1][rows][:, None] == marks[0]] = np.inf
        bar = np.partition(scores, k - 1, axis=1)[:, k - 1]
        own = np.sqrt(_squares(few))
        peak = float(np.sqrt(squares.max()))
        # Twice the rounding of a score, and that of the distance it stands for.
        room = 2.02 * np.finfo(float).eps * (X.shape[1] + 3) * (own + peak) ** 2
        row, column = np.nonzero(scores <= (bar + room)[:, None])
        exact = squared_distances(X, queries[rows], column, row)
        order = np.lexsort((column, exact, row))
        first = np.searchsorted(row[order], np.arange(few.shape[0]))
        chosen = order[first[:, None] + np.arange(k)]
        found[rows], distances[rows] = column[chosen], exact[chosen]
    return found, distances


def squared_distances(X: Any, Y: Any, i: Indices, j: Indices) -> Array:
    """‖x_i − y_j‖² for pairs of rows, from their differences in float64, in blocks of pairs."""
    found = np.empty(i.size)
    step = max(1, BLOCK // max(1, X.shape[1]))
    for start in range(0, i.size, step):
        part = slice(start, start + step)
        gaps = X[i[part]].astype(np.float64) - Y[j[part]].astype(np.float64)
        square = gaps.multiply(gaps).sum(axis=1) if sp.issparse(gaps) else _squares(gaps)
        found[part] = np.ravel(np.asarray(square))
    return found


def _blocks(n: int, width: int) -> Iterator[slice]:
    step = max(1, BLOCK // max(1, width))
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def _moved(X: Any, origin: Array) -> Any:
    return X.astype(np.float64) if sp.issparse(X) else X - origin


def _squares(X: Any) -> Array:
    if sp.issparse(X):
        return np.ravel(np.asarray(X.multiply(X).sum(axis=1)))
    found: Array = np.einsum("ij,ij->i", X, X)
    return found


def _dense(products: Any) -> Array:
    return np.asarray(products.toarray() if sp.issparse(products) else products)
