"""Files: every format there and back, headers and labels, and a clear sentence for each problem."""

import contextlib
import errno
import gzip
import json
import os
import pickle
import stat

import numpy as np
import pandas as pd
import pytest
import scipy.io
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from gramian.app.files import (
    FileError,
    Header,
    describe,
    read_header,
    read_matrix,
    read_ratings,
    read_table,
    write_table,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 3)) * 10.0 ** RNG.integers(-9, 9, size=(12, 3))
WITH_GAP = np.where(np.arange(36).reshape(12, 3) == 7, np.nan, X)
Y = np.array(["red", "green", "blue"] * 4)
SPARSE = sp.csr_matrix(np.where(RNG.random((12, 5)) < 0.4, RNG.normal(size=(12, 5)), 0))
SPARSE[11, 4] = 2.5


@pytest.fixture
def text(tmp_path):
    """A function that writes text into a file and returns its path."""

    def written(content, name="t.csv"):
        path = tmp_path / name
        data = content if isinstance(content, bytes) else content.encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
        return path

    return written


@pytest.fixture
def small_memory(monkeypatch):
    monkeypatch.setattr("gramian.common.memory.memory", lambda: 100_000.0)


def refused(path, *words, reader=read_table, **options):
    """The reader refuses the file, names it, and says the words."""
    with pytest.raises(FileError) as caught:
        reader(path, **options)
    message = str(caught.value)
    assert str(path) in message and "\n" not in message
    for word in words:
        assert word in message, message


# --- there and back --------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["csv", "tsv", "csv.gz", "tsv.gz", "parquet", "npz"])
def test_round_trip_of_tables(ending, tmp_path):
    path = tmp_path / f"t.{ending}"
    write_table(path, WITH_GAP, columns=["a", "b c", 'd"'], extra={"y": Y})
    table = read_table(path, label="y")
    np.testing.assert_array_equal(table.X, WITH_GAP)
    np.testing.assert_array_equal(table.y, Y)
    assert table.columns == ["a", "b c", 'd"'] and table.label == "y"
    assert table.source == str(path) and table.format == ending.removesuffix(".gz")
    assert table.X.dtype == np.float64 and table.X.flags.c_contiguous


def test_round_trip_of_one_array(tmp_path):
    write_table(tmp_path / "t.npy", X)
    np.testing.assert_array_equal(read_matrix(tmp_path / "t.npy"), X)
    table = read_table(tmp_path / "t.npy", label="-1", drop=["0"])
    np.testing.assert_array_equal(table.X, X[:, 1:2])
    np.testing.assert_array_equal(table.y, X[:, 2])
    assert table.columns == ["x1"] and table.label == "x2"


def test_a_sparse_matrix_stays_sparse_in_npz(tmp_path):
    path = tmp_path / "t.npz"
    write_table(path, SPARSE, extra={"y": np.arange(12.0)})
    table = read_table(path)
    assert (table.X != SPARSE).nnz == 0 and isinstance(table.X, sp.csr_matrix)
    assert table.y.dtype == np.int64 and table.label == "y"
    write_table(tmp_path / "t.csv", SPARSE)
    np.testing.assert_array_equal(read_matrix(tmp_path / "t.csv"), SPARSE.toarray())


@pytest.mark.parametrize("layout", ["csr", "csc", "coo"])
def test_npz_as_scipy_saves_it(layout, tmp_path):
    sp.save_npz(tmp_path / "t.npz", SPARSE.asformat(layout))
    assert (read_matrix(tmp_path / "t.npz") != SPARSE).nnz == 0


def test_npz_of_parts_with_small_indices(tmp_path):
    np.savez(
        tmp_path / "t.npz",
        data=np.ones(SPARSE.nnz, dtype=np.uint8),
        indices=SPARSE.indices.astype(np.uint8),
        indptr=SPARSE.indptr,
        shape=np.array(SPARSE.shape, dtype=np.int32),
        y=np.arange(12, dtype=np.uint8),
    )
    table = read_table(tmp_path / "t.npz")
    assert ((SPARSE != 0) != table.X).nnz == 0
    np.testing.assert_array_equal(table.y, np.arange(12))


def test_npz_of_one_table_and_of_a_named_label(tmp_path):
    np.savez(tmp_path / "t.npz", anything=X, kind=Y, other=np.zeros(3))
    table = read_table(tmp_path / "t.npz", label="kind")
    np.testing.assert_array_equal(table.X, X)
    np.testing.assert_array_equal(table.y, Y)


