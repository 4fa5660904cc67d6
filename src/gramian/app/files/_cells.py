"""Excel, JSON, Parquet and Feather: tables with typed cells."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import dropwhile
from typing import Any

import numpy as np

from gramian.app.files._amounts import note_amounts, parsed
from gramian.app.files._columns import Values, listed, unique_names
from gramian.app.files._errors import FileError, NameOfFile, claim, parsing, shown
from gramian.app.files._frames import library
from gramian.app.files._layout import MISSING, layout
from gramian.app.files._source import Source
from gramian.common.warnings import warn

INDEX = re.compile(r"__index_level_\d+__")
"""A name that pandas gives the index of a frame, which is not one of its columns."""

ARROW_TYPES = ("integer", "floating", "decimal", "boolean", "null", "string", "large_string",
               "date", "timestamp")  # fmt: skip


@dataclass(frozen=True)
class TypedFrame:
    """A table whose columns are read by a function."""

    path: NameOfFile
    names: list[str]
    headed: bool
    rows: int
    layout: tuple[str, ...]
    read: Callable[[Sequence[int]], list[Any]]
    """Columns by their positions, each a list or an array of cells, None for missing cells."""
    places: list[str] | None = None
    """The location of each row, for messages; default "row" and its number."""

    def values(
        self, columns: Sequence[int], as_text: Sequence[int] = (), as_ids: Sequence[int] = ()
    ) -> list[Values]:
        read, texts = zip(columns, self.read(columns), strict=True), {*as_text, *as_ids}
        found = [_column(cells, column in texts) for column, cells in read]
        notes: dict[str, tuple[str, float]] = {}
        for place, (column, values) in enumerate(zip(columns, found, strict=True)):
            if values.dtype == object and column not in texts:
                found[place] = parsed(values, ".", self.names[column], notes)
        note_amounts(self.path, notes)
        return found

    def place(self, row: int) -> str:
        return self.places[row] if self.places else f"row {row}"


def in_memory(
    path: NameOfFile,
    names: list[str],
    headed: bool,
    rows: list[tuple[str, list[Any]]],
    header: str,
) -> TypedFrame:
    """A frame of rows, each with its place."""
    cells = [[None if _is_missing(cell) else cell for cell in row] for _, row in rows]

    def read(columns: Sequence[int]) -> list[Any]:
        for column in columns:
            if any(isinstance(row[column], list) for row in cells):
                raise _no_cells(path, names[column], "lists")
        return [[row[column] for row in cells] for column in columns]

    places = [place for place, _ in rows]
    return TypedFrame(path, unique_names(path, names), headed, len(rows), (header,), read, places)


def _no_cells(path: NameOfFile, name: str, what: str) -> FileError:
    return FileError(
        f"{path}: column {name!r} contains {what}, not numbers or text: drop it or convert it"
    )


def _is_missing(cell: Any) -> bool:
    return cell.strip() in MISSING if isinstance(cell, str) else bool(cell != cell)  # NaN


def excel_frame(source: Source, expected: Sequence[str] = ()) -> TypedFrame:
    """The requested sheet, by default the largest, without a title above the table."""
    claim(source.path, 20.0 * source.stored, f"{source.stored:,} bytes of cells", "write it as CSV")
    library("openpyxl", "reading Excel files", "excel")
    pandas = library("pandas", "reading Excel files")
    with parsing(source.path, "excel"), open(source.path, "rb") as file:
        sheets = pandas.read_excel(
            file, sheet_name=None, header=None, dtype=object, na_filter=False, engine="openpyxl"
        )
    name = _chosen(source, sheets)
    cells = sheets[name].to_numpy().tolist() if sheets else []
    table = [(f"row {n}", row) for n, row in enumerate(cells, 1) if any(c != "" for c in row)]
    if not table:
        raise FileError(f"{source.path} has no cells in its sheet: is it the right file?")
    left = _empty_left([row for _, row in table])
    table = [(place, row[left:]) for place, row in table]
    spelled = [[_spelled(cell) for cell in row] for _, row in table]
    title, headed = layout(source, spelled, expected)
    names = spelled[title] if headed else [f"x{place}" for place in range(len(spelled[0]))]
    body = table[title + headed :]
    if not body:
        raise FileError(f"{source.path} has a header and no rows: is it the whole file?")
    errors = [place for place, row in body for cell in row if cell != cell]  # NaN
    if errors:
        warn(
            f"{source.path}: {len(errors):,} cells have an error such as #N/A, the first in "
            f"{errors[0]}; they are treated as missing"
        )
    return in_memory(source.path, names, headed, body, table[title][0])


def _empty_left(rows: list[list[Any]]) -> int:
    """The number of empty columns left of the table, next to which a title may stand."""
    below = dropwhile(lambda row: sum(cell != "" for cell in row) < 2, rows)
    lefts = [next(k for k, cell in enumerate(row) if cell != "") for row in below]
    return min(lefts, default=0)


def _chosen(source: Source, sheets: dict[str, Any]) -> str:
    """The requested sheet, by name or by number from 1; by default the one with the most cells."""
    asked, names = source.options.sheet, list(sheets)
    if not names or asked in names:
        return asked or ""
    if asked is not None:
        if not (asked.isdecimal() and 1 <= int(asked) <= len(names)):
            raise FileError(f"{source.path} has no sheet {shown(asked)}: it has {listed(names)}")
        return names[int(asked) - 1]
    largest = max(names, key=lambda name: sheets[name].size)
    others = [other for other in names if other != largest and sheets[other].size]
    if others:
        warn(
            f"{source.path}: the largest sheet, {largest!r}, is read; the others are "
            f"{listed(others)} (--sheet NAME chooses one)"
        )
    return largest


def json_frame(source: Source) -> TypedFrame:
    """A table from one object per line, a list of objects, or an object of columns.

    Absent keys are missing cells; the keys of nested objects are joined by points.
    """
    path = source.path
    claim(path, 8.0 * source.size, f"{source.size:,} bytes of JSON", "write it as Parquet")
    objects = list(_objects(source))
    for place, found in objects:
        if not isinstance(found, dict):
            raise FileError(f"{path}: {place} is no object with names: write it as CSV")
    objects = [(place, _flat(path, place, row)) for place, row in objects]
    names = list(dict.fromkeys(key for _, row in objects for key in row))
    if not names:
        raise FileError(f"{path} has no rows: is it the right file?")
    rows = [(place, [row.get(name) for name in names]) for place, row in objects]
    return in_memory(path, names, True, rows, "the names in the objects")


def _objects(source: Source) -> Iterator[tuple[str, Any]]:
    """The rows and their locations, from a list of objects or from one object per line."""
    lines = [(number, line) for number, line in source.lines() if line.strip()]
    first = lines[0][1] if lines else ""
    one = len(lines) == 1 and first.lstrip().startswith("{")
    if one or re.match(r"\s*(\[\s*(\{|$)|\{\s*$)", first):
        whole = _loaded(source.path, "\n".join(line for _, line in lines), "")
        for place, found in enumerate(whole if isinstance(whole, list) else _rows(whole)):
            yield f"object {place}", found
    else:
        for number, line in lines:
            yield f"line {number}", _loaded(source.path, line, f": line {number}")


def _rows(whole: Any) -> list[Any]:
    """The rows of an object of columns, or of the only list of objects in it; otherwise itself."""
    columns = list(whole.values()) if isinstance(whole, dict) else []
    lists = [column for column in columns if isinstance(column, list)]
    tables = [cells for cells in lists if cells and all(isinstance(cell, dict) for cell in cells)]
    if len(tables) == 1:
        return tables[0]
    if lists and len(lists) == len(columns) and len({len(cells) for cells in lists}) == 1:
        return [dict(zip(whole, cells, strict=True)) for cells in zip(*lists, strict=True)]
    if not columns or not all(isinstance(column, dict) for column in columns):
        return [whole]
    names = dict.fromkeys(name for column in columns for name in column)
    return [{key: column.get(name) for key, column in whole.items()} for name in names]


def _flat(path: NameOfFile, place: str, row: dict[str, Any]) -> dict[str, Any]:
    """A row without nested objects."""
    pairs = list(row.items())
    while any(isinstance(cell, dict) for _, cell in pairs):
        levels = [{key: cell} if not isinstance(cell, dict) else
                  {f"{key}.{inner}": value for inner, value in cell.items()}
                  for key, cell in pairs]  # fmt: skip
        pairs = [pair for level in levels for pair in level.items()]
    cells = dict(pairs)
    if len(cells) < len(pairs):
        raise FileError(f"{path}: {place} has two values of one name: rename one")
    return cells


def _loaded(path: NameOfFile, text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise FileError(f"{path}{where} is not JSON: write it again") from None


def arrow_frame(source: Source) -> TypedFrame:
    """The columns of a Parquet or Feather file, each read on request."""
    path, format = source.path, source.format
    what = f"reading {format.capitalize()}"
    arrow, reader = library("pyarrow", what), library(f"pyarrow.{format}", what)
    if format == "feather":
        claim(path, 4.0 * source.stored, f"{source.stored:,} bytes", "write it as Parquet")

    def table(columns: list[str] | None) -> Any:
        with open(path, "rb") as file:
            if format == "feather":
                return reader.read_table(file, columns=columns, use_threads=False, memory_map=False)
            return reader.ParquetFile(file).read(columns=columns, use_threads=False)

    with parsing(path, format), open(path, "rb") as file:
        if format == "feather":
            whole = table(None)
            names, rows = list(whole.schema.names), whole.num_rows
        else:
            opened = reader.ParquetFile(file)
            names, rows = list(opened.schema_arrow.names), opened.metadata.num_rows
    names = [name for name in names if not INDEX.fullmatch(name)]
    if not names or rows < 1:
        raise FileError(
            f"{path} has {rows:,} rows and the columns {listed(names) or 'none'}: is it the right "
            "file?"
        )
    if unique_names(path, names) != names:
        raise FileError(f"{path} has a column with an empty name: name it")

    def read(columns: Sequence[int]) -> list[Any]:
        wanted = [names[column] for column in columns]
        with parsing(path, format):
            found = table(wanted)
            if found.num_rows != rows:
                raise FileError(
                    f"{path} says that it has {rows:,} rows and has {found.num_rows:,}: write it "
                    "again"
                )
            return [_from_arrow(path, arrow, found.column(name), name) for name in wanted]

    return TypedFrame(path, names, True, rows, ("the schema of the file",), read)


def _from_arrow(path: NameOfFile, arrow: Any, column: Any, name: str) -> Any:
    types, kind = arrow.types, column.type
    if types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    if not any(getattr(types, f"is_{known}")(kind) for known in ARROW_TYPES):
        raise _no_cells(path, name, str(kind))
    if types.is_boolean(kind):
        column = column.cast(arrow.float64(), safe=False)  # 0 and 1, with and without gaps
    if types.is_date(kind) or types.is_timestamp(kind):
        return column.cast(arrow.timestamp("us"), safe=False).to_pylist()
    return column.to_numpy()


def _column(cells: Any, as_text: bool) -> Values:
    """Numbers if all cells are numbers, otherwise text; None for missing cells."""
    kind = cells.dtype.kind if isinstance(cells, np.ndarray) else "O"
    if kind in "iu" and cells.max(initial=0) < 2**63:
        return np.asarray(cells, dtype=np.int64)
    if kind != "O":
        return np.asarray(cells, dtype=np.float64)
    plain = all(c is None or isinstance(c, (bool, int, float)) for c in cells)
    if plain and not as_text:
        return np.array([np.nan if c is None else float(c) for c in cells])
    column = np.empty(len(cells), dtype=object)
    column[:] = [None if c is None else _spelled(c) for c in cells]
    return column


def _spelled(cell: Any) -> str:
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**53:
        return str(int(cell))
    if isinstance(cell, datetime.datetime):
        return cell.isoformat(" ").removesuffix(" 00:00:00")
    return str(cell).strip()
