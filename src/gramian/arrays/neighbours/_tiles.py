"""Compiled kernels that compute scores of sparse rows and find small scores in a tile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gramian.arrays._kernels import compiled
from gramian.arrays.neighbours._pools import CHUNK

ROUND_UP, TINY = 1.0 + 2.0**-22, 2.0**-100
"""Factor and summand that round a number up to float32."""


def _finite(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile for finite numbers, so that a minimum uses vector registers."""
    return compiled(function, "nnan", "nsz")


@compiled
def _limit(heap: float, own: float, slope: float, base: float, peak: float, rest: float) -> Any:
    """The largest ‖ŷ‖² − 2s that may be below the threshold, rounded up."""
    limit = heap - own + (base + slope * peak + rest)
    return np.float32(limit * ROUND_UP if limit > 0 else limit / ROUND_UP) + np.float32(TINY)


@_finite
def columns_below(
    scores: Any, first: int, start: int, heaps: Any, asking: Any, offered: Any, hits: Any
) -> int:
    """Chunks of rows, the references from `first`, that may be below the threshold of a column.

    The columns are the queries from `start`. `asking` has their ‖x̂‖², `offered` ‖ŷ‖², and both
    bound the distance of a score from D (`_sides.Frame`).
    """
    n_rows, n_cols = scores.shape
    least, limits = np.empty(n_cols, dtype=np.float32), np.empty(n_cols, dtype=np.float32)
    peak, rest = offered[1][first : first + n_rows].max(), offered[2][first : first + n_rows].max()
    for c in range(n_cols):
        i = start + c
        limits[c] = _limit(heaps[i, 0], asking[0][i], asking[1][i], asking[2][i], peak, rest)
    count = 0
    for begin in range(0, n_rows, CHUNK):
        least[:] = np.float32(np.inf)
        for row in range(begin, min(begin + CHUNK, n_rows)):
            square, line = offered[0][first + row], scores[row]
            for c in range(n_cols):
                least[c] = min(least[c], square - np.float32(2.0) * line[c])
        for c in range(n_cols):
            if least[c] <= limits[c]:
                hits[count, 0], hits[count, 1] = begin, c
                count += 1
    return count


@compiled
def _count_below(line: Any, squares: Any, limit: Any) -> int:
    below = 0
    for c in range(line.size):
        below += squares[c] - np.float32(2.0) * line[c] <= limit
    return below


@compiled
def rows_below(
    scores: Any, first: int, start: int, heaps: Any, asking: Any, offered: Any, hits: Any
) -> int:
    """The same with rows as queries and columns as references, if both are the same samples.

    Counts scores along a row, which uses vector registers where a minimum does not.
    """
    n_rows, n_cols = scores.shape
    squares = offered[0][start : start + n_cols]
    peak, rest = offered[1][start : start + n_cols].max(), offered[2][start : start + n_cols].max()
    count = 0
    for row in range(n_rows):
        i, line = first + row, scores[row]
        limit = _limit(heaps[i, 0], asking[0][i], asking[1][i], asking[2][i], peak, rest)
        if _count_below(line, squares, limit) == 0:
            continue
        for begin in range(0, n_cols, CHUNK):
            part = slice(begin, begin + CHUNK)
            if _count_below(line[part], squares[part], limit) > 0:
                hits[count, 0], hits[count, 1] = row, begin
                count += 1
    return count


@compiled
def pack(indptr: Any, indices: Any, data: Any, local: Any, packed: Any) -> None:
    """CSR rows as columns of `packed`; its rows are the features present, numbered by `local`."""
    used = 0
    for i in range(indptr.size - 1):
        for e in range(indptr[i], indptr[i + 1]):
            c = indices[e]
            if local[c] < 0:
                local[c] = used
                packed[used, :] = np.float32(0.0)
                used += 1
            packed[local[c], i] = data[e]


@compiled
def sparse_scores(
    first: int, indptr: Any, indices: Any, data: Any, local: Any, packed: Any, scores: Any
) -> None:
    """Products of the CSR rows from `first` with the packed rows, one sum per entry."""
    n_rows, n_cols = scores.shape
    for row in range(n_rows):
        line = scores[row]
        line[:] = np.float32(0.0)
        for e in range(indptr[first + row], indptr[first + row + 1]):
            place = local[indices[e]]
            if place >= 0:
                value, other = data[e], packed[place]
                for c in range(n_cols):
                    line[c] += value * other[c]