@pytest.mark.parametrize("ending", ["svm", "libsvm", "svmlight", "txt", "svm.gz"])
def test_svmlight(ending, tmp_path):
    y = np.where(np.arange(12) % 2, 1, -1)
    plain = tmp_path / "plain"
    dump_svmlight_file(SPARSE, y, str(plain), zero_based=False, comment="made here")
    path = tmp_path / f"t.{ending}"
    path.write_bytes(
        gzip.compress(plain.read_bytes()) if ending.endswith("gz") else plain.read_bytes()
    )
    table = read_table(path)
    assert abs(table.X - SPARSE).max() < 1e-12 and table.format == "svmlight"
    assert table.y.dtype == np.int64 and table.label == "label"
    np.testing.assert_array_equal(table.y, y)


def test_svmlight_passes_over_query_ids(text):
    table = read_table(text("1.5 qid:3 1:2 4:1\n-2 qid:3 2:1 # so\n", "t.svm"))
    np.testing.assert_array_equal(table.X.toarray(), [[2, 0, 0, 1], [0, 1, 0, 0]])
    np.testing.assert_array_equal(table.y, [1.5, -2])


@pytest.mark.parametrize("gzipped", [False, True])
@pytest.mark.parametrize("name", ["t.mtx", "t.unknown"])
def test_matrix_market(gzipped, name, tmp_path):
    path = tmp_path / (name + ".gz" * gzipped)
    symmetric = SPARSE @ SPARSE.T
    for matrix in (SPARSE, X, symmetric, symmetric.toarray()):
        scipy.io.mmwrite(tmp_path / "m.mtx", matrix, precision=17)
        data = (tmp_path / "m.mtx").read_bytes()
        path.write_bytes(gzip.compress(data) if gzipped else data)
        found = read_matrix(path)
        assert sp.issparse(found) == sp.issparse(matrix)
        np.testing.assert_allclose(
            found.toarray() if sp.issparse(found) else found,
            matrix.toarray() if sp.issparse(matrix) else matrix,
            rtol=1e-14,
        )


def test_matrix_market_patterns_and_labels(text):
    path = text(
        "%%MatrixMarket matrix coordinate pattern general\n% so\n2 3 2\n1 1\n2 3\n", "t.mtx"
    )
    table = read_table(path, label="2")
    np.testing.assert_array_equal(table.X.toarray(), [[1, 0], [0, 0]])
    np.testing.assert_array_equal(table.y, [0, 1])


def test_parquet_of_all_kinds(tmp_path):
    frame = pd.DataFrame(
        {
            "whole": pd.array([1, None, 3], dtype="Int64"),
            "flag": [True, False, True],
            "half": np.array([0.5, 1, 2], dtype=np.float32),
            "kind": pd.Categorical(["a", "b", "a"]),
        },
        index=["p", "q", "r"],
    )
    frame.to_parquet(tmp_path / "t.parquet")
    table = read_table(tmp_path / "t.parquet", label="kind")
    np.testing.assert_array_equal(table.X, [[1, 1, 0.5], [np.nan, 0, 1], [3, 1, 2]])
    np.testing.assert_array_equal(table.y, ["a", "b", "a"])
    frame.assign(day=pd.Timestamp("2020-01-01")).to_parquet(tmp_path / "t.parquet")
    refused(tmp_path / "t.parquet", "'day'", "'2020-01-01'", "drop", label="kind")
    assert read_table(tmp_path / "t.parquet", label="kind", drop=["day"]).X.shape == (3, 3)


# --- headers, delimiters, labels -------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        ("a,b,kind\n1,2,u\n3,4,v\n", ["a", "b"]),
        ("1,2,u\n3,4,v\n", ["x0", "x1"]),
        ("1,2,u\n3,4,v", ["x0", "x1"]),
        ("\ufeffa;b;kind\n1;2;u\n3;4;v\n", ["a", "b"]),
        ("a\tb\tkind\n1\t2\tu\n3\t4\tv\n", ["a", "b"]),
        ("a  b kind\n 1   2 u\n3 4 v  \n", ["a", "b"]),
        ("1::2::u\n3::4::v\n", ["x0", "x1"]),
        ('"a", "b", "kind"\r\n1, 2, "u"\r\n\r\n3, 4, "v"\r\n', ["a", "b"]),
        ('a,"b,\nc",kind\n1,2,u\n3,4,v\n', ["a", "b,\nc"]),
        (",b,kind\n1,2,u\n3,4,v\n", ["x0", "b"]),
    ],
)
def test_delimiters_and_headers(content, columns, text):
    path = text(content)
    table = read_table(path, label="kind" if columns[1] != "x1" else "-1")
    assert table.columns == columns
    np.testing.assert_array_equal(table.X, [[1, 2], [3, 4]])
    np.testing.assert_array_equal(table.y, ["u", "v"])
    for name in ("t.data", "t.txt.gz"):
        np.testing.assert_array_equal(read_matrix(text("1 2\n3 4\n", name)), [[1, 2], [3, 4]])


