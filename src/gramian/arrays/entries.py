"""Sorting and counting the entries of a sparse matrix, in linear time.

Plain NumPy and SciPy for few entries; for many, compiled kernels in several threads. Both give the
same sorted orders and counts. Sums of values differ in their rounding only.
"""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gramian.arrays.threads import in_parts
from gramian.common.types import Array

Indices = NDArray[np.int32]
Given = NDArray[np.integer[Any]]
"""Arrays of int32, as arguments."""
Words = NDArray[np.uint64]
Lines = tuple[Indices, Indices, Indices]
"""The start of each row, the sorted keys of its entries, and the index of each entry."""

MANY = 2**22
"""Number of entries from which kernels are used. With one thread the passes over 2, 4 and 10
million ratings take 0.3 to 0.5, 0.9 to 1.2 and 2.4 to 3.8 s of CPU time with kernels, and 0.6 to
0.8, 1.4 to 1.9 and 3.9 to 4.9 s without. Importing Numba and reading the kernels adds 0.5 to 1.3 s
once: the first fit of 2 million ratings is slower with kernels, that of 4 million is not."""

BLOCK = 2**16
"""Entries counted, or whose order is tested, at a time."""

MAX_PARTS, PART_KEYS = 64, 8
"""Largest number of parts with counts of their own, and entries of a part per key."""

LINE_PARTS = 1024
"""Number of blocks of rows that are sorted."""

WORK = 8
"""Cost of sorting or hashing an entry, in multiplications."""

SHORT_KEY, LONG_KEY = 2, 4
"""Digits of keys of 16 and of 32 bits."""

NO_INDICES: Indices = np.empty(0, dtype=np.int32)
NO_VALUES = np.empty(0)


def are_many(entries: Given) -> bool:
    """Whether kernels are used for these entries."""
    return entries.size >= MANY


def tallied(keys: Given, count: int, values: Array = NO_VALUES) -> Any:
    """The sum of the values of each key 0..count, or the number of its entries."""
    if not are_many(keys):
        return _plain_tally(keys, count, values)
    return _lines(keys, count, values).sum(axis=0)


def _plain_tally(keys: Given, count: int, values: Array) -> Array:
    """By blocks of entries, whose keys NumPy copies to int64."""
    found, step = np.zeros(count), max(BLOCK, count)
    for first in range(0, keys.size, step):
        part = slice(first, first + step)
        found += np.bincount(keys[part], values[part] if values.size else None, count)
    return found


def _lines(keys: Given, count: int, values: Array) -> Array:
    """The sums, or the numbers, of each part of the entries."""
    bounds = _bounds(keys.size, count)
    found = np.zeros((bounds.size - 1, count))
    _launch("tally", bounds.size - 1, keys.size, bounds, keys, values, found)
    return found


def counting_sort(keys: Given, count: int) -> tuple[Indices, Indices]:
    """Stable sort of the keys 0..count: the start of each key, and the order."""
    if not are_many(keys):
        return _plain_sort(keys, count)
    lines = _lines(keys, count, NO_VALUES).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(lines.sum(axis=0))])
    free = np.cumsum(lines, axis=0)
    free -= lines
    free += starts[:-1]
    order = np.empty(keys.size, dtype=np.int32)
    bounds = _bounds(keys.size, count)
    _launch("place_keys", bounds.size - 1, keys.size, bounds, keys, free, order)
    return starts.astype(np.int32), order


def _plain_sort(keys: Given, count: int) -> tuple[Indices, Indices]:
    """Scipy's conversion to CSR of a matrix with one entry per column."""
    columns = np.arange(keys.size, dtype=np.int32)
    ones = np.ones(keys.size, dtype=np.int8)
    found = sparse.coo_array((ones, (keys, columns)), shape=(count, keys.size)).tocsr()
    return found.indptr.astype(np.int32, copy=False), found.indices.astype(np.int32, copy=False)


