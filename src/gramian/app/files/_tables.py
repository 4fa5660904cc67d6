"""Read samples (rows), with or without labels, from any file."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.app.dates import date_in
from gramian.app.files._amounts import is_quantity
from gramian.app.files._arff import arff_frame
from gramian.app.files._arrays import Archive, archive, read_npy
from gramian.app.files._cells import arrow_frame, excel_frame, json_frame
from gramian.app.files._columns import (
    Frame,
    Header,
    Values,
    as_spelled,
    claim_columns,
    counted_names,
    find,
    missing,
    number_of,
    numbers,
    settled,
    strings,
)
from gramian.app.files._errors import (
    FileError,
    NameOfFile,
    TextColumn,
    TextColumnsError,
    reading,
    shown,
)
from gramian.app.files._source import Format, Source, locate
from gramian.app.files._sparse import read_market, read_sparse_parts, read_svmlight
from gramian.app.files._text import text_frame

Numbers: TypeAlias = NDArray[np.float64] | sp.csr_matrix

SVMLIGHT_LABEL = "label"

FEW = 20
"""Number of distinct texts up to which a column holds categories, and number of rows from which on
a column of distinct texts holds names."""

AMOUNT = re.compile(r"[^\w.,+-]{0,2}\s?[+-]?\d[\d.,' ]*\s?[^\W\d_]{0,3}[^\w.,]?")
"""A number with a currency sign, a unit or thousands separators."""

FEW_TEXTS = 0.2
"""The largest fraction of other texts in a column of numbers or dates."""


@dataclass(frozen=True)
class Matrix:
    """A matrix, and the labels and names stored with it."""

    X: Numbers
    y: NDArray[Any] | None = None
    label: str | None = None
    names: list[str] | None = None


@dataclass(frozen=True)
class Table:
    """Samples and, if requested or stored with them, their labels.

    Attributes
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        Float64, NaN for missing cells.
    columns : list of str
        The names of the features; "x0", "x1", … if the file has none.
    y : array of shape (n_samples,) or None
        Integers as int64, other numbers as float64, everything else as strings.
    label : str or None
        The name of the label column.
    source : str
        The file.
    format : str
        One of `ReadOptions.format`.
    texts : dict of str to object array of shape (n_samples,)
        The columns requested as text, None for missing cells.
    """

    X: NDArray[np.float64] | sp.csr_matrix
    columns: list[str]
    y: NDArray[Any] | None
    label: str | None
    source: str
    format: str
    texts: dict[str, NDArray[np.object_]] = field(default_factory=dict)


def read_table(
    path: NameOfFile,
    *,
    label: str | None = None,
    drop: Sequence[str] = (),
    text: Sequence[str] = (),
    format: Format = None,
    unknown: bool = False,
) -> Table:
    """Read samples from a file.

    Parameters
    ----------
    path : str or path
        A file in one of the formats of `ReadOptions`; text may be gzipped.
    label : str, optional
        The column of labels: its name, or its number from 0 (or −1, the last) if the file has
        no header. In NPZ files also the name of an array, default "y".
    drop : sequence of str
        Columns to omit.
    text : sequence of str
        Columns to read as unparsed text, into `texts`.
    format : str or ReadOptions, optional
        The format, by default detected.
    unknown : bool
        Whether cells of the label column may be missing: NaN among numbers, "" among strings.

    Raises
    ------
    FileError
        If the file is damaged or has unexpected content, or its arrays do not fit into memory.
    """
    source = locate(path, format)
    with reading(path):
        columns = frame(source, [*drop, *text, *([] if label is None else [label])])
        if columns is not None:
            return _from_frame(columns, source, label, drop, text, unknown)
        return _from_matrix(matrix(source, label), source, label, drop, unknown)


def read_column(path: NameOfFile, column: str, format: Format = None) -> NDArray[Any]:
    """Read one column of numbers or strings; NaN or "" for missing cells."""
    source = locate(path, format)
    with reading(path):
        columns = frame(source, [column])
        if columns is None:
            raise FileError(f"{path} has no columns by name")
        places = find(columns, [column])
        return _with_gaps(path, columns.values(places, as_ids=places)[0])


def read_header(
    path: NameOfFile,
    *,
    format: Format = None,
    expected: Sequence[str] = (),
    ids: Collection[str] = (),
) -> Header | None:
    """The columns of a dense file; None for a sparse matrix, which has none.

    Parameters
    ----------
    path : str or path
    format : str or ReadOptions, optional
        The format, by default detected.
    expected : sequence of str
        Names that identify the first row as a header even if all cells below are also text.
    ids : collection of str
        Known names of rows: a first row that only contains such names is not a header.
    """
    source = locate(path, format)
    with reading(path):
        columns = frame(source, expected, ids)
        if columns is not None:
            return Header(columns.names, columns.headed)
        if source.format == "npy":
            found = read_npy(source)
            return Header(counted_names(path, found.shape[-1] if found.ndim == 2 else 1), False)
        if source.format != "npz":
            return None
        with archive(source) as arrays:
            if arrays.is_sparse:
                return None
            if len(arrays.tables) != 1:
                return Header(arrays.names, True)
            shape = arrays.shape(arrays.main())
            size = shape[-1] if len(shape) == 2 else 1
            names = arrays.column_names(size)
            return Header(names or counted_names(path, size), names is not None)


def place_of(path: NameOfFile, row: int, format: Format = None) -> str:
    """The location of a sample in its file, for messages: "line 12"."""
    source = locate(path, format)
    with reading(path):
        columns = frame(source)
        return f"row {row}" if columns is None else columns.place(row)


def read_matrix(path: NameOfFile, format: Format = None) -> Numbers:
    """Read a numeric matrix from a file; a sparse one stays sparse, as CSR."""
    source = locate(path, format)
    with reading(path):
        columns = frame(source)
        if columns is None:
            return matrix(source).X
        claim_columns(columns, len(columns.names), 0)
        values = columns.values(range(len(columns.names)))
        named = _has_row_names(columns, values[0])
        try:
            return _features(columns, columns.names[named:], values[named:])
        except TextColumnsError as refusal:
            column = refusal.columns[0]
            raise FileError(
                f"{path}: column {shown(column.name)} has the text {shown(column.cell)} in "
                f"{column.place}, and a matrix has numbers only"
            ) from None


def _has_row_names(columns: Frame, first: Values) -> bool:
    """Whether the first column contains the names of the rows of a square matrix."""
    names = columns.names[1:]
    if len(names) != len(first) or numbers(first)[1] is None:
        return False
    rows = [str(cell).strip() for cell in first]
    if rows != names and sorted(rows) == sorted(names):
        place = next(k for k, name in enumerate(names) if rows[k] != name)
        raise FileError(
            f"{columns.path}: the rows are in another order than the columns, {shown(rows[place])} "
            f"where {shown(names[place])} belongs: sort them alike"
        )
    return True


# --- columns ---------------------------------------------------------------------------


def frame(source: Source, expected: Sequence[str] = (), ids: Collection[str] = ()) -> Frame | None:
    """The columns of a table; None for a file of arrays.

    A first line of text that contains `expected` names is a header; a first line that only contains
    `ids` is not.
    """
    if source.format in ("csv", "tsv"):
        return text_frame(source, expected, ids)
    if source.format == "excel":
        return excel_frame(source, expected)
    if source.format == "json lines":
        return json_frame(source)
    if source.format == "arff":
        return arff_frame(source)
    return arrow_frame(source) if source.format in ("parquet", "feather") else None


def _from_frame(
    columns: Frame,
    source: Source,
    label: str | None,
    drop: Sequence[str],
    text: Sequence[str],
    unknown: bool,
) -> Table:
    labelled = find(columns, [] if label is None else [label])
    spelled = find(columns, text)
    left_out = {*labelled, *spelled, *find(columns, drop)}
    kept = [place for place in range(len(columns.names)) if place not in left_out]
    if not kept and not spelled:
        raise _nothing_left(columns.path, label, drop)
    claim_columns(columns, len(kept), len(spelled) + len(labelled))
    others = [*spelled, *labelled]
    values = columns.values([*kept, *others], as_text=spelled, as_ids=labelled)
    cells = dict(zip(others, values[len(kept) :], strict=True))
    names = [columns.names[place] for place in kept]
    X = _features(columns, names, values[: len(kept)])
    texts = {columns.names[place]: as_spelled(cells[place]) for place in spelled}
    found = Table(X, names, None, None, str(source.path), source.format, texts)
    if label is None:
        return found
    name, y = columns.names[labelled[0]], cells[labelled[0]]
    gone = missing(y)
    if gone.any() and not unknown:
        raise FileError(
            f"{columns.path}: the label column {shown(name)} has {int(gone.sum()):,} missing "
            f"cell{'' if gone.sum() == 1 else 's'}, the first in "
            f"{columns.place(int(gone.argmax()))}: fill them in or leave those rows out"
        )
    return replace(found, y=_with_gaps(columns.path, y), label=name)


def _features(columns: Frame, names: list[str], values: list[Values]) -> NDArray[np.float64]:
    """Columns as a matrix; raises one error that describes all columns of text."""
    X = np.empty((columns.rows, len(names)))
    texts, numeric = [], []
    for place, cells in enumerate(values):
        X[:, place], text = numbers(cells)
        if text is None:
            numeric.append(place)
        else:
            kind = looks_like(cells)
            expected = {"some dates": date_in, "numbers": is_quantity}.get(kind)
            if expected is not None:
                text = next(k for k, c in enumerate(cells) if c is not None and not expected(c))
            texts.append(TextColumn(names[place], str(cells[text]), columns.place(text), kind))
    if texts:
        gaps = bool(np.isnan(X[:, numeric]).any())
        raise TextColumnsError(columns.path, texts, len(numeric), gaps)
    infinite = np.isinf(X).any(axis=0)
    if infinite.any():
        column = int(infinite.argmax())
        row = columns.place(int(np.isinf(X[:, column]).argmax()))
        raise _infinite(columns.path, row, f"column {shown(names[column])}")
    return X


def looks_like(values: Values) -> str:
    """The apparent content of a column of text: see `TextColumn.kind`."""
    cells = [text for cell in values if cell is not None and (text := str(cell).strip())]
    if not cells:
        return "categories"
    others, most = 0, int(FEW_TEXTS * len(cells))
    for cell in cells:
        others += date_in(cell) is None
        if others > most:
            break
    else:
        return "dates" if others == 0 else "some dates"
    texts = [cell for cell in cells if number_of(cell) is None]
    odd = [cell for cell in texts if not is_quantity(cell)]
    if odd and len(odd) <= FEW_TEXTS * len(cells):
        return "numbers"
    if texts and all(map(AMOUNT.fullmatch, cells)) and not all(map(str.isalnum, texts)):
        return "amounts"
    distinct = len(set(cells))
    if distinct == 1 and len(cells) > FEW:
        return "constant"
    if distinct == len(cells) and len(cells) > FEW:
        return "names"
    return "categories" if distinct <= max(FEW, len(cells) // 10) else "text"


def _with_gaps(path: NameOfFile, values: Values) -> NDArray[Any]:
    """Labels, with NaN or "" for missing ones."""
    gone = missing(values)
    known = settled(path, values[~gone])
    if not gone.any():
        return known
    text = known.dtype.kind == "U"
    y = np.full(values.size, "" if text else np.nan, dtype=known.dtype if text else np.float64)
    y[~gone] = known
    return y


def _nothing_left(path: NameOfFile, label: str | None, drop: Sequence[str]) -> FileError:
    other = "" if label is None else f" other than the label {shown(label)}"
    remedy = "drop fewer" if drop else "is it the right file, and its separator a usual one?"
    return FileError(f"{path} has no column to learn from{other}: {remedy}")


def _infinite(path: NameOfFile, place: str, column: str) -> FileError:
    return FileError(f"{path}: {place}, {column} is infinite: leave it empty or put a number")


# --- arrays ----------------------------------------------------------------------------


def matrix(source: Source, label: str | None = None) -> Matrix:
    """The matrix of a file of arrays; `label` may name another array of the file."""
    if source.format == "npy":
        found = Matrix(_dense(read_npy(source), source.path))
    elif source.format == "svmlight":
        found = Matrix(*read_svmlight(source), SVMLIGHT_LABEL)
    elif source.format == "matrix market":
        found = Matrix(read_market(source))
    else:
        with archive(source) as arrays:
            found = _from_archive(arrays, "y" if label is None else label)
    X: Any = found.X
    entries = X.data if sp.issparse(X) else X.ravel()
    if np.isinf(entries).any():
        first = int(np.isinf(entries).argmax())
        row, column = divmod(first, X.shape[1])
        if sp.issparse(X):
            row, column = (int(np.searchsorted(X.indptr, first, "right")) - 1, X.indices[first])
        raise _infinite(source.path, f"row {row}", f"column {column}")
    return found


def _from_archive(arrays: Archive, label: str) -> Matrix:
    X: Numbers = (
        read_sparse_parts(arrays)
        if arrays.is_sparse
        else _dense(arrays.array(arrays.main()), arrays.path)
    )
    names = arrays.column_names(X.shape[1])
    if label not in arrays.names or arrays.shape(label) != X.shape[:1]:
        return Matrix(X, names=names)
    return Matrix(X, arrays.array(label), label, names)


def _dense(array: NDArray[Any], path: NameOfFile) -> NDArray[np.float64]:
    if array.ndim != 2 or array.dtype.kind not in "biuf" or 0 in array.shape:
        raise FileError(
            f"{path} holds {array.dtype} of shape {array.shape}, where a table of numbers, with "
            "rows and columns, belongs: reshape or convert it"
        )
    return np.ascontiguousarray(array, dtype=np.float64)


def _from_matrix(
    found: Matrix, source: Source, label: str | None, drop: Sequence[str], unknown: bool
) -> Table:
    X, y, name = found.X, found.y, found.label
    header = Header(found.names or counted_names(source.path, X.shape[1]), found.names is not None)
    left_out = set(header.places(source.path, drop))
    if label is not None and label != found.label:
        if source.format == "svmlight":
            raise FileError(
                f"{source.path} keeps its labels in front of each line: leave the label out, or "
                f"call it {SVMLIGHT_LABEL!r}"
            )
        (place,) = header.places(source.path, [label])
        column: Any = X[:, [place]]
        y = np.asarray(column.toarray() if sp.issparse(column) else column).ravel()
        name = header.names[place]
        left_out.add(place)
    names = header.names
    if left_out:
        kept = [place for place in range(len(names)) if place not in left_out]
        X, names = X[:, kept], [names[place] for place in kept]
    if not names:
        raise _nothing_left(source.path, label, drop)
    labels = None if y is None else _array_labels(source.path, y, unknown)
    return Table(X, names, labels, name, str(source.path), source.format)


def _array_labels(path: NameOfFile, y: NDArray[Any], unknown: bool) -> NDArray[Any]:
    if y.dtype.kind == "S":
        return strings(path, [cell.decode(errors="replace") for cell in y.tolist()])
    if y.dtype.kind == "f":
        values = y.astype(np.float64)
        return _with_gaps(path, values) if unknown else settled(path, values)
    return y if y.dtype.kind == "U" else y.astype(np.int64)
