"""What is in a file, in a form that JSON can say."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.app.files._arrays import archive
from gramian.app.files._columns import Frame, Values, missing, numbers
from gramian.app.files._contents import Matrix, frame, has_table, matrix
from gramian.app.files._errors import NameOfFile, reading
from gramian.app.files._source import Format, Source, locate

KINDS = ("whole number", "number", "text")
NO_HEADER = "none: the columns are called x0, x1, …, and options take their numbers from 0"
FEW = 20
"""Labels up to which each is counted."""


def describe(path: NameOfFile, format: Format = None) -> dict[str, Any]:
    """The format, the size and the columns of a file.

    Returns
    -------
    dict with
        file, format, bytes, rows, columns;
        header : where the names of the columns are, and layout: how the cells are separated, for
        text files;
        fields : list of {"name", "kind", "missing"}, for dense files, where kind is
        "whole number", "number" or "text";
        stored : the number of stored entries, for sparse files;
        label : {"name", "kind", "distinct", "counts"}, where the file keeps labels, counts being
        None where there are many;
        arrays : {name: shape}, for NPZ files; nothing else where none of them is a table.
    """
    source = locate(path, format)
    head: dict[str, Any] = {"file": str(path), "format": source.format}
    with reading(path):
        head["bytes"] = source.stored
        columns = frame(source)
        if columns is not None:
            return {**head, **_of_frame(columns)}
        if source.format == "npz":
            head["arrays"] = _shapes(source)
            with archive(source) as arrays:
                if not has_table(arrays):
                    return head
        return {**head, **_of_matrix(matrix(source))}


def _of_frame(columns: Frame) -> dict[str, Any]:
    size = len(columns.names)
    kinds, gone = [0] * size, [0] * size
    for chunk in columns.chunks(range(size)):
        for place, values in enumerate(chunk):
            kinds[place] = max(kinds[place], _kind(values))
            gone[place] += int(missing(values).sum())
    facts: dict[str, Any] = {"rows": columns.rows, "columns": size}
    facts["header"] = columns.layout[0] if columns.headed else NO_HEADER
    if len(columns.layout) > 1:
        facts["layout"] = columns.layout[1]
    return {**facts, "fields": _fields(columns.names, kinds, gone)}


def _fields(names: list[str], kinds: list[int], gone: list[int]) -> list[dict[str, Any]]:
    return [
        {"name": name, "kind": KINDS[kind], "missing": count}
        for name, kind, count in zip(names, kinds, gone, strict=True)
    ]


def _kind(values: Values) -> int:
    if values.dtype.kind in "US":
        return 2
    found, text = numbers(values)
    if text is not None:
        return 2
    known = found[np.isfinite(found)]
    return int(bool((known % 1 != 0).any()))


def _shapes(source: Source) -> dict[str, list[int]]:
    with archive(source) as arrays:
        return {name: list(arrays.shape(name)) for name in arrays.names}


def _of_matrix(found: Matrix) -> dict[str, Any]:
    X: Any = found.X
    rows, columns = X.shape
    facts: dict[str, Any] = {"rows": int(rows), "columns": int(columns)}
    if sp.issparse(X):
        facts["stored"] = int(X.nnz)
    else:
        facts["fields"] = _dense_fields(X, found.names)
    if found.y is not None:
        facts["label"] = _label(found.y, found.label)
    return facts


def _dense_fields(X: NDArray[np.float64], names: list[str] | None) -> list[dict[str, Any]]:
    columns = range(X.shape[1])
    return _fields(
        names or [f"x{place}" for place in columns],
        [_kind(X[:, place]) for place in columns],
        [int(np.isnan(X[:, place]).sum()) for place in columns],
    )


def _label(y: NDArray[Any], name: str | None) -> dict[str, Any]:
    values, counts = np.unique(y, return_counts=True)
    few = values.size <= FEW
    return {
        "name": name,
        "kind": KINDS[_kind(y)],
        "distinct": int(values.size),
        "counts": dict(zip(map(str, values.tolist()), counts.tolist(), strict=True))
        if few
        else None,
    }
