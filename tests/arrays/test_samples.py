"""Samples: constant columns, and copies of rows and columns in parallel blocks."""

import numpy as np
import pytest
import scipy.sparse as sp

from gramian.arrays import samples
from gramian.arrays.samples import chosen_columns, chosen_rows, row_squares, varying_columns


@pytest.fixture(autouse=True)
def several_blocks(monkeypatch):
    monkeypatch.setattr(samples, "BLOCK", 7)
    monkeypatch.setattr("gramian.arrays.threads.WORK", 1)


@pytest.mark.parametrize("layout", [np.asarray, np.asfortranarray, sp.csr_array])
def test_blocks_give_the_same_as_indexing(layout):
    rng = np.random.default_rng(0)
    dense = rng.integers(0, 3, (40, 5)).astype(float)
    dense[:, 2], dense[:, 4] = 1.5, 0.0
    X = layout(dense)
    rows, columns = rng.permutation(40)[:23], np.array([3, 0, 4])
    assert varying_columns(X).tolist() == [True, True, False, True, False]
    for found, expected in (
        (chosen_rows(X, rows), dense[rows]),
        (chosen_columns(X, columns), dense[:, columns]),
    ):
        np.testing.assert_array_equal(found.toarray() if sp.issparse(found) else found, expected)


def test_change_in_the_last_block_is_found():
    X = np.zeros((15, 2), dtype=np.float32)
    X[-1, 1] = 1e-30
    assert varying_columns(X).tolist() == [False, True]


@pytest.mark.parametrize("layout", [np.asarray, sp.csr_array])
def test_squares_of_float32_are_summed_in_float64(layout):
    X = np.ones((9, 6), dtype=np.float32)
    X[:, 0] = 2.0**12  # in float32, 2²⁴ + 1 is 2²⁴
    assert row_squares(layout(X)).tolist() == [2.0**24 + 5] * 9
