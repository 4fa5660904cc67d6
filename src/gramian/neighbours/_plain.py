"""Exact neighbours of few samples in NumPy, without compilation.

For queries x and samples y, matrix products give the scores ‖y‖² − 2x·y, in float32 if that is
faster. Samples whose score is at most the k-th smallest one plus the rounding error are candidates.
Their distances are recomputed from differences in float64 and sorted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.spatial.distance import cdist

from gramian.arrays.samples import row_squares
from gramian.arrays.threads import in_parts
from gramian.common import clock
from gramian.common.types import Array, Indices

SCORES_PER_BLOCK, DIFFERENCES_PER_BLOCK = 2_000_000, 500_000
"""Number of scores per block, 8 MB in float32 (with a quarter of this, matrix products with 256
features take a third longer), and number of elements of differences per block."""

SCORES_PER_GROUP = 16
"""Number of scores per group, for the upper bound on the k-th score by minima of groups."""

MIN_FLOAT32_FEATURES, MAX_FLOAT32_RATIO = 32, 1e3
"""Minimum number of features for products in float32, and the largest distance of a query from the
mean, in units of that of the farthest sample, for which they are accurate enough."""

MAX_COMPLETE = 1_000_000
"""All distances are computed if there are at most this many, in about 5 ms and 8 MB. For 30 queries
among 120 samples in five metrics this takes 0.5 ms, and five searches take 1.7 ms."""

MAX_CANDIDATES = 16
"""Maximum number of candidates per neighbour; with more, scores are recomputed in float64."""


def search(X: Any, queries: Any, k: int, marks: tuple[Indices, Indices]) -> tuple[Indices, Array]:
    """The k rows of X nearest to each query, by (distance, index), and their squared distances.

    `marks` are integers of the samples and of the queries; pairs with equal marks are excluded.
    """
    n = queries.shape[0]
    found, distances = np.empty((n, k), dtype=np.intp), np.empty((n, k))
    order = np.argsort(marks[0], kind="stable")
    sorted_already = bool(np.all(order[1:] > order[:-1]))
    space, offered = _Space(X if sorted_already else X[order], queries), marks[0][order]
    for rows in _blocks(n, X.shape[0]):
        row, column = _candidates([space], [1.0], rows, k, (offered, marks[1][rows]))
        column = order[column]
        exact = squared_distances(X, queries[rows], column, row)
        chosen = _first(row, column, exact, k)
        found[rows], distances[rows] = column[chosen], exact[chosen]
    return found, distances


def search_mixtures(
    spaces: Sequence[tuple[Array, Array]], weights: Array, k: int
) -> tuple[NDArray[np.intp], Array]:
    """`nearest.search_mixtures` with the scores of each space computed once."""
    (X, queries), *_ = spaces
    if len(weights) * X.shape[0] * queries.shape[0] <= MAX_COMPLETE:
        return _from_all_distances(spaces, weights, k)
    parts = [_Space(X, queries) for X, queries in spaces]
    n = queries.shape[0]
    found = np.empty((len(weights), n, k), dtype=np.intp)
    distances = np.empty(found.shape)
    for rows in _blocks(n, X.shape[0]):
        for place, mixture in enumerate(weights):
            used = [(part, w) for part, w in zip(parts, mixture, strict=True) if w]
            row, column = _candidates([p for p, _ in used], [w for _, w in used], rows, k)
            exact = np.zeros(row.size)
            for part, weight in used:
                exact += weight * squared_distances(part.X, part.queries[rows], column, row)
            chosen = _first(row, column, exact, k)
            found[place, rows], distances[place, rows] = column[chosen], exact[chosen]
    return found, distances


def _from_all_distances(
    spaces: Sequence[tuple[Array, Array]], weights: Array, k: int
) -> tuple[NDArray[np.intp], Array]:
    """`search_mixtures` by computing all distances in each space."""
    each = [cdist(queries, X, "sqeuclidean") for X, queries in spaces]
    squares = np.concatenate([
        sum(w * part for part, w in zip(each, mixture, strict=True) if w) for mixture in weights
    ])  # fmt: skip
    row, column = np.nonzero(squares <= np.partition(squares, k - 1, axis=1)[:, k - 1 : k])
    exact = squares[row, column]
    chosen, shape = _first(row, column, exact, k), (len(weights), -1, k)
    return column[chosen].reshape(shape), exact[chosen].reshape(shape)


class _Space:
    """Samples and queries, centred if they are dense, and scaled for products."""

    def __init__(self, X: Any, queries: Any) -> None:
        self.X, self.queries = X, queries
        sparse = sp.issparse(X)
        self.origin = np.zeros(X.shape[1]) if sparse else X.mean(axis=0, dtype=np.float64)
        moved = _moved(X, self.origin)
        squares = row_squares(moved)
        self.peak = float(np.sqrt(squares.max()))
        self.single = not sparse and X.shape[1] >= MIN_FLOAT32_FEATURES and 0 < self.peak < np.inf
        self.scale = self.peak if self.single else 1.0
        self._last: tuple[slice, Array, Array] | None = None
        self._set(moved, squares)

    def _set(self, moved: Any, squares: Array) -> None:
        dtype = np.float32 if self.single else np.float64
        self.rows = moved
        if not sp.issparse(moved) and (self.scale != 1 or self.single):
            self.rows = np.empty(moved.shape, dtype)
            np.divide(moved, self.scale, out=self.rows, casting="same_kind")
        self.squares: Array = (squares / self.scale**2).astype(dtype)

    def doubled(self) -> None:
        """Switch to products in float64."""
        if self.single:
            self.single, self._last = False, None
            moved = _moved(self.X, self.origin)
            self._set(moved, row_squares(moved))

    def scores(self, rows: slice) -> tuple[Array, Array]:
        """‖y‖² − 2x·y of some queries x and all samples y, divided by the squared scale, and the
        error bound; the result of the last call is cached.
        """
        if self._last is None or self._last[0] != rows:
            self._last = (rows, *self._scored(rows))
        return self._last[1:]

    def _scored(self, rows: slice) -> tuple[Array, Array]:
        if rows.start:  # not in the first block, which takes little time
            clock.check()
        few = _moved(self.queries[rows], self.origin)
        far = (np.sqrt(row_squares(few)) + self.peak) / self.scale
        if self.single and not far.max(initial=0.0) < MAX_FLOAT32_RATIO:
            self.doubled()
        dtype = self.rows.dtype
        scores = _dense((few * (-2.0 / self.scale)).astype(dtype) @ self.rows.T)
        scores += self.squares
        # Twice the rounding error of a score plus that of the distance from differences.
        room: Array = 2.02 * np.finfo(dtype).eps * (few.shape[1] + 8) * far**2
        return scores, room


def _candidates(
    parts: Sequence[_Space],
    weights: Sequence[float],
    rows: slice,
    k: int,
    marks: tuple[Indices, Indices] | None = None,
) -> tuple[Indices, Indices]:
    """Pairs (query, sample) for which the sample may be among the k nearest of the query."""
    while True:
        scores, room = _mixed(parts, weights, rows)
        if marks is not None:
            _leave_out(scores, marks[1], marks[0])
        row, column = _below(scores, _bar(scores, k), room)
        if row.size <= MAX_CANDIDATES * k * scores.shape[0] or not any(
            part.single for part in parts
        ):
            return row, column
        for part in parts:
            part.doubled()


def _mixed(parts: Sequence[_Space], weights: Sequence[float], rows: slice) -> tuple[Array, Array]:
    """The weighted sum of the scores in units of the largest squared scale, and its error bound."""
    found = [part.scores(rows) for part in parts]
    if len(found) == 1:
        return found[0]
    top = max(part.scale for part in parts)
    shares = [float(w) * (part.scale / top) ** 2 for part, w in zip(parts, weights, strict=True)]
    scores, room = (shares[0] * one for one in found[0])
    for share, (more, wider) in zip(shares[1:], found[1:], strict=True):
        scores += share * more
        room += share * wider
    return scores, room


def _first(row: Indices, column: Indices, exact: Array, k: int) -> Indices:
    """The indices of the k nearest candidates of each query, ties broken by the smaller index."""
    order = np.lexsort((column, exact, row))
    first = np.searchsorted(row[order], np.arange(row.max(initial=-1) + 1))
    return order[first[:, None] + np.arange(k)]


def _bar(scores: Array, k: int) -> Array:
    """An upper bound on the k-th smallest score of each row: the k-th smallest group minimum."""
    width = scores.shape[1] // SCORES_PER_GROUP
    if width < 4 * k:
        least = scores
    else:
        least = scores[:, :width].copy()
        for start in range(width, scores.shape[1], width):
            part = scores[:, start : start + width]
            np.minimum(least[:, : part.shape[1]], part, out=least[:, : part.shape[1]])
    return np.partition(least, k - 1, axis=1)[:, k - 1]


def _below(scores: Array, bar: Array, room: Array) -> tuple[Indices, Indices]:
    """Pairs (query, sample) with a score of at most the threshold plus the error bound."""
    bar = (bar + room).astype(scores.dtype)
    bar += np.finfo(scores.dtype).eps * np.abs(bar)
    return np.divmod(np.flatnonzero(scores <= bar[:, None]), scores.shape[1])


def _leave_out(scores: Array, asking: Indices, offered: Indices) -> None:
    """Set the scores of pairs with equal marks to infinity; `offered` is sorted."""
    starts, ends = (np.searchsorted(offered, asking, side=side) for side in ("left", "right"))
    if np.all(ends - starts <= 1):
        row = np.flatnonzero(ends > starts)
        scores[row, starts[row]] = np.inf
        return
    for row, start, end in zip(scores, starts, ends, strict=True):
        row[start:end] = np.inf


def squared_distances(X: Any, Y: Any, i: Indices, j: Indices) -> Array:
    """‖x_i − y_j‖² for pairs of rows, from their differences in float64, in blocks of pairs."""
    found = np.empty(i.size)
    step = max(1, DIFFERENCES_PER_BLOCK // max(1, X.shape[1]))

    def fill(first: int, last: int) -> None:
        for start in range(first * step, min(last * step, i.size), step):
            part = slice(start, start + step)
            gaps = X[i[part]].astype(np.float64, copy=False)  # indexing has copied the rows
            gaps -= Y[j[part]]
            found[part] = row_squares(gaps)

    in_parts(fill, -(-i.size // step), i.size * X.shape[1])
    return found


def _blocks(n: int, width: int) -> Iterator[slice]:
    step = max(64, SCORES_PER_BLOCK // max(1, width))
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def _moved(X: Any, origin: Array) -> Any:
    return X.astype(np.float64) if sp.issparse(X) else X - origin


def _dense(products: Any) -> Array:
    return np.asarray(products.toarray() if sp.issparse(products) else products)
