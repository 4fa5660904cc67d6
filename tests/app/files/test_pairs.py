"""Pairs of sample numbers, with and without weights."""

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp

from gramian.app.files import FileError, read_pairs, write_table

PAIRS = np.array([[0, 1], [2, 3], [7, 5]])
WEIGHTS = np.array([1, 0.5, 2])


@pytest.mark.parametrize(
    "content", ["0,1\n2,3\n7,5\n", "0 1\n2 3\n7 5", "i;j\n\n0; 1\n2; 3\n7; 5\n"]
)
def test_pairs_of_text(content, tmp_path):
    (tmp_path / "p.txt").write_text(content)
    pairs, weights = read_pairs(tmp_path / "p.txt")
    np.testing.assert_array_equal(pairs, PAIRS)
    assert pairs.dtype == np.int64 and weights is None


@pytest.mark.parametrize("ending", ["csv", "npy", "npz", "parquet"])
def test_pairs_of_every_format(ending, tmp_path):
    path = tmp_path / f"p.{ending}"
    for table, expected in ((PAIRS, None), (np.column_stack([PAIRS, WEIGHTS]), WEIGHTS)):
        write_table(path, table)
        pairs, weights = read_pairs(path)
        np.testing.assert_array_equal(pairs, PAIRS)
        np.testing.assert_array_equal(weights, expected)
    np.savez(tmp_path / "p.npz", pairs=PAIRS.astype(np.int16), weights=WEIGHTS)
    np.testing.assert_array_equal(read_pairs(tmp_path / "p.npz")[1], WEIGHTS)


def test_pairs_of_sparse_matrices(tmp_path):
    links = sp.coo_array((WEIGHTS, PAIRS.T), shape=(8, 8))
    scipy.io.mmwrite(tmp_path / "p.mtx", links)
    scipy.io.mmwrite(tmp_path / "both.mtx", links + links.T, symmetry="symmetric")
    sp.save_npz(tmp_path / "p.npz", sp.coo_array((np.ones(3), PAIRS.T)))
    for name in ("p.mtx", "both.mtx"):
        pairs, weights = read_pairs(tmp_path / name)
        found = {(*sorted(pair), w) for pair, w in zip(pairs.tolist(), weights, strict=True)}
        assert found == {(0, 1, 1), (2, 3, 0.5), (5, 7, 2)}
    assert read_pairs(tmp_path / "p.npz")[1] is None


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (PAIRS - 1, "pair 0 has -1 where a sample number"),
        (PAIRS + 0.5, "pair 0 has 0.5 where"),
        (PAIRS + 1e16, "pair 0 has 1e[+]16 where"),
        (np.column_stack([PAIRS, -WEIGHTS]), "pair 0 has -1 where a weight"),
        (np.column_stack([PAIRS, [1, np.nan, 1]]), "pair 1 has nan where a weight"),
        (PAIRS[:, :1], "1 columns, where the two"),
    ],
)
def test_errors_describe_invalid_pairs(table, words, tmp_path):
    np.save(tmp_path / "p.npy", table)
    with pytest.raises(FileError, match=words):
        read_pairs(tmp_path / "p.npy")


def test_weights_of_pairs_go_by_their_name(tmp_path):
    (tmp_path / "p.csv").write_text("weight,b,a\n0.5,3,4\n2,5,6\n")
    pairs, weights = read_pairs(tmp_path / "p.csv")
    assert pairs.tolist() == [[3, 4], [5, 6]] and weights.tolist() == [0.5, 2]
    pd.DataFrame({"b": [3, 5], "a": [4, 6]}).to_csv(tmp_path / "index.csv")
    with pytest.raises(FileError, match="an index does not belong"):
        read_pairs(tmp_path / "index.csv")
