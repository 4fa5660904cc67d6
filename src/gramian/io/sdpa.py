"""The sparse SDPA format: semidefinite programs as text (Fujisawa, Kojima, Nakata and Yamashita).

A file states  min Σ c_k x_k  subject to  Σ x_k F_k − F_0 ⪰ 0, whose dual is max ⟨F_0, Y⟩ subject to
⟨F_k, Y⟩ = c_k and Y ⪰ 0. The problem here is that dual: M = Y, C = −F_0, b = c. So `value` is minus
the optimum listed by test collections, and `result.dual` is −x.
"""

from __future__ import annotations

import codecs
import gzip
import io
import re
import zlib
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.arrays.errstate import under_own_errstate
from gramian.common.storage import FileError, replacing
from gramian.common.types import Array
from gramian.maps import rows_of
from gramian.objectives import Linear
from gramian.problem import Problem
from gramian.problems import sdp

PUNCTUATION = str.maketrans("{}(),", "     ")
MAX_SIZE = 2_000_000
"""Largest order of M, and largest number of constraints."""


@under_own_errstate
def read_sdpa(path: str | Path) -> Problem:
    """Read a problem from a file of the sparse SDPA format, `.dat-s` or `.dat-s.gz`.

    A diagonal block (with a negative size) becomes nonnegative diagonal entries of M.

    Raises
    ------
    FileError
        With the line number, if the file is damaged.
    """
    path = Path(path)
    reader = _Reader(path, _text(path).splitlines())
    m = reader.number("the number of constraints", MAX_SIZE)
    count = reader.number("the number of blocks", MAX_SIZE)
    sizes = reader.sizes(count)
    b = reader.vector(m, "the right-hand side")
    entries = reader.entries()
    return _problem(reader, path.name.split(".")[0], m, sizes, b, entries)


@under_own_errstate
def write_sdpa(problem: Problem, path: str | Path) -> Path:
    """Write a problem ⟨C, M⟩ with constraints to a file, gzipped if its name ends in .gz.

    Each inequality gets a slack entry in a diagonal block.
    """
    path = Path(path)
    if not isinstance(problem.objective, Linear) or not problem.constraints:
        raise ValueError("the SDPA format holds a linear objective ⟨C, M⟩ with constraints only")
    bounds = problem.bounds
    rows = rows_of(bounds.map)
    if rows is None:
        raise ValueError("the constraints of this problem are too large to write as matrices")
    text = _written(problem, rows, bounds)
    data = text.encode()
    with replacing(path) as target:
        target.write(gzip.compress(data, mtime=0) if path.suffix == ".gz" else data)
    return path


def _text(path: Path) -> str:
    try:
        raw = path.read_bytes()
        if raw[:2] == b"\x1f\x8b":
            raw = gzip.decompress(raw)
    except FileNotFoundError:
        raise FileError(f"{path} cannot be read: there is no such file") from None
    except IsADirectoryError:
        raise FileError(f"{path} cannot be read: it is a folder") from None
    except (EOFError, OSError, zlib.error) as reason:
        raise FileError(f"{path} is damaged or cannot be read ({reason})") from None
    if not raw.strip():
        raise FileError(f"{path} is empty")
    return raw.removeprefix(codecs.BOM_UTF8).decode("latin-1")


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


class _Reader:
    """The lines of a file in order, with their numbers."""

    def __init__(self, path: Path, lines: list[str]) -> None:
        self.path, self.lines, self.at = path, lines, 0
        while self.at < len(lines) and (
            lines[self.at][:1] in ('"', "*") or not lines[self.at].strip()
        ):
            self.at += 1

    def fail(self, line: int, fault: str) -> NoReturn:
        raise FileError(f"{self.path}, line {line + 1}: {fault}")

    def line(self, what: str) -> str:
        while self.at < len(self.lines) and not self.lines[self.at].strip():
            self.at += 1
        if self.at >= len(self.lines):
            self.fail(len(self.lines) - 1, f"the file ends before {what}")
        self.at += 1
        return self.lines[self.at - 1]

    def number(self, what: str, most: int) -> int:
        words = re.match(r"\s*\+?(\d+)(?!\.?\d)", self.line(what))
        if words is None or not 1 <= int(words.group(1)) <= most:
            self.fail(self.at - 1, f"{what} must be an integer between 1 and {most:,}")
        return int(words.group(1))

    def sizes(self, count: int) -> list[int]:
        words = self.line("the sizes of the blocks").translate(PUNCTUATION).split()
        try:
            sizes = [int(word) for word in words[:count]]
        except ValueError:
            self.fail(self.at - 1, "the sizes of the blocks must be integers")
        if len(sizes) != count or 0 in sizes or sum(map(abs, sizes)) > MAX_SIZE:
            self.fail(self.at - 1, f"expected the sizes of {count} blocks, none of them 0")
        return sizes

    def vector(self, size: int, what: str) -> Array:
        words: list[str] = []
        while len(words) < size:
            words += self.line(what).translate(PUNCTUATION).split()
            first = self.at - 1
        if any(_is_number(word) for word in words[size:]):  # other words are a comment
            self.fail(first, f"{what} must hold {size} numbers, one per constraint; it has more")
        try:
            values = np.array([float(word) for word in words[:size]])
        except ValueError:
            self.fail(first, f"{what} contains a word that is not a number")
        if not np.all(np.isfinite(values)):
            self.fail(first, f"{what} contains a number that is not finite")
        return values

    def entries(self) -> Array:
        """Rows (matrix, block, i, j, value)."""
        rest = self.lines[self.at :]
        if not any(line.strip() for line in rest):
            return np.zeros((0, 5))
        try:
            with np.errstate(all="ignore"):
                table = np.loadtxt(
                    io.StringIO("\n".join(rest).translate(PUNCTUATION)), ndmin=2, comments=None
                )
        except ValueError:
            self._blame(rest)
        if table.size == 0:
            return np.zeros((0, 5))
        if table.shape[1] != 5 or not np.all(np.isfinite(table)):
            self._blame(rest)
        return table

    def _blame(self, rest: list[str]) -> NoReturn:
        for offset, line in enumerate(rest):
            words = line.translate(PUNCTUATION).split()
            if not words:
                continue
            try:
                good = len(words) == 5 and all(np.isfinite(float(word)) for word in words)
            except ValueError:
                good = False
            if not good:
                shown = line.strip()[:40]
                self.fail(
                    self.at + offset,
                    f"expected five numbers: matrix, block, row, column and value; got {shown!r}",
                )
        self.fail(self.at, "the entries of the matrices cannot be read")


