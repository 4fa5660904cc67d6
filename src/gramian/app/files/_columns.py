"""Columns of a table in any file: found by name, and read as numbers, text or labels."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from gramian.app.files._errors import FileError, NameOfFile, claim, shown
from gramian.common.warnings import warn

Values = NDArray[Any]
"""Numbers with NaN for missing ones, or an object array of str with None for missing ones."""

DECIMAL = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\s*")
TRUTH = {"true": 1.0, "false": 0.0}
DASHES = ("-", "--", "–", "—", ".")
"""Cells that are missing in a column of numbers."""
FORMULA = re.compile(r"'*[=+\-@\t\r\n]")
"""The first characters of a formula, including the apostrophes of an escaped one."""

TEXT_BYTES = 64
"""Estimated memory of a text in bytes."""

EXACT = 2.0**53
"""Integers below this are exact in float64."""


class Frame(Protocol):
    """A file of named columns."""

    @property
    def path(self) -> NameOfFile: ...
    @property
    def names(self) -> list[str]: ...
    @property
    def headed(self) -> bool: ...
    @property
    def layout(self) -> tuple[str, ...]:
        """The location of the header, and the separator of the cells."""

    @property
    def rows(self) -> int: ...
    def values(
        self, columns: Sequence[int], as_text: Sequence[int] = (), as_ids: Sequence[int] = ()
    ) -> list[Values]:
        """Some columns; those in `as_text` as unparsed text, those in `as_ids` for `settled`."""

    def place(self, row: int) -> str:
        """The location of a row, for messages."""


@dataclass(frozen=True)
class Header:
    """The columns of a file.

    Attributes
    ----------
    names : list of str
        "x0", "x1", … if the file has no names.
    named : bool
        Whether the names come from the file.
    """

    names: list[str]
    named: bool

    def places(self, path: NameOfFile, columns: Sequence[str]) -> list[int]:
        """The positions of columns, given by name, or by number if the file has no names."""
        return [self._place(path, name) for name in columns]

    def _place(self, path: NameOfFile, name: str) -> int:
        if name in self.names:
            return self.names.index(name)
        size = len(self.names)
        if not self.named and re.fullmatch(r"-?\d{1,9}", name) and -size <= int(name) < size:
            return int(name) % size
        remedy = f": it has no header, so give a number from 0 to {size - 1}"
        if self.named:
            close = get_close_matches(name, self.names, n=3)
            close = close or [other for other in self.names if other.lower() == name.lower()]
            meant = f" (did you mean {' or '.join(map(shown, close))}?)" if close else ""
            remedy = f"{meant}: it has {listed(self.names)}"
        raise FileError(f"{path} has no column {shown(name)}{remedy}")


def find(frame: Frame, columns: Sequence[str]) -> list[int]:
    """The positions of columns of a frame."""
    return Header(frame.names, frame.headed).places(frame.path, columns)


def listed(names: Sequence[str], most: int = 12) -> str:
    """The first names, and how many there are."""
    first = ", ".join(shown(name) for name in names[:most])
    return first if len(names) <= most else f"{first}, … ({len(names):,} in all)"


def unique_names(path: NameOfFile, names: Sequence[str]) -> list[str]:
    """The names, with x0, x1, … for empty ones; duplicates get numbers, with a warning.

    The first of two equal names gets one as well, so that no option takes it for the other.
    """
    given = [name.strip() or f"x{place}" for place, name in enumerate(names)]
    times = Counter(given)
    twice = [name for name, count in times.items() if count > 1]
    if not twice:
        return given
    numbers: Counter[str] = Counter()
    for place, name in enumerate(given):
        if name in twice:
            numbers[name] += 1
            while f"{name}.{numbers[name]}" in times:
                numbers[name] += 1
            given[place] = f"{name}.{numbers[name]}"
    warn(
        f"{path} has several columns named {listed(twice, 3)}: they are called "
        f"{listed([n for n, old in zip(given, names, strict=True) if old.strip() in twice], 6)}"
    )
    return given


def counted_names(path: NameOfFile, size: int) -> list[str]:
    """x0, x1, …"""
    claim(path, TEXT_BYTES * size, f"{size:,} columns, with names", "leave out columns")
    return [f"x{place}" for place in range(size)]


def claim_columns(frame: Frame, numbers: int, texts: int) -> None:
    """Raise FileError if the columns would take too much memory, before they are read."""
    claim(
        frame.path,
        frame.rows * (8.0 * numbers + TEXT_BYTES * texts),
        f"{frame.rows:,} rows of {numbers + texts:,} columns",
        "leave out columns or split the file",
    )


def numbers(values: Values) -> tuple[NDArray[np.float64], int | None]:
    """Values as numbers, and the index of the first text."""
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


def without_dashes(values: Values) -> Values:
    """Texts as numbers if they are numbers and at least one dash or dot for a missing cell."""
    dashes = [place for place, cell in enumerate(values) if cell in DASHES]
    if not dashes or len(dashes) == len(values):
        return values
    rest = values.copy()
    rest[dashes] = None
    found, text = numbers(rest)
    return values if text is not None or np.isnan(found).all() else found


def number_of(cell: str) -> float | None:
    """The number in a cell, None if it is text."""
    if "_" in cell:  # which Python allows in a number
        return None
    if cell.strip().lower() in TRUTH:
        return TRUTH[cell.strip().lower()]
    try:
        return float(cell)
    except ValueError:
        return None


def missing(values: Values) -> NDArray[np.bool_]:
    """Which values are missing."""
    if values.dtype == object:
        return np.fromiter((cell is None for cell in values), bool, values.size)
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.size, dtype=bool)


def settled(path: NameOfFile, values: Values) -> Values:
    """Labels or ids without missing values, as int64, float64 (other numbers) or strings.

    Integers that int64 cannot represent, or with leading zeros, stay strings: as numbers, two of
    them could become equal.
    """
    values = compact(values)
    if values.dtype == object:
        digits = (cell.strip().lstrip("+-").isdecimal() for cell in values)
        if not all(map(DECIMAL.fullmatch, values)) or all(digits):
            return strings(path, values)
        values = numbers(values)[0]
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        raise FileError(f"{path} has labels or ids that are not finite numbers: choose others")
    if values.dtype.kind == "f" and (values % 1 == 0).all() and (np.abs(values) < EXACT).all():
        return values.astype(np.int64)
    return values


def compact(values: Values) -> Values:
    """Texts converted to integers, if the texts can be restored from them."""
    if values.dtype != object:
        return values
    try:
        whole = values.astype(np.int64)
    except (TypeError, ValueError, OverflowError):
        return values
    for start in range(0, values.size, 1 << 16):  # in blocks, to take less memory
        block = slice(start, start + (1 << 16))
        spelled = "\n".join(map(str, whole[block].tolist()))
        if spelled != "\n".join(values[block]).replace("+", ""):
            return values
    return whole


def strings(path: NameOfFile, values: Iterable[str]) -> NDArray[np.str_]:
    """An array of strings; raises FileError if the longest string makes it too large."""
    cells = [cell.strip() for cell in values]
    longest = max(map(len, cells), default=0)
    claim(
        path,
        4.0 * longest * len(cells),
        f"{len(cells):,} strings, one of {longest:,} characters",
        "choose another column",
    )
    return np.array(cells, dtype=np.str_)


def as_spelled(values: Values) -> NDArray[np.object_]:
    """Cells as text, None for missing cells."""
    found, gone = np.empty(values.size, dtype=object), missing(values)
    whole = values.dtype.kind == "f" and bool((values[~gone] % 1 == 0).all())
    found[:] = [
        None if out else str(int(value) if whole else value).strip()
        for value, out in zip(values.tolist(), gone, strict=True)
    ]
    return found


def escaped(cell: Any) -> Any:
    """A cell, prefixed with an apostrophe if a spreadsheet would interpret it as a formula.

    Numbers are not changed. `unescaped` is the inverse.
    """
    if not isinstance(cell, str) or FORMULA.match(cell) is None or number_of(cell) is not None:
        return cell
    return f"'{cell}"


def unescaped(cell: str) -> str:
    """The text of a cell, without the apostrophe of `escaped`."""
    return cell[1:] if cell.startswith("'") and FORMULA.match(cell) is not None else cell