def test_missing_cells_are_nan(text):
    found = read_matrix(text("a,b\n1,\nNA,2\nNaN,nan\n"))
    np.testing.assert_array_equal(found, [[1, np.nan], [np.nan, 2], [np.nan, np.nan]])


@pytest.mark.parametrize(
    ("cells", "labels"),
    [
        (["1", "+1", "-1"], np.array([1, 1, -1])),
        (["1.0", "2.0", "3"], np.array([1, 2, 3])),
        (["1.5", "2", "3e1"], np.array([1.5, 2, 30])),
        (["007", "7", "07"], np.array(["007", "7", "07"])),
        (["99999999999999999999", "99999999999999999998", "1"], None),
        (["True", "False", "True"], np.array(["True", "False", "True"])),
        (["a", "1", "2.50"], np.array(["a", "1", "2.50"])),
        (["none", "nil", " b "], np.array(["none", "nil", "b"])),
    ],
)
def test_labels_keep_their_kind(cells, labels, text):
    y = read_table(text("v,k\n" + "".join(f"1,{c}\n" for c in cells)), label="k").y
    labels = np.array(cells) if labels is None else labels
    np.testing.assert_array_equal(y, labels)
    assert y.dtype.kind == labels.dtype.kind


def test_labels_may_be_unknown(text, tmp_path):
    path = text("v,k,s\n1,2,u\n2,,v\n3,4,NA\n")
    np.testing.assert_array_equal(
        read_table(path, label="k", drop=["s"], unknown=True).y, [2, np.nan, 4]
    )
    assert read_table(path, label="s", unknown=True, drop=["k"]).y.tolist() == ["u", "v", ""]
    np.savez(tmp_path / "t.npz", X=X, y=np.where(np.arange(12) < 6, 1.0, np.nan))
    assert np.isnan(read_table(tmp_path / "t.npz", unknown=True).y).sum() == 6
    refused(tmp_path / "t.npz", "not finite")


def test_numbers_among_labels_of_text_stay_text(text):
    path = text("v,k\n" + "".join(f"{i},{k}\n" for i, k in enumerate(["1", "2", "x", "4", "5"])))
    table = read_table(path, label="k")
    np.testing.assert_array_equal(table.y, ["1", "2", "x", "4", "5"])
    np.testing.assert_array_equal(table.X.ravel(), np.arange(5))


def test_the_format_can_be_given(text):
    content = "a\tb\n1\t2\n3\t4\n"
    assert read_table(text(content, "t.odd"), format="tsv").columns == ["a", "b"]
    assert read_table(text("1 1:2\n", "t.csv"), format="libsvm").format == "svmlight"
    with pytest.raises(ValueError, match="format must be one of"):
        read_table(text(content), format="word")


# --- what is refused -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "words", "options"),
    [
        ("", ["empty"], {}),
        ("\n\n", ["empty"], {}),
        ("a,b\n", ["header", "no rows"], {}),
        ("a,b\n1,2\n3\n", ["line 3", "1 cells", "2"], {}),
        ("a,b\n1,2\n\n3,4,5\n", ["line 4", "3 cells"], {}),
        ("a,b\n1,2\n3,red\n", ["'b'", "'red'", "line 3", "drop"], {}),
        ("a,b\n1,true\n3,maybe\n", ["'b'", "'maybe'", "line 3"], {}),
        ("a,b\n1,1_000\n", ["'1_000'"], {}),
        ("a,b\n1,2\n\n3,inf\n", ["line 4", "'b'", "infinite"], {}),
        ("a,b\n1,2\n3,1e999\n", ["line 3", "'b'", "infinite"], {}),
        ("a,label\n1,2\n", ["no column 'lable'", "mean 'label'"], {"label": "lable"}),
        ("a,label\n1,2\n", ["no column 'q'", "'a', 'label'"], {"drop": ["q"]}),
        ("1,2\n3,4\n", ["no header", "0 to 1"], {"label": "2"}),
        ("a,b\n1,2\n3,\n4,NA\n", ["'b'", "2 missing", "line 3"], {"label": "b"}),
        ("a,b\n1,2\n", ["no column to learn from"], {"label": "a", "drop": ["b"]}),
        ("a,b\n1,2\0\n", ["line 2", "zero bytes"], {}),
        (b"a,b\n1,\xff\x01\n", ["line 2", "UTF-8"], {}),
        ("a\tb\n1,500\t2,250\n3\t4\n", ["'1,500'", "thousands or decimals"], {}),
        ("a,b,c\n1,x,2024-01-31\n", ["'b'", "'x'", "'c'"], {}),
        ("a,b\n1\r,2\n", ["carriage return"], {}),
        ('a,b\n1,"2\n3,4\n', ["quote"], {}),
        ('a,b\n1,"' + "2" * 200_000, ["quote"], {}),
    ],
)
def test_errors_describe_invalid_csv(content, words, options, text):
    words = words if content != 'a,b\n1,"2\n3,4\n' else []
    refused(text(content), *words, **options)


