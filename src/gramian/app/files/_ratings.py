"""Ratings: a row, a column and a value each, from any file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.app.files import _columns
from gramian.app.files._arrays import archive, read_npy
from gramian.app.files._columns import (
    Frame,
    Header,
    claim_columns,
    listed,
    numbers,
    settled,
)
from gramian.app.files._errors import FileError, NameOfFile, reading, shown
from gramian.app.files._source import Format, Source, locate
from gramian.app.files._tables import frame, matrix
from gramian.common.warnings import warn

NPZ_NAMES = ("user", "item", "rating")

Triples = tuple[NDArray[Any], NDArray[Any], NDArray[np.float64]]


def read_ratings(
    path: NameOfFile,
    *,
    columns: Sequence[str] | None = None,
    format: Format = None,
    rated: bool = True,
    missing: Literal["error", "drop"] = "error",
) -> Triples:
    """Read the row ids, column ids and values of ratings.

    Parameters
    ----------
    path : str or path
        A table with at least three columns, also text separated by "::" as in MovieLens; an NPZ
        file with the arrays user, item and rating; an NPY file with three columns; or a sparse
        matrix, whose indices are the ids.
    columns : three of str, optional
        The names of the columns, or arrays, in this order, or their numbers from 0 if the file
        has no names; default the first three. Without values two are sufficient.
    format : str or ReadOptions, optional
        The format, by default detected.
    rated : bool
        Whether there are values; otherwise two columns are read, and the values are NaN.
    missing : {"error", "drop"}
        Whether rows of a table without an id or a value are rejected or skipped with a warning.

    Returns
    -------
    rows, cols : arrays of int64, or of float64 or str if they are not integers
    values : array of float64
    """
    if columns is not None:
        if len(columns) != 3 and (rated or len(columns) != 2):
            raise ValueError(
                f"columns must name the row, the column and the value, got {columns!r}"
            )
        columns = columns[: 2 + rated]
    source = locate(path, format)
    with reading(path):
        found = frame(source, columns or ())
        if found is not None:
            return _from_frame(found, columns, rated, missing == "drop")
        if source.format == "npz":
            triples = _from_npz(source, columns, rated)
            if triples is not None:
                return triples
        if source.format == "npy":
            return _from_array(path, read_npy(source), columns, rated)
        if source.format == "svmlight":
            raise FileError(f"{path} is svmlight, which has no ratings: write them as CSV")
        if columns is not None:
            raise FileError(
                f"{path} is a matrix, whose rows and columns have no names: do not name any"
            )
        X = matrix(source).X
        if not sp.issparse(X):
            raise FileError(f"{path} is a dense matrix: write the known ratings as a sparse one")
        entries = sp.coo_matrix(X)
        return _checked(path, entries.row, entries.col, entries.data)


def _from_frame(found: Frame, columns: Sequence[str] | None, rated: bool, drop: bool) -> Triples:
    width = 2 + rated
    if len(found.names) < width:
        raise FileError(
            f"{found.path} has the columns {listed(found.names)}, where a row, a column and a "
            "value belong"
        )
    header = Header(found.names, found.headed)
    places = list(range(width)) if columns is None else _places(found.path, header, columns)
    claim_columns(found, 3, 2)
    users, items, *rest = found.values(places, as_ids=places[:2])
    names = [found.names[place] for place in places]
    values = np.full(users.size, np.nan)
    for value in rest:
        values, text = numbers(value)
        bad = np.isinf(values) if drop else ~np.isfinite(values)
        if text is not None or bad.any():
            place = int(bad.argmax()) if text is None else text
            gone = _columns.missing(value)[place]
            cell = "no cell" if gone else shown(value[place])
            remedy = "leave out ratings that are not known" if gone else "write a number"
            raise FileError(
                f"{found.path}: column {shown(names[2])} has {cell} in {found.place(place)}, where "
                f"a rating belongs: {remedy}"
            )
    lack = [_columns.missing(users), _columns.missing(items)]
    if drop:
        out = lack[0] | lack[1] | (np.isnan(values) & rated)
        users, items, values = users[~out], items[~out], values[~out]
        count = int(out.sum())
        if users.size == 0:
            raise FileError(f"{found.path}: every row lacks a cell: is it the right file?")
        if count:
            which = (
                "row lacks a cell and is" if count == 1 else f"{count:,} rows lack a cell and are"
            )
            warn(f"{found.path}: {which} left out")
    else:
        for name, missing in zip(names, lack, strict=False):
            if missing.any():
                raise FileError(
                    f"{found.path}: column {shown(name)} has {int(missing.sum()):,} missing ids, "
                    f"the first in {found.place(int(missing.argmax()))}: fill them in or leave "
                    "those rows out"
                )
    return settled(found.path, users), settled(found.path, items), values


def _places(path: NameOfFile, header: Header, columns: Sequence[str]) -> list[int]:
    """The positions of the columns; raises FileError if two are the same."""
    places = header.places(path, columns)
    if len(set(places)) < len(places):
        raise FileError(f"{path}: a row, a column and a value are three columns, not one")
    return places


def _from_npz(source: Source, columns: Sequence[str] | None, rated: bool) -> Triples | None:
    """Ratings from three arrays; None if the file is one matrix."""
    names = (NPZ_NAMES if columns is None else columns)[: 2 + rated]
    with archive(source) as arrays:
        if not set(names) <= set(arrays.names):
            if columns is None and arrays.is_sparse:
                return None
            if len(arrays.names) == 1:
                return _from_array(source.path, arrays.array(arrays.names[0]), columns, rated)
            raise FileError(
                f"{source.path} has the arrays {listed(arrays.names)}, and ratings are in "
                f"{listed(names)}: name them"
            )
        parts = [arrays.array(name) for name in names]
    if parts[0].ndim != 1 or any(part.shape != parts[0].shape for part in parts):
        raise FileError(f"{source.path}: rows, columns and values of ratings are not as many")
    return _checked(source.path, *parts)


def _from_array(
    path: NameOfFile, found: NDArray[Any], columns: Sequence[str] | None, rated: bool
) -> Triples:
    if columns is not None and found.ndim == 2:
        header = Header([f"x{k}" for k in range(found.shape[1])], False)
        return _checked(path, *found.T[_places(path, header, columns)])
    if found.ndim != 2 or found.shape[1] not in ((3,) if rated else (2, 3)):
        raise FileError(
            f"{path} holds an array of shape {found.shape}, where (k, 3) of row, column and value "
            "belong"
        )
    return _checked(path, *found.T[: 2 + rated])


def _checked(
    path: NameOfFile, rows: NDArray[Any], cols: NDArray[Any], values: NDArray[Any] | None = None
) -> Triples:
    if rows.size == 0:
        raise FileError(f"{path} has no ratings: is it the right file?")
    if values is not None and values.dtype.kind not in "biuf":
        raise FileError(f"{path} has ratings of {values.dtype}, where numbers belong")
    read = np.full(rows.size, np.nan) if values is None else values.astype(np.float64)
    bad = ~np.isfinite(read)
    if values is not None and bad.any():
        first = int(bad.argmax())
        raise FileError(f"{path}: rating {first} is {read[first]}: leave out unknown ratings")
    return _array_ids(path, rows), _array_ids(path, cols), read


def _array_ids(path: NameOfFile, ids: NDArray[Any]) -> NDArray[Any]:
    if ids.dtype.kind in "iub":
        return ids.astype(np.int64)
    return settled(path, ids.astype(np.float64)) if ids.dtype.kind == "f" else ids
