"""Real sets, written back into the format of their public homes and fetched from there."""

import bz2
import gzip
import io
import os
import struct
import zipfile
from dataclasses import replace
from functools import partial
from pathlib import Path
from string import ascii_uppercase

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

from gramian.app.datasets import DownloadError, _arrays, load, load_ratings
from gramian.app.datasets._homes import HOMES

pytestmark = pytest.mark.data


def svmlight(classes):
    def write(X, y):
        file = io.BytesIO()
        # The values of these files are whole numbers, written as such.
        dump_svmlight_file(
            sp.csr_matrix(X, dtype=np.int64), np.take(classes, y), file, zero_based=False
        )
        return file.getvalue()

    return write


def rows(classes, *, first=False, separator=",", number=False):
    """Lines of numbers with the class in the first or last column."""

    def write(X, y):
        lines = []
        for k, (x, c) in enumerate(zip(X.tolist(), y, strict=True)):
            cells = [f"{v:.6g}" for v in x]
            cells = [classes[c], *cells] if first else [*cells, classes[c]]
            lines.append(separator.join([str(k + 1), *cells] if number else cells))
        return "\n".join([*lines, ""]).encode()

    return write


DIGITS = "0123456789"

WRITERS = {
    **dict.fromkeys(("a1a", "splice"), svmlight((-1, 1))),
    "mushrooms": svmlight((1, 2)),
    "dna": svmlight((1, 2, 3)),
    "letter": rows(ascii_uppercase, first=True),
    "optdigits": rows(DIGITS),
    "pendigits": rows(DIGITS, separator=", "),
    "satimage": rows("123457", separator=" "),
    "sonar": rows("MR"),
    "glass": rows("123567", number=True),
    "ionosphere": rows("bg"),
    "soybean_small": rows(("D1", "D2", "D3", "D4")),
    "usps": rows(DIGITS, first=True, separator=" "),
}


@pytest.fixture
def folder():
    named = os.environ.get("GRAMIAN_DATA")
    if not named:
        pytest.skip("set GRAMIAN_DATA to the folder of the benchmark data sets")
    return Path(named)


@pytest.fixture
def at_home(server, monkeypatch):
    """A function that puts files of a set on the server, under the names they have at home."""

    def settle(name, contents):
        home = replace(HOMES[name], base=server.url)
        monkeypatch.setitem(HOMES, name, home)
        for file, content in zip(home.files, contents, strict=True):
            pack = {".gz": partial(gzip.compress, compresslevel=1), ".bz2": bz2.compress}.get(
                Path(file).suffix, bytes
            )
            server.answers["/" + file] = pack(content)

    return settle


def parts(arrays):
    tests = [("test", "y_test")] if "y_test" in arrays else []
    return [(_arrays.matrix(arrays, part), arrays[y]) for part, y in [("", "y"), *tests]]


def assert_same(found, expected):
    for (X, y), (X_known, y_known) in zip(parts(found), parts(expected), strict=True):
        np.testing.assert_array_equal(y, y_known)
        assert X.shape == X_known.shape and sp.issparse(X) == sp.issparse(X_known)
        if sp.issparse(X):
            assert (X_known != X).nnz == 0
        else:
            np.testing.assert_array_equal(X, X_known)


@pytest.mark.parametrize("name", sorted(HOMES.keys() - WRITERS.keys() - {"mnist"}))
def test_the_known_fingerprint_is_that_of_the_file(folder, name):
    assert _arrays.fingerprint(_arrays.read(folder / f"{name}.npz")) == HOMES[name].content


@pytest.mark.parametrize("name", WRITERS)
def test_download_equals_the_stored_file(folder, at_home, name):
    expected = _arrays.read(folder / f"{name}.npz")
    at_home(name, [WRITERS[name](X, y) for X, y in parts(expected)])
    assert_same(HOMES[name].download(), expected)


def test_download_and_file_give_the_same_arrays(folder, cache, at_home):
    arrays = _arrays.read(folder / "pendigits.npz")
    at_home("pendigits", [WRITERS["pendigits"](X, y) for X, y in parts(arrays)])
    found, expected = load("pendigits", download=True), load("pendigits", data=folder)
    for key in ("X", "y", "X_test", "y_test"):
        assert getattr(found, key).dtype == getattr(expected, key).dtype
        np.testing.assert_array_equal(getattr(found, key), getattr(expected, key))


def test_rejects_single_wrong_number(folder, cache, at_home):
    (X, y), (X_test, y_test) = parts(_arrays.read(folder / "optdigits.npz"))
    X_test = X_test.copy()
    X_test[-1, -1] += 1
    write = WRITERS["optdigits"]
    at_home("optdigits", [write(X, y), write(X_test, y_test)])
    with pytest.raises(DownloadError, match="not have the expected SHA-256"):
        load("optdigits", download=True)
    assert not cache.exists()


def test_images(folder, at_home):
    def idx(values):
        head = struct.pack(f">4B{values.ndim}I", 0, 0, 8, values.ndim, *values.shape)
        return head + values.tobytes()

    arrays = _arrays.read(folder / "mnist.npz")
    images = (arrays[key].reshape(-1, 28, 28) for key in ("X", "X_test"))
    labels = (arrays[key] for key in ("y", "y_test"))
    at_home("mnist", [idx(part) for pair in zip(images, labels, strict=True) for part in pair])
    assert_same(HOMES["mnist"].download(), arrays)


@pytest.mark.parametrize("name", ["movielens_100k", "movielens_1m"])
def test_ratings(folder, at_home, name):
    expected = load_ratings(name, data=folder)
    movie = expected.extra.get("movie_id", np.arange(1, 1683))[expected.item]
    columns = (expected.user + 1, movie, expected.rating.astype(int), expected.timestamp)
    # GroupLens keeps the ratings of 1M by user, in another order than ours.
    order = np.arange(movie.size) if name.endswith("k") else np.lexsort((movie, -columns[0]))
    separator = "\t" if name.endswith("k") else "::"
    table = np.column_stack(columns)[order]
    lines = "\n".join(separator.join(map(str, row)) for row in table.tolist())
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as file:
        file.writestr(HOMES[name].member, lines + "\n")
    at_home(name, [archive.getvalue()])
    found = HOMES[name].download()
    for key, values in _arrays.read(folder / f"{name}.npz").items():
        np.testing.assert_array_equal(found[key], values)
