"""One BLAS thread for small matrices.

A product of small matrices gains little from a second thread, and on a busy machine the threads
wait for each other: 300 BILGO steps at order 300 took 27 s with one and over 10 minutes with two.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

SMALL_ORDER = 400


@contextmanager
def blas_threads_for(order: int) -> Iterator[None]:
    """Hold BLAS at one thread while matrices of a small order are worked on."""
    if order > SMALL_ORDER:
        yield
        return
    _hold()
    try:
        yield
    finally:
        _release()


# The number of BLAS threads belongs to the process: of several runs in threads, the first to
# come limits it and the last to go restores it.
_lock = Lock()
_holders: list[Any] = []


def _hold() -> None:
    with _lock:
        _holders.append(_controller().limit(limits=1, user_api="blas") if not _holders else None)


def _release() -> None:
    with _lock:
        _holders.pop() if len(_holders) > 1 else _holders.pop().restore_original_limits()


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
