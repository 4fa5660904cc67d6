"""Dates in cells of tables: their forms, and the number of days since 1970."""

from __future__ import annotations

import re
from datetime import date
from typing import Any

import numpy as np

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
THIS_CENTURY = 69
"""Years of two digits below this are 2000 and later, as in POSIX."""

WEEKDAY = r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,?\s+)?"
NAME = (
    r"(?P<name>jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?"
    r"|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)\.?"
)
ORDINAL = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
FORMS = [
    re.compile(rf"{WEEKDAY}{form}(?:(?:[T,]|\s)+(?P<clock>\d.*))?", re.IGNORECASE)
    for form in (
        r"(?P<year>\d{4})([-/.])(?P<month>\d{1,2})(?:\2(?P<day>\d{1,2}))?",
        r"(?P<one>\d{1,2})(?P<mark>[-/.])(?P<two>\d{1,2})(?P=mark)(?P<year>\d{4}|\d\d)",
        rf"{ORDINAL}[-/.\s]*{NAME},?[-/\s]*(?P<year>\d{{4}}|\d\d)",
        rf"{NAME}[-\s]*{ORDINAL}(?:,\s*|[-\s]+)(?P<year>\d{{4}})",
        rf"{NAME}[-,\s]*(?P<year>\d{{4}})",
    )
]
"""2024-05-31 and 2024-05, 31.5.2024 and 5/31/24, 31 May 2024, May 31 2024, May 2024, with an
optional day of the week before and an optional time after."""

CLOCK = re.compile(
    r"(?P<hour>\d{1,2}):(?P<minute>\d\d)(?::(?P<second>\d\d(?:\.\d+)?))?"
    r"(?:\s*(?P<half>[ap])\.?m\.?)?(?:\s*(?:Z|UTC|GMT|[-+]\d\d:?\d\d))?",
    re.IGNORECASE,
)
DAY, MONTH, OPEN = "day", "month", "open"
"""What the first number of a date such as 5/31/2024 is; open if the column has no such date."""

EITHER_FIRST = ("/", "-")
"""Separators with which either number may be the month; with points the day is first."""


def first_number(cells: Any, name: str) -> str:
    """Whether the first number of dates such as 5/31/2024 in a column is the day or the month.

    `name` is that of the column, for the error if this cannot be decided."""
    found = [date_in(str(cell)) for cell in cells]
    numbered = [parts for parts in found if parts is not None and parts.get("mark") in EITHER_FIRST]
    pairs = [(int(parts["one"] or 0), int(parts["two"] or 0)) for parts in numbered]
    days_first = any(one > 12 for one, _ in pairs)
    if pairs and days_first == any(other > 12 for _, other in pairs):
        ways = "both ways" if days_first else "either way"
        raise ValueError(
            f"{name} has dates like {pairs[0][0]}/{pairs[0][1]}/…, which can be read {ways}, day "
            "or month first: write them as 2024-05-31 or leave out the column"
        )
    return OPEN if not pairs else DAY if days_first else MONTH


def date_in(text: str) -> dict[str, str | None] | None:
    """The parts of a date by name; None if the text matches none of the `FORMS`."""
    found = (form.fullmatch(text.strip()) for form in FORMS)
    match = next((one for one in found if one is not None), None)
    return None if match is None else match.groupdict()


def days(cell: Any, first: str = OPEN) -> float:
    """The days since 1970 of a date; NaN for a missing cell."""
    if cell is None or cell == "" or cell != cell:
        return np.nan
    parts = date_in(str(cell))
    try:
        if parts is None or (parts.get("mark") in EITHER_FIRST and first == OPEN):
            raise ValueError(cell)
        return _day(parts, first) + _time(parts["clock"])
    except ValueError:
        raise ValueError(f"{str(cell).strip()!r} is no date: write it as 2024-05-31") from None


def _day(parts: dict[str, Any], first: str) -> float:
    """The whole days since 1970."""
    year = int(parts["year"])
    if len(parts["year"]) == 2:
        year += 2000 if year < THIS_CENTURY else 1900
    if "mark" in parts:
        day, month = int(parts["one"]), int(parts["two"])
        if parts["mark"] in EITHER_FIRST and first == MONTH:
            day, month = month, day
    else:
        name = parts.get("name")
        month = MONTHS.index(name[:3].lower()) + 1 if name else int(parts["month"])
        day = int(parts.get("day") or 1)
    return float((date(year, month, day) - date(1970, 1, 1)).days)


def _time(clock: str | None) -> float:
    """The part of a day."""
    if clock is None:
        return 0.0
    parts = CLOCK.fullmatch(clock.strip())
    if parts is None:
        raise ValueError(clock)
    hour, minute, second = int(parts["hour"]), int(parts["minute"]), float(parts["second"] or 0)
    if parts["half"]:
        hour = hour % 12 + (12 if parts["half"] in "Pp" else 0)
    if hour > 23 or minute > 59 or second >= 60:
        raise ValueError(clock)
    return (hour * 3600 + minute * 60 + second) / 86400.0
