"""CSV and TSV: detection of the separator and the header; pandas reads the columns."""

from __future__ import annotations

import csv
import re
import warnings
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice, pairwise, takewhile
from typing import Any

import numpy as np

from gramian.app.files import _source
from gramian.app.files._columns import Values, compact, number_of, unescaped, unique_names
from gramian.app.files._errors import FileError, NameOfFile, parsing, shown
from gramian.app.files._frames import library
from gramian.app.files._source import Source

DELIMITERS = {
    "::": "::",
    "\t": "tabs",
    ";": "semicolons",
    "|": "bars",
    ",": "commas",
    " ": "blanks",
}
"""Separators of cells and their names, in the order of preference; a space is a run of blanks."""

UNQUOTED = (" ", "::")
MISSING = ("", "NA", "NaN", "nan", "N/A", "n/a", "#N/A", "null", "NULL", "None", "?")
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
SEP = re.compile(r"sep=(.)", re.IGNORECASE)
SAMPLED = 100
"""Number of rows used to detect the layout."""

TITLE = 8
"""Maximum number of lines of a title."""

HEADER_CHANCE = 0.01
"""Largest probability, under the assumption that the first row is data, at which a first row of
texts that do not occur below is interpreted as a header: at most 1 % of such rows are misread."""

Record = tuple[int, list[str]]
"""The number of a line, and the cells of the row that starts there."""


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
            raise FileError(f"{self.path} ends in the middle of line {line}: is it the whole file?")
        if short:
            many = f"{len(short)} rows end" if len(short) > 1 else "a row ends"
            warnings.warn(
                f"{self.path}: {many} before the last column, the first in line {short[0]}; the "
                "cells after its end are missing",
                stacklevel=2,
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
        return islice(_records(self.path, self.source.lines(), self.delimiter), self._heads, None)

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
        found: dict[int, Values] = {}
        for column in dict.fromkeys(columns):  # texts take much memory: one column at a time
            decimal = "." if column in texts else self.decimal
            values = _values(frame.pop(step * column), decimal)
            found[column] = compact(values) if column in as_ids else values
        return [found[column] for column in columns]


def text_frame(
    source: Source, expected: Sequence[str] = (), ids: Collection[str] = ()
) -> TextFrame:
    """Detect the layout of a file from its first lines.

    A first line with one of the names `expected` is a header; one whose cells are all `ids` is not.
    """
    path = source.path
    said = SEP.fullmatch(
        next(source.lines(), (0, ""))[1].strip('"')
    )  # as Excel writes and reads it
    source, comments = _uncommented(source if said is None else source.after(1))
    source = _without_counts(source)
    lines = [(n, line) for n, line in islice(source.lines(), SAMPLED) if line.strip()]
    if not lines:
        raise FileError(f"{path} is empty, or begins with blank lines only: fetch it again")
    given = said[1] if said else "\t" if source.format == "tsv" else None
    source, delimiter = _untitled(source, lines, given)
    first, *later = _cells(path, source.lines(), delimiter)
    decimal = _decimal(path, delimiter, later)
    above = _names_above(comments, delimiter, first, later, decimal)
    if count := len(comments) - bool(above):
        which = "line begins with # and is" if count == 1 else f"{count} lines begin with # and are"
        warnings.warn(f"{path}: the first {which} left out", stacklevel=2)
    if above:
        return TextFrame(source, delimiter, True, unique_names(path, above), decimal, above=True)
    short = len(later) > 1 and {len(row) for row in later} == {len(first) + 1}
    if short and all(map(_is_name, first)):  # R's write.table does not name the row names
        first = ["", *first]
    headed = has_header(source, first, later, expected, decimal, ids)
    names = list(map(unescaped, first)) if headed else [f"x{k}" for k in range(len(first))]
    return TextFrame(source, delimiter, headed, unique_names(path, names), decimal)


def has_header(
    source: Source,
    first: list[str],
    later: list[list[str]],
    expected: Sequence[str],
    decimal: str = ".",
    ids: Collection[str] = (),
) -> bool:
    """Whether the first row of a table contains the names of its columns."""
    if source.options.header is not None:
        return source.options.header
    cells = [unescaped(cell.strip()) for cell in first]
    if all(cell in ids for cell in cells):
        return False
    if any(_is_name(name) and name in cells for name in expected):
        return True
    if _is_header(first, later, decimal):
        return True
    if counts_columns(first) and not any(map(counts_columns, later)):
        why = "its numbers count the columns"
    elif chance_of_new_values(first, later) <= HEADER_CHANCE:
        why = "its texts do not occur below it"
    else:
        return False
    warnings.warn(
        f"{source.path}: the first row is taken for a header, because {why}; --no-header reads it "
        "as data",
        stacklevel=2,
    )
    return True


def counts_columns(row: list[str]) -> bool:
    """Whether a row contains equally spaced integers: 0, 1, … as in pandas, or for example years
    after a text cell."""
    cells = [cell.strip() for cell in row]
    named = not cells[0] or _is_name(cells[0])
    numbers = cells[1:] if named else cells
    if len(numbers) < 3 or not all(map(str.isdecimal, numbers)):
        return False
    found = [int(number) for number in numbers]
    steps = {after - before for before, after in pairwise(found)}
    return len(steps) == 1 and (min(steps) > 0 if named else found == [*range(len(found))])


def chance_of_new_values(first: list[str], later: list[list[str]]) -> float:
    """The probability that a first row of data has no value of the rows below, in any text column.

    By Good and Turing's estimate a row has a new value with the probability (s + 1)/(n + 1), where
    s of the n values below occur once. 1 if the row cannot be a header: it contains a number, a
    duplicate text, or a value that occurs below.
    """
    cells = [cell.strip() for cell in first]
    named = [place for place, cell in enumerate(cells) if cell]
    if not named or len({cells[k] for k in named}) < len(named) or len(named) < len(cells) - 1:
        return 1.0
    if not all(_is_name(cells[place]) for place in named):
        return 1.0
    chance = 1.0
    for place in named:
        counts = Counter(row[place].strip() for row in later if place < len(row))
        if cells[place] in counts:
            return 1.0
        once = sum(count == 1 for count in counts.values())
        chance *= (once + 1) / (counts.total() + 1)
    return chance


def _without_counts(source: Source) -> Source:
    """The file without a first line with the numbers of rows and features, as in scikit-learn.

    The line has the number of rows, the number of features and the names of the classes, which the
    last column counts from 0.
    """
    lines = source.lines()
    cells = [cell.strip() for cell in next(lines, (0, ""))[1].split(",")]
    size, width, *classes = cells if len(cells) > 2 else ("", "")
    if not (size.isdecimal() and width.isdecimal() and all(map(_is_name, classes))):
        return source
    rows = [line.split(",") for _, line in lines if line.strip()]
    codes = {row[-1].strip() for row in rows}
    if (len(rows), {len(row) for row in rows}) != (int(size), {int(width) + 1}):
        return source
    if not codes <= {str(code) for code in range(len(classes))}:
        return source
    warnings.warn(
        f"{source.path}: the first line counts {size} rows of {width} features and names the "
        f"classes in column {width}; it is left out",
        stacklevel=2,
    )
    return source.after(1)


def _uncommented(source: Source) -> tuple[Source, list[str]]:
    """The file without the leading lines that begin with #, and these lines."""
    texts = (line for _, line in source.lines())
    lines = list(takewhile(lambda line: line.startswith("#") or not line.strip(), texts))
    comments = [line for line in lines if line.strip()]
    rest = source.after(len(lines)) if comments else source
    if next(rest.lines(), None) is None:
        return source, []  # there is nothing else: the texts of the table begin with #
    return rest, comments


def _names_above(
    comments: list[str], delimiter: str, first: list[str], later: list[list[str]], decimal: str
) -> list[str]:
    """The names in the last comment, one for every column, if no other header follows."""
    comment = comments[-1].lstrip("#").strip() if comments else ""
    names = comment.split() if delimiter == " " else [n.strip() for n in comment.split(delimiter)]
    width = max(map(len, [first, *later]))
    named = len(names) > 1 and len(names) == width and all(map(_is_name, names))
    return names if named and not _is_header(first, later, decimal) else []


def _untitled(
    source: Source, lines: list[tuple[int, str]], given: str | None
) -> tuple[Source, str]:
    """The file without the lines of a title above the table, and the separator of its cells."""
    whole = given or _delimiter(source.path, lines)
    rows = _cells(source.path, iter(lines), whole)
    if len({len(row) for row in rows}) == 1 < len(rows[0]) and all(map(str.strip, rows[0])):
        return source, whole
    for count in range(1, min(TITLE, len(lines) - 2) + 1):
        delimiter = given or _delimiter(source.path, lines[count:])
        below = _cells(source.path, iter(lines[count:]), delimiter)
        widths = {len(row) for row in below}
        if len(widths) > 1 or widths == {1}:
            continue
        above = _cells(source.path, iter(lines[:count]), delimiter)
        if not all(_is_title(row, max(widths)) for row in above):
            break
        if _begins(below):
            _warn_of_title(source.path, count)
            return source.after(lines[count][0] - source.skipped - 1), delimiter
    return source, whole


def layout(source: Source, rows: list[list[str]], expected: Sequence[str]) -> tuple[int, bool]:
    """The number of rows that are a title, and whether the next row is a header."""
    count = 0
    while count < min(TITLE, len(rows) - 2) and _is_title(rows[count], len(rows[0])):
        count += 1
    if count and _begins(rows[count : count + SAMPLED]):
        _warn_of_title(source.path, count)
    else:
        count = 0
    first, *later = rows[count : count + SAMPLED]
    return count, has_header(source, first, later, expected)


def _is_title(cells: list[str], width: int) -> bool:
    """Whether a row has one or two nonempty cells of text, above a table of more columns."""
    filled = [cell for cell in cells if cell.strip()]
    few = len(filled) <= 1 or (len(cells) != width and len(filled) <= 2)
    numeric = any(re.search(r"\d", cell) and not any(map(str.isalpha, cell)) for cell in filled)
    return few and width > max(1, len(filled)) and not numeric


def _begins(rows: list[list[str]]) -> bool:
    """Whether a table begins here: a header without empty cells, above numbers."""
    first, *later = rows
    filled = all(cell.strip() for cell in first)
    return filled and any(_is_header(first, later, decimal) for decimal in ".,")


def _warn_of_title(path: NameOfFile, count: int) -> None:
    which = "line is" if count == 1 else f"{count} lines are"
    warnings.warn(f"{path}: the first {which} taken for a title and left out", stacklevel=2)


def _decimal(path: NameOfFile, delimiter: str, rows: list[list[str]]) -> str:
    """The decimal separator: a comma if numbers have commas and no points. If cells are separated
    by commas, such numbers are quoted."""
    cells = [cell.strip() for row in rows for cell in row]
    commas = [cell for cell in cells if DECIMAL_COMMA.fullmatch(cell)]
    if not commas or any("." in cell and number_of(cell) is not None for cell in cells):
        return "."
    if delimiter == "," and all(map(THOUSANDS.fullmatch, commas)):
        raise FileError(
            f"{path} has cells like {shown(commas[0])}, which may be thousands or decimals: write "
            "them without the comma"
        )
    return ","


def _delimiter(path: NameOfFile, lines: list[tuple[int, str]]) -> str:
    """The first separator that splits all lines into equally many cells, at least two; otherwise
    one with which no line has more cells than the first, or a comma."""
    best = ragged = ""
    for delimiter in reversed(DELIMITERS):
        widths = [len(cells) for _, cells in _records(path, iter(lines), delimiter)]
        alike = len(set(widths)) == 1 or (len(widths) > 2 and {*widths[1:]} == {widths[0] + 1})
        if min(widths) > 1 and alike:
            best = delimiter
        elif min(widths) > 1 and max(widths) == widths[0] and delimiter not in UNQUOTED:
            ragged = delimiter
    return best or ragged or ","


def _is_header(first: list[str], later: list[list[str]], decimal: str) -> bool:
    """Whether a cell of the first row is text in a column whose later cells are numbers."""
    named = [place for place, cell in enumerate(first) if _is_name(cell)]
    if not later:
        return bool(named) and not any(number_of(cell) is not None for cell in first)
    return any(
        number_of(cells[place].replace(decimal, ".")) is not None
        for place in named
        for cells in later
        if place < len(cells)
    )


def _is_name(cell: str) -> bool:
    text = cell.strip()
    return text not in MISSING and number_of(text) is None and any(map(str.isalpha, text))


def _cells(path: NameOfFile, lines: Iterator[tuple[int, str]], delimiter: str) -> list[list[str]]:
    """The cells of the first rows."""
    return [cells for _, cells in islice(_records(path, lines, delimiter), SAMPLED)]


def _records(
    path: NameOfFile, lines: Iterator[tuple[int, str]], delimiter: str
) -> Iterator[Record]:
    """The cells of each line that is not blank; a quoted cell may continue on the next lines."""
    blank = " " if delimiter == "\t" else None
    for number, line in lines:
        if not line.strip(blank):
            continue
        if '"' not in line or delimiter == "::":
            yield number, line.split(None if delimiter == " " else delimiter)
            continue
        more = chain([line], (later for _, later in lines))
        if delimiter == " ":
            more = chain([" ".join(line.split("\t")).strip()])
        try:
            ended = (text + "\n" for text in more)
            yield number, next(csv.reader(ended, delimiter=delimiter, skipinitialspace=True))
        except csv.Error:
            raise FileError(
                f"{path}: a cell of line {number} has more than {csv.field_size_limit():,} "
                "characters: is a quote never closed?"
            ) from None


def _values(column: Any, decimal: str) -> Values:
    """Numbers unchanged; everything else as text, None for missing cells.

    The apostrophe of escaped formulas is removed. A number among texts gets a decimal point.
    """
    if column.dtype.kind in "iuf":
        return np.asarray(column)
    cells: Values = column.to_numpy(dtype=object, na_value=None, copy=True)
    if column.dtype != "str" and not all(cell is None or type(cell) is str for cell in cells):
        cells[:] = [None if cell is None else str(cell) for cell in cells]
    for quoted in np.flatnonzero(column.astype(str).str.startswith("'").to_numpy(dtype=bool)):
        cells[quoted] = unescaped(cells[quoted])
    if decimal == ",":
        for place, cell in enumerate(cells):
            if cell is not None and DECIMAL_COMMA.fullmatch(cell.strip()):
                cells[place] = cell.replace(",", ".")
    return cells
