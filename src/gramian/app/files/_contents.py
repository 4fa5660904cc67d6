"""What a file holds before anything is chosen from it: columns with names, or a matrix."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.app.files._arrays import Archive, archive, read_npy
from gramian.app.files._cells import excel_frame, json_frame
from gramian.app.files._columns import Frame, listed, unique_names
from gramian.app.files._errors import FileError, NameOfFile
from gramian.app.files._parquet import parquet_frame
from gramian.app.files._source import Source
from gramian.app.files._sparse import read_market, read_sparse_parts, read_svmlight, sparse_parts
from gramian.app.files._text import text_frame

Numbers: TypeAlias = NDArray[np.float64] | sp.csr_matrix

SVMLIGHT_LABEL = "label"
NPZ_LABEL = "y"
NPZ_NAMES = "columns"


@dataclass(frozen=True)
class Matrix:
    """A matrix, and the labels that came with it."""

    X: Numbers
    y: NDArray[Any] | None = None
    label: str | None = None
    names: list[str] | None = None


def frame(source: Source, expected: Sequence[str] = (), ids: Collection[str] = ()) -> Frame | None:
    """The columns of a file of such; None for a file of arrays.

    A first line of text with the names `expected` is a header, and one of `ids` alone is none.
    """
    if source.format in ("csv", "tsv"):
        return text_frame(source, expected, ids)
    if source.format == "excel":
        return excel_frame(source, expected)
    if source.format == "json lines":
        return json_frame(source, expected)
    return parquet_frame(source) if source.format in ("parquet", "feather") else None


def matrix(source: Source, label: str | None = None) -> Matrix:
    """The matrix of a file of arrays; `label` may name another array of the file."""
    if source.format == "npy":
        found = Matrix(dense(read_npy(source), source.path))
    elif source.format == "svmlight":
        found = Matrix(*read_svmlight(source), SVMLIGHT_LABEL)
    elif source.format == "matrix market":
        found = Matrix(read_market(source))
    else:
        with archive(source) as arrays:
            found = _from_archive(arrays, label)
    refuse_infinite(found.X, source.path)
    return found


def _from_archive(arrays: Archive, label: str | None) -> Matrix:
    if sparse_parts(arrays):
        X: Numbers = read_sparse_parts(arrays)
    else:
        X = dense(arrays.array(main_array(arrays)), arrays.path)
    wanted = NPZ_LABEL if label is None else label
    if wanted not in arrays.names or arrays.shape(wanted) != X.shape[:1]:
        return Matrix(X, names=names_in(arrays, X.shape[1]))
    return Matrix(X, arrays.array(wanted), wanted, names_in(arrays, X.shape[1]))


def has_table(arrays: Archive) -> bool:
    """Whether one of the arrays is meant as the table."""
    tables = sum(len(arrays.shape(name)) == 2 for name in arrays.names)
    return sparse_parts(arrays) or "X" in arrays.names or tables == 1


def main_array(arrays: Archive) -> str:
    """Which of the arrays is the table."""
    tables = [name for name in arrays.names if len(arrays.shape(name)) == 2]
    if "X" in arrays.names:
        return "X"
    if len(tables) != 1:
        raise FileError(
            f"{arrays.path} has the arrays {listed(arrays.names)}: name the table X, or keep one "
            "array of two dimensions"
        )
    return tables[0]


def names_in(arrays: Archive, size: int) -> list[str] | None:
    """The names that an archive keeps of the columns of its table."""
    if NPZ_NAMES not in arrays.names or arrays.shape(NPZ_NAMES) != (size,):
        return None
    return unique_names(arrays.path, [str(name) for name in arrays.array(NPZ_NAMES).tolist()])


def dense(array: NDArray[Any], path: NameOfFile) -> NDArray[np.float64]:
    """A table of numbers."""
    if array.ndim != 2 or array.dtype.kind not in "biuf" or 0 in array.shape:
        raise FileError(
            f"{path} holds {array.dtype} of shape {array.shape}, where a table of numbers, with "
            "rows and columns, belongs: reshape or convert it"
        )
    return np.ascontiguousarray(array, dtype=np.float64)


def refuse_infinite(X: Any, path: NameOfFile) -> None:
    """NaN may stand for what is missing; nothing can mean infinity."""
    bad = np.isinf(X.data if sp.issparse(X) else X)
    if bad.any():
        first = int(bad.argmax())
        if sp.issparse(X):
            row, column = (
                int(np.searchsorted(X.indptr, first, side="right")) - 1,
                int(X.indices[first]),
            )
        else:
            row, column = divmod(first, X.shape[1])
        raise infinite(path, f"row {row}", f"column {column}")


def infinite(path: NameOfFile, place: str, column: str) -> FileError:
    """The error for an infinite number."""
    return FileError(f"{path}: {place}, {column} is infinite: leave it empty or put a number")
