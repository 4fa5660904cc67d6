"""Compiled kernels that maintain the candidates for the nearest neighbours of every query.

For a query x and a reference y a tile holds s = x̂·ŷ in float32; ‖x̂‖² + (‖ŷ‖² − 2s) lies within a
known error bound (`_sides.Frame`) of the squared distance D. Each query has a heap of k upper
bounds on D, whose largest is its threshold, and a pool of candidates whose lower bound does not
exceed the threshold. A full pool is refined: D is computed from the differences in float64, and the
k nearest are kept. At the end the pool holds the k smallest (D, index), independent of the order of
the tiles and the number of threads.

The states of the queries are rows of `heaps`, `pools` (indices) and `lows` (lower bounds on D), and
of `counts`: the size of the pool, and the number of leading candidates whose D is in `lows`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian.arrays._kernels import compiled

CHUNK = 16
"""Scores whose minimum is compared with the threshold before they are tested individually."""


@compiled
def distance(left: Any, i: int, right: Any, j: int) -> float:
    """‖x_i − y_j‖² from the differences, of dense rows or of sorted rows of CSR."""
    dense, indptr, indices, data, _ = left
    others, other_indptr, other_indices, other_data, _ = right
    total = 0.0
    if dense.shape[1] > 0:
        x, y = dense[i], others[j]
        for c in range(x.size):
            gap = np.float64(x[c]) - np.float64(y[c])
            total += gap * gap
        return total
    a, a_end = indptr[i], indptr[i + 1]
    b, b_end = other_indptr[j], other_indptr[j + 1]
    while a < a_end or b < b_end:
        if b >= b_end or (a < a_end and indices[a] < other_indices[b]):
            gap = np.float64(data[a])
            a += 1
        elif a >= a_end or other_indices[b] < indices[a]:
            gap = np.float64(other_data[b])
            b += 1
        else:
            gap = np.float64(data[a]) - np.float64(other_data[b])
            a += 1
            b += 1
        total += gap * gap
    return total


@compiled
def _lower_bar(heaps: Any, i: int, value: float) -> None:
    """Replace the largest upper bound of a query."""
    place, k = 0, heaps.shape[1]
    while True:
        child = 2 * place + 1
        if child >= k:
            break
        if child + 1 < k and heaps[i, child + 1] > heaps[i, child]:
            child += 1
        if heaps[i, child] <= value:
            break
        heaps[i, place] = heaps[i, child]
        place = child
    heaps[i, place] = value


@compiled
def _refine(i: int, left: Any, right: Any, square: float, states: Any) -> None:
    """Keep the k nearest in a query's pool, sorted by (D, index), and their D in its heap."""
    heaps, pools, lows, counts = states
    heap, pool, low, names = heaps[i], pools[i], lows[i], right[4]
    k, kept, bar = heap.size, 0, heap[0]
    for p in range(counts[i, 0]):
        j, d = pool[p], low[p]
        if d > bar:
            continue
        if p >= counts[i, 1]:
            d = square * distance(left, i, right, j)
        place = kept
        while place > 0 and d <= low[place - 1]:
            if d == low[place - 1] and names[j] > names[pool[place - 1]]:
                break
            place -= 1
        if place >= k:
            continue
        kept = min(kept + 1, k)
        for q in range(kept - 1, place, -1):
            pool[q], low[q] = pool[q - 1], low[q - 1]
        pool[place], low[place] = j, d
    counts[i, 0] = counts[i, 1] = kept
    for p in range(kept):
        heap[k - 1 - p] = low[p]  # descending order is a valid heap


@compiled
def _make_room(i: int, left: Any, right: Any, square: float, states: Any) -> None:
    """Remove candidates above the threshold from a full pool; refine it if few are removed."""
    heaps, pools, lows, counts = states
    kept, exact = 0, 0
    for p in range(counts[i, 0]):
        if lows[i, p] <= heaps[i, 0]:
            pools[i, kept], lows[i, kept] = pools[i, p], lows[i, p]
            kept += 1
            exact += p < counts[i, 1]
    counts[i, 0], counts[i, 1] = kept, exact
    if 2 * kept > pools.shape[1]:
        _refine(i, left, right, square, states)


@compiled
def offer(
    scores: Any, first: int, start: int, rows_ask: bool, hits: Any, count: int,
    left: Any, right: Any, square: float, states: Any, asking: Any, offered: Any, marks: Any,
) -> None:  # fmt: skip
    """Add the scores of the marked chunks to the pools of the queries, except for equal marks.

    Integer data has no rounding error: a candidate at the distance of the threshold with a larger
    index than those present is skipped.
    """
    # Tuples are unpacked once: numba counts references at every access.
    heaps, pools, lows, counts = states
    own_squares, slopes, bases = asking
    squares, norms, rests = offered
    own_marks, other_marks = marks
    names = right[4]
    (n_rows, n_cols), k = scores.shape, heaps.shape[1]
    for hit in range(count):
        row, column = hits[hit, 0], hits[hit, 1]
        i = first + row if rows_ask else start + column
        j = start + column if rows_ask else first + row
        for _ in range(min(CHUNK, n_cols - column if rows_ask else n_rows - row)):
            near = own_squares[i] + np.float64(squares[j] - np.float32(2.0) * scores[row, column])
            room = bases[i] + slopes[i] * norms[j] + rests[j]
            if near - room <= heaps[i, 0] and own_marks[i] != other_marks[j]:
                bar, held = lows[i, k - 1], counts[i, 1] >= k
                useless = held and room == 0.0 and near == heaps[i, 0] and near == bar
                if not (useless and names[j] > names[pools[i, k - 1]]):
                    if near + room < heaps[i, 0]:
                        _lower_bar(heaps, i, near + room)
                    last = counts[i, 0]
                    pools[i, last], lows[i, last] = j, near - room
                    counts[i, 0] = last + 1
                    if last + 1 == pools.shape[1]:
                        _make_room(i, left, right, square, states)
            j += 1
            row += not rows_ask
            column += rows_ask


@compiled
def finish(
    first: int, stop: int, left: Any, right: Any, square: float,
    states: Any, found: Any, distances: Any,
) -> None:  # fmt: skip
    """The k nearest of the queries from `first` to `stop`, nearest first, and their D."""
    _, pools, lows, _ = states
    for i in range(first, stop):
        _refine(i, left, right, square, states)
        for p in range(found.shape[1]):
            found[i, p] = pools[i, p]
            distances[i, p] = lows[i, p] / square


@compiled
def nearest_among(
    start: int, stop: int, candidates: Any, left: Any, right: Any, marks: Any,
    found: Any, distances: Any,
) -> None:  # fmt: skip
    """The k nearest of each query's candidates, sorted by (D, index); ignores negative indices."""
    own_marks, other_marks = marks
    k = found.shape[1]
    for i in range(start, stop):
        kept = 0
        for p in range(candidates.shape[1]):
            j = candidates[i, p]
            if j < 0 or own_marks[i] == other_marks[j]:
                continue
            d = distance(left, i, right, j)
            place = kept
            while place > 0 and d <= distances[i, place - 1]:
                if d == distances[i, place - 1] and j > found[i, place - 1]:
                    break
                place -= 1
            if place >= k:
                continue
            kept = min(kept + 1, k)
            for q in range(kept - 1, place, -1):
                found[i, q], distances[i, q] = found[i, q - 1], distances[i, q - 1]
            found[i, place], distances[i, place] = j, d
