"""Ratings: a row, a column and a value each, from any file."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.app.files._arrays import archive, read_npy
from gramian.app.files._columns import (
    Frame,
    Numbered,
    Values,
    claim_columns,
    compact,
    find,
    joined,
    listed,
    missing,
    numbers,
    settled,
)
from gramian.app.files._contents import frame, matrix
from gramian.app.files._errors import FileError, NameOfFile, reading, shown
from gramian.app.files._source import Source, locate
from gramian.app.files._sparse import sparse_parts

NPZ_NAMES = ("user", "item", "rating")

Triples = tuple[NDArray[Any], NDArray[Any], NDArray[np.float64]]


def read_ratings(
    path: NameOfFile,
    *,
    columns: Sequence[str] | None = None,
    format: str | None = None,
    rated: bool = True,
    ids: Collection[str] = (),
) -> Triples:
    """Read the row ids, column ids and values of ratings.

    Parameters
    ----------
    path : str or path
        CSV, TSV, Parquet, or text parted by "::" as MovieLens has it, of three columns at least;
        an NPZ file of the arrays user, item and rating; an NPY file of three columns; or a sparse
        matrix, whose indices are the ids.
    columns : three of str, optional
        The names of the columns, or arrays, in that order, or their numbers from 0 where the file
        has no names; the first three unless given. Two do without values.
    format : str, optional
        The format, where the ending does not tell.
    rated : bool
        Whether there are values; without them the first two columns do, and the values are NaN.
    ids : collection of str
        Ids that are known: a first line of such alone is no header.

    Returns
    -------
    rows, cols : arrays of int64, or of float64 or str where they are not whole numbers
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
        found = frame(source, columns or (), ids)
        if found is not None:
            return _from_frame(found, columns, rated)
        if source.format == "npz":
            triples = _from_npz(source, columns, rated)
            if triples is not None:
                return triples
        if source.format == "npy":
            return _from_array(source.path, read_npy(source), columns, rated)
        if source.format == "svmlight":
            raise FileError(f"{path} is svmlight, which has no ratings: write them as CSV")
        if columns is not None:
            raise FileError(
                f"{path} is a matrix, whose rows and columns have no names: do not name any"
            )
        return _from_matrix(source)


def _from_frame(found: Frame, columns: Sequence[str] | None, rated: bool) -> Triples:
    width = 2 + rated
    if len(found.names) < width:
        raise FileError(
            f"{found.path} has the columns {listed(found.names)}, where a row, a column and a "
            "value belong"
        )
    places = list(range(width)) if columns is None else _places(found, columns)
    claim_columns(found, 3, 2)
    rows: list[Values] = []
    cols: list[Values] = []
    values = np.full(found.rows, np.nan)
    start = 0
    names = [found.names[place] for place in places]
    for row, col, *rest in found.chunks(places, as_text=places[:2]):
        rows.append(compact(row))
        cols.append(compact(col))
        for value in rest:
            values[start : start + len(value)] = _values(found, names[2], value, start)
        start += len(row)
    return _ids(found, names[0], joined(rows)), _ids(found, names[1], joined(cols)), values


def _places(found: Any, columns: Sequence[str]) -> list[int]:
    """Where the columns are, no two of them one."""
    places = [find(found, name) for name in columns]
    if len(set(places)) < len(places):
        raise FileError(f"{found.path}: a row, a column and a value are three columns, not one")
    return places


def _values(found: Frame, name: str, values: Values, start: int) -> NDArray[np.float64]:
    read, text = numbers(values)
    bad = ~np.isfinite(read)
    if text is None and not bad.any():
        return read
    place = int(bad.argmax()) if text is None else text
    cell = values[place]
    raise FileError(
        f"{found.path}: column {shown(name)} has {'nothing' if cell is None else shown(cell)} in "
        f"{found.place(start + place)}, where a rating belongs: leave out what is not known"
    )


def _ids(found: Frame, name: str, values: Values) -> NDArray[Any]:
    gone = missing(values)
    if gone.any():
        raise FileError(
            f"{found.path}: column {shown(name)} has {int(gone.sum()):,} missing ids, the first in "
            f"{found.place(int(gone.argmax()))}: leave those ratings out"
        )
    return settled(found.path, values)


def _from_npz(source: Source, columns: Sequence[str] | None, rated: bool) -> Triples | None:
    """From three arrays; None where the file is one matrix."""
    names = (NPZ_NAMES if columns is None else columns)[: 2 + rated]
    with archive(source) as arrays:
        if not set(names) <= set(arrays.names):
            if columns is None and sparse_parts(arrays):
                return None
            if len(arrays.names) == 1 and not sparse_parts(arrays):
                return _from_array(source.path, arrays.array(arrays.names[0]), columns, rated)
            raise FileError(
                f"{source.path} has the arrays {listed(arrays.names)}, and ratings are in "
                f"{listed(names)}: name them"
            )
        rows, cols, *rest = (arrays.array(name) for name in names)
    if rows.ndim != 1 or any(part.shape != rows.shape for part in (cols, *rest)):
        raise FileError(f"{source.path}: rows, columns and values of ratings are not as many")
    return _checked(source.path, rows, cols, *rest)


def _from_array(
    path: NameOfFile, found: NDArray[Any], columns: Sequence[str] | None, rated: bool
) -> Triples:
    if columns is not None and found.ndim == 2:
        numbered: Any = Numbered(path, [f"x{k}" for k in range(found.shape[1])], headed=False)
        return _checked(path, *found.T[_places(numbered, columns)])
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
    if values is None:
        return _array_ids(path, rows), _array_ids(path, cols), np.full(rows.size, np.nan)
    if values.dtype.kind not in "biuf":
        raise FileError(f"{path} has ratings of {values.dtype}, where numbers belong")
    read = values.astype(np.float64)
    bad = ~np.isfinite(read)
    if bad.any():
        first = int(bad.argmax())
        raise FileError(f"{path}: rating {first} is {read[first]}: leave out what is not known")
    return _array_ids(path, rows), _array_ids(path, cols), read


def _array_ids(path: NameOfFile, ids: NDArray[Any]) -> NDArray[Any]:
    if ids.dtype.kind in "iub":
        return ids.astype(np.int64)
    return settled(path, ids.astype(np.float64)) if ids.dtype.kind == "f" else ids


def _from_matrix(source: Source) -> Triples:
    X = matrix(source).X
    if not sp.issparse(X):
        raise FileError(f"{source.path} is a dense matrix: write the known ratings as a sparse one")
    entries = sp.coo_matrix(X)
    return _checked(
        source.path, entries.row.astype(np.int64), entries.col.astype(np.int64), entries.data
    )
