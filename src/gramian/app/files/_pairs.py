"""Pairs of samples, from any file."""

from __future__ import annotations

import re
from array import array
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.app.files._arrays import archive, read_npy
from gramian.app.files._columns import Frame, claim_columns, number_of, numbers
from gramian.app.files._contents import frame, matrix
from gramian.app.files._errors import FileError, NameOfFile, claim, reading, shown
from gramian.app.files._source import Source, locate
from gramian.app.files._sparse import market_head, sparse_parts

PARTING = re.compile(r"[,;\s]\s*")
LARGEST = 2**53
COLUMNS = ("parquet", "feather", "excel", "json lines")
WEIGHTS = ("weight", "weights", "w")

Pairs = tuple[NDArray[np.int64], NDArray[np.float64] | None]


def read_pairs(path: NameOfFile, format: str | None = None) -> Pairs:
    """Read pairs of sample numbers, counted from 0, and their weights where there are any.

    Text has two numbers on each line, or three with the weight, parted by commas, semicolons or
    blanks; a header, blank lines and comments after # are allowed. Arrays and Parquet files have
    two columns or three. A column named weight or w is the weight, wherever it stands. Of a
    sparse matrix, each stored nonzero is a pair, its value the weight unless all are 1; of a
    symmetric Matrix Market file, those on and below the diagonal.

    Returns
    -------
    pairs : array of shape (k, 2), int64
    weights : array of shape (k,) or None
    """
    source = locate(path, format)
    with reading(path):
        if source.format in ("csv", "tsv"):
            return _from_text(source)
        if source.format in COLUMNS:
            return _from_columns(source)
        if source.format == "npy":
            return _from_array(source.path, read_npy(source))
        if source.format == "npz":
            return _from_npz(source)
        if source.format == "matrix market":
            head = market_head(source)
            X = sp.csr_matrix(matrix(source).X)
            return _from_nonzeros(X if head.symmetry == "general" else sp.tril(X))
        raise FileError(f"{path} is {source.format}, which has no pairs: write them as CSV")


def _from_text(source: Source) -> Pairs:
    claim(source.path, 8 * source.size, f"{source.size:,} bytes of pairs", "split it")
    first, second, weights = array("q"), array("q"), array("d")
    width = 0
    order: list[int] = []
    for line, cells in _rows(source):
        if not order:
            headed = all(number_of(cell) is None for cell in cells)
            order = _order(source.path, cells) if headed else [0, 1, 2]
            if headed:
                continue
        width = width or len(cells)
        if len(cells) != width or width not in (2, 3):
            raise FileError(
                f"{source.path}: line {line} has {len(cells)} numbers, where each line has the two "
                "of a pair, or each three with a weight"
            )
        first.append(_sample(source.path, line, cells[order[0]]))
        second.append(_sample(source.path, line, cells[order[1]]))
        if width == 3:
            weights.append(_weight(source.path, line, cells[order[2]]))
    pairs = np.column_stack([np.frombuffer(part, dtype=np.int64) for part in (first, second)])
    return pairs, np.array(weights) if width == 3 else None


def _rows(source: Source) -> Iterator[tuple[int, list[str]]]:
    """The cells of each line that has any."""
    for line, text in source.lines():
        cells = [cell.strip('"') for cell in PARTING.split(text.partition("#")[0].strip())]
        if cells != [""]:
            yield line, cells


def _order(path: NameOfFile, names: Sequence[str]) -> list[int]:
    """Where a header says that the two of a pair and their weight are."""
    if len(names) != 3:
        return [0, 1, 2]
    if not names[0].strip():
        raise FileError(
            f"{path} begins with a column that has no name, as an index has: write it without"
        )
    weights = [place for place, name in enumerate(names) if name.strip().lower() in WEIGHTS]
    place = weights[0] if len(weights) == 1 else 2
    return [*(k for k in range(3) if k != place), place]


def _sample(path: NameOfFile, line: int, cell: str) -> int:
    if not re.fullmatch(r"[0-9]{1,15}", cell):
        raise FileError(
            f"{path}: line {line} has {shown(cell)} where a sample number, 0 or more, belongs"
        )
    return int(cell)


def _weight(path: NameOfFile, line: int, cell: str) -> float:
    weight = number_of(cell)
    if weight is None or not 0 <= weight < np.inf:
        raise FileError(f"{path}: line {line} has {shown(cell)} where a weight, 0 or more, belongs")
    return weight


def _from_columns(source: Source) -> Pairs:
    columns = frame(source)
    assert columns is not None
    width = len(columns.names)
    if width not in (2, 3):
        raise FileError(f"{source.path} has {width} columns, where pairs have two, or a weight too")
    claim_columns(columns, 2 * width, 0)
    order = _order(source.path, columns.names)[:width]
    return _from_array(source.path, _stacked(columns, width)[:, order])


def _stacked(columns: Frame, width: int) -> NDArray[np.float64]:
    found = []
    for chunk in columns.chunks(range(width)):
        read = [numbers(values) for values in chunk]
        if any(text is not None for _, text in read):
            raise FileError(f"{columns.path} has text where the numbers of samples belong")
        found.append(np.column_stack([values for values, _ in read]))
    return np.concatenate(found)


def _from_npz(source: Source) -> Pairs:
    with archive(source) as arrays:
        if "pairs" in arrays.names:
            weighted = "weights" in arrays.names
            weights = arrays.array("weights") if weighted else None
            return _from_array(source.path, arrays.array("pairs"), weights)
        sparse = sparse_parts(arrays)
        if not sparse and len(arrays.names) == 1:
            return _from_array(source.path, arrays.array(arrays.names[0]))
    if not sparse:
        raise FileError(f"{source.path} has several arrays: call the one of pairs 'pairs'")
    return _from_nonzeros(matrix(source).X)


def _from_array(
    path: NameOfFile, found: NDArray[Any], weights: NDArray[Any] | None = None
) -> Pairs:
    if found.ndim != 2 or found.shape[1] not in (2, 3) or found.dtype.kind not in "biuf":
        raise FileError(
            f"{path} holds {found.dtype} of shape {found.shape}, where (k, 2) sample numbers "
            "belong, or (k, 3) with weights"
        )
    if weights is None and found.shape[1] == 3:
        weights = found[:, 2]
    pairs = found[:, :2]
    sound = (pairs >= 0) & (pairs < LARGEST) & (pairs == np.floor(pairs))
    if not sound.all():
        row = int((~sound.all(axis=1)).argmax())
        raise FileError(
            f"{path}: pair {row} is {pairs[row].tolist()}, where sample numbers, 0 or more, belong"
        )
    return np.ascontiguousarray(pairs, dtype=np.int64), _weights(path, weights, len(pairs))


def _weights(
    path: NameOfFile, weights: NDArray[Any] | None, size: int
) -> NDArray[np.float64] | None:
    if weights is None:
        return None
    if weights.shape != (size,) or weights.dtype.kind not in "biuf":
        raise FileError(f"{path} has weights of shape {weights.shape} for {size:,} pairs")
    found = weights.astype(np.float64)
    sound = (found >= 0) & np.isfinite(found)
    if not sound.all():
        row = int((~sound).argmax())
        raise FileError(f"{path}: pair {row} has the weight {found[row]}, which must be 0 or more")
    return found


def _from_nonzeros(X: Any) -> Pairs:
    entries = sp.coo_matrix(X)
    entries.eliminate_zeros()
    pairs = np.column_stack([entries.row, entries.col]).astype(np.int64)
    return pairs, None if (entries.data == 1).all() else entries.data.astype(np.float64)
