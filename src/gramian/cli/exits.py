"""How a command ends: its exit status, and one sentence where it fails."""

from __future__ import annotations

BAD_INPUT, NOT_CONVERGED, INTERRUPTED = 2, 3, 130


def complain(sentence: str) -> None:
    """One sentence on standard error."""
    from rich.console import Console  # here, for --help does not wait for what it does not need
    from rich.text import Text

    Console(stderr=True, highlight=False, soft_wrap=True).print(
        Text("gramian: ", style="bold red") + Text(sentence)
    )
