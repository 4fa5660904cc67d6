"""Pairs of samples, from any file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.app.files._arrays import archive, read_npy
from gramian.app.files._columns import EXACT, claim_columns, number_of, numbers
from gramian.app.files._errors import FileError, NameOfFile, claim, reading, shown
from gramian.app.files._source import Format, Source, locate
from gramian.app.files._sparse import market_head
from gramian.app.files._tables import frame, matrix

SEPARATOR = re.compile(r"[,;\s]\s*")
WEIGHTS = ("weight", "weights", "w")

Pairs = tuple[NDArray[np.int64], NDArray[np.float64] | None]


def read_pairs(path: NameOfFile, format: Format = None) -> Pairs:
    """Read pairs of sample numbers, counted from 0, and their weights or None.

    Text has two numbers on each line, or three with the weight, separated by commas, semicolons or
    blanks; a header, blank lines and comments after # are allowed. Arrays and tables have two
    columns or three. A column named weight or w is the weight, in any position. In a sparse matrix
    each stored nonzero is a pair, and the values are the weights unless all are 1; in a symmetric
    Matrix Market file only entries on and below the diagonal are used.
    """
    source = locate(path, format)
    with reading(path):
        if source.format in ("csv", "tsv"):
            return _from_text(source)
        if source.format == "npy":
            return _from_array(path, read_npy(source))
        if source.format == "npz":
            return _from_npz(source)
        if source.format == "matrix market":
            general = market_head(source).symmetry == "general"
            X = sp.csr_matrix(matrix(source).X)
            return _from_nonzeros(X if general else sp.tril(X))
        columns = frame(source)
        if columns is None:
            raise FileError(f"{path} is {source.format}, which has no pairs: write them as CSV")
        width = len(columns.names)
        if width not in (2, 3):
            raise FileError(f"{path} has {width} columns, where pairs have two, or a weight too")
        claim_columns(columns, 2 * width, 0)
        read = [numbers(values) for values in columns.values(range(width))]
        if any(text is not None for _, text in read):
            raise FileError(f"{path} has text where the numbers of samples belong")
        order = _order(path, columns.names)[:width]
        return _from_array(path, np.column_stack([values for values, _ in read])[:, order])


def _from_text(source: Source) -> Pairs:
    path = source.path
    claim(path, 16.0 * source.size, f"{source.size:,} bytes of pairs", "split it")
    rows: list[list[float]] = []
    places: list[str] = []
    order: list[int] = []
    for line, text in source.lines():
        cells = [cell.strip('"') for cell in SEPARATOR.split(text.partition("#")[0].strip())]
        if cells == [""]:
            continue
        read = [number_of(cell) for cell in cells]
        if not order:
            headed = all(number is None for number in read)
            order = _order(path, cells) if headed else [0, 1, 2]
            if headed:
                continue
        if len(cells) not in (2, 3) or (rows and len(cells) != len(rows[0])):
            raise FileError(
                f"{path}: line {line} has {len(cells)} numbers, where each line has the two of a "
                "pair, or each three with a weight"
            )
        for cell, number in zip(cells, read, strict=True):
            if number is None:
                raise _misplaced(path, f"line {line}", cell, "a number")
        rows.append([read[k] for k in order[: len(cells)]])  # type: ignore[misc]
        places.append(f"line {line}")
    return _from_array(path, np.array(rows) if rows else np.empty((0, 2)), places=places)


def _order(path: NameOfFile, names: Sequence[str]) -> list[int]:
    """The positions of the columns of both samples and of the weight, from the header."""
    if len(names) == 3 and not names[0].strip():
        raise FileError(
            f"{path} begins with a column that has no name, as an index has: write it without"
        )
    weights = [place for place, name in enumerate(names) if name.strip().lower() in WEIGHTS]
    place = weights[0] if len(weights) == 1 and len(names) == 3 else 2
    return [*(k for k in range(3) if k != place), place]


def _from_npz(source: Source) -> Pairs:
    with archive(source) as arrays:
        if "pairs" in arrays.names:
            weights = arrays.array("weights") if "weights" in arrays.names else None
            return _from_array(source.path, arrays.array("pairs"), weights)
        if arrays.is_sparse:
            return _from_nonzeros(matrix(source).X)
        if len(arrays.names) > 1:
            raise FileError(f"{source.path} has several arrays: call the one of pairs 'pairs'")
        return _from_array(source.path, arrays.array(arrays.names[0]))


def _from_array(
    path: NameOfFile,
    found: NDArray[Any],
    weights: NDArray[Any] | None = None,
    places: Sequence[str] = (),
) -> Pairs:
    """Check an array of pairs; `places` are the locations of the rows, for messages."""
    if found.ndim != 2 or found.shape[1] not in (2, 3) or found.dtype.kind not in "biuf":
        raise FileError(
            f"{path} holds {found.dtype} of shape {found.shape}, where (k, 2) sample numbers "
            "belong, or (k, 3) with weights"
        )
    if weights is None and found.shape[1] == 3:
        weights = found[:, 2]
    pairs = found[:, :2]
    sound = (pairs >= 0) & (pairs < EXACT) & (pairs == np.floor(pairs))
    _check(path, pairs, sound, places, "a sample number, 0 or more,")
    pairs = np.ascontiguousarray(pairs, dtype=np.int64)
    if weights is None:
        return pairs, None
    if weights.shape != (len(pairs),) or weights.dtype.kind not in "biuf":
        raise FileError(f"{path} has weights of shape {weights.shape} for {len(pairs):,} pairs")
    read = weights.astype(np.float64)
    sound = (read >= 0) & np.isfinite(read)
    _check(path, read[:, None], sound[:, None], places, "a weight, 0 or more,")
    return pairs, read


def _check(
    path: NameOfFile,
    values: NDArray[Any],
    sound: NDArray[np.bool_],
    places: Sequence[str],
    expected: str,
) -> None:
    if not sound.all():
        row = int((~sound.all(axis=1)).argmax())
        value = values[row][~sound[row]][0]
        cell = f"{value:.0f}" if value == np.floor(value) else str(value)
        raise _misplaced(path, places[row] if places else f"pair {row}", cell, expected)


def _misplaced(path: NameOfFile, place: str, cell: str, expected: str) -> FileError:
    return FileError(f"{path}: {place} has {shown(cell)} where {expected} belongs")


def _from_nonzeros(X: Any) -> Pairs:
    entries = sp.coo_matrix(X)
    entries.eliminate_zeros()
    pairs = np.column_stack([entries.row, entries.col]).astype(np.int64)
    return pairs, None if (entries.data == 1).all() else entries.data.astype(np.float64)
