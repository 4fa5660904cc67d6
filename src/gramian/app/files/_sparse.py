"""SVMlight and Matrix Market, and the sparse matrices of NPZ files."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from itertools import dropwhile, islice
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.app.files._arrays import Archive
from gramian.app.files._columns import number_of
from gramian.app.files._errors import FileError, NameOfFile, claim, parsing, shown
from gramian.app.files._source import BANNER, Source

ENTRY_BYTES = 64
"""Memory for one stored entry while it is read: its value and two indices, and copies."""

FIELDS = ("real", "double", "integer", "unsigned-integer", "pattern")
SYMMETRIES = ("general", "symmetric", "skew-symmetric")


def claim_sparse(path: NameOfFile, shape: tuple[int, int], stored: int) -> None:
    """Refuse a sparse matrix before its parts take memory."""
    rows, columns = shape
    claim(
        path,
        float(ENTRY_BYTES) * stored + 8.0 * (rows + columns),
        f"a sparse matrix of {rows:,} × {columns:,} with {stored:,} entries",
        "split it",
    )


# --- SVMlight --------------------------------------------------------------------------


def read_svmlight(source: Source) -> tuple[sp.csr_matrix, NDArray[np.float64]]:
    """The samples and their labels; query ids are passed over."""
    from sklearn.datasets import load_svmlight_file

    claim_sparse(source.path, (source.count(b"\n") + 1, 0), source.count(b":"))
    try:
        with parsing(source.path, "svmlight"), source.open() as file:
            X, y = load_svmlight_file(file)
    except FileError as reason:
        raise _svmlight_fault(source) or reason from None
    if 0 in X.shape:
        raise FileError(f"{source.path} has {X.shape[0]:,} samples of {X.shape[1]:,} features")
    return sp.csr_matrix(X), y


def _svmlight_fault(source: Source) -> FileError | None:
    """The first line that is not "label index:value index:value …"."""
    for number, line in source.lines():
        last = -1
        for place, token in enumerate(line.partition("#")[0].split()):
            index, colon, value = token.partition(":")
            if place == 0:
                sound = number_of(token) is not None
            elif index == "qid":
                continue
            else:
                sound = bool(colon) and index.isdecimal() and number_of(value) is not None
                sound = sound and int(index[:18]) > last
                last = int(index[:18]) if sound else last
            if not sound:
                return FileError(
                    f"{source.path}: line {number} has {shown(token)} where a label and then "
                    "index:value with rising indices belong"
                )
    return None


# --- Matrix Market ---------------------------------------------------------------------


@dataclass(frozen=True)
class MarketHead:
    """What the first lines of a Matrix Market file say, and how many lines they are."""

    lines: int
    sparse: bool
    pattern: bool
    symmetry: str
    shape: tuple[int, int]
    stored: int


def market_head(source: Source) -> MarketHead:
    """The head, where there can be such a matrix in the file and in memory."""
    lines = source.lines()
    _, banner = next(lines, (0, ""))
    words = banner.lower().split()
    if len(words) != 5 or words[:2] != [BANNER.lower(), "matrix"]:
        raise FileError(
            f"{source.path} does not begin with {BANNER} matrix …: is it another format?"
        )
    layout, field, symmetry = words[2:]
    sparse = layout == "coordinate"
    known = field in FIELDS and symmetry in SYMMETRIES and (sparse or field != "pattern")
    if layout not in ("coordinate", "array") or not known:
        raise FileError(
            f"{source.path} holds a {shown(' '.join(words[2:]))} matrix: write a real one, as "
            "coordinate or array"
        )
    number, line = next(dropwhile(_is_comment, lines), (0, ""))
    sizes = line.split()
    if len(sizes) != 2 + sparse or not all(re.fullmatch("[0-9]{1,18}", size) for size in sizes):
        raise FileError(f"{source.path}: line {number} has {shown(line)} where the sizes belong")
    rows, columns, *rest = map(int, sizes)
    stored = rest[0] if sparse else _places(rows, columns, symmetry)
    head = MarketHead(number, sparse, field == "pattern", symmetry, (rows, columns), stored)
    _claim_market(source, head)
    return head


def _is_comment(numbered: tuple[int, str]) -> bool:
    line = numbered[1].strip()
    return not line or line.startswith("%")


def _places(rows: int, columns: int, symmetry: str) -> int:
    """How many numbers an array has in the file: of a symmetric one, those below the diagonal."""
    below = {"symmetric": rows * (rows + 1) // 2, "skew-symmetric": rows * (rows - 1) // 2}
    return below.get(symmetry, rows * columns)


def _claim_market(source: Source, head: MarketHead) -> None:
    rows, columns = head.shape
    if 0 in head.shape or (head.symmetry != "general" and rows != columns):
        raise FileError(f"{source.path} says that it is {rows:,} × {columns:,}, which cannot be")
    if 2 * head.stored > source.size:  # a digit and the end of a line
        raise FileError(
            f"{source.path} says that it has {head.stored:,} entries, and has {source.size:,} "
            "bytes: it is cut short"
        )
    if head.sparse:
        twice = 1 if head.symmetry == "general" else 2
        claim_sparse(source.path, head.shape, head.stored * twice)
    else:
        need = 8.0 * rows * columns + 16.0 * head.stored
        claim(source.path, need, f"a matrix of {rows:,} × {columns:,}", "split it")


def read_market(source: Source) -> NDArray[np.float64] | sp.csr_matrix:
    """The matrix, sparse where it is kept so; a symmetric one whole."""
    head = market_head(source)
    body = _body(source, head, 3 - head.pattern if head.sparse else 1)
    if not head.sparse:
        return _from_places(head, body.ravel())
    places = body[:, :2] - 1
    outside = (places < 0) | (places >= head.shape) | (places != np.floor(places))
    if outside.any():
        entry = int(outside.any(axis=1).argmax())
        raise FileError(
            f"{source.path}: entry {entry} is at {body[entry, :2].tolist()}, outside of "
            f"{head.shape[0]:,} × {head.shape[1]:,}"
        )
    return _from_entries(head, places.astype(np.int64), body[:, 2:].sum(axis=1) + head.pattern)


def _body(source: Source, head: MarketHead, width: int) -> NDArray[np.float64]:
    """The numbers after the head, as many as it says. (scipy 1.17 can crash on what is damaged.)"""
    lines = (line for _, line in islice(source.lines(), head.lines, None))
    with parsing(source.path, "matrix market"):
        body = np.loadtxt(lines, comments="%", ndmin=2, max_rows=head.stored + 1)
    if body.size == 0:
        body = np.empty((0, width))
    if body.shape != (head.stored, width):
        more = "more" if len(body) > head.stored else f"{len(body):,}"
        raise FileError(
            f"{source.path} says that it has {head.stored:,} lines of {width} numbers, and has "
            f"{more} of {body.shape[1]}: write it again"
        )
    return body


def _from_entries(
    head: MarketHead, places: NDArray[np.int64], values: NDArray[np.float64]
) -> sp.csr_matrix:
    lower = sp.csr_matrix((values, (places[:, 0], places[:, 1])), shape=head.shape)
    return lower if head.symmetry == "general" else sp.csr_matrix(_mirrored(head, lower, sp.tril))


def _from_places(head: MarketHead, values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Column after column."""
    rows, columns = head.shape
    if head.symmetry == "general":
        return np.ascontiguousarray(values.reshape(columns, rows).T)
    lower = np.zeros(head.shape)
    lower.T[np.triu_indices(rows, int(head.symmetry != "symmetric"))] = values
    return np.asarray(_mirrored(head, lower, np.tril))


