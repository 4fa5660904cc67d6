"""Compiled kernels that maintain the candidates for the nearest neighbours of every query.

For a query x and a reference y a tile holds s = x̂·ŷ in float32; ‖x̂‖² + (‖ŷ‖² − 2s) lies within a
known error bound (`neighbours.ProductCoordinates`) of the squared distance D. Each query has a heap
of k upper bounds on D, whose largest is its threshold, and a pool of candidates whose lower bound
does not exceed the threshold. A full pool is refined: D is computed from the differences in
float64, and the k nearest are kept. At the end the pool holds the k smallest (D, index),
independent of the order of the tiles and the number of threads.

The states of the queries are rows of `heaps`, `pools` (indices) and `lows` (lower bounds on D), and
of `counts`: the size of the pool, and the number of leading candidates whose D is in `lows`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gramian.arrays._kernels import compiled, inner

SCORES_PER_CHUNK = 16
"""Scores whose minimum is compared with the threshold before they are tested individually."""

ROUND_UP, TINY = 1.0 + 2.0**-22, 2.0**-100
"""Factor and summand that round a number up to float32."""


@inner
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


@inner
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


@inner
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


@inner
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
        for _ in range(min(SCORES_PER_CHUNK, n_cols - column if rows_ask else n_rows - row)):
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


# --- tiles ----------------------------------------------------------------------------


def _finite(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile for finite numbers, so that a minimum uses vector registers."""
    return compiled(function, "nnan", "nsz")


@inner
def _limit(heap: float, own: float, slope: float, base: float, peak: float, rest: float) -> Any:
    """The largest ‖ŷ‖² − 2s that may be below the threshold, rounded up."""
    limit = heap - own + (base + slope * peak + rest)
    return np.float32(limit * ROUND_UP if limit > 0 else limit / ROUND_UP) + np.float32(TINY)


@inner
def _peaks(offered: Any, start: int, count: int) -> tuple[float, float]:
    """The largest ‖ŷ‖ and c of some references; NumPy's `max` takes a second to compile."""
    peak, rest = 0.0, 0.0
    for j in range(start, start + count):
        peak, rest = max(peak, offered[1][j]), max(rest, offered[2][j])
    return peak, rest


@_finite
def columns_below(
    scores: Any, first: int, start: int, heaps: Any, asking: Any, offered: Any, hits: Any
) -> int:
    """Chunks of rows, the references from `first`, that may be below the threshold of a column.

    The columns are the queries from `start`. `asking` has their ‖x̂‖², `offered` ‖ŷ‖², and both
    bound the distance of a score from D (`neighbours.ProductCoordinates`).
    """
    n_rows, n_cols = scores.shape
    least, limits = np.empty(n_cols, dtype=np.float32), np.empty(n_cols, dtype=np.float32)
    peak, rest = _peaks(offered, first, n_rows)
    for c in range(n_cols):
        i = start + c
        limits[c] = _limit(heaps[i, 0], asking[0][i], asking[1][i], asking[2][i], peak, rest)
    count = 0
    for begin in range(0, n_rows, SCORES_PER_CHUNK):
        least[:] = np.float32(np.inf)
        for row in range(begin, min(begin + SCORES_PER_CHUNK, n_rows)):
            square, line = offered[0][first + row], scores[row]
            for c in range(n_cols):
                least[c] = min(least[c], square - np.float32(2.0) * line[c])
        for c in range(n_cols):
            if least[c] <= limits[c]:
                hits[count, 0], hits[count, 1] = begin, c
                count += 1
    return count


@inner
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
    peak, rest = _peaks(offered, start, n_cols)
    count = 0
    for row in range(n_rows):
        i, line = first + row, scores[row]
        limit = _limit(heaps[i, 0], asking[0][i], asking[1][i], asking[2][i], peak, rest)
        if _count_below(line, squares, limit) == 0:
            continue
        for begin in range(0, n_cols, SCORES_PER_CHUNK):
            part = slice(begin, begin + SCORES_PER_CHUNK)
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


@compiled
def sweep(
    tiles: Any, start: int, both: bool, references: Any, queries: Any, left: Any, right: Any,
    square: float, states: Any, asking: Any, offered: Any, marks: Any,
) -> None:  # fmt: skip
    """Pass the references of every tile, from `first` to `stop`, to the queries from `start`.

    There is no Python code between tiles, so that threads do not wait for the GIL: a tile of a
    hundred features takes 0.5 ms, and the Python overhead would be 0.05 ms.

    If `both`, the queries are also candidates for the references.
    """
    width, longest = queries.shape[0], 0
    for t in range(tiles.shape[0]):
        longest = max(longest, tiles[t, 1] - tiles[t, 0])
    room = np.empty((longest, width), dtype=np.float32)
    most = max(longest * -(-width // SCORES_PER_CHUNK), width * -(-longest // SCORES_PER_CHUNK))
    hits = np.empty((most, 2), dtype=np.int32)
    for t in range(tiles.shape[0]):
        first, stop = tiles[t]
        scores = room[: stop - first]
        np.dot(references[first:stop], queries.T, scores)
        for pass_number in range(1 + both):
            rows_ask = pass_number > 0  # no literal: numba would compile `offer` for each
            if rows_ask:
                count = rows_below(scores, first, start, states[0], asking, offered, hits)
            else:
                count = columns_below(scores, first, start, states[0], asking, offered, hits)
            offer(scores, first, start, rows_ask, hits, count, left, right, square, states,
                  asking, offered, marks)  # fmt: skip
