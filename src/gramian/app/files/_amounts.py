"""Numbers written with a currency sign, a percent sign, a unit or thousands separators."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice

import numpy as np

from gramian.app.files._columns import DASHES, Values, number_of, without_dashes
from gramian.app.files._errors import NameOfFile, shown
from gramian.common.warnings import warn

MONEY = (
    r"(?:[A-Z]{0,2}\$|[€£¥₹₽₩₺]|USD|EUR|GBP|CHF|JPY|CNY|INR|CAD|AUD|NZD|SEK|NOK|DKK|PLN|CZK|BRL)"
)
UNIT = rf"(?:%|‰|°|{MONEY}|°?[^\W\d_]{{1,3}}[²³]?)"
AMOUNT = re.compile(
    rf"(?P<minus>\()?(?P<sign>[-+]?)\s?(?P<before>{MONEY})?\s?(?P<inner>[-+]?)"
    rf"(?P<body>\d[\d.,'\s]*|[.,]\d+)(?P<after>{UNIT})?(?P<end>\))?"
)
PLAIN = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2019": "'", "\u2212": "-"})
"""No-break spaces, typographic apostrophes and minus signs, and the ordinary characters."""

MARKS = {
    (thousands, point): re.compile(
        rf"(?:[1-9]\d{{0,2}}(?:{re.escape(thousands)}\d{{3}})+|0|[1-9]\d*)?(?:{re.escape(point)}\d*)?"
    )
    for thousands, point in ((",", "."), (".", ","), ("'", "."), ("'", ","), (" ", "."), (" ", ","))
}
"""The forms of numbers with a thousands separator and a decimal separator."""


def amounts(values: Values, decimal: str = ".") -> Values | None:
    """Texts as numbers if all are amounts in the same unit; None otherwise.

    A column in which 1,234 may be either is read by `decimal`, the separator of the file.
    """
    known = [place for place, cell in enumerate(values) if cell is not None and cell not in DASHES]
    parts: list[re.Match[str]] = []
    for place in known:
        found = AMOUNT.fullmatch(values[place].translate(PLAIN).strip())
        if found is None or (found["minus"] is None) != (found["end"] is None):
            return None
        if parts and _unit(found) != _unit(parts[0]):
            return None
        parts.append(found)
    bodies = [found["body"].rstrip() for found in parts]
    fits = [marks for marks, form in MARKS.items() if all(map(form.fullmatch, bodies))]
    fits.sort(key=lambda marks: marks[1] != decimal)
    if not fits:
        return None
    thousands, point = fits[0]
    read = np.full(len(values), np.nan)
    for place, found, body in zip(known, parts, bodies, strict=True):
        minus = found["minus"] or "-" in found["sign"] + found["inner"]
        number = float(body.replace(thousands, "").replace(point, "."))
        read[place] = -number if minus else number
    return read


def parsed(texts: Values, decimal: str, name: str, notes: dict[str, tuple[str, float]]) -> Values:
    """Texts as numbers if all are numbers, dashes for missing cells, or amounts.

    `notes` gets the first cell that is no plain number and its value, by the name of the column.
    """
    values = without_dashes(texts)
    found = amounts(texts, decimal) if values.dtype == object else None
    if found is None or np.isnan(found).all():
        return values
    cells = ((cell, float(x)) for cell, x in zip(texts, found, strict=True) if not np.isnan(x))
    signed = ((cell, x) for cell, x in cells if number_of(cell.replace(decimal, ".")) != x)
    notes.update((name, first) for first in islice(signed, 1))
    return found


def is_amount(cell: str) -> bool:
    """Whether a cell is an amount and not a plain number."""
    return number_of(cell) is None and amounts(np.array([cell], dtype=object)) is not None


def is_quantity(cell: str) -> bool:
    """Whether a cell is a number, or one with a sign or a unit, unlike a code such as A12."""
    text = cell.translate(PLAIN).strip()
    return number_of(text) is not None or not (text.isalnum() or AMOUNT.fullmatch(text) is None)


def note_amounts(path: NameOfFile, found: Mapping[str, tuple[str, float]]) -> None:
    """Warn how amounts were read: the first cell of each column, and its number."""
    if not found:
        return
    few = [f"{shown(cell)} in {shown(name)} as {x:.15g}" for name, (cell, x) in found.items()][:3]
    more = f" and {len(found) - 3} other columns" if len(found) > 3 else ""
    warn(f"{path}: amounts are read as numbers, {', '.join(few)}{more}")


def _unit(found: re.Match[str]) -> tuple[str | None, str | None]:
    return found["before"], found["after"]
