"""CSV and TSV: what parts the cells, whether there is a header, the cells some rows at a time."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, islice
from typing import Any

import numpy as np

from gramian.files import _frames
from gramian.files._columns import Values, number_of, unique_names
from gramian.files._errors import FileError, NameOfFile, parsing
from gramian.files._source import Source

DELIMITERS = ("::", "\t", ";", "|", ",", " ")
"""What parts cells, in the order they are tried; a space stands for any run of blanks."""

UNQUOTED = (" ", "::")
MISSING = ("", "NA", "NaN", "nan", "N/A", "n/a", "#N/A", "null", "NULL", "None", "?")
DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+(?:[eE][+-]?\d+)?")
SAMPLED = 100
CHUNK_CELLS = 1 << 20

Record = tuple[int, list[str]]
"""The number of a line, and the cells that begin there."""


@dataclass(frozen=True)
class TextFrame:
    """A file of cells, with or without a header."""

    source: Source
    delimiter: str
    headed: bool
    names: list[str]
    decimal: str = "."

    @property
    def path(self) -> NameOfFile:
        return self.source.path

    def about(self, most: float) -> int:
        """The number of lines; beyond `most` by the length of those so far."""
        lines = read = 0
        for piece in self.source.pieces():
            lines += piece.count(b"\n")
            read += len(piece)
            if lines > most:
                return lines * self.source.size // read
        return lines

    @cached_property
    def rows(self) -> int:
        """The number of rows, each of as many cells as the first."""
        width, rows = len(self.names), 0
        for line, cells in self.records():
            if len(cells) != width:
                raise FileError(
                    f"{self.path}: line {line} has {len(cells)} cells where the first has {width}; "
                    "make the rows alike"
                )
            if self.delimiter == "::" and any(":" in cell for cell in cells):
                raise FileError(f"{self.path}: line {line} has a colon in a cell: part it by tabs")
            rows += 1
        if rows == 0:
            raise FileError(f"{self.path} has a header and no rows: is it the whole file?")
        return rows

    def records(self) -> Iterator[Record]:
        """The rows after the header."""
        return islice(
            _records(self.path, self.source.lines(), self.delimiter), int(self.headed), None
        )

    def place(self, row: int) -> str:
        """Where a row is, for people."""
        return f"line {next(islice(self.records(), row, None))[0]}"

    def chunks(self, columns: Sequence[int], as_text: Sequence[int] = ()) -> Iterator[list[Values]]:
        """Some columns of some rows after others; those `as_text` as they are spelled."""
        told = 0
        with self.source.open() as file, self._parser(file, columns, as_text) as parser:
            while told < self.rows:
                with parsing(self.path, self.source.format):
                    chunk = next(parser)
                told += len(chunk)
                if told > self.rows:
                    raise self._lost(told)
                yield [_values(chunk[self._step * column]) for column in columns]
            with parsing(self.path, self.source.format):
                if next(parser, None) is not None:
                    raise self._lost(told)

    def _lost(self, told: int) -> FileError:
        return FileError(
            f"{self.path} has {self.rows:,} rows or {told:,} and more, by the way its quotes and "
            "blanks are read: write it again with plain quotes"
        )

    def _parser(self, file: Any, columns: Sequence[int], as_text: Sequence[int]) -> Any:
        pandas = _frames.pandas(f"reading {self.source.format.upper()}")
        fields = self._step * (len(self.names) - 1) + 1
        with parsing(self.path, self.source.format):
            return pandas.read_csv(
                file,
                sep=r"\s+" if self.delimiter == " " else self.delimiter[0],
                header=0 if self.headed else None,
                names=range(fields),
                usecols=[self._step * column for column in columns],
                dtype={self._step * column: str for column in as_text},
                index_col=False,
                chunksize=max(1, CHUNK_CELLS // fields),
                keep_default_na=False,
                na_values=list(MISSING),
                skipinitialspace=True,
                decimal=self.decimal,
                quoting=csv.QUOTE_NONE if self.delimiter in UNQUOTED else csv.QUOTE_MINIMAL,
                low_memory=False,
                encoding="utf-8",
                **_frames.exact_floats(pandas),
            )

    @property
    def _step(self) -> int:
        """A double colon is read as two, with an empty cell between: pandas parts by one byte."""
        return len(self.delimiter)


def text_frame(source: Source, expected: Sequence[str] = ()) -> TextFrame:
    """The layout of a file, from its first lines; with the names expected, they are a header."""
    lines = [(n, line) for n, line in islice(source.lines(), SAMPLED) if line.strip()]
    if not lines:
        raise FileError(f"{source.path} is empty, or begins with blank lines only: fetch it again")
    delimiter = "\t" if source.format == "tsv" else _delimiter(source.path, lines)
    first, *later = [
        cells for _, cells in islice(_records(source.path, source.lines(), delimiter), SAMPLED)
    ]
    decimal = _decimal(delimiter, later)
    headed = _has_names(first, expected) or _is_header(first, later, decimal)
    names = first if headed else [f"x{place}" for place in range(len(first))]
    return TextFrame(source, delimiter, headed, unique_names(source.path, names), decimal)


def _decimal(delimiter: str, rows: list[list[str]]) -> str:
    """A comma where cells are parted otherwise and have numbers only of that kind."""
    cells = [cell.strip() for row in rows for cell in row]
    commas = delimiter != "," and any(map(DECIMAL_COMMA.fullmatch, cells))
    points = any("." in cell and number_of(cell) is not None for cell in cells)
    return "," if commas and not points else "."


def _delimiter(path: NameOfFile, lines: list[tuple[int, str]]) -> str:
    """The first that parts every line into as many cells, two at least."""
    best = ","
    for delimiter in reversed(DELIMITERS):
        found = {len(cells) for _, cells in _records(path, iter(lines), delimiter)}
        if len(found) == 1 and found.pop() > 1:
            best = delimiter
    return best


def _is_header(first: list[str], later: list[list[str]], decimal: str) -> bool:
    """Whether a cell of the first row is text where later rows have numbers."""
    named = [place for place, cell in enumerate(first) if _is_name(cell)]
    if not later:
        return bool(named) and not any(number_of(cell) is not None for cell in first)
    return any(
        number_of(cells[place].replace(decimal, ".")) is not None
        for place in named
        for cells in later
        if place < len(cells)
    )


def _has_names(first: list[str], expected: Sequence[str]) -> bool:
    """Whether the first row has every name expected: above nothing but text, the only sign."""
    cells = {cell.strip() for cell in first}
    return bool(expected) and all(_is_name(name) and name in cells for name in expected)


def _is_name(cell: str) -> bool:
    text = cell.strip()
    return text not in MISSING and number_of(text) is None and any(map(str.isalpha, text))


def _records(
    path: NameOfFile, lines: Iterator[tuple[int, str]], delimiter: str
) -> Iterator[Record]:
    """The cells of each line that is not blank; in quotes they may go on over several."""
    blank = " " if delimiter == "\t" else None
    for number, line in lines:
        if not line.strip(blank):
            continue
        if delimiter == " ":
            yield number, line.split()
        elif '"' in line and delimiter not in UNQUOTED:
            yield (
                number,
                _quoted(path, number, chain([line], (more for _, more in lines)), delimiter),
            )
        else:
            yield number, line.split(delimiter)


def _quoted(path: NameOfFile, number: int, lines: Iterator[str], delimiter: str) -> list[str]:
    ended = (line + "\n" for line in lines)
    try:
        return next(csv.reader(ended, delimiter=delimiter, skipinitialspace=True))
    except csv.Error:
        raise FileError(
            f"{path}: a cell of line {number} has more than {csv.field_size_limit():,} characters: "
            "is a quote never closed?"
        ) from None


def _values(column: Any) -> Values:
    """Numbers as they are; everything else as text, None where it is missing."""
    if column.dtype.kind in "iuf":
        return np.asarray(column)
    cells = np.empty(len(column), dtype=object)
    gone = column.isna().to_numpy()
    cells[:] = [None if none else str(cell) for cell, none in zip(column, gone, strict=True)]
    return cells
