"""Tables that are read whole, cell by cell: Excel sheets and lines of JSON."""

from __future__ import annotations

import datetime
import json
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gramian.app.files import _frames
from gramian.app.files._columns import Values, unique_names
from gramian.app.files._errors import FileError, NameOfFile, claim, parsing
from gramian.app.files._source import JSON_LIST, Source
from gramian.app.files._text import MISSING, layout


@dataclass(frozen=True)
class CellFrame:
    """Rows of cells in memory."""

    path: NameOfFile
    names: list[str]
    headed: bool
    cells: list[list[Any]]
    """The rows after the header, each as long as the names."""
    places: list[str]
    """Where each row is, for people."""

    @property
    def rows(self) -> int:
        return len(self.cells)

    def about(self, most: float) -> int:
        return self.rows

    def place(self, row: int) -> str:
        return self.places[row]

    def chunks(self, columns: Sequence[int], as_text: Sequence[int] = ()) -> Iterator[list[Values]]:
        """All rows at once; those `as_text` as they are spelled."""
        yield [
            _column([row[column] for row in self.cells], column in as_text) for column in columns
        ]


def excel_frame(source: Source, expected: Sequence[str] = ()) -> CellFrame:
    """The largest sheet, told where there are others, after a title where there is one."""
    claim(source.path, 20.0 * source.stored, f"{source.stored:,} bytes of cells", "write it as CSV")
    library = _frames.excel("reading Excel files")
    with parsing(source.path, "excel"):
        book = library.load_workbook(source.path, read_only=True, data_only=True)
        try:
            sheets = {
                sheet.title: _filled(
                    [(n, list(row)) for n, row in enumerate(sheet.iter_rows(values_only=True), 1)]
                )
                for sheet in book.worksheets
            }
        finally:
            book.close()
    found = _largest(source.path, {name: rows for name, rows in sheets.items() if rows})
    if not found:
        raise FileError(f"{source.path} has no cells in any sheet: is it the right file?")
    width = max(len(row) for _, row in found)
    table = [(n, [*row, *[None] * (width - len(row))]) for n, row in found]
    return _framed(source.path, table, expected, "row")


def _largest(
    path: NameOfFile, sheets: dict[str, list[tuple[int, list[Any]]]]
) -> list[tuple[int, list[Any]]]:
    """The sheet with the most cells: the first of them where several have as many."""
    if not sheets:
        return []
    name = max(sheets, key=lambda name: len(sheets[name]) * len(sheets[name][0][1]))
    others = [other for other in sheets if other != name]
    if others:
        told = ", ".join(map(repr, others[:5])) + (", …" if len(others) > 5 else "")
        warnings.warn(
            f"{path}: the sheet {name!r} is read, the largest; {told} "
            f"{'is' if len(others) == 1 else 'are'} not",
            stacklevel=2,
        )
    return sheets[name]


def _filled(rows: list[tuple[int, list[Any]]]) -> list[tuple[int, list[Any]]]:
    """The rows that are not empty, without the empty columns at their end."""
    kept = [(n, row) for n, row in rows if any(cell is not None for cell in row)]
    width = max((k + 1 for _, row in kept for k, c in enumerate(row) if c is not None), default=0)
    return [(n, row[:width]) for n, row in kept]


def json_frame(source: Source, expected: Sequence[str] = ()) -> CellFrame:
    """One object a line, or a list of them; what one has not and others have is missing."""
    claim(source.path, 8.0 * source.size, f"{source.size:,} bytes of JSON", "write it as Parquet")
    rows: list[dict[str, Any]] = []
    places: list[str] = []
    for place, found in _listed(source) if _is_list(source) else _by_line(source):
        if not isinstance(found, dict):
            raise FileError(f"{source.path}: {place} is no object with names: write it as CSV")
        rows.append(found)
        places.append(place)
    names = list(dict.fromkeys(key for row in rows for key in row))
    if not names:
        raise FileError(f"{source.path} has no rows: is it the right file?")
    nested = next((n for n in names for row in rows if isinstance(row.get(n), (dict, list))), None)
    if nested is not None:
        raise FileError(f"{source.path}: {nested!r} holds lists or objects: flatten it")
    cells = [[row.get(name) for name in names] for row in rows]
    return CellFrame(source.path, unique_names(source.path, names), True, cells, places)


def _by_line(source: Source) -> Iterator[tuple[str, Any]]:
    for number, line in source.lines():
        if line.strip():
            yield f"line {number}", _loaded(source.path, line, f": line {number}")


def _listed(source: Source) -> Iterator[tuple[str, Any]]:
    text = b"".join(source.pieces()).decode(errors="replace")
    for place, found in enumerate(_loaded(source.path, text, "")):
        yield f"object {place}", found


def _is_list(source: Source) -> bool:
    """Whether the file is one list of objects, on a line or on many."""
    first = next((line for _, line in source.lines() if line.strip()), "")
    return JSON_LIST.match(first) is not None


def _loaded(path: NameOfFile, text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise FileError(f"{path}{where} is not JSON: write it again") from None


def _framed(
    path: NameOfFile, table: list[tuple[int, list[Any]]], expected: Sequence[str], word: str
) -> CellFrame:
    spelled = [["" if cell is None else _spelled(cell) for cell in row] for _, row in table]
    skipped, headed = layout(path, spelled, expected)
    table, spelled = table[skipped:], spelled[skipped:]
    names = spelled[0] if headed else [f"x{place}" for place in range(len(spelled[0]))]
    body = table[int(headed) :]
    if not body:
        raise FileError(f"{path} has a header and no rows: is it the whole file?")
    places = [f"{word} {number}" for number, _ in body]
    return CellFrame(path, unique_names(path, names), headed, [row for _, row in body], places)


def _column(cells: list[Any], as_text: bool) -> Values:
    """Numbers where all cells are such, and else text; None where there is none."""
    given = [None if cell is None or _missing(cell) else cell for cell in cells]
    plain = all(c is None or isinstance(c, (bool, int, float)) for c in given)
    if plain and not as_text:
        return np.array([np.nan if c is None else float(c) for c in given])
    column = np.empty(len(given), dtype=object)
    column[:] = [None if c is None else _spelled(c) for c in given]
    return column


def _missing(cell: Any) -> bool:
    return isinstance(cell, str) and cell.strip() in MISSING


def _spelled(cell: Any) -> str:
    if isinstance(cell, bool):
        return str(cell)
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return str(int(cell))
    if isinstance(cell, datetime.datetime) and cell.time() == datetime.time():
        return cell.date().isoformat()
    if isinstance(cell, (datetime.date, datetime.datetime)):
        return cell.isoformat()
    return str(cell).strip()
