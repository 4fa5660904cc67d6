"""Parsers for the file formats of the public sources.

Numbers are stored in single precision, as in the npz files of the benchmarks.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.datasets import load_svmlight_file

from gramian.app.datasets._arrays import SPARSE, Arrays

FIELD = "U16"
"""Type of a field of a table. Numbers are not longer, and the limit bounds the memory per field."""


def svmlight(
    files: Sequence[bytes], *, features: int, classes: Sequence[int], dense: bool = False
) -> Arrays:
    """LIBSVM's text: a label and index:value pairs, indices from 1."""
    parts = []
    for file in files:
        X, labels = load_svmlight_file(
            _filled(file), n_features=features, dtype=np.float32, zero_based=False
        )
        X.eliminate_zeros()
        parts.append((X.toarray() if dense else X, _coded(labels, classes)))
    return _named(parts)


def table(
    files: Sequence[bytes],
    *,
    classes: Sequence[str] | Sequence[int],
    label: int = -1,
    first: int = 0,
    delimiter: str | None = ",",
) -> Arrays:
    """Rows of numbers with the class in one column; columns before `first` are names."""
    parts = []
    for file in files:
        rows = np.loadtxt(_filled(file), FIELD, comments=None, delimiter=delimiter, ndmin=2)
        numbers = np.delete(rows[:, first:], label, axis=1).astype(np.float32)
        labels = rows[:, first:][:, label]
        named = isinstance(classes[0], str)
        parts.append((numbers, _coded(labels if named else labels.astype(float), classes)))
    return _named(parts)


def idx(files: Sequence[bytes]) -> Arrays:
    """MNIST's format: images and labels, of the training part and of the test part."""
    X, y, X_test, y_test = map(_idx, files)
    return _named([(X.reshape(len(X), -1), y), (X_test.reshape(len(X_test), -1), y_test)])


def tab_ratings(files: Sequence[bytes]) -> Arrays:
    """MovieLens 100K: user, item, rating and time in columns, in the order of the file."""
    user, item, rating, time = _four_columns(files[0])
    return {"user": user - 1, "item": item - 1, "rating": rating, "timestamp": time}


def colon_ratings(files: Sequence[bytes]) -> Arrays:
    """MovieLens 1M: columns separated by "::", sorted by user and time; items are renumbered."""
    user, movie, rating, time = _four_columns(files[0].replace(b"::", b"\t"))
    order = np.lexsort((movie, time, user))
    movies, item = np.unique(movie[order], return_inverse=True)
    return {
        "user": user[order] - 1,
        "item": item.ravel(),
        "rating": rating[order],
        "timestamp": time[order],
        "movie_id": movies,
    }


def _filled(file: bytes) -> io.BytesIO:
    if not file.strip():
        raise ValueError("the file is empty")
    return io.BytesIO(file)


def _coded(labels: NDArray[Any], classes: Sequence[Any]) -> NDArray[np.uint8]:
    """The index of each label among the classes."""
    code = {name: place for place, name in enumerate(classes)}
    names, place = np.unique(labels, return_inverse=True)
    unknown = [name for name in names.tolist() if name not in code]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is none of the classes")
    return np.array([code[name] for name in names.tolist()], np.uint8)[place.ravel()]


def _named(parts: Sequence[tuple[Any, NDArray[Any]]]) -> Arrays:
    arrays: Arrays = {}
    for (X, y), prefix, suffix in zip(parts, ("", "test_"), ("", "_test"), strict=False):
        if sp.issparse(X):
            kept = (X.data, X.indices, X.indptr, np.array(X.shape))
            arrays |= {prefix + key: part for key, part in zip(SPARSE, kept, strict=True)}
        else:
            arrays["X" + suffix] = X
        arrays["y" + suffix] = y
    return arrays


def _idx(file: bytes) -> NDArray[np.uint8]:
    """An array of bytes: two zeros, 8 for the type, the number of axes, their lengths."""
    if len(file) < 4 or file[:3] != b"\0\0\x08" or len(file) < 4 + 4 * file[3]:
        raise ValueError("the file is not in the IDX format")
    start = 4 + 4 * file[3]
    shape = np.frombuffer(file[4:start], ">u4").tolist()
    return np.frombuffer(file[start:], np.uint8).reshape(shape)


def _four_columns(file: bytes) -> NDArray[np.int32]:
    rows = np.loadtxt(_filled(file), np.int32, comments=None, delimiter="\t", ndmin=2)
    if rows.shape[1] != 4:
        raise ValueError(f"expected 4 columns, got {rows.shape[1]}")
    return rows.T
