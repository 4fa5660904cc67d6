"""Sorting and counting entries: kernels give the same results as NumPy and SciPy."""

import numpy as np
import pytest

from gramian.arrays import entries as entries_of


def _entries(shape, size, order):
    """Entries, some of them repeated, in no order, by row, or by row and column."""
    rng = np.random.default_rng(size)
    rows, cols = (rng.integers(0, side, size).astype(np.int32) for side in shape)
    if order == "rows":
        rows = np.sort(rows)
    if order == "both":
        by = np.lexsort([cols, rows])
        rows, cols = rows[by], cols[by]
    return rows, cols


@pytest.fixture(params=["plain", "compiled"])
def path(request, monkeypatch):
    monkeypatch.setattr(entries_of, "MANY", 1 if request.param == "compiled" else 10**9)


@pytest.mark.usefixtures("path")
@pytest.mark.parametrize("order", ["none", "rows", "both"])
@pytest.mark.parametrize("shape", [(7, 300), (200, 9), (30, 100_000)])
def test_entries_are_sorted_stably_by_row_and_column(shape, order):
    rows, cols = _entries(shape, 3000, order)
    expected = np.lexsort([cols, rows])
    found = entries_of.sorted_entries(rows, cols, shape)
    if order == "both":
        assert found is None
        return
    starts, columns, by = found
    assert np.array_equal(by, expected)
    assert np.array_equal(columns, cols[expected])
    assert np.array_equal(np.diff(starts), np.bincount(rows, minlength=shape[0]))


@pytest.mark.usefixtures("path")
def test_keys_are_counted_and_sorted_stably():
    _, keys = _entries((5, 40), 2000, "none")
    starts, order = entries_of.counting_sort(keys, 41)
    assert np.array_equal(order, np.argsort(keys, kind="stable"))
    counts = np.bincount(keys, minlength=41)
    assert np.array_equal(np.diff(starts), counts)
    assert np.array_equal(entries_of.tallied(keys, 41), counts)
    values = np.random.default_rng(0).random(keys.size)
    sums = entries_of.tallied(keys, 41, values)
    np.testing.assert_allclose(sums, np.bincount(keys, values, 41), rtol=1e-12)


@pytest.mark.usefixtures("path")
def test_a_pattern_is_permuted_and_sorted():
    rng, shape = np.random.default_rng(1), (40, 70_000)
    dense = rng.permutation(shape[0] * 500)[:4000]
    rows, cols = np.divmod(np.sort(dense).astype(np.int32), 500)
    cols = cols * 140
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=40))]).astype(np.int32)
    lines = rng.permutation(40).astype(np.int32)
    names = rng.permutation(shape[1]).astype(np.int32)
    begin, columns, order = entries_of.permuted((starts, cols), lines, names, shape[1])
    source = np.argsort(lines)[rows]
    expected = np.lexsort([names[cols], source])
    assert np.array_equal(order, expected)
    assert np.array_equal(columns, names[cols][expected])
    assert np.array_equal(np.diff(begin), np.diff(starts)[lines])