def test_files_that_cannot_be_read(tmp_path):
    refused(tmp_path / "none.csv", "no such file")
    refused(tmp_path, "folder")
    os.mkfifo(tmp_path / "pipe.csv")
    refused(tmp_path / "pipe.csv", "ordinary file")
    locked = tmp_path / "locked.csv"
    locked.write_text("1,2\n")
    locked.chmod(0)
    if os.geteuid() != 0:
        refused(locked, "not permitted")


def test_rejects_truncated_gzip(tmp_path):
    data = gzip.compress(b"a,b\n" + b"1,2\n" * 1000)
    (tmp_path / "t.csv.gz").write_bytes(data[: len(data) // 2])
    refused(tmp_path / "t.csv.gz", "cut short")
    (tmp_path / "t.npy.gz").write_bytes(gzip.compress(b"\x93NUMPY"))
    refused(tmp_path / "t.npy.gz", "unpack it")


def test_reports_other_format_in_a_csv_file(tmp_path):
    write_table(tmp_path / "t.npz", X)
    (tmp_path / "t.npz").rename(tmp_path / "t.csv")
    with pytest.warns(UserWarning, match="is read as npz, which it contains"):
        np.testing.assert_array_equal(read_matrix(tmp_path / "t.csv"), X)
    refused(tmp_path / "t.csv", "begins like npz", format="csv")
    np.testing.assert_array_equal(read_matrix(tmp_path / "t.csv", format="npz"), X)
    (tmp_path / "t.csv").rename(tmp_path / "t.bin")
    np.testing.assert_array_equal(read_matrix(tmp_path / "t.bin"), X)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("%%MatrixMarket matrix coordinate complex general\n1 1 1\n1 1 1 0\n", ["complex"]),
        ("%%MatrixMarket matrix coordinate real general\n1 1 9999999\n1 1 1\n", ["cut short"]),
        ("%%MatrixMarket matrix array real symmetric\n1 2\n1\n", ["cannot be"]),
        ("%%MatrixMarket matrix array real general\n% so\n1 x\n1\n", ["line 3", "sizes"]),
        ("%%MatrixMarket matrix coordinate real general\n1 1 1\n1 2 1\n", ["entry 0", "outside"]),
        ("%%MatrixMarket matrix coordinate real general\n1 2 2\n1 1 1\n1 2 inf\n", ["infinite"]),
        ("1 2\n", ["does not begin"]),
    ],
)
def test_errors_describe_invalid_matrix_market(content, words, text):
    refused(text(content, "t.mtx"), *words)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("1 1:2\n2 x:3\n", ["line 2", "'x:3'"]),
        ("1 2:2 1:3\n", ["line 1", "'1:3'", "rising"]),
        ("red 1:2\n", ["line 1", "'red'"]),
        ("1 1:2 2:inf\n", ["infinite", "row 0", "column 1"]),
        ("nan 1:2\n", ["not finite"]),
        ("", ["t.svm"]),
    ],
)
def test_errors_describe_invalid_svmlight(content, words, text):
    refused(text(content, "t.svm"), *words)


def test_svmlight_keeps_its_own_labels(text):
    refused(text("1 1:2\n", "t.svm"), "leave the label out", label="kind")


