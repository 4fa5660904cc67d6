"""Columns of a table, whichever file they are from: found by name, as numbers or as labels."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gramian.app.files._errors import FileError, NameOfFile, claim, shown
from gramian.common import memory

Values = NDArray[Any]
"""Numbers with NaN for missing ones, or an object array of str with None for missing ones."""

DECIMAL = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*")
TRUTH = {"true": 1.0, "false": 0.0}
TEXT_BYTES = 64
EXACT = 2.0**53


class Frame(Protocol):
    """A file of named columns that is read some rows at a time."""

    @property
    def path(self) -> NameOfFile: ...
    @property
    def names(self) -> list[str]: ...
    @property
    def headed(self) -> bool: ...
    @property
    def rows(self) -> int: ...
    def about(self, most: float) -> int: ...
    def chunks(
        self, columns: Sequence[int], as_text: Sequence[int] = ()
    ) -> Iterator[list[Values]]: ...
    def place(self, row: int) -> str: ...


@dataclass(frozen=True)
class Numbered:
    """Enough of a frame for its columns to be found."""

    path: NameOfFile
    names: list[str]
    headed: bool


def find(frame: Frame, name: str) -> int:
    """The place of a column by its name, or by its number where there is no header."""
    if name in frame.names:
        return frame.names.index(name)
    size = len(frame.names)
    if not frame.headed and re.fullmatch(r"-?\d{1,9}", name) and -size <= int(name) < size:
        return int(name) % size
    raise FileError(f"{frame.path} has no column {shown(name)}{_instead(frame, name)}")


def _instead(frame: Frame, name: str) -> str:
    if not frame.headed:
        return f": it has no header, so give a number from 0 to {len(frame.names) - 1}"
    close = get_close_matches(name, frame.names, n=3)
    if not close:
        close = [other for other in frame.names if other.lower() == name.lower()]
    meant = f" (did you mean {' or '.join(map(shown, close))}?)" if close else ""
    return f"{meant}: it has {listed(frame.names)}"


def listed(names: Sequence[str], most: int = 12) -> str:
    """The first names, and how many there are."""
    first = ", ".join(shown(name) for name in names[:most])
    return first if len(names) <= most else f"{first}, … ({len(names):,} in all)"


def unique_names(path: NameOfFile, names: Sequence[str]) -> list[str]:
    """The names, where no two are the same and none is empty."""
    given = [name.strip() or f"x{place}" for place, name in enumerate(names)]
    seen: set[str] = set()
    for name in given:
        if name in seen:
            raise FileError(f"{path} has two columns named {shown(name)}: rename one")
        seen.add(name)
    return given


def counted_names(path: NameOfFile, size: int) -> list[str]:
    """x0, x1, …"""
    claim(path, TEXT_BYTES * size, f"{size:,} columns, with names", "leave out columns")
    return [f"x{place}" for place in range(size)]


def claim_columns(frame: Frame, numbers: int, texts: int) -> None:
    """Refuse before reading what would take too much memory."""
    row = 8.0 * numbers + TEXT_BYTES * texts
    rows = frame.about(memory.memory() / 2 / row)
    claim(
        frame.path,
        rows * row,
        f"about {rows:,} rows of {numbers + texts:,} columns",
        "leave out columns or split the file",
    )


def numbers(values: Values) -> tuple[NDArray[np.float64], int | None]:
    """Values as numbers, and the place of the first that is none."""
    if values.dtype != object:
        return values.astype(np.float64), None
    found = np.full(values.size, np.nan)
    for place, cell in enumerate(values):
        if cell is None:
            continue
        number = number_of(cell)
        if number is None:
            return found, place
        found[place] = number
    return found, None


def number_of(cell: str) -> float | None:
    """The number that a cell spells, None where it is text."""
    if "_" in cell:  # which Python takes for a number
        return None
    if cell.strip().lower() in TRUTH:
        return TRUTH[cell.strip().lower()]
    try:
        return float(cell)
    except ValueError:
        return None


def compact(values: Values) -> Values:
    """Whole numbers in the place of text that spells them and loses nothing by it."""
    if values.dtype != object:
        return values
    try:
        whole = values.astype(np.int64)
    except (TypeError, ValueError, OverflowError):
        return values
    spelled = all(
        str(n) == cell.removeprefix("+") for n, cell in zip(whole.tolist(), values, strict=True)
    )
    return whole if spelled else values


def joined(parts: Sequence[Values]) -> Values:
    """Parts of one column, as text where any is."""
    if any(part.dtype == object for part in parts):
        parts = [p if p.dtype == object else p.astype(str).astype(object) for p in parts]
    return np.concatenate(parts) if parts else np.empty(0)


def missing(values: Values) -> NDArray[np.bool_]:
    """Which values there are none of."""
    if values.dtype == object:
        return np.fromiter((cell is None for cell in values), bool, values.size)
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.size, dtype=bool)


def settled(path: NameOfFile, values: Values) -> Values:
    """Labels or ids, none missing: whole numbers as int64, else as float64, else as strings.

    Whole numbers that int64 cannot hold, or with zeros in front, stay strings: as numbers, two of
    them could become one.
    """
    if values.dtype == object:
        if not all(map(DECIMAL.fullmatch, values)) or all(map(_digits, values)):
            return strings(path, values)
        values = numbers(values)[0]
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise FileError(f"{path} has labels or ids that are not finite numbers: choose others")
    if values.dtype.kind == "f" and (values % 1 == 0).all() and (np.abs(values) < EXACT).all():
        return values.astype(np.int64)
    return values


def _digits(cell: str) -> bool:
    return cell.strip().lstrip("+-").isdecimal()


def strings(path: NameOfFile, values: Iterable[str]) -> NDArray[np.str_]:
    """An array of strings, refused where the longest would make it too large."""
    cells = [cell.strip() for cell in values]
    longest = max(map(len, cells), default=0)
    claim(
        path,
        4.0 * longest * len(cells),
        f"{len(cells):,} strings, one of {longest:,} characters",
        "choose another column",
    )
    return np.array(cells, dtype=np.str_)
