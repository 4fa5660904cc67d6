"""Read files of pairs that belong together or apart, by row numbers or by ids."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray

from gramian.app.cli.output import note
from gramian.app.files import read_header, read_pairs, read_ratings, read_table

KIND = "kind"
"""The column with the kind of each pair: must-link or cannot-link."""

Pairs = NDArray[np.int64]


def links_of(
    must: Path | None, cannot: Path | None, ids: NDArray[Any] | None, rows: int
) -> dict[str, Pairs | None]:
    """The pairs of row numbers in the files of --must-link and --cannot-link."""
    if must is not None and must == cannot and _kind_column(must) is None:
        raise click.UsageError(
            f"{must} is given to --must-link and to --cannot-link, and has no column {KIND!r} with "
            "the kind of each pair"
        )
    files = {"must": must, "cannot": cannot}
    found = {kind: _pairs(file, kind, ids, rows) for kind, file in files.items()}
    for kind, file in files.items() if must != cannot else ():
        column = None if file is None else _kind_column(file)
        if file is not None and column is not None:
            other = "cannot" if kind == "must" else "must"
            count = len(_of_kind(file, column, other))
            if count:
                note(f"{count} {other}-links of {file} are not used: pass it to --{other}-link too")
    return {f"{kind}_link": pairs for kind, pairs in found.items()}


def _pairs(file: Path | None, kind: str, ids: NDArray[Any] | None, rows: int) -> Pairs | None:
    if file is None:
        return None
    column = _kind_column(file)
    if column is not None:
        pairs = _by_id(file, _of_kind(file, column, kind), ids, rows)
    elif ids is not None:
        place = {str(name) for name in ids.tolist()}
        first, second, _ = read_ratings(file, rated=False, ids=place)
        cells = np.column_stack([first.astype(str), second.astype(str)])
        if len(cells) > 1 and not any(cell in place or cell.isdecimal() for cell in cells[0]):
            cells = cells[1:]  # a header
        pairs = _by_id(file, cells, ids, rows)
    else:
        pairs, weights = read_pairs(file)
        if weights is not None:
            raise click.ClickException(
                f"{file} has three columns, where two row numbers belong, and perhaps a column "
                f"called {KIND}"
            )
    if not len(pairs):
        raise click.ClickException(f"{file} has no {kind}-links")
    outside = pairs[pairs >= rows]
    if outside.size:
        raise click.ClickException(
            f"{file} links row {outside[0]}, and the last of {rows:,} rows is row {rows - 1}: they "
            "are counted from 0 without the header"
        )
    return pairs


def _kind_column(file: Path) -> str | None:
    """The name of the column of kinds; None without one."""
    header = read_header(file, expected=[KIND])
    if header is None or not header.named:
        return None
    return next((name for name in header.names if name.lower() == KIND), None)


def _of_kind(file: Path, column: str, kind: str) -> NDArray[np.str_]:
    """The pairs of one kind, as text."""
    header = read_header(file, expected=[KIND])
    names = [name for name in header.names if name != column] if header is not None else []
    if len(names) != 2:
        raise click.ClickException(
            f"{file} has the columns {', '.join([*names, column])}, where two of a pair and "
            f"{KIND} belong"
        )
    cells = read_table(file, text=[*names, column]).texts
    kinds = [str(cell or "").lower().removesuffix("link").rstrip("-_ ") for cell in cells[column]]
    wrong = next((k for k, cell in enumerate(kinds) if cell not in ("must", "cannot")), None)
    if wrong is not None:
        raise click.ClickException(
            f"{file}: pair {wrong} has the {KIND} {cells[column][wrong]!r}, where must-link or "
            "cannot-link belongs"
        )
    chosen = np.array([cell == kind for cell in kinds])
    return np.column_stack([cells[name][chosen].astype(str) for name in names])


def _by_id(file: Path, pairs: NDArray[Any], ids: NDArray[Any] | None, rows: int) -> Pairs:
    """Pairs of ids as row numbers; pairs that contain no known id are row numbers already."""
    place = {} if ids is None else {str(name): row for row, name in enumerate(ids.tolist())}
    known = np.array([[cell in place for cell in pair] for pair in pairs]).reshape(pairs.shape)
    numbers = all(cell.isdecimal() for cell in pairs.ravel())
    if not known.any() and numbers:
        if ids is not None and pairs.size:
            note(f"{file} has no ids of --id: its numbers are taken for those of rows, from 0")
        return pairs.astype(np.int64)
    if not known.all():
        unknown = str(pairs[~known][0])
        near = difflib.get_close_matches(unknown, place, n=2)
        hint = f": did you mean {' or '.join(near)}?" if near else ""
        hint = hint or ("" if ids is not None else ": name the column of such ids with --id")
        raise click.ClickException(f"{file} links {unknown!r}, which no row is called{hint}")
    assert ids is not None
    names, times = np.unique(ids.astype(str), return_counts=True)
    twice = np.intersect1d(pairs, names[times > 1])
    if twice.size:
        raise click.ClickException(
            f"{file} links {str(twice[0])!r}, and several rows are called so: name them apart"
        )
    return np.array([[place[cell] for cell in pair] for pair in pairs], dtype=np.int64)