def test_errors_describe_invalid_arrays(tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, a=X, b=X)
    refused(path, "'a', 'b'", "name the table X")
    np.savez(path, X=X + 1j)
    refused(path, "complex")
    np.savez(path, X=np.zeros(3))
    refused(path, "shape (3,)")
    np.savez(path, X=np.where(X[2, 1] == X, np.inf, X))
    refused(path, "row 2, column 1", "infinite")
    parts = {"data": SPARSE.data, "indices": SPARSE.indices, "indptr": SPARSE.indptr}
    np.savez(path, **{**parts, "indices": SPARSE.indices + 3}, shape=[12, 5])
    refused(path, "sparse matrix is invalid", "save it again")
    np.savez(path, row=SPARSE.indices, col=SPARSE.indices - 1, data=SPARSE.data, shape=[12, 5])
    refused(path, "sparse matrix is invalid", "save it again")
    for indptr in (SPARSE.indptr[::-1], np.append(SPARSE.indptr[:-1], 0), SPARSE.indptr[1:]):
        np.savez(path, **{**parts, "indptr": indptr}, shape=[12, 5])
        refused(path, "sparse matrix is invalid")
    np.savez(path, **{**parts, "indices": SPARSE.indices * 1.0}, shape=[12, 5])
    refused(path, "whole numbers")
    np.savez(path, **parts, shape=[12])
    refused(path, "sparse matrix is invalid")
    sp.save_npz(path, sp.dia_matrix(np.eye(3)))
    refused(path, "'dia'", "csr")
    path.write_bytes(b"PK\x05\x06" + bytes(18))
    refused(path, "no arrays")


class Bomb:
    """Makes a file when it is unpickled."""

    def __init__(self, target):
        self.target = str(target)

    def __reduce__(self):
        return os.mkdir, (self.target,)


@pytest.mark.parametrize(
    "name", ["t.npz", "t.npy", "t.csv", "t.parquet", "t.svm", "t.mtx", "t.odd"]
)
@pytest.mark.parametrize("protocol", [0, 4])
@pytest.mark.parametrize("reader", [read_table, read_matrix, read_ratings, describe])
def test_no_pickle_is_loaded(reader, protocol, name, tmp_path):
    target, path = tmp_path / "made", tmp_path / name
    path.write_bytes(pickle.dumps(Bomb(target), protocol=protocol))
    with contextlib.suppress(FileError):
        reader(path)
    if name.endswith(("npz", "npy")):
        refused(path, reader=reader)
        with open(path, "wb") as file:
            (np.save if name.endswith("npy") else np.savez)(file, np.array([[Bomb(target)]]))
        refused(path, "Python objects", "never loaded", reader=reader)
    assert not target.exists()


# --- memory ----------------------------------------------------------------------------


def test_rejects_files_larger_than_memory(tmp_path, small_memory):
    big = np.zeros((1000, 10))
    for ending in ("csv", "csv.gz", "npy", "npz", "parquet"):
        write_table(tmp_path / f"t.{ending}", big)
        refused(tmp_path / f"t.{ending}", "GB of the", "1", "split")
    scipy.io.mmwrite(tmp_path / "t.mtx", big)
    refused(tmp_path / "t.mtx", "GB of the", "1,000 × 10")
    scipy.io.mmwrite(tmp_path / "t.mtx", sp.csr_matrix(big + 1))
    refused(tmp_path / "t.mtx", "GB of the", "10,000 entries")
    dump_svmlight_file(big + 1, np.ones(1000), str(tmp_path / "t.svm"))
    refused(tmp_path / "t.svm", "GB of the", "10,000 entries")


def test_dropped_columns_need_no_memory(tmp_path, small_memory):
    write_table(tmp_path / "t.csv", np.zeros((1000, 10)))
    assert read_table(tmp_path / "t.csv", drop=[f"x{j}" for j in range(1, 10)]).X.shape == (1000, 1)


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_large_tables_are_described_some_columns_at_a_time(ending, tmp_path, small_memory):
    texts = {f"t{k}": np.array(["u", "v"] * 300) for k in range(5)}
    path = tmp_path / f"t.{ending}"
    write_table(path, np.full((600, 20), 0.5), extra=texts)  # 96,000 bytes of numbers alone
    facts = describe(path)
    assert (facts["rows"], facts["columns"]) == (600, 25)
    assert [field["kind"] for field in facts["fields"]] == ["number"] * 20 + ["text"] * 5
    assert [field["name"] for field in facts["fields"]][19:21] == ["x19", "t0"]


def test_rows_are_counted_whatever_the_length_of_the_first(text, small_memory):
    refused(text("a,b\n" + f"{1:050d},2\n" * 100 + "1,2\n" * 5000), "5,100 rows of 2 columns")
    short_first = text("a,b\n" + "1,2\n" * 100 + f"{1:050d},2\n" * 1000)
    assert read_matrix(short_first).shape == (1100, 2)


def test_rejects_huge_shapes_with_few_entries(text, small_memory, tmp_path):
    banner = "%%MatrixMarket matrix coordinate real general\n"
    refused(text(banner + "900000000 2 1\n1 1 1\n", "t.mtx"), "900,000,000 × 2")
    refused(text(banner + "2 900000000 1\n1 1 1\n", "t.mtx"), "2 × 900,000,000")
    refused(text("1 900000000:1\n", "t.svm"), "900,000,000 columns")
    np.savez(tmp_path / "t.npz", row=[0], col=[0], data=[1.0], shape=[900_000_000, 2])
    refused(tmp_path / "t.npz", "900,000,000 × 2")


