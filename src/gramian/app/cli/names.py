"""Names of columns: in messages, in options, and of columns that are added."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

ALL = "all"
"""The value of --encode for every column of text."""


def counted(number: int, what: str) -> str:
    """A number with its noun."""
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def listed(names: Sequence[str]) -> str:
    """The first names, and the number of the others."""
    left = len(names) - 5
    more = "" if left <= 0 else f" and {left} other{'s' if left > 1 else ''}"
    return f"{', '.join(map(str, names[:5]))}{more}"


def free(name: str, taken: Collection[str]) -> str:
    """The name of an added column, with underscores after it if the file has such a column."""
    return free(f"{name}_", taken) if name in taken else name


def columns_in(given: Sequence[str], there: Sequence[str]) -> list[str]:
    """Names separated by commas, unless a column has the whole text as its name."""
    return [
        name.strip()
        for names in given
        for name in ([names] if names in there else names.split(","))
        if name.strip()
    ]


def by_name(file: Path, header: Any, columns: list[str]) -> list[str]:
    """The names of columns that are given by name or by number."""
    if header is None:
        return columns
    return [
        name if name == ALL else header.names[header.places(file, [name])[0]] for name in columns
    ]
