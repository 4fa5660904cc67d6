"""How many threads a piece of work gets: the one place that decides.

Measured on 16 quiet cores. Parts of compiled kernels: a thread pays from about 0.1 ms of work for
it on. Dense algebra: `eigh` of order 300 takes 9 ms with 1, 4 and 16 threads, of order 784 101, 72
and 63 ms, of order 1500 767, 365 and 226 ms. A run goes to and fro between the pools of NumPy,
SciPy and the kernels, each of which waits busily for a while: with 16 threads for everything
unfolding 1,000 digits took 7.0 s, with 4 3.9 s. On a machine with other work two threads made
`eigh` of order 100 seventy times slower than one.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context
from functools import cache, cached_property
from typing import Any

SMALL, MIDDLE = 400**2, 2000**2
"""Numbers of a dense matrix that one thread does best, and that a few do."""
FEW = 4

WORK = 200_000
"""Multiplications of a compiled kernel that are worth another thread."""
PARTS_PER_THREAD = 4
"""Parts of a compiled call per thread: a core that others slow down then takes fewer of them."""

VARIABLES = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS")


@cache
def cores() -> int:
    """The cores this process may use: its affinity and share, or fewer where the user says so.

    joblib sets the variables for its workers, so that fits side by side do not crowd each other.
    """
    from joblib import cpu_count

    told = [os.environ.get(name, "").split(",")[0] for name in VARIABLES]
    return min([int(cpu_count()), *(int(word) for word in told if word.isdigit() and int(word))])


# --- compiled kernels ----------------------------------------------------------------


def in_parts(kernel: Callable[..., None], units: int, work: int, *arguments: Any) -> None:
    """Run a kernel that frees the GIL over 0..units, in parts by as many threads as pay."""
    threads = max(1, min(cores(), units, work // WORK))
    if threads == 1:
        kernel(0, units, *arguments)
        return
    parts = min(units, PARTS_PER_THREAD * threads)
    left = iter(range(parts))

    def take() -> None:
        for part in left:
            kernel(units * part // parts, units * (part + 1) // parts, *arguments)

    # Each thread needs a copy of the context: the deadline of the run is part of it.
    others = [_pool().submit(copy_context().run, take) for _ in range(threads - 1)]
    try:
        take()
    finally:
        for other in others:
            if not other.cancel():  # it has begun, and may hold a part
                other.result()


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(cores(), thread_name_prefix="gramian")


if hasattr(os, "register_at_fork"):  # a forked child has the pool but none of its threads
    os.register_at_fork(after_in_child=_pool.cache_clear)


# --- dense algebra -------------------------------------------------------------------


def dense_threads(numbers: int) -> int:
    """How many threads of BLAS a dense matrix of so many numbers deserves."""
    if numbers <= SMALL:
        return 1
    return min(FEW, cores()) if numbers <= MIDDLE else cores()


@contextmanager
def blas_threads_for(numbers: int) -> Iterator[None]:
    """Hold BLAS at as many threads as dense matrices of so many numbers deserve, and no more.

    Within another such hold this one counts while it lasts: a large proof within a small problem
    has more threads than that. The number is one for the process, so fits side by side share it,
    and the last to end leaves it as the first has found it.
    """
    before = _hold.enter(dense_threads(numbers))
    try:
        yield
    finally:
        _hold.leave(before)


def few_blas_threads() -> Any:
    """Hold BLAS at a few threads, as matrices of a middling size deserve: for a whole fit."""
    return blas_threads_for(MIDDLE)


class _Hold:
    """The number of threads of every BLAS of the process, and how many hold it."""

    def __init__(self) -> None:
        self.lock, self.holders, self.now = threading.Lock(), 0, 0
        self.given: list[int] = []

    @cached_property
    def libraries(self) -> list[Any]:
        from threadpoolctl import ThreadpoolController

        return list(ThreadpoolController().select(user_api="blas").lib_controllers)

    def enter(self, wanted: int) -> int:
        """The number until now."""
        with self.lock:
            if self.holders == 0:
                self.given = [library.num_threads for library in self.libraries]
                self.now = max(self.given, default=1)
            self.holders += 1
            before = self.now
            self._set(wanted)
            return before

    def leave(self, before: int) -> None:
        with self.lock:
            self.holders -= 1
            self._set(before if self.holders else max(self.given, default=1))

    def _set(self, wanted: int) -> None:
        if wanted == self.now:
            return
        self.now = wanted
        for library, most in zip(self.libraries, self.given, strict=True):
            # Of several Python threads threadpoolctl listens to the first only, and would keep its
            # number when another one is the last to end.
            if hasattr(library, "clear_controlling_thread"):
                library.clear_controlling_thread(force=True)
            library.set_num_threads(min(wanted, most))


_hold = _Hold()
