"""How a command ends: its exit status, and one sentence where it fails."""

from __future__ import annotations

from pathlib import Path

BAD_INPUT, NOT_CONVERGED, INTERRUPTED = 2, 3, 130


_CALLED: dict[str, str] = {}


def call(path: Path, name: str) -> None:
    """Tell people of a file of ours by another name."""
    _CALLED[str(path)] = name


def as_called(sentence: str) -> str:
    """The sentence with the names that people know files by."""
    for path, name in _CALLED.items():
        sentence = sentence.replace(path, name)
    return sentence


def complain(sentence: str) -> None:
    """One sentence on standard error."""
    from rich.console import Console  # here, for --help does not wait for what it does not need
    from rich.text import Text

    Console(stderr=True, highlight=False, soft_wrap=True).print(
        Text("gramian: ", style="bold red") + Text(as_called(sentence))
    )
