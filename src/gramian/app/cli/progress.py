"""What a command is doing, on one line of the terminal, from its first second to its last."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from gramian.common import clock

TICK = 0.5
"""Seconds between two looks at the line."""

LINE_EVERY = 10.0
"""Seconds between two lines of one phase, where they go to a file."""

WIDEST = 100
ERASED = "\r\x1b[2K"
"""Takes the line of a terminal away."""


class Display(clock.Watcher):
    """The phase, how long it and the command have taken, and what a solver says of itself.

    The only time left that it shows is that of a limit: how a gap will fall is not known.
    """

    def __init__(self, limit: float | None = None) -> None:
        self.limit = limit
        self._live = sys.stderr.isatty()
        self._started = self._since = clock.now()
        self._phase, self._told, self._written = "", "", 0.0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._tick, daemon=True)

    def phase(self, name: str) -> None:
        if name == self._phase:
            return
        self._phase, self._told, self._since = name, "", clock.now()
        self._written = 0.0
        if not self._live:
            self._show()

    def step(self, state: Any) -> None:
        record = state.record
        gap = f", gap {record['gap']:.1e}" if "gap" in record else ""
        self._told = (
            f": step {state.iteration}, F = {state.value:.6g}{gap}, rank {int(record['rank'])}"
        )

    def _line(self) -> str:
        now = clock.now()
        whole = f"{now - self._started:.0f} s"
        limit = "" if self.limit is None else f" of {self.limit:g}"
        return f"{self._phase}{self._told} ({now - self._since:.0f} s; in all {whole}{limit})"

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
        """Take the line away, for what is printed below it."""
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
    """Show the progress of what is done inside: where asked for, and on a terminal unless not."""
    wanted = sys.stderr.isatty() if asked is None else asked
    if not wanted:
        yield
        return
    with Display(limit) as display, clock.watched_by(display):
        yield


@contextmanager
def starting(what: str) -> Iterator[None]:
    """Say on a terminal that something begins, while its packages are imported."""
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


@contextmanager
def unbroken() -> Iterator[None]:
    """Postpone Ctrl-C until files are written; where SIGINT is ignored it stays so."""
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    if ignored or threading.current_thread() is not threading.main_thread():
        yield
        return
    asked: list[Any] = []
    before = signal.signal(signal.SIGINT, lambda *given: asked.append(given))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if asked:
        raise KeyboardInterrupt
