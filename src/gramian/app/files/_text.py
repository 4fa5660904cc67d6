"""CSV and TSV: the columns of a file, read by pandas."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from gramian.app.files import _source
from gramian.app.files._amounts import note_amounts, parsed
from gramian.app.files._columns import (
    Values,
    compact,
    unescaped,
    unique_names,
)
from gramian.app.files._errors import FileError, NameOfFile, parsing
from gramian.app.files._frames import library
from gramian.app.files._layout import (
    DECIMAL_COMMA,
    DELIMITERS,
    HTML,
    MISSING,
    SAMPLED,
    SEP,
    UNQUOTED,
    Record,
    decimal_of,
    first_rows,
    has_header,
    is_name,
    names_above,
    records,
    without_comments,
    without_counts,
    without_empty_rows,
    without_title,
)
from gramian.app.files._source import Source
from gramian.common.warnings import warn


@dataclass(frozen=True)
class TextFrame:
    """A file of cells, with or without a header."""

    source: Source
    delimiter: str
    headed: bool
    names: list[str]
    decimal: str = "."
    above: bool = False
    """Whether the names come from a comment above the table."""

    @property
    def path(self) -> NameOfFile:
        return self.source.path

    @property
    def layout(self) -> tuple[str, ...]:
        line = self.source.skipped + 1
        where = f"line {line}" if not self.above else f"the comment above line {line}"
        decimal = ", decimal commas" if self.decimal == "," else ""
        cells = f"cells separated by {DELIMITERS.get(self.delimiter, self.delimiter)}{decimal}"
        return where, f"{cells}, {self.source.encoding.upper()}"

    @cached_property
    def rows(self) -> int:
        """The number of rows, with a warning if some are shorter than the first."""
        return self._even_rows() or self._checked_rows()

    def _even_rows(self) -> int | None:
        """The number of rows if all lines have equally many cells without quotes, otherwise None.

        Counting separators in blocks of the file takes a sixth of the time of splitting lines.
        """
        mark, width, rows = self.delimiter.encode(), len(self.names) - 1, -self._heads
        if mark == b" " or width == 0:
            return None
        sep = 0 if mark == b"::" else ord(mark)
        with self.source.open() as file:
            while block := file.read(_source.PIECE) + file.readline():
                if b'"' in block or b"\0" in block or block.count(b"\r") != block.count(b"\r\n"):
                    return None
                if mark == b"::":
                    block = block.replace(mark, b"\0")
                    if b":" in block:
                        return None
                codes = np.frombuffer(block.rstrip(b"\n") + b"\n", dtype=np.uint8)
                ends, marks = np.flatnonzero(codes == ord("\n")), np.flatnonzero(codes == sep)
                if (np.diff(np.searchsorted(marks, ends), prepend=0) != width).any():
                    return None
                rows += ends.size
        return rows

    def _checked_rows(self) -> int:
        """The number of rows, counted line by line."""
        width, rows, line = len(self.names), 0, 0
        short: list[int] = []
        for line, cells in self.records():
            if len(cells) != width:
                # the missing cells are the last ones, unless cells are separated by blanks
                early = self.headed and self.delimiter not in UNQUOTED and 1 < len(cells) < width
                if not early:
                    raise self._unlike(line, len(cells))
                short.append(line)
            if self.delimiter == "::" and any(":" in cell for cell in cells):
                raise FileError(
                    f"{self.path}: line {line} has a colon in a cell: separate cells by tabs"
                )
            rows += 1
        if rows == 0:
            raise FileError(f"{self.path} has a header and no rows: is it the whole file?")
        if short == [line]:
            raise FileError(
                f"{self.path}: the last line, {line}, has {len(cells)} cells where the first has "
                f"{width}: is it the whole file, or a text below the table, to be removed?"
            )
        if short:
            many = f"{len(short)} rows end" if len(short) > 1 else "a row ends"
            warn(
                f"{self.path}: {many} before the last column, the first in line {short[0]}; the "
                "cells after its end are missing"
            )
        return rows

    def _unlike(self, line: int, cells: int) -> FileError:
        """The error for a row with another number of cells than the first."""
        widths = {len(row) for _, row in islice(self.records(), SAMPLED)}
        first = f"line {self.source.skipped + 1}" if self.source.skipped else "the first"
        remedy = "; make the rows alike"
        if self.headed and widths == {cells}:
            remedy = ", which is no header of the rest: name every column there, or take it out"
        message = f"{self.path}: line {line} has {cells} cells where {first} has {len(self.names)}"
        return FileError(message + remedy)

    @property
    def _heads(self) -> int:
        """The number of header rows of the table, 0 or 1."""
        return int(self.headed and not self.above)

    def records(self) -> Iterator[Record]:
        """The rows after the header."""
        return islice(records(self.path, self.source.lines(), self.delimiter), self._heads, None)

    def place(self, row: int) -> str:
        return f"line {next(islice(self.records(), row, None))[0]}"

    def values(
        self, columns: Sequence[int], as_text: Sequence[int] = (), as_ids: Sequence[int] = ()
    ) -> list[Values]:
        rows, texts = self.rows, {*as_text, *as_ids}
        pandas = library("pandas", f"reading {self.source.format.upper()}")
        version = tuple(int(part) for part in pandas.__version__.split(".")[:2])
        exact = {} if version >= (3, 1) else {"float_precision": "round_trip"}
        step = len(self.delimiter)  # "::" is read as two separators, with an empty cell between
        with parsing(self.path, self.source.format), self.source.open() as file:
            frame = pandas.read_csv(
                file,
                sep=r"\s+" if self.delimiter == " " else self.delimiter[0],
                header=0 if self._heads else None,
                names=range(step * (len(self.names) - 1) + 1),
                usecols=[step * column for column in columns],
                dtype={step * column: str for column in texts},
                index_col=False,
                keep_default_na=False,
                na_values=list(MISSING),
                skipinitialspace=True,
                decimal=self.decimal,
                quoting=csv.QUOTE_NONE if self.delimiter == "::" else csv.QUOTE_MINIMAL,
                low_memory=True,
                **exact,
            )
        if len(frame) != rows:
            raise FileError(
                f"{self.path} has {rows:,} or {len(frame):,} rows, depending on how its quotes and "
                "blanks are read: write it again with plain quotes"
            )
        series = dict(frame.items())  # to delete columns of the frame takes quadratic time
        del frame
        found: dict[int, Values] = {}
        notes: dict[str, tuple[str, float]] = {}
        for column in dict.fromkeys(columns):  # texts take much memory: one column at a time
            values = _values(series.pop(step * column))
            if values.dtype == object and column not in texts:
                values = self._parsed(values, self.names[column], notes)
            found[column] = compact(values) if column in as_ids else values
        note_amounts(self.path, notes)
        return [found[column] for column in columns]

    def _parsed(self, texts: Values, name: str, notes: dict[str, tuple[str, float]]) -> Values:
        """Texts as numbers where all are; otherwise numbers among them get a decimal point."""
        read = parsed(texts, self.decimal, name, notes)
        if self.decimal == "," and read.dtype == object:
            for place, cell in enumerate(read):
                if cell is not None and DECIMAL_COMMA.fullmatch(cell.strip()):
                    read[place] = cell.replace(",", ".")
        return read


def text_frame(
    source: Source, expected: Sequence[str] = (), ids: Collection[str] = ()
) -> TextFrame:
    """Detect the layout of a file from its first lines.

    A first line with one of the names `expected` is a header; one whose cells are all `ids` is not.
    """
    path = source.path
    beginning = next(source.lines(), (0, ""))[1]
    if HTML.match(beginning):
        raise FileError(f"{path} is an HTML page and no table: download the file itself")
    said = SEP.fullmatch(beginning.strip('"'))  # as Excel writes and reads it
    source, comments = without_comments(source if said is None else source.after(1))
    source = without_counts(source)
    lines = [(n, line) for n, line in islice(source.lines(), SAMPLED) if line.strip()]
    if not lines:
        raise FileError(f"{path} is empty, or begins with blank lines only: fetch it again")
    given = said[1] if said else "\t" if source.format == "tsv" else None
    source, delimiter = without_title(source, lines, given)
    source = without_empty_rows(source, delimiter)
    first, *later = first_rows(path, source.lines(), delimiter)
    decimal = decimal_of(path, delimiter, later)
    above = names_above(comments, delimiter, first, later, decimal)
    if count := len(comments) - bool(above):
        which = "line begins with # and is" if count == 1 else f"{count} lines begin with # and are"
        warn(f"{path}: the first {which} left out")
    if above:
        return TextFrame(source, delimiter, True, unique_names(path, above), decimal, above=True)
    short = len(later) > 1 and {len(row) for row in later} == {len(first) + 1}
    if short and all(map(is_name, first)):  # R's write.table does not name the row names
        first = ["", *first]
    headed = has_header(source, first, later, expected, decimal, ids)
    names = list(map(unescaped, first)) if headed else [f"x{k}" for k in range(len(first))]
    return TextFrame(source, delimiter, headed, unique_names(path, names), decimal)


def _values(column: Any) -> Values:
    """Numbers unchanged; everything else as text, None for missing cells.

    The apostrophe of escaped formulas is removed.
    """
    if column.dtype.kind in "iuf":
        return np.asarray(column)
    cells: Values = column.to_numpy(dtype=object, na_value=None, copy=True)
    if column.dtype != "str" and not all(cell is None or type(cell) is str for cell in cells):
        cells[:] = [None if cell is None else str(cell) for cell in cells]
    for quoted in np.flatnonzero(column.astype(str).str.startswith("'").to_numpy(dtype=bool)):
        cells[quoted] = unescaped(cells[quoted])
    return cells
