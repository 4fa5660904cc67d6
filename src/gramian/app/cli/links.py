"""Read files of pairs that belong together or apart, by row numbers or by ids."""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click
import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.app.cli.names import listed
from gramian.app.cli.output import bad_input, note
from gramian.app.explorer.session import ROW_COLUMNS
from gramian.app.files import ReadOptions, read_header, read_table
from gramian.kernel._links import gather

KIND = "kind"
"""The column with the kind of each pair: must-link or cannot-link."""

WORDS = {"must": ("must", "same", "together"), "cannot": ("cannot", "different", "apart")}
SIGNS = {"must": ("1", "+1", "+"), "cannot": ("-1", "0", "-")}
"""Cells of the column of kinds; a column of such words is one, whatever its name."""

Pairs = NDArray[np.int64]


@dataclass(frozen=True)
class _Links:
    """The pairs of a file as text, and the kind of each; None without such a column."""

    file: Path
    cells: NDArray[np.str_]
    kinds: NDArray[np.str_] | None
    by_row: bool
    """Whether the names of the columns say that the cells are row numbers."""


def links_of(
    must: Path | None,
    cannot: Path | None,
    ids: NDArray[Any] | None,
    rows: int,
    counter: str | None = None,
) -> dict[str, Pairs | None]:
    """The pairs of row numbers in the files of --must-link and --cannot-link.

    `counter` is a column with the row numbers from 1: links without a 0 may refer to it.
    """
    place = {} if ids is None else {str(name): row for row, name in enumerate(ids.tolist())}
    files = {"must": must, "cannot": cannot}
    read = {kind: None if file is None else _read(file, place) for kind, file in files.items()}
    found: dict[str, Pairs | None] = {}
    for kind, links in read.items():
        found[f"{kind}_link"] = None if links is None else _pairs(links, kind, ids, place, rows)
        if links is None:
            continue
        if counter is not None and ids is None and not (links.by_row or (links.cells == "0").any()):
            raise click.ClickException(
                f"{links.file} may contain row numbers, which start at 0, or numbers of the column "
                f"{counter!r}, which start at 1: add --id {counter} for the latter, or "
                f"--drop {counter} for the former"
            )
        if links.kinds is None and must == cannot:
            raise click.UsageError(
                f"{must} is given to --must-link and to --cannot-link, and has no column {KIND!r} "
                "with the kind of each pair"
            )
        other = "cannot" if kind == "must" else "must"
        unused = 0 if links.kinds is None else int((links.kinds == other).sum())
        if must != cannot and unused:
            note(f"{unused} {other}-links of {links.file} are not used: pass it to --{other}-link "
                 "too")  # fmt: skip
    if None not in (must, cannot):
        with bad_input():  # links that contradict each other
            names = None if ids is None else ids.astype(str)  # integers are numbers of rows
            gather(rows, None, found["must_link"], found["cannot_link"], names=names)
    return found


def _read(file: Path, ids: dict[str, int]) -> _Links:
    """The pairs of a table, of an array with two columns, or of the entries of a sparse matrix."""
    header = read_header(file, expected=[KIND, *ROW_COLUMNS], ids=ids)
    names = [] if header is None else header.names
    headed = None if header is None else header.named
    table = read_table(file, text=names, format=ReadOptions(header=headed))
    texts = table.texts
    kind = next((name for name in names if name.lower() == KIND), None) if headed else None
    kind = kind or next((name for name in texts if _are_kinds(texts[name][not headed :])), None)
    ends = [name for name in names if name != kind]
    X: Any = table.X
    if sp.issparse(X):
        pairs = sp.coo_array(sp.triu(X + X.T))
        return _Links(file, np.column_stack([pairs.row, pairs.col]).astype(str), None, True)
    if headed and len(ends) == 3 and ends[0] == "x0" and ends[1] != "x1":
        raise click.ClickException(
            f"{file} begins with a column that has no name, as an index has: write it without"
        )
    if len(ends) != 2:
        raise click.ClickException(
            f"{file} has {'one column' if len(names) == 1 else f'{len(names)} columns'}, where two "
            f"of a pair belong, and perhaps a column called {KIND}"
        )
    if not texts:  # an array
        return _Links(file, np.array([[f"{end:g}" for end in pair] for pair in X]), None, True)
    cells = np.column_stack([texts[name] for name in ends])
    gaps = np.array([None in pair for pair in cells.tolist()], dtype=bool)
    if gaps.any():
        raise click.ClickException(f"{file}: pair {gaps.argmax()} lacks a cell")
    unnamed = not (headed or any(c in ids or c.isdecimal() for c in cells[0]))
    first = int(unnamed and len(cells) > 1)  # after a header
    cells, kinds = cells[first:], None if kind is None else _kinds(file, texts[kind][first:])
    return _Links(file, cells.astype(str), kinds, tuple(ends) == ROW_COLUMNS)