def _mirrored(head: MarketHead, lower: Any, below: Callable[[Any, int], Any]) -> Any:
    other = below(lower, -1).T
    return lower + other if head.symmetry == "symmetric" else lower - other


# --- NPZ -------------------------------------------------------------------------------


def sparse_parts(arrays: Archive) -> bool:
    """Whether an archive is of the parts of a sparse matrix."""
    names = set(arrays.names)
    return {"data", "shape"} <= names and bool(
        {"indices", "indptr"} <= names or {"row", "col"} <= names or "format" in names
    )


def read_sparse_parts(arrays: Archive) -> sp.csr_matrix:
    """A sparse matrix from compressed rows or columns, or coordinates, as scipy saves them."""
    layout = _layout(arrays)
    shape = _shape(arrays)
    stored = math.prod(arrays.shape("data"))
    claim_sparse(arrays.path, shape, stored)
    data = _numbers(arrays, "data").astype(np.float64)
    if layout == "coo":
        rows, cols = _whole(arrays, "row"), _whole(arrays, "col")
        _check_indices(arrays, rows, shape[0], stored)
        _check_indices(arrays, cols, shape[1], stored)
        return sp.csr_matrix((data, (rows, cols)), shape=shape)
    major, minor = shape if layout == "csr" else shape[::-1]
    indices, starts = _whole(arrays, "indices"), _whole(arrays, "indptr")
    _check_indices(arrays, indices, minor, stored)
    # scipy's own check passes over all of this where the last start is 0, and then crashes
    if (
        starts.size != major + 1
        or starts[0] != 0
        or starts[-1] != stored
        or (np.diff(starts) < 0).any()
    ):
        raise FileError(f"{arrays.path}: array 'indptr' does not part {stored:,} entries")
    found = sp.csr_matrix((data, indices, starts), shape=(major, minor))
    found = found if layout == "csr" else sp.csr_matrix(found.T)
    found.sum_duplicates()
    return found


def _check_indices(arrays: Archive, indices: NDArray[np.int64], size: int, stored: int) -> None:
    if indices.size != stored or ((indices < 0) | (indices >= size)).any():
        raise FileError(
            f"{arrays.path}: the indices of its sparse matrix are not {stored:,} from 0 to "
            f"{size - 1:,}: save it again"
        )


def _layout(arrays: Archive) -> str:
    if "format" not in arrays.names:
        return "csr" if "indptr" in arrays.names else "coo"
    kept = arrays.array("format")
    layout = kept.item() if kept.size == 1 else kept
    layout = layout.decode(errors="replace") if isinstance(layout, bytes) else str(layout)
    needs = {"csr": "indptr", "csc": "indptr", "coo": "row"}
    if needs.get(layout) not in arrays.names:
        raise FileError(f"{arrays.path} is a sparse matrix kept as {shown(layout)}: save it as csr")
    return layout


def _shape(arrays: Archive) -> tuple[int, int]:
    shape = _whole(arrays, "shape").tolist()
    if len(shape) != 2 or min(shape) < 1:
        raise FileError(f"{arrays.path}: a sparse matrix cannot have the shape {shown(shape)}")
    return shape[0], shape[1]


def _numbers(arrays: Archive, name: str) -> NDArray[Any]:
    found = arrays.array(name)
    if found.dtype.kind not in "biuf" or found.ndim != 1:
        raise FileError(
            f"{arrays.path}: array {name!r} is {found.dtype} of shape {found.shape}, where a row "
            "of numbers belongs"
        )
    return found


def _whole(arrays: Archive, name: str) -> NDArray[np.int64]:
    found = _numbers(arrays, name)
    if found.dtype.kind == "f":
        raise FileError(f"{arrays.path}: array {name!r} is {found.dtype}: save whole numbers")
    return found.astype(np.int64)
