"""SVMlight and Matrix Market files, and the sparse matrices of NPZ files."""

from __future__ import annotations

import math
import re
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
from gramian.common.storage import checked_csr

ENTRY_BYTES = 64
"""Bytes of memory for one stored entry while it is read: its value, two indices, and copies."""

FIELDS = ("real", "double", "integer", "unsigned-integer", "pattern")
SYMMETRIES = ("general", "symmetric", "skew-symmetric")


def claim_sparse(path: NameOfFile, shape: tuple[int, int], stored: int) -> None:
    """Raise FileError if a sparse matrix would take too much memory, before it is read."""
    rows, columns = shape
    claim(
        path,
        float(ENTRY_BYTES) * stored + 8.0 * (rows + columns),
        f"a sparse matrix of {rows:,} × {columns:,} with {stored:,} entries",
        "split it",
    )


# --- SVMlight --------------------------------------------------------------------------


def read_svmlight(source: Source) -> tuple[sp.csr_matrix, NDArray[np.float64]]:
    """The samples and their labels; query ids are ignored."""
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
        label, *entries = line.partition("#")[0].split() or ["0"]
        bad, last = label if number_of(label) is None else None, -1
        for token in entries if bad is None else ():
            index, _, value = token.partition(":")
            if index == "qid":
                continue
            if not index.isdecimal() or number_of(value) is None or int(index[:18]) <= last:
                bad = token
                break
            last = int(index[:18])
        if bad is not None:
            return FileError(
                f"{source.path}: line {number} has {shown(bad)} where a label and then "
                "index:value with rising indices belong"
            )
    return None


# --- Matrix Market ---------------------------------------------------------------------


@dataclass(frozen=True)
class MarketHead:
    """The content of the first lines of a Matrix Market file, and how many lines they are."""

    lines: int
    sparse: bool
    pattern: bool
    symmetry: str
    shape: tuple[int, int]
    stored: int


def market_head(source: Source) -> MarketHead:
    """The head, checked against the size of the file and of memory."""
    path, lines = source.path, source.lines()
    words = next(lines, (0, ""))[1].lower().split()
    if len(words) != 5 or words[:2] != [BANNER.lower(), "matrix"]:
        raise FileError(f"{path} does not begin with {BANNER} matrix …: is it another format?")
    layout, field, symmetry = words[2:]
    sparse = layout == "coordinate"
    known = field in FIELDS and symmetry in SYMMETRIES and (sparse or field != "pattern")
    if layout not in ("coordinate", "array") or not known:
        raise FileError(
            f"{path} holds a {shown(' '.join(words[2:]))} matrix: write a real one, as coordinate "
            "or array"
        )
    number, line = next(dropwhile(lambda n: n[1].strip()[:1] in ("", "%"), lines), (0, ""))
    sizes = line.split()
    if len(sizes) != 2 + sparse or not all(re.fullmatch("[0-9]{1,18}", size) for size in sizes):
        raise FileError(f"{path}: line {number} has {shown(line)} where the sizes belong")
    rows, columns, *rest = map(int, sizes)
    if 0 in (rows, columns) or (symmetry != "general" and rows != columns):
        raise FileError(f"{path} says that it is {rows:,} × {columns:,}, which cannot be")
    below = {"symmetric": rows * (rows + 1) // 2, "skew-symmetric": rows * (rows - 1) // 2}
    stored = rest[0] if sparse else below.get(symmetry, rows * columns)
    if 2 * stored > source.size:  # a digit and the end of a line
        raise FileError(
            f"{path} says that it has {stored:,} entries, and has {source.size:,} bytes: it is cut "
            "short"
        )
    if sparse:
        claim_sparse(path, (rows, columns), stored * (1 + (symmetry != "general")))
    else:
        need = 8.0 * rows * columns + 16.0 * stored
        claim(path, need, f"a matrix of {rows:,} × {columns:,}", "split it")
    return MarketHead(number, sparse, field == "pattern", symmetry, (rows, columns), stored)


def read_market(source: Source) -> NDArray[np.float64] | sp.csr_matrix:
    """The matrix, sparse if it is stored as such; a symmetric one with both triangles.

    scipy 1.17 can crash on damaged files, so numpy reads the numbers.
    """
    head = market_head(source)
    rows, columns = head.shape
    body = _body(source, head, 3 - head.pattern if head.sparse else 1)
    if head.sparse:
        places = body[:, :2] - 1
        outside = (places < 0) | (places >= head.shape) | (places != np.floor(places))
        if outside.any():
            entry = int(outside.any(axis=1).argmax())
            raise FileError(
                f"{source.path}: entry {entry} is at {body[entry, :2].tolist()}, outside of "
                f"{rows:,} × {columns:,}"
            )
        values = body[:, 2] if body.shape[1] > 2 else np.ones(len(body))
        found: Any = sp.csr_matrix((values, places.astype(np.int64).T), shape=head.shape)
    elif head.symmetry == "general":
        return np.ascontiguousarray(body.reshape(columns, rows).T)
    else:
        found = np.zeros(head.shape)
        found.T[np.triu_indices(rows, int(head.symmetry != "symmetric"))] = body.ravel()
    if head.symmetry == "general":
        return found
    other = (sp.tril if head.sparse else np.tril)(found, -1).T
    whole = found + other if head.symmetry == "symmetric" else found - other
    return sp.csr_matrix(whole) if head.sparse else np.asarray(whole)


def _body(source: Source, head: MarketHead, width: int) -> NDArray[np.float64]:
    """The numbers after the head, as many as it says."""
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


# --- NPZ -------------------------------------------------------------------------------


def read_sparse_parts(arrays: Archive) -> sp.csr_matrix:
    """A sparse matrix from compressed rows or columns, or coordinates, as scipy saves them."""
    layout = _layout(arrays)
    names = ("row", "col") if layout == "coo" else ("indices", "indptr")
    try:
        shape = [int(size) for size in arrays.array("shape")]
        claim_sparse(arrays.path, (shape[0], shape[1]), math.prod(arrays.shape("data")))
        data, one, two = (arrays.array(name) for name in ("data", *names))
        if data.dtype.kind not in "biuf" or {one.dtype.kind, two.dtype.kind} - {*"iu"}:
            raise TypeError("the values are not numbers, or the indices not whole numbers")
        parts = [data.astype(np.float64), one.astype(np.int64), two.astype(np.int64)]
        if layout == "coo":
            found: Any = sp.csr_matrix((parts[0], (parts[1], parts[2])), shape=shape)
        else:
            found = checked_csr(parts, shape if layout == "csr" else shape[::-1])
            found = sp.csr_matrix(found if layout == "csr" else found.T)
    except FileError:
        raise
    except (ValueError, TypeError, IndexError) as reason:
        raise FileError(
            f"{arrays.path}: a sparse matrix is invalid ({reason}): save it again"
        ) from None
    if 0 in found.shape:
        raise FileError(f"{arrays.path}: a sparse matrix has the shape {found.shape}")
    found.sum_duplicates()
    return found


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
