"""One clock for everything that a run does, however deep inside it.

A run sets its deadline once; products of eigenvalue computations, factorisations and certificates
ask before they begin, and `TimeUpError` takes the run back to its best point.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_deadline: ContextVar[float] = ContextVar("deadline", default=float("inf"))


class TimeUpError(Exception):
    """The time of the run is up, or what comes next would not fit into it."""


@contextmanager
def until(deadline: float) -> Iterator[None]:
    """Set the deadline, in seconds of `time.perf_counter`; never later than one set outside."""
    token = _deadline.set(min(deadline, _deadline.get()))
    try:
        yield
    finally:
        _deadline.reset(token)


def check(seconds: float = 0.0) -> None:
    """Refuse to go on where what takes about so many seconds would end after the deadline."""
    deadline = _deadline.get()
    if deadline != float("inf") and time.perf_counter() + seconds >= deadline:
        raise TimeUpError


def left() -> float:
    """The seconds that are left."""
    return _deadline.get() - time.perf_counter()