def test_one_long_string_does_not_blow_up_the_labels(text, small_memory):
    path = text("a,b\n" + "1,u\n" * 100 + "1," + "u" * 10_000 + "\n")
    refused(path, "10,000 characters", label="b")


@pytest.mark.parametrize("name", ["t.csv.gz", "t.svm.gz", "t.mtx.gz", "t.txt.gz"])
@pytest.mark.parametrize("content", [b"0", b"\n", b"1,0\n", b"1 1:0\n"])
def test_rejects_gzip_bombs(content, name, text, small_memory):
    head = b"%%MatrixMarket matrix array real general\n9 9\n" if ".mtx" in name else b""
    path = text(head + content * 1_000_000, name)
    for reader in (read_table, read_matrix, read_ratings, describe):
        refused(path, reader=reader)


def test_rejects_very_long_line(text, monkeypatch):
    monkeypatch.setattr("gramian.app.files._source.LONGEST", 1000)
    refused(text("a,b\n" + "1" * 2000), "line 2", "longer than 1,000")


# --- ratings ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "content", "rows", "cols"),
    [
        ("r.dat", "1::10::5::97\n2::11::3.5::98\n", [1, 2], [10, 11]),
        ("u.data", "196\t242\t5\t88\n186\t302\t3.5\t89\n", [196, 186], [242, 302]),
        ("r.csv", "user,item,rating\nann,007,5\nbob,08,3.5\n", ["ann", "bob"], ["007", "08"]),
        ("r.csv.gz", "1;1;5\n9223372036854775807;2;3.5\n", [1, 2**63 - 1], [1, 2]),
    ],
)
def test_ratings_of_text(name, content, rows, cols, text):
    found = read_ratings(text(content, name))
    np.testing.assert_array_equal(found[0], rows)
    np.testing.assert_array_equal(found[1], cols)
    np.testing.assert_array_equal(found[2], [5, 3.5])
    assert found[0].dtype == np.array(rows).dtype


def test_ratings_of_named_columns(text):
    path = text("when,stars,film,who\n9,5,f,a\n8,4,g,b\n")
    rows, cols, values = read_ratings(path, columns=["who", "film", "stars"])
    assert rows.tolist() == ["a", "b"] and cols.tolist() == ["f", "g"]
    assert values.tolist() == [5, 4]
    with pytest.raises(ValueError, match="must name"):
        read_ratings(path, columns=["who", "film"])


def test_ratings_of_arrays(tmp_path):
    rows, cols, values = np.array([0, 1, 1]), np.array([2, 0, 2]), np.array([5.0, 3, 1])
    np.savez(tmp_path / "r.npz", user=rows, item=cols.astype(np.uint8), rating=values, when=rows)
    np.savez(tmp_path / "one.npz", np.column_stack([rows, cols, values]))
    np.save(tmp_path / "r.npy", np.column_stack([rows, cols, values]))
    sparse = sp.csr_matrix((values, (rows, cols)))
    sp.save_npz(tmp_path / "s.npz", sparse)
    scipy.io.mmwrite(tmp_path / "r.mtx", sparse)
    write_table(tmp_path / "r.parquet", values[:, None], extra={"u": rows, "i": cols})
    for name in ("r.npz", "one.npz", "r.npy", "s.npz", "r.mtx"):
        found = read_ratings(tmp_path / name)
        triples = sorted(zip(*(part.tolist() for part in found), strict=True))
        assert triples == [(0, 2, 5), (1, 0, 3), (1, 2, 1)], name
    found = read_ratings(tmp_path / "r.parquet", columns=["u", "i", "x0"])
    assert all((a == b).all() for a, b in zip(found, (rows, cols, values), strict=True))


