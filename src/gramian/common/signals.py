"""A delay of Ctrl-C for operations that must not be left incomplete."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from threading import current_thread, main_thread
from typing import Any


@contextmanager
def undisturbed() -> Iterator[None]:
    """Deliver SIGINT at the end of the block.

    After an interrupted import or compilation, numba can raise errors until the process ends, and
    an interrupt in one of LLVM's callbacks is lost.
    """
    handler = signal.getsignal(signal.SIGINT)
    if current_thread() is not main_thread() or not callable(handler):
        yield
        return
    received: list[tuple[Any, ...]] = []
    signal.signal(signal.SIGINT, lambda *given: received.append(given))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if received:
            handler(*received[-1])
