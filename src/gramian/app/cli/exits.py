"""How a command ends: its exit status, and one sentence if it fails."""

from __future__ import annotations

import re
from pathlib import Path
from threading import Event

BAD_INPUT, NOT_CONVERGED, INTERRUPTED = 2, 3, 130

HEARD = Event()
"""Set when Ctrl-C is pressed while a command runs, even if a fit handles it."""

CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Characters that control a terminal, except tabs and line ends."""

_CALLED: dict[str, str] = {}


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, after some files were written."""

    def __init__(self, kept: list[Path]) -> None:
        super().__init__()
        self.kept = kept


def call(path: Path, name: str) -> None:
    """Set the name by which messages mention a temporary file."""
    _CALLED[str(path)] = name


def as_called(sentence: str) -> str:
    """The sentence with the names that users know files by."""
    for path, name in _CALLED.items():
        sentence = sentence.replace(path, name)
    return sentence


def printable(text: str) -> str:
    """Text from files with control characters written as escapes."""
    return CONTROLS.sub(lambda found: repr(found[0])[1:-1], text)


def complain(sentence: str, word: str = "gramian: ", style: str = "bold red") -> None:
    """Print one sentence to standard error."""
    from rich.console import Console  # imported here because --help does not need it
    from rich.text import Text

    Console(stderr=True, highlight=False, soft_wrap=True).print(
        Text(word, style=style) + Text(printable(as_called(sentence)))
    )
