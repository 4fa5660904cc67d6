"""Errors of files in one sentence: the file, the problem, and a remedy."""

from __future__ import annotations

import errno
import lzma
import os
import re
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from os import PathLike
from pathlib import Path
from typing import Any

from gramian.common.memory import check_memory
from gramian.common.storage import FileError

NameOfFile = str | PathLike[str]


@dataclass(frozen=True)
class TextColumn:
    """A column of text where numbers are expected."""

    name: str
    cell: str
    """The first text in it."""
    place: str
    """Its location."""
    kind: str
    """Its apparent content: "names" (all different), "dates", "some dates" (a few cells are none),
    "categories", "constant", "numbers" (a few cells are text), "amounts" (numbers with a currency
    sign or a unit) or "text"."""


class TextColumnsError(FileError):
    """All columns of text where numbers are expected.

    `numeric` counts the other columns, and `gaps` says whether some of their cells are missing.
    """

    def __init__(
        self, path: NameOfFile, columns: list[TextColumn], numeric: int = 0, gaps: bool = False
    ) -> None:
        self.path, self.columns, self.numeric, self.gaps = path, columns, numeric, gaps
        first = columns[0]
        message = (
            f"{path}: column {shown(first.name)} has the text {shown(first.cell)} in "
            f"{first.place}, where numbers belong: name the column as the label, or drop it"
        )
        if len(columns) > 1:
            others = ", ".join(shown(column.name) for column in columns[1:])
            message += f"; so have {others}"
        super().__init__(message)


@contextmanager
def reading(path: NameOfFile) -> Iterator[None]:
    """Name the file in errors of its folder, its disk or its compression."""
    try:
        yield
    except (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile) as reason:
        raise FileError(f"{path} is damaged or cut short ({reason}): fetch it again") from None
    except MemoryError:
        raise FileError(f"{path} does not fit into memory: split it") from None
    except OSError as reason:
        raise FileError(f"{path} cannot be read: {reason_of(reason)}") from None


@contextmanager
def writing(path: NameOfFile) -> Iterator[None]:
    """Name the file in errors of its folder or its disk."""
    try:
        yield
    except OSError as reason:
        raise FileError(f"{path} cannot be written: {reason_of(reason)}") from None


@contextmanager
def parsing(path: NameOfFile, format: str) -> Iterator[None]:
    """Convert any exception of another library's parser to a `FileError`."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except (FileError, ImportError):
        raise
    except Exception as reason:
        message = " ".join(str(reason).split())[:200] or "it cannot be parsed"
        if isinstance(reason, zipfile.BadZipFile):
            message = "its bytes are no zip archive, which such files are"
        raise FileError(
            f"{path} is not a whole {format} file ({message}): fetch or write it again, or name "
            "another format"
        ) from None


def claim(path: NameOfFile, need: float, what: str, remedy: str) -> None:
    """Raise FileError if the arrays of a file would take more than half of the memory."""
    try:
        check_memory(need, f"{path} holds {what}", remedy)
    except ValueError as reason:
        raise FileError(str(reason)) from None


def shown(value: Any) -> str:
    """A value of a file formatted for a message: short, on one line."""
    text = str(value)
    return repr(text if len(text) <= 40 else text[:39] + "…")


def reason_of(reason: OSError) -> str:
    """Why a file cannot be read or written, and a remedy."""
    if isinstance(reason, FileNotFoundError):
        if re.match("https?:/", os.fsdecode(reason.filename or "")):
            return "it is an address on the web; download the file first"
        near = _near(Path(os.fsdecode(reason.filename or "")))
        hint = f"did you mean {shown(near)}?" if near else "check the name"
        return f"there is no such file or folder; {hint}"
    if isinstance(reason, IsADirectoryError):
        return "it is a folder; name a file"
    if isinstance(reason, PermissionError) or reason.errno == errno.EROFS:
        return "it is not permitted here; change the rights or choose another place"
    if reason.errno == errno.ENOSPC:
        return "the disk is full; make room or choose another place"
    return str(reason.strerror or reason)


def _near(path: Path) -> str | None:
    """The file in the same folder with the most similar name, if equal with the same extension."""
    try:
        names = [other.name for other in path.parent.iterdir()]
    except OSError:
        return None
    names.sort(key=lambda name: Path(name).suffix == path.suffix)
    others = {Path(name).stem.lower(): name for name in names}
    found = get_close_matches(path.stem.lower(), others, n=1, cutoff=0.7)
    return str(path.with_name(others[found[0]])) if found and path.name else None