def _problem(
    reader: _Reader, name: str, m: int, sizes: list[int], b: Array, entries: Array
) -> Problem:
    places = entries[:, :4]
    broken = np.any((places != np.rint(places)) | (np.abs(places) > MAX_SIZE), axis=1)
    _refuse(reader, broken, f"matrix, block, row and column must be integers up to {MAX_SIZE:,}")
    k, block, i, j = places.astype(np.int64).T
    value, orders = entries[:, 4], np.abs(sizes)
    _refuse(reader, (k < 0) | (k > m), f"there are {m} matrices besides number 0")
    _refuse(reader, (block < 1) | (block > len(sizes)), f"there are {len(sizes)} blocks")
    order = orders[block - 1]
    outside = (np.minimum(i, j) < 1) | (np.maximum(i, j) > order)
    _refuse(reader, outside, "a row or column is outside its block")
    diagonal = np.asarray(sizes)[block - 1] < 0
    _refuse(reader, diagonal & (i != j), "a diagonal block has no off-diagonal entries")
    first = np.concatenate([[0], np.cumsum(orders)])
    n = int(first[-1])
    i, j = i + first[block - 1] - 1, j + first[block - 1] - 1
    i, j = np.minimum(i, j), np.maximum(i, j)
    _refuse_twice(reader, (k * n + i) * n + j)
    off = i != j
    flat = np.concatenate([i * n + j, (j * n + i)[off]])
    rows, values = np.concatenate([k, k[off]]), np.concatenate([value, value[off]])
    whole = sp.csr_array(sp.coo_array((values, (rows, flat)), shape=(m + 1, n * n)))
    C = sp.coo_array(whole[[0]])
    at = np.divmod(C.coords[1].astype(np.int64), n)
    return sdp(sp.csr_array((-C.data, at), shape=(n, n)), whole[1:], b, name=name)


def _refuse(reader: _Reader, bad: NDArray[np.bool_], fault: str) -> None:
    if np.any(bad):
        full = [k for k in range(reader.at, len(reader.lines)) if reader.lines[k].strip()]
        reader.fail(full[int(np.argmax(bad))], fault)


def _refuse_twice(reader: _Reader, keys: NDArray[np.int64]) -> None:
    _, first = np.unique(keys, return_index=True)
    again = np.ones(keys.size, dtype=bool)
    again[first] = False
    _refuse(reader, again, "duplicate entry")


def _written(problem: Problem, rows: Any, bounds: Any) -> str:
    n, m = problem.order, bounds.size
    equal = bounds.lower == bounds.upper
    low = np.flatnonzero(~equal & np.isfinite(bounds.lower))
    high = np.flatnonzero(~equal & np.isfinite(bounds.upper))
    both = np.intersect1d(low, high)
    if both.size:
        raise ValueError(f"row {both[0]} has two bounds; split it into two rows to write it")
    slack = np.concatenate([low, high])
    sizes = f"{n}" if not slack.size else f"{n} -{slack.size}"
    right = np.where(np.isfinite(bounds.lower), bounds.lower, bounds.upper)
    C = sp.coo_array(sp.triu(sp.csr_array(problem.objective.C.dense())))  # type: ignore[attr-defined]
    A = sp.coo_array(rows.matrix)
    i, j = np.divmod(rows.places[A.coords[1]], n)
    upper = i <= j
    lines = [f"{m}", "1" if not slack.size else "2", sizes, " ".join(map(repr, right.tolist()))]
    lines += _lines(np.zeros(C.nnz, dtype=int), C.coords[0], C.coords[1], -C.data)
    lines += _lines(A.coords[0][upper] + 1, i[upper], j[upper], A.data[upper])
    signs = np.concatenate([-np.ones(low.size), np.ones(high.size)])
    for place, (row, sign) in enumerate(zip(slack, signs, strict=True)):
        lines.append(f"{row + 1} 2 {place + 1} {place + 1} {float(sign)!r}")
    return "\n".join(lines) + "\n"


def _lines(k: Array, i: Array, j: Array, values: Array) -> list[str]:
    return [
        f"{a} 1 {b + 1} {c + 1} {v!r}"
        for a, b, c, v in zip(k.tolist(), i.tolist(), j.tolist(), values.tolist(), strict=True)
    ]
