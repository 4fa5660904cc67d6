"""One BLAS thread for small matrices.

A product of small matrices gains little from a second thread, and on a busy machine the threads
wait for each other: 300 BILGO steps at order 300 took 27 s with one and over 10 minutes with two.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any

SMALL_ORDER = 400


def blas_threads_for(order: int) -> AbstractContextManager[Any]:
    """Hold BLAS at one thread while matrices of a small order are worked on."""
    if order > SMALL_ORDER:
        return nullcontext()
    return _controller().limit(limits=1, user_api="blas")


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