def _kinds(file: Path, cells: NDArray[Any]) -> NDArray[np.str_]:
    """ "must" or "cannot" for each pair."""
    called = {word: kind for table in (WORDS, SIGNS) for kind in table for word in table[kind]}
    kinds = np.array([called.get(_plain(cell), "") for cell in cells])
    if not kinds.all():
        first = int((kinds == "").argmax())
        raise click.ClickException(
            f"{file}: pair {first} has the {KIND} {cells[first]!r}, where must-link or cannot-link "
            "(or same or different, 1 or -1) belongs"
        )
    return kinds


def _are_kinds(cells: NDArray[Any]) -> bool:
    """Whether a column has words for kinds only."""
    words = {word for some in WORDS.values() for word in some}
    return bool(len(cells)) and all(_plain(cell) in words for cell in cells)


def _plain(cell: Any) -> str:
    """A kind without "-link"."""
    text = str(cell or "").strip().lower()
    return text.removesuffix("link").rstrip("-_ ") or text


def _pairs(
    links: _Links, kind: str, ids: NDArray[Any] | None, place: dict[str, int], rows: int
) -> Pairs:
    """Pairs of ids as row numbers; pairs that contain no known id are row numbers already."""
    file, cells = links.file, links.cells
    some = np.ones(len(cells), dtype=bool) if links.kinds is None else links.kinds == kind
    if not some.any():
        raise click.ClickException(f"{file} has no {kind}-links")
    alike = cells[:, 0] == cells[:, 1]
    if alike.any():
        raise click.ClickException(
            f"{file} links {str(cells[alike.argmax(), 0])!r} to itself: leave this pair out"
        )
    known = np.vectorize(place.__contains__, otypes=[bool])(cells)
    whole = np.char.isdecimal(cells)
    if (links.by_row or not known.any()) and whole.all():
        if ids is not None and not links.by_row:
            note(f"{file} has no ids of --id: its numbers are used as row numbers from 0")
        return _row_numbers(file, cells, rows)[some]
    if not known.all():
        unknown = list(dict.fromkeys(cells[~(known if known.any() else whole)].tolist()))
        near = difflib.get_close_matches(unknown[0], place, n=2)
        hint = f": did you mean {' or '.join(near)}?" if near else ""
        hint = hint or ("" if ids is not None else ": name the column of such ids with --id")
        raise click.ClickException(
            f"{file} links {listed(list(map(repr, unknown)))}, which no row is called{hint}"
        )
    assert ids is not None
    names, times = np.unique(ids.astype(str), return_counts=True)
    twice = np.intersect1d(cells, names[times > 1])
    if twice.size:
        raise click.ClickException(
            f"{file} links {str(twice[0])!r}, and several rows are called so: name them apart"
        )
    return np.vectorize(place.__getitem__, otypes=[np.int64])(cells[some])


def _row_numbers(file: Path, cells: NDArray[np.str_], rows: int) -> Pairs:
    outside = [cell for cell in dict.fromkeys(cells.ravel().tolist()) if int(cell) >= rows]
    if outside:
        raise click.ClickException(
            f"{file} links row {listed(outside)}, and the last of {rows:,} rows is row {rows - 1}: "
            "they are counted from 0 without the header"
        )
    return cells.astype(np.int64)
