"""The content of a file, in plain values."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from gramian.app.files._arrays import archive
from gramian.app.files._columns import (
    TEXT_BYTES,
    Frame,
    Values,
    claim_columns,
    missing,
    numbers,
)
from gramian.app.files._errors import NameOfFile, reading
from gramian.app.files._ratings import NPZ_NAMES
from gramian.app.files._source import Format, locate
from gramian.app.files._tables import FEW, frame, looks_like, matrix
from gramian.common import memory

KINDS = ("whole number", "number", "text", "date")
NO_HEADER = "none: the columns are called x0, x1, …, and options take their numbers from 0"


def describe(path: NameOfFile, format: Format = None) -> dict[str, Any]:
    """The format, the size and the columns of a file.

    Returns
    -------
    dict with
        file, format, bytes, rows, columns;
        header : where the names of the columns are, and layout: how the cells are separated, for
        text files;
        fields : list of {"name", "kind", "missing"}, for dense files, where kind is
        "whole number", "number", "text" or "date";
        ratings, users, items : counts, and the lowest and highest rating, for NPZ files of ratings;
        stored : the number of stored entries, for sparse files;
        label : {"name", "kind", "distinct", "counts"}, where the file has labels, counts being
        None where there are many;
        arrays : {name: shape}, for NPZ files; nothing else where none of them is a table.
    """
    source = locate(path, format)
    facts: dict[str, Any] = {"file": str(path), "format": source.format}
    with reading(path):
        facts["bytes"] = source.stored
        columns = frame(source)
        if columns is not None:
            size = len(columns.names)
            claim_columns(columns, 0, 1)
            facts |= {"rows": columns.rows, "columns": size}
            facts["header"] = columns.layout[0] if columns.headed else NO_HEADER
            if len(columns.layout) > 1:
                facts["layout"] = columns.layout[1]
            return {**facts, "fields": _fields_of(columns)}
        if source.format == "npz":
            with archive(source) as arrays:
                facts["arrays"] = {name: list(arrays.shape(name)) for name in arrays.names}
                if set(NPZ_NAMES) <= set(arrays.names):
                    users, items, ratings = (arrays.array(name) for name in NPZ_NAMES)
                    facts |= {"ratings": int(ratings.size), "users": int(np.unique(users).size)}
                    facts |= {"items": int(np.unique(items).size)}
                    facts |= {"lowest": float(ratings.min()), "highest": float(ratings.max())}
                    return facts
                if not arrays.is_sparse and len(arrays.tables) != 1:
                    return facts
        found = matrix(source)
        X: Any = found.X
        facts |= {"rows": int(X.shape[0]), "columns": int(X.shape[1])}
        if sp.issparse(X):
            facts["stored"] = int(X.nnz)
        else:
            facts["fields"] = _fields(found.names or [f"x{k}" for k in range(X.shape[1])], [*X.T])
        if found.y is not None:
            facts["label"] = {"name": found.label, **_label(found.y)}
    return facts


def _fields_of(columns: Frame) -> list[dict[str, Any]]:
    """The fields of a frame, read in groups of columns whose texts fit into half of the memory."""
    size = len(columns.names)
    group = int(min(size, max(1.0, memory.memory() / 2 / (TEXT_BYTES * columns.rows))))
    fields = []
    for first in range(0, size, group):
        places = range(first, min(first + group, size))
        fields += _fields([columns.names[k] for k in places], columns.values(places))
    return fields


def _fields(names: list[str], columns: list[Values]) -> list[dict[str, Any]]:
    return [
        {"name": name, "kind": _kind(values), "missing": int(missing(values).sum())}
        for name, values in zip(names, columns, strict=True)
    ]


def _kind(values: Values) -> str:
    found, text = (None, 0) if values.dtype.kind in "US" else numbers(values)
    if found is None or text is not None:
        return KINDS[3 if looks_like(values) == "dates" else 2]
    return KINDS[int(bool((found[np.isfinite(found)] % 1 != 0).any()))]


def _label(y: Values) -> dict[str, Any]:
    values, counts = np.unique(y, return_counts=True)
    each = dict(zip(map(str, values.tolist()), counts.tolist(), strict=True))
    few = values.size <= FEW
    return {"kind": _kind(y), "distinct": int(values.size), "counts": each if few else None}
