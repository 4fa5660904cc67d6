"""The layout of a table of cells: title, separator, header and decimal separator."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from io import SEEK_END
from itertools import chain, islice, pairwise, takewhile

from gramian.app.files._amounts import is_amount
from gramian.app.files._columns import number_of, unescaped
from gramian.app.files._errors import FileError, NameOfFile, claim, shown
from gramian.app.files._source import PIECE, Source
from gramian.common.warnings import warn

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
MISSING = ("", "NA", "na", "<NA>", "NaN", "nan", "NaT", "N/A", "n/a", "N.A.", "n.a.", "#N/A",
           "#DIV/0!", "#NAME?", "#NUM!", "#REF!", "#VALUE!",
           "null", "NULL", "None", "?", "\\N")  # fmt: skip
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")
THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
YEAR = re.compile(r"1[5-9]\d\d|20\d\d")
HTML = re.compile(r"\s*<(!doctype html|html|head|body|table)\b", re.IGNORECASE)
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


def records(path: NameOfFile, lines: Iterator[tuple[int, str]], delimiter: str) -> Iterator[Record]:
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
    if _is_header(first, later, decimal):
        return True
    named = next((name for name in expected if is_name(name) and name in cells), None)
    if named is not None and not _occurs_below(cells, later):
        return True
    if named is not None:
        why = f"it contains {shown(named)}"
    elif counts_columns(first) and not any(map(counts_columns, later)):
        why = "its numbers count the columns"
    elif are_years(first) and not any(map(are_years, later)):
        why = "its numbers are years"
    elif (chance := chance_of_new_values(first, later)) <= HEADER_CHANCE:
        why = "its texts do not occur below it"
    else:
        if chance < 1.0 and len(first) > 1:
            warn(
                f"{source.path}: the first row is read as data; if it contains the names of the "
                "columns, pass --header"
            )
        return False
    warn(
        f"{source.path}: the first row is read as a header, because {why}; --no-header reads it "
        "as data"
    )
    return True


def _occurs_below(cells: list[str], later: list[list[str]]) -> bool:
    """Whether a cell of the first row occurs in its column below."""
    pairs = (zip(cells, row, strict=False) for row in later)
    return any(cell and cell == other.strip() for cell, other in chain.from_iterable(pairs))


def counts_columns(row: list[str]) -> bool:
    """Whether a row contains equally spaced integers: 0, 1, … as in pandas, or for example years
    after a text cell."""
    cells = [cell.strip() for cell in row]
    named = not cells[0] or is_name(cells[0])
    numbers = cells[1:] if named else cells
    if len(numbers) < 3 or not all(map(str.isdecimal, numbers)):
        return False
    found = [int(number) for number in numbers]
    steps = {after - before for before, after in pairwise(found)}
    return len(steps) == 1 and (min(steps) > 0 if named else found == [*range(len(found))])


def are_years(row: list[str]) -> bool:
    """Whether the numbers of a row, at least two, are increasing years, next to names only."""
    cells = [cell.strip() for cell in row]
    numbers = [cell for cell in cells if number_of(cell) is not None]
    names = [cell for cell in cells if number_of(cell) is None]
    if len(numbers) < 2 or not all(YEAR.fullmatch(number) for number in numbers):
        return False
    if len(set(names)) < len(names) or not all(map(is_name, filter(None, names))):
        return False
    return all(before < after for before, after in pairwise(numbers))


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
    if not all(is_name(cells[place]) for place in named):
        return 1.0
    chance = 1.0
    for place in named:
        counts = Counter(row[place].strip() for row in later if place < len(row))
        if cells[place] in counts:
            return 1.0
        once = sum(count == 1 for count in counts.values())
        chance *= (once + 1) / (counts.total() + 1)
    return chance


def without_counts(source: Source) -> Source:
    """The file without a first line with the numbers of rows and features, as in scikit-learn.

    The line has the number of rows, the number of features and the names of the classes, which the
    last column counts from 0.
    """
    lines = source.lines()
    cells = [cell.strip() for cell in next(lines, (0, ""))[1].split(",")]
    size, width, *classes = cells if len(cells) > 2 else ("", "")
    if not (size.isdecimal() and width.isdecimal() and all(map(is_name, classes))):
        return source
    rows = [line.split(",") for _, line in lines if line.strip()]
    codes = {row[-1].strip() for row in rows}
    if (len(rows), {len(row) for row in rows}) != (int(size), {int(width) + 1}):
        return source
    if not codes <= {str(code) for code in range(len(classes))}:
        return source
    warn(
        f"{source.path}: the first line counts {size} rows of {width} features and names the "
        f"classes in column {width}; it is left out"
    )
    return source.after(1)


def without_empty_rows(source: Source, delimiter: str) -> Source:
    """The file without rows of separators alone at its end, as spreadsheets write them."""
    if delimiter in UNQUOTED:
        return source
    with source.open() as file:
        size = file.seek(0, SEEK_END)
        file.seek(max(source.start, size - PIECE))
        tail = file.read()
    filled = tail.rstrip(b"\r\n\t " + delimiter.encode())
    _, _, rows = tail[len(filled) :].partition(b"\n")
    count = sum(delimiter in row for row in rows.decode().splitlines())
    if not filled or not count:
        return source
    claim(source.path, float(size), f"{size:,} bytes", "remove its empty rows")
    with source.open() as file:
        content = file.read()[: -len(rows)]
    which = "row has no cell and is" if count == 1 else f"{count:,} rows have no cell and are"
    warn(f"{source.path}: the last {which} left out")
    return replace(source, content=content, start=0)


def without_comments(source: Source) -> tuple[Source, list[str]]:
    """The file without the leading lines that begin with #, and these lines."""
    texts = (line for _, line in source.lines())
    lines = list(takewhile(lambda line: line.startswith("#") or not line.strip(), texts))
    comments = [line for line in lines if line.strip()]
    rest = source.after(len(lines)) if comments else source
    if next(rest.lines(), None) is None:
        return source, []  # there is nothing else: the texts of the table begin with #
    return rest, comments