def sorted_entries(rows: Given, cols: Given, shape: tuple[int, int]) -> Lines | None:
    """Stable sort of entries by row and column; None if they are sorted."""
    by_row = _ascending(rows)
    if by_row and _ascending(rows, cols):
        return None
    if not are_many(rows):
        by_col = counting_sort(cols, shape[1])[1]
        starts, order = counting_sort(rows[by_col], shape[0])
        order = by_col[order]
        return starts, cols[order].astype(np.int32, copy=False), order
    starts, via = (_starts(rows, shape[0]), NO_INDICES) if by_row else counting_sort(rows, shape[0])
    lines = np.arange(shape[0], dtype=np.int32)
    return _sorted_lines((starts, cols), lines, NO_INDICES, shape[1], via)


def permuted(source: tuple[Given, Given], lines: Given, names: Given, count: int) -> Lines:
    """The rows of a pattern in the order `lines`, with other names of the `count` columns, sorted.

    The source consists of the start of each row and the columns of the entries.
    """
    starts, cols = source
    if are_many(cols):
        return _sorted_lines(source, lines, names, count, NO_INDICES)
    numbers = np.arange(cols.size, dtype=np.int32)
    found = sparse.csr_array((numbers, names[cols], starts), shape=(starts.size - 1, count))[lines]
    found.sort_indices()
    return found.indptr, found.indices, found.data


def _sorted_lines(
    source: tuple[Given, Given], lines: Given, names: Given, count: int, via: Given
) -> Lines:
    begin, cols = source
    starts = np.zeros(lines.size + 1, dtype=np.int32)
    np.cumsum(np.diff(begin)[lines], out=starts[1:])
    found, order = np.empty(cols.size, np.int32), np.empty(cols.size, np.int32)
    blocks = _cuts(starts, LINE_PARTS)
    digits = SHORT_KEY if count <= 2**16 else LONG_KEY
    _launch(
        "sort_lines", blocks.size - 1, cols.size, blocks, lines, begin, via, cols, names, starts,
        digits, found, order,
    )  # fmt: skip
    return starts, found, order


def hashed(
    starts: Given,
    cols: Given,
    entries: tuple[Array, Array],
    scales: tuple[float, float, float, float],
    colours: tuple[Words, Words],
) -> tuple[Words, Words]:
    """Sums of hashes of entries for each row and column: see `completion._canonical`."""
    count = colours[1].size
    blocks = _cuts(starts, _bounds(cols.size, count).size - 1)
    by_row, by_col = np.zeros_like(colours[0]), np.zeros((blocks.size - 1, count), np.uint64)
    _launch(
        "hash_lines", blocks.size - 1, cols.size, blocks, starts, cols, *entries, *scales,
        *colours, by_row, by_col,
    )  # fmt: skip
    return by_row, by_col.sum(axis=0, dtype=np.uint64)


def _ascending(rows: Given, cols: Given | None = None) -> bool:
    """Whether entries are sorted by row, and by column within each row."""
    for first in range(0, rows.size - 1, BLOCK):
        here, after = slice(first, first + BLOCK), slice(first + 1, first + BLOCK + 1)
        i, following = rows[here][: rows[after].size], rows[after]
        good = following >= i
        if cols is not None:
            good &= (following > i) | (cols[after] >= cols[here][: following.size])
        if not good.all():
            return False
    return True


def _starts(rows: Given, count: int) -> Indices:
    """The first entry of each row 0..count of sorted entries, and their number."""
    return np.searchsorted(rows, np.arange(count + 1, dtype=rows.dtype)).astype(np.int32)


def _bounds(size: int, count: int) -> NDArray[np.int64]:
    """Boundaries of the parts of the entries: their counts need less memory than the entries."""
    parts = min(max(size // (PART_KEYS * max(count, 1)), 1), MAX_PARTS)
    return np.linspace(0, size, parts + 1).astype(np.int64)


def _cuts(starts: Given, parts: int) -> NDArray[np.int64]:
    """Boundaries of blocks of rows with about equally many entries."""
    found = np.searchsorted(starts, np.linspace(0, int(starts[-1]), parts + 1))
    found[0], found[-1] = 0, starts.size - 1
    return np.unique(found)


def _launch(name: str, units: int, size: int, *arguments: Any) -> None:
    """Run a compiled kernel; numba is imported here, on first use."""
    kernels = importlib.import_module("gramian.arrays._entry_kernels")
    in_parts(getattr(kernels, name), units, WORK * size, *arguments)
