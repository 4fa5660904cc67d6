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

from gramian import clock

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

BLOCK = 500_000
"""Scores held at a time: 4 MB."""

FOLDS = 16
"""Scores that one is the smallest of, where the bar is looked for."""


def search(X: Any, queries: Any, k: int, marks: tuple[Indices, Indices]) -> tuple[Indices, Array]:
    """The k rows of X nearest to each query, by (distance, index), and their squared distances.

    Pairs of equal marks are left out.
    """
    n = queries.shape[0]
    found, distances = np.empty((n, k), dtype=np.intp), np.empty((n, k))
    origin = np.zeros(X.shape[1]) if sp.issparse(X) else X.mean(axis=0, dtype=np.float64)
    moved = _moved(X, origin)
    squares = _squares(moved)
    peak = float(np.sqrt(squares.max()))
    for rows in _blocks(n, X.shape[0]):
        if rows.start:  # what one block takes is soon over
            clock.check()
        few = _moved(queries[rows], origin)
        scores = _dense(few @ moved.T)
        scores *= -2.0
        scores += squares
        _leave_out(scores, marks[1][rows], marks[0])
        # Twice the rounding of a score, and that of the distance it stands for.
        room = 2.02 * np.finfo(float).eps * (X.shape[1] + 3) * (np.sqrt(_squares(few)) + peak) ** 2
        row, column = _below(scores, _bar(scores, k) + room)
        exact = squared_distances(X, queries[rows], column, row)
        order = np.lexsort((column, exact, row))
        first = np.searchsorted(row[order], np.arange(few.shape[0]))
        chosen = order[first[:, None] + np.arange(k)]
        found[rows], distances[rows] = column[chosen], exact[chosen]
    return found, distances


def _bar(scores: Array, k: int) -> Array:
    """No less than the k-th smallest score of each row: the k-th smallest of smallest ones."""
    width = scores.shape[1] // FOLDS
    if width < 4 * k:
        least = scores
    else:
        least = scores[:, :width].copy()
        for start in range(width, scores.shape[1], width):
            part = scores[:, start : start + width]
            np.minimum(least[:, : part.shape[1]], part, out=least[:, : part.shape[1]])
    return np.partition(least, k - 1, axis=1)[:, k - 1]


def _below(scores: Array, bar: Array) -> tuple[Indices, Indices]:
    return np.divmod(np.flatnonzero(scores <= bar[:, None]), scores.shape[1])


def _leave_out(scores: Array, asking: Indices, offered: Indices) -> None:
    """Put pairs of equal marks beyond all others."""
    order = np.argsort(offered, kind="stable")
    first = np.searchsorted(offered, asking, side="left", sorter=order)
    count = np.searchsorted(offered, asking, side="right", sorter=order) - first
    row = np.repeat(np.arange(asking.size), count)
    place = np.arange(row.size) - np.repeat(np.cumsum(count) - count, count)
    scores[row, order[np.repeat(first, count) + place]] = np.inf


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
    step = max(64, BLOCK // max(1, width))
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