def names_above(
    comments: list[str], delimiter: str, first: list[str], later: list[list[str]], decimal: str
) -> list[str]:
    """The names in the last comment, one for every column, if no other header follows."""
    comment = comments[-1].lstrip("#").strip() if comments else ""
    names = comment.split() if delimiter == " " else [n.strip() for n in comment.split(delimiter)]
    width = max(map(len, [first, *later]))
    named = len(names) > 1 and len(names) == width and all(map(is_name, names))
    return names if named and not _is_header(first, later, decimal) else []


def without_title(
    source: Source, lines: list[tuple[int, str]], given: str | None
) -> tuple[Source, str]:
    """The file without the lines of a title above the table, and the separator of its cells."""
    whole = given or _delimiter(source.path, lines)
    rows = first_rows(source.path, iter(lines), whole)
    if len({len(row) for row in rows}) == 1 < len(rows[0]) and all(map(str.strip, rows[0])):
        return source, whole
    for count in range(1, min(TITLE, len(lines) - 2) + 1):
        delimiter = given or _delimiter(source.path, lines[count:])
        below = first_rows(source.path, iter(lines[count:]), delimiter)
        widths = {len(row) for row in below}
        if len(widths) > 1 or widths == {1}:
            continue
        above = first_rows(source.path, iter(lines[:count]), delimiter)
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
    warn(f"{path}: the first {which} treated as a title and left out")


def decimal_of(path: NameOfFile, delimiter: str, rows: list[list[str]]) -> str:
    """The decimal separator: a comma if numbers have commas and no points.

    Where the commas may also separate thousands, as in 1,234, the separator of the cells decides.
    """
    cells = [cell.strip() for row in rows for cell in row]
    commas = [cell for cell in cells if DECIMAL_COMMA.fullmatch(cell)]
    if not commas or any("." in cell and number_of(cell) is not None for cell in cells):
        return "."
    if delimiter == ";" or not all(map(THOUSANDS.fullmatch, commas)):
        return ","
    if delimiter == ",":
        return "."
    raise FileError(
        f"{path} has cells like {shown(commas[0])}, which may be thousands or decimals: write them "
        "without the comma"
    )


def _delimiter(path: NameOfFile, lines: list[tuple[int, str]]) -> str:
    """The first separator that splits all lines into equally many cells, at least two; otherwise
    one with which no line has more cells than the first, or most have as many, or a comma."""
    best = ragged = uneven = ""
    for delimiter in reversed(DELIMITERS):
        widths = [len(cells) for _, cells in records(path, iter(lines), delimiter)]
        alike = len(set(widths)) == 1 or (len(widths) > 2 and {*widths[1:]} == {widths[0] + 1})
        if min(widths) > 1 and alike:
            best = delimiter
        elif min(widths) > 1 and delimiter not in UNQUOTED:
            ragged = delimiter if max(widths) == widths[0] else ragged
            uneven = delimiter if 2 * widths.count(widths[0]) > len(widths) else uneven
    return best or ragged or uneven or ","


def _is_header(first: list[str], later: list[list[str]], decimal: str) -> bool:
    """Whether a cell of the first row is text in a column whose later cells are numbers."""
    named = [place for place, cell in enumerate(first) if is_name(cell)]
    if not later:
        return bool(named) and not any(number_of(cell) is not None for cell in first)
    return any(
        _is_number(cells[place], decimal)
        for place in named
        if not is_amount(first[place])
        for cells in later
        if place < len(cells)
    )


def _is_number(cell: str, decimal: str) -> bool:
    return number_of(cell.replace(decimal, ".")) is not None or is_amount(cell)


def is_name(cell: str) -> bool:
    text = cell.strip()
    return text not in MISSING and number_of(text) is None and any(map(str.isalpha, text))


def first_rows(
    path: NameOfFile, lines: Iterator[tuple[int, str]], delimiter: str
) -> list[list[str]]:
    """The cells of the first rows."""
    return [cells for _, cells in islice(records(path, lines, delimiter), SAMPLED)]
