"""Compiled kernels over the entries of a sparse matrix; see `gramian.arrays.entries`.

The rules of `_kernels` hold. A part of the entries has its own line of counts or sums, and lines
are added in their order, so that results do not depend on the number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gramian.arrays._kernels import compiled, inner

DIGIT = 8
"""Bits of a digit of a radix sort."""

FEW = 16
"""Entries of a row up to which they are sorted by insertion: rows of 8, 16 and 32 random columns
take 17, 26 and 33 ns per entry, and 39, 25 and 17 ns by digits."""


@compiled
def tally(start: int, stop: int, bounds: Any, keys: Any, values: Any, found: Any) -> None:
    """Add the value of each entry, 1 without values, to its key in the line of its part."""
    for part in range(start, stop):
        for e in range(bounds[part], bounds[part + 1]):
            found[part, np.uint32(keys[e])] += values[e] if values.size > 0 else 1.0


@compiled
def place_keys(start: int, stop: int, bounds: Any, keys: Any, free: Any, order: Any) -> None:
    """Write each entry to the next free place of its key and part."""
    for part in range(start, stop):
        for e in range(bounds[part], bounds[part + 1]):
            key = np.uint32(keys[e])
            order[free[part, key]] = e
            free[part, key] += 1


@inner
def _insert(keys: Any, order: Any, first: int, count: int) -> None:
    """Sort some entries by insertion."""
    for k in range(first + 1, first + count):
        key, entry, at = keys[k], order[k], k
        while at > first and keys[at - 1] > key:
            keys[at], order[at] = keys[at - 1], order[at - 1]
            at -= 1
        keys[at], order[at] = key, entry


@inner
def _spread(
    keys: Any, order: Any, first: int, to: Any, entries: Any, at: int, count: int, shift: int,
    places: Any,
) -> None:  # fmt: skip
    """Sort some entries by one digit, from one pair of arrays to another."""
    mask = len(places) - 1
    for digit in range(mask + 1):
        places[digit] = 0
    for k in range(first, first + count):
        places[(keys[k] >> shift) & mask] += 1
    total = at
    for digit in range(mask + 1):
        total, places[digit] = total + places[digit], total
    for k in range(first, first + count):
        digit = (keys[k] >> shift) & mask
        to[places[digit]], entries[places[digit]] = keys[k], order[k]
        places[digit] += 1


@compiled
def sort_lines(
    start: int, stop: int, blocks: Any, lines: Any, begin: Any, via: Any, keys: Any, names: Any,
    starts: Any, digits: int, out: Any, order: Any,
) -> None:  # fmt: skip
    """Row r of the result is row `lines[r]`, stably sorted by its keys, or by the names of these.

    The rows of the source begin at `begin`, in entries of the order `via` unless that is empty.
    """
    longest = 0
    for r in range(blocks[start], blocks[stop]):
        longest = max(longest, starts[r + 1] - starts[r])
    spare, entries = np.empty(longest, np.int32), np.empty(longest, np.int32)
    places = np.empty(1 << DIGIT, np.int64)
    for r in range(blocks[start], blocks[stop]):
        first, count = starts[r], starts[r + 1] - starts[r]
        source, is_sorted = begin[lines[r]], True
        for k in range(count):
            e = via[source + k] if via.size > 0 else source + k
            key = keys[e]
            if names.size > 0:
                key = names[key]
            out[first + k], order[first + k] = key, e
            is_sorted = is_sorted and (k == 0 or out[first + k - 1] <= key)
        if is_sorted:
            continue
        if count <= FEW:
            _insert(out, order, first, count)
            continue
        for digit in range(0, digits, 2):
            _spread(out, order, first, spare, entries, 0, count, digit * DIGIT, places)
            _spread(spare, entries, 0, out, order, first, count, (digit + 1) * DIGIT, places)


@inner
def _mixed(word: Any) -> Any:
    """A hash of 64 bits: SplitMix64 (Steele, Lea and Flood 2014)."""
    odd = np.uint64(0x9E3779B97F4A7C15)
    word = (word + odd) * odd
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@inner
def _stepped(value: float, size: float, steps: float) -> Any:
    """An integer for a value of at most that size."""
    return np.uint64(np.int64(np.rint(value / size * steps))) if size != 0.0 else np.uint64(0)


@compiled
def hash_lines(
    start: int, stop: int, blocks: Any, starts: Any, cols: Any, values: Any, weights: Any,
    steps: float, low: float, span: float, heaviest: float, of_rows: Any, of_cols: Any,
    by_row: Any, by_col: Any,
) -> None:  # fmt: skip
    """Add a hash of each entry and of the colour of its column to its row, and vice versa."""
    for part in range(start, stop):
        for i in range(blocks[part], blocks[part + 1]):
            total = np.uint64(0)
            for e in range(starts[i], starts[i + 1]):
                word = _mixed(_stepped(values[e] - low, span, steps))
                if weights.size > 0:
                    word = _mixed(word + _stepped(weights[e], heaviest, steps))
                j = np.uint32(cols[e])
                total += _mixed(word + of_cols[j])
                by_col[part, j] += _mixed(word + of_rows[i])
            by_row[i] += total