def test_pairs_of_ids_without_ratings(text, tmp_path):
    path = text("user,item,when\nann,1,\nbob,2,3\n")
    rows, cols, values = read_ratings(path, rated=False)
    assert rows.tolist() == ["ann", "bob"] and cols.tolist() == [1, 2] and np.isnan(values).all()
    assert read_ratings(path, columns=["item", "user", "when"], rated=False)[0].tolist() == [1, 2]
    pairs = np.array([[0, 1], [2, 3], [7, 5]])
    np.save(tmp_path / "r.npy", pairs)
    np.savez(tmp_path / "r.npz", user=pairs[:, 0], item=pairs[:, 1])
    for name in ("r.npy", "r.npz"):
        rows, cols, values = read_ratings(tmp_path / name, rated=False)
        np.testing.assert_array_equal(np.column_stack([rows, cols]), pairs)
        assert np.isnan(values).all()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("1::2::3\n1::a:b::4\n", ["line 2", "colon"]),
        ("1,2\n3,4\n", ["'x0', 'x1'"]),
        ("u,i,r\n1,2,3\n1,,4\n", ["'i'", "1 missing", "line 3"]),
        ("u,i,r\n1,2,3\n1,2,\n", ["'r'", "line 3"]),
        ("u,i,r\n1,2,3\n1,2,good\n", ["'r'", "'good'", "line 3"]),
        ("u,i,r\n1,2,3\n1,2,inf\n", ["'r'", "line 3"]),
    ],
)
def test_errors_describe_invalid_ratings(content, words, text):
    refused(text(content), *words, reader=read_ratings)


def test_errors_describe_invalid_arrays_of_ratings(tmp_path):
    np.savez(tmp_path / "r.npz", user=[1], item=[2], stars=[3.0])
    refused(tmp_path / "r.npz", "'stars'", "'rating'", reader=read_ratings)
    np.savez(tmp_path / "r.npz", user=[1], item=[2, 3], rating=[3.0])
    refused(tmp_path / "r.npz", "not as many", reader=read_ratings)
    np.save(tmp_path / "r.npy", np.array([[1, 2, np.nan]]))
    refused(tmp_path / "r.npy", "rating 0 is nan", reader=read_ratings)
    scipy.io.mmwrite(tmp_path / "r.mtx", X)
    refused(tmp_path / "r.mtx", "dense", reader=read_ratings)


# --- describing ------------------------------------------------------------------------


def test_describe_columns(text):
    told = describe(text("a,b,c\n1,1.5,x\n,2,y\n3,3,\n"))
    assert told["rows"] == 3 and told["columns"] == 3 and told["format"] == "csv"
    assert told["fields"] == [
        {"name": "a", "kind": "whole number", "missing": 1},
        {"name": "b", "kind": "number", "missing": 0},
        {"name": "c", "kind": "text", "missing": 1},
    ]
    assert told["bytes"] > 0 and json.loads(json.dumps(told)) == told


def test_describe_arrays(tmp_path):
    write_table(tmp_path / "t.npz", SPARSE, extra={"y": Y})
    told = describe(tmp_path / "t.npz")
    assert told["stored"] == SPARSE.nnz and told["arrays"]["y"] == [12]
    assert told["label"]["counts"] == {"blue": 4, "green": 4, "red": 4}
    assert json.loads(json.dumps(told)) == told
    np.savez(tmp_path / "r.npz", user=[1], item=[2], rating=[3.0])
    assert describe(tmp_path / "r.npz")["arrays"] == {"user": [1], "item": [1], "rating": [1]}
    write_table(tmp_path / "t.npy", WITH_GAP)
    fields = describe(tmp_path / "t.npy")["fields"]
    assert [field["missing"] for field in fields] == [0, 1, 0]
    dump_svmlight_file(X, np.arange(12) % 2, str(tmp_path / "t.svm"))
    assert describe(tmp_path / "t.svm")["label"]["kind"] == "whole number"


# --- writing ---------------------------------------------------------------------------


def test_failed_write_keeps_the_older_file(tmp_path, monkeypatch):
    path = tmp_path / "t.csv"
    write_table(path, X)
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(FileError, match=r"t\.csv cannot be written: the disk is full"):
        write_table(path, X + 1)
    assert path.read_bytes() == before and [p.name for p in tmp_path.iterdir()] == ["t.csv"]


