"""The progress of a command, on one line of the terminal."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gramian.common import clock

TICK = 0.5
"""Seconds between two updates of the line."""

LINE_EVERY = 10.0
"""Seconds between two lines about the same phase if the output is not a terminal."""

WIDEST = 100
"""Maximum number of characters of the line."""
ERASED = "\r\x1b[2K"
"""Control characters that erase the current line of a terminal."""


class Display(clock.Watcher):
    """Displays the phase, its duration, that of the whole command, and the last solver step.

    The remaining time is not estimated, because the decrease of a gap cannot be predicted.
    """

    def __init__(self, limit: float | None = None) -> None:
        self.limit = limit
        self._live = sys.stderr.isatty()
        self._started = self._since = clock.now()
        self._phase, self._step, self._written = "", "", 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True)

    def phase(self, name: str) -> None:
        if name == self._phase:
            return
        self._phase, self._step, self._since = name, "", clock.now()
        self._written = 0.0
        if not self._live:
            self._show()

    def step(self, state: Any) -> None:
        record = state.record
        gap = f", gap {record['gap']:.1e}" if "gap" in record else ""
        self._step = (
            f": step {state.iteration}, F = {state.value:.6g}{gap}, rank {int(record['rank'])}"
        )

    def _line(self) -> str:
        now = clock.now()
        whole = f"{now - self._started:.0f} s"
        limit = "" if self.limit is None else f" of {self.limit:g}"
        return f"{self._phase}{self._step} ({now - self._since:.0f} s; total {whole}{limit})"

    def _show(self) -> None:
        if not self._phase:
            return
        if self._live:
            sys.stderr.write(f"{ERASED}{self._line()[:WIDEST]}")
        else:
            sys.stderr.write(f"{self._line()}\n")
        sys.stderr.flush()
        self._written = clock.now()

    def _tick(self) -> None:
        while not self._over.wait(TICK):
            if self._live or clock.elapsed(self._written) >= LINE_EVERY:
                self._show()

    def clear(self) -> None:
        """Erase the line."""
        if self._live and self._written:
            sys.stderr.write(ERASED)
            sys.stderr.flush()

    def __enter__(self) -> Display:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        self._thread.join()
        self.clear()


@contextmanager
def shown(asked: bool | None, limit: float | None) -> Iterator[None]:
    """Show the progress of the code inside the `with` block; default: only on a terminal."""
    wanted = sys.stderr.isatty() if asked is None else asked
    if not wanted:
        yield
        return
    with Display(limit) as display, clock.watched_by(display):
        yield


@contextmanager
def starting(what: str) -> Iterator[None]:
    """Show on a terminal, while packages are imported, that a command is starting."""
    if not sys.stderr.isatty() or "--no-progress" in sys.argv:
        yield
        return
    sys.stderr.write(f"{what}: starting")
    sys.stderr.flush()
    try:
        yield
    finally:
        sys.stderr.write(ERASED)
        sys.stderr.flush()
