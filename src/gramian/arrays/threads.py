"""The number of threads of each operation.

Measured on 16 idle cores. Compiled kernels: another thread pays off from about 0.1 ms of work.
Dense algebra: `eigh` of order 300 takes 9 ms with 1, 4 and 16 threads, of order 784 101, 72 and
63 ms, of order 1500 767, 365 and 226 ms. A run alternates between the thread pools of NumPy, SciPy
and the kernels, each of which spins for a while: with 16 threads for everything unfolding 1,000
digits took 7.0 s, with 4 3.9 s. On two busy cores two threads made `eigh` of order 300 a hundred
times slower than one, of order 1300 two to twelve times, so dense algebra uses one thread there.
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

ONE_THREAD_ELEMENTS, FEW_THREAD_ELEMENTS = 400**2, 2000**2
"""Elements of a dense matrix up to which one thread is fastest, and up to which a few are."""
FEW_THREADS = 4
"""The number of threads that counts as few."""
WORK_OF_PAIR = 16
"""Pairs of samples that count as one element: from 1,600 samples on, a few threads are used."""

BUSY = 1.25
"""Tasks per core of the machine above which it is busy; a fit alone has at most one per core."""

WORK = 200_000
"""Multiplications of a compiled kernel per additional thread."""
PARTS_PER_THREAD = 4
"""Parts of a compiled call per thread, so that a slow core processes fewer of them."""

VARIABLES = ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS")


@cache
def cores() -> int:
    """The cores available to this process by its affinity and CPU quota, or fewer by `VARIABLES`.

    joblib sets these variables for its workers to avoid oversubscription.
    """
    from joblib import cpu_count

    limits = [os.environ.get(name, "").split(",")[0] for name in VARIABLES]
    return min([int(cpu_count()), *(int(word) for word in limits if word.isdigit() and int(word))])


# --- compiled kernels ----------------------------------------------------------------


def in_parts(kernel: Callable[..., None], units: int, work: int, *arguments: Any) -> None:
    """Run a kernel that releases the GIL over 0..units, in parts and in several threads."""
    threads = max(1, min(cores(), units, work // WORK))
    if threads == 1:
        kernel(0, units, *arguments)
        return
    parts = min(units, PARTS_PER_THREAD * threads)
    left = iter(range(parts))

    def take() -> None:
        for part in left:
            kernel(units * part // parts, units * (part + 1) // parts, *arguments)

    # Each thread needs a copy of the context, which contains the deadline of the run.
    others = [_pool().submit(copy_context().run, take) for _ in range(threads - 1)]
    try:
        take()
    finally:
        for other in others:
            if not other.cancel():  # it has started and may be processing a part
                other.result()


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(cores(), thread_name_prefix="gramian")


if hasattr(os, "register_at_fork"):  # a forked child inherits the pool without its threads
    os.register_at_fork(after_in_child=_pool.cache_clear)


# --- dense algebra -------------------------------------------------------------------


def dense_threads(numbers: int) -> int:
    """The number of BLAS threads for a dense matrix with this many elements."""
    if numbers <= ONE_THREAD_ELEMENTS or _busy():
        return 1
    return min(FEW_THREADS, cores()) if numbers <= FEW_THREAD_ELEMENTS else cores()


def _busy() -> bool:
    """Whether other programs used the cores in the last minute, where the system tells."""
    if not hasattr(os, "getloadavg"):
        return False
    try:
        tasks = os.getloadavg()[0]
    except OSError:
        return False
    return tasks > BUSY * (os.cpu_count() or 1)


@contextmanager
def blas_threads_for(numbers: int) -> Iterator[None]:
    """Limit BLAS to the number of threads suitable for dense matrices of this size.

    A nested limit replaces the outer one while it lasts: a large proof within a small problem may
    use more threads. The number is global to the process, so concurrent fits share it, and the last
    one to end restores the original number.
    """
    before = _hold.enter(dense_threads(numbers))
    try:
        yield
    finally:
        _hold.leave(before)


def blas_threads_for_fit(*given: Any) -> Any:
    """Limit BLAS during a fit to one thread for few samples, otherwise to a few threads.

    Arguments that are not tables of known length are ignored. `AutoMetric` of 569 samples of 30
    features took 9.1 s of CPU time with two threads on two busy cores, 1.4 s with one. On idle
    cores one thread is slower: 0.84 s of wall time on 16 of them, 0.65 s before this rule.
    """
    shapes = [tuple(getattr(each, "shape", ())) for each in given]
    tables = [s for s in shapes if len(s) == 2 and all(isinstance(side, int) for side in s)]
    sizes = [max(n * d, n * n // WORK_OF_PAIR) for n, d in tables]
    small = sizes and max(sizes) <= ONE_THREAD_ELEMENTS
    return blas_threads_for(ONE_THREAD_ELEMENTS if small else FEW_THREAD_ELEMENTS)


class _Hold:
    """The number of threads of every BLAS of the process, and the number of active limits."""

    def __init__(self) -> None:
        self.lock, self.holders, self.now = threading.Lock(), 0, 0
        self.given: list[int] = []

    @cached_property
    def libraries(self) -> list[Any]:
        from threadpoolctl import ThreadpoolController

        return list(ThreadpoolController().select(user_api="blas").lib_controllers)

    def enter(self, wanted: int) -> int:
        """Set the number and return the previous one."""
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
            # With several Python threads, threadpoolctl only restores the number of the first one,
            # also if another thread is the last to end.
            if hasattr(library, "clear_controlling_thread"):
                library.clear_controlling_thread(force=True)
            library.set_num_threads(min(wanted, most))


_hold = _Hold()
