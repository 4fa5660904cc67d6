"""Samples in rows, with a label or without, from any file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.app.files._columns import (
    Frame,
    Numbered,
    Values,
    claim_columns,
    compact,
    counted_names,
    find,
    joined,
    missing,
    number_of,
    numbers,
    settled,
    strings,
)
from gramian.app.files._contents import SVMLIGHT_LABEL, Matrix, Numbers, frame, infinite, matrix
from gramian.app.files._errors import (
    FileError,
    NameOfFile,
    TextColumn,
    TextColumnsError,
    reading,
    shown,
)
from gramian.app.files._source import Source, locate

FEW = 20
"""Distinct texts up to which they are categories; so many rows tell a column of names."""

DATE = re.compile(
    r"\d{4}-\d{1,2}-\d{1,2}([T ].*)?|\d{1,2}([./])\d{1,2}\2\d{4}([T ]+\d.*)?"
    r"|\d{1,2}([- ])(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?\4(\d{4}|\d\d)",
    re.IGNORECASE,
)
AMOUNT = re.compile(r"[^\w.,+-]{0,2}\s?[+-]?\d[\d.,' ]*\s?[^\W\d_]{0,3}[^\w.,]?")
"""A number with a sign, a unit or marks of thousands."""

FEW_TEXTS = 0.2
"""The share of texts up to which a column is one of numbers."""


@dataclass(frozen=True)
class Table:
    """Samples and, where asked for or kept with them, their labels.

    Attributes
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
        Float64, NaN where a cell was missing.
    columns : list of str
        The names of the features; "x0", "x1", … where the file has none.
    y : array of shape (n_samples,) or None
        Whole numbers as int64, other numbers as float64, all else as strings.
    label : str or None
        The name of the label column.
    source : str
        The file.
    format : str
        "csv", "tsv", "parquet", "npz", "npy", "svmlight" or "matrix market".
    """

    X: NDArray[np.float64] | sp.csr_matrix
    columns: list[str]
    y: NDArray[Any] | None
    label: str | None
    source: str
    format: str


def read_table(
    path: NameOfFile,
    *,
    label: str | None = None,
    drop: Sequence[str] = (),
    format: str | None = None,
    unknown: bool = False,
) -> Table:
    """Read samples from a file.

    Parameters
    ----------
    path : str or path
        A CSV, TSV, Parquet, NPZ, NPY, SVMlight or Matrix Market file; text may be gzipped.
    label : str, optional
        The column of labels: its name, or its number from 0 (or −1, the last) where the file has
        no header. In NPZ files also the name of an array, "y" unless given.
    drop : sequence of str
        Columns to leave out.
    format : str, optional
        The format, where the ending does not tell.
    unknown : bool
        Whether cells of the label column may be missing: NaN among numbers, "" among strings.

    Raises
    ------
    FileError
        For whatever is wrong with the file, its arrays not fitting into memory among it.
    """
    source = locate(path, format)
    with reading(path):
        columns = frame(source)
        if columns is not None:
            return _from_frame(columns, source, label, drop, unknown)
        return _from_matrix(matrix(source, label), source, label, drop, unknown)


def read_column(path: NameOfFile, column: str, format: str | None = None) -> NDArray[Any]:
    """Read one column, of numbers or of strings; NaN or "" where a cell is missing."""
    source = locate(path, format)
    with reading(path):
        columns = frame(source)
        if columns is None:
            raise FileError(f"{path} has no columns by name")
        place = find(columns, column)
        cells = [compact(chunk[0]) for chunk in columns.chunks([place], as_text=[place])]
        return _labels(columns, columns.names[place], joined(cells), unknown=True)


def place_of(path: NameOfFile, row: int, format: str | None = None) -> str:
    """Where a row of samples is in its file, for people: "line 12"."""
    source = locate(path, format)
    with reading(path):
        columns = frame(source)
        return f"row {row}" if columns is None else columns.place(row)


def read_matrix(path: NameOfFile, format: str | None = None) -> Numbers:
    """Read a numeric matrix from a file; a sparse one stays sparse, as CSR."""
    source = locate(path, format)
    with reading(path):
        columns = frame(source)
        if columns is not None:
            return _from_frame(columns, source, drop=_row_names(columns)).X
        return matrix(source).X


def _row_names(columns: Frame) -> list[str]:
    """The first column, where a square matrix has one more that is not of numbers."""
    if len(columns.names) != columns.rows + 1:
        return []
    first = next(columns.chunks([0]))[0]
    if numbers(first)[1] is None:
        return []
    names = columns.names[1:]
    rows = [str(cell).strip() for cell in first]
    if rows != names and sorted(rows) == sorted(names):
        place = next(k for k, name in enumerate(names) if rows[k] != name)
        raise FileError(
            f"{columns.path}: the rows are in another order than the columns, {shown(rows[place])} "
            f"where {shown(names[place])} belongs: sort them alike"
        )
    return [columns.names[0]]


# --- columns ---------------------------------------------------------------------------


def _from_frame(
    columns: Frame,
    source: Source,
    label: str | None = None,
    drop: Sequence[str] = (),
    unknown: bool = False,
) -> Table:
    labelled = [] if label is None else [find(columns, label)]
    left_out = {*labelled, *(find(columns, name) for name in drop)}
    kept = [place for place in range(len(columns.names)) if place not in left_out]
    names = [columns.names[place] for place in kept]
    if not kept:
        raise FileError(f"{columns.path} has no column left to learn from: drop fewer")
    claim_columns(columns, len(kept), len(labelled))
    X = np.empty((columns.rows, len(kept)))
    labels: list[Values] = []
    start = 0
    for chunk in columns.chunks([*kept, *labelled], as_text=labelled):
        rows = slice(start, start + len(chunk[0]))
        refuse_text(columns, names, chunk, start)
        for place, values in enumerate(chunk[: len(kept)]):
            X[rows, place] = _feature(columns, names[place], values, start)
        labels += map(compact, chunk[len(kept) :])
        start = rows.stop
    if label is None:
        return Table(X, names, None, None, str(source.path), source.format)
    name = columns.names[labelled[0]]
    y = _labels(columns, name, joined(labels), unknown)
    return Table(X, names, y, name, str(source.path), source.format)


def refuse_text(columns: Frame, names: list[str], chunk: list[Values], start: int) -> None:
    """Refuse every column of text at once, each with what it looks like."""
    found = []
    for name, values in zip(names, chunk, strict=False):
        text = numbers(values)[1] if values.dtype == object else None
        if text is not None:
            place = columns.place(start + text)
            found.append(TextColumn(name, str(values[text]), place, looks_like(values)))
    if found:
        raise TextColumnsError(columns.path, found)


def looks_like(values: Values) -> str:
    """What a column of text is: see `TextColumn.kind`."""
    cells = [text for cell in values if cell is not None and (text := str(cell).strip())]
    if cells and all(map(DATE.fullmatch, cells)):
        return "dates"
    texts = [cell for cell in cells if number_of(cell) is None]
    if texts and len(texts) <= FEW_TEXTS * len(cells):
        return "numbers"
    if texts and all(map(AMOUNT.fullmatch, cells)) and not all(map(str.isalnum, texts)):
        return "amounts"
    distinct = len(set(cells))
    if distinct == len(cells) and len(cells) > FEW:
        return "names"
    return "categories" if distinct <= max(FEW, len(cells) // 10) else "text"


def _feature(columns: Frame, name: str, values: Values, start: int) -> NDArray[np.float64]:
    found = numbers(values)[0]
    endless = np.isinf(found)
    if endless.any():
        place = columns.place(start + int(endless.argmax()))
        raise infinite(columns.path, place, f"column {shown(name)}")
    return found


def _labels(columns: Frame, name: str, values: Values, unknown: bool) -> NDArray[Any]:
    gone = missing(values)
    if gone.any() and not unknown:
        raise FileError(
            f"{columns.path}: the label column {shown(name)} has {int(gone.sum()):,} missing "
            f"cell{'' if gone.sum() == 1 else 's'}, the first in "
            f"{columns.place(int(gone.argmax()))}: fill them in or leave those rows out"
        )
    return _with_gaps(columns.path, values, gone)


def _with_gaps(path: NameOfFile, values: Values, gone: NDArray[np.bool_]) -> NDArray[Any]:
    known = settled(path, compact(values[~gone]))
    if not gone.any():
        return known
    text = known.dtype.kind == "U"
    y = np.full(values.size, "" if text else np.nan, dtype=known.dtype if text else np.float64)
    y[~gone] = known
    return y


# --- arrays ----------------------------------------------------------------------------


def _from_matrix(
    found: Matrix, source: Source, label: str | None, drop: Sequence[str], unknown: bool
) -> Table:
    X, y, name = found.X, found.y, found.label
    names = found.names or counted_names(source.path, X.shape[1])
    columns: Any = Numbered(source.path, names, found.names is not None)
    left_out = {find(columns, column) for column in drop}
    if label is not None and label != found.label:
        if source.format == "svmlight":
            raise FileError(
                f"{source.path} keeps its labels in front of each line: leave the label out, or "
                f"call it {SVMLIGHT_LABEL!r}"
            )
        place = find(columns, label)
        y, name = _column(X, place), names[place]
        left_out.add(place)
    if left_out:
        kept = [place for place in range(len(names)) if place not in left_out]
        X, names = X[:, kept], [names[place] for place in kept]
    if not names:
        raise FileError(f"{source.path} has no column left to learn from: drop fewer")
    labels = None if y is None else _plain_labels(source.path, y, unknown)
    return Table(X, names, labels, name, str(source.path), source.format)


def _column(X: Any, place: int) -> NDArray[np.float64]:
    column = X[:, [place]]
    return np.asarray(column.toarray() if sp.issparse(column) else column).ravel()


def _plain_labels(path: NameOfFile, y: NDArray[Any], unknown: bool) -> NDArray[Any]:
    if y.dtype.kind == "S":
        return strings(path, [cell.decode(errors="replace") for cell in y.tolist()])
    if y.dtype.kind == "U":
        return y
    if y.dtype.kind == "f":
        return _with_gaps(path, y.astype(np.float64), np.isnan(y) & unknown)
    return y.astype(np.int64)
