"""How a command ends: its exit status, and one sentence where it fails."""

from __future__ import annotations

import re
from pathlib import Path
from threading import Event

BAD_INPUT, NOT_CONVERGED, INTERRUPTED = 2, 3, 130


HEARD = Event()
"""Set when Ctrl-C is pressed while a command runs, whatever comes of it."""


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, after some files were written."""

    def __init__(self, kept: list[Path]) -> None:
        super().__init__()
        self.kept = kept


_CALLED: dict[str, str] = {}


def call(path: Path, name: str) -> None:
    """Tell people of a file of ours by another name."""
    _CALLED[str(path)] = name


def as_called(sentence: str) -> str:
    """The sentence with the names that people know files by."""
    for path, name in _CALLED.items():
        sentence = sentence.replace(path, name)
    return sentence


CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Characters that a terminal obeys in the place of showing them, but for tabs and line ends."""


def printable(text: str) -> str:
    """Text from files with control characters written as escapes: a terminal would obey them."""
    return CONTROLS.sub(lambda found: repr(found[0])[1:-1], text)


def complain(sentence: str) -> None:
    """One sentence on standard error."""
    from rich.console import Console  # here, for --help does not wait for what it does not need
    from rich.text import Text

    Console(stderr=True, highlight=False, soft_wrap=True).print(
        Text("gramian: ", style="bold red") + Text(printable(as_called(sentence)))
    )