def test_errors_for_paths_that_cannot_be_written(tmp_path):
    with pytest.raises(FileError, match="no such file or folder"):
        write_table(tmp_path / "none" / "t.csv", X)
    (tmp_path / "t.csv").mkdir()
    with pytest.raises(FileError, match="cannot be written"):
        write_table(tmp_path / "t.csv", X)
    with pytest.raises(FileError, match="end its name"):
        write_table(tmp_path / "t.xlsx", X)
    with pytest.raises(FileError, match=r"name it \.npz"):
        write_table(tmp_path / "t.npy", X, extra={"y": Y})
    assert [p.name for p in tmp_path.iterdir()] == ["t.csv"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_reports_read_only_folder(tmp_path):
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(FileError, match="not permitted"):
        write_table(tmp_path / "t.csv", X)
    tmp_path.chmod(stat.S_IRWXU)


def test_rejects_inconsistent_tables(tmp_path):
    with pytest.raises(ValueError, match="a name for each"):
        write_table(tmp_path / "t.csv", X, columns=["a"])
    with pytest.raises(ValueError, match="same name"):
        write_table(tmp_path / "t.csv", X, extra={"x0": Y})
    with pytest.raises(ValueError, match="shape"):
        write_table(tmp_path / "t.csv", X, extra={"y": Y[:3]})
    with pytest.raises(ValueError, match="cannot be called 'X'"):
        write_table(tmp_path / "t.npz", X, extra={"X": Y})
    assert not list(tmp_path.iterdir())


def test_error_names_missing_library(text, monkeypatch):
    def absent(name):
        raise ImportError(name)

    monkeypatch.setattr("gramian.app.files._frames.import_module", absent)
    with pytest.raises(ImportError, match=r"CSV needs pandas: pip install 'gramian\[cli\]'"):
        read_table(text("1,2\n"))
    with pytest.raises(ImportError, match=r"needs pyarrow: pip install 'gramian\[cli\]'"):
        read_table(text("PAR1", "t.parquet"))


# --- columns by their names ------------------------------------------------------------


def test_reads_headers_without_data(tmp_path):
    (tmp_path / "t.csv").write_text("when,user,item\n1,a,b\n2,c,d\n")
    assert read_header(tmp_path / "t.csv") == Header(["when", "user", "item"], True)
    (tmp_path / "n.csv").write_text("1,2\n3,4\n")
    assert read_header(tmp_path / "n.csv") == Header(["x0", "x1"], False)
    (tmp_path / "s.csv").write_text("item,user\na,b\nc,d\n")  # text above text
    assert read_header(tmp_path / "s.csv") == Header(["x0", "x1"], False)
    expected = ("user", "item")
    assert read_header(tmp_path / "s.csv", expected=expected) == Header(["item", "user"], True)
    np.save(tmp_path / "t.npy", X)
    assert read_header(tmp_path / "t.npy") == Header([f"x{k}" for k in range(X.shape[1])], False)
    np.savez(tmp_path / "r.npz", user=[1, 2], item=[3, 4])
    assert read_header(tmp_path / "r.npz") == Header(["user", "item"], True)
    write_table(tmp_path / "t.npz", X[:, :2], columns=["b", "a"])
    assert read_header(tmp_path / "t.npz") == Header(["b", "a"], True)
    write_table(tmp_path / "sparse.npz", SPARSE)
    assert read_header(tmp_path / "sparse.npz") is None
    pd.DataFrame({"b": [1], "a": [2]}).to_parquet(tmp_path / "t.parquet")
    assert read_header(tmp_path / "t.parquet") == Header(["b", "a"], True)


def test_pairs_of_names_are_found_by_their_header(tmp_path):
    (tmp_path / "p.csv").write_text("item,user\nfilm,alice\nbook,bob\n")
    rows, cols, _ = read_ratings(tmp_path / "p.csv", columns=["user", "item"], rated=False)
    assert rows.tolist() == ["alice", "bob"] and cols.tolist() == ["film", "book"]


def test_columns_of_arrays_go_by_their_number(tmp_path):
    table = np.array([[9.0, 5.0, 1.0, 2.0], [8.0, 4.0, 3.0, 4.0]])
    for path in (tmp_path / "r.npy", tmp_path / "r.npz"):
        (np.save if path.suffix == ".npy" else np.savez)(path, table)
        rows, cols, values = read_ratings(path, columns=["2", "3", "1"])
        assert (rows.tolist(), cols.tolist(), values.tolist()) == ([1, 3], [2, 4], [5.0, 4.0])
        with pytest.raises(FileError, match="no column 'user'"):
            read_ratings(path, columns=["user", "3", "1"])
    with pytest.raises(FileError, match="three columns, not one"):
        read_ratings(tmp_path / "r.npy", columns=["2", "2", "1"])
    scipy.io.mmwrite(tmp_path / "r.mtx", SPARSE)
    with pytest.raises(FileError, match="do not name any"):
        read_ratings(tmp_path / "r.mtx", columns=["0", "1", "2"])


def test_rows_of_a_matrix_are_as_its_columns(tmp_path):
    frame = pd.DataFrame(np.eye(3), index=list("abc"), columns=list("abc"))
    frame.to_csv(tmp_path / "m.csv")
    np.testing.assert_array_equal(read_matrix(tmp_path / "m.csv"), np.eye(3))
    frame.loc[["b", "a", "c"]].to_csv(tmp_path / "m.csv")
    with pytest.raises(FileError, match="'b' where 'a' belongs: sort them alike"):
        read_matrix(tmp_path / "m.csv")
