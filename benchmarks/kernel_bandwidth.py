"""How near the gather and scatter kernels come to the memory bandwidth of the machine.

The bytes counted are those a call must read or write: each index, weight and value once, each row
of a factor once per pair that names it. Rows found again in a cache are counted too, so a factor
that fits in the last cache may exceed the bandwidth of memory. Two bounds: the streaming triad, and
a loop that only reads the same rows in the same order.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numba
import numpy as np

from benchmarks.harness.context import Context
from benchmarks.harness.machine import last_cache
from benchmarks.harness.report import Report, Table
from benchmarks.harness.timing import measure
from gramian.arrays import cpu
from gramian.arrays import threads as parallel

TITLE = "Gather and scatter kernels against memory bandwidth"
PAPER = "Not from a paper: the functions in which pairwise problems spend most of their time"

SIZES = [(100_000, 1_000_000), (1_000_000, 1_000_000), (1_000_000, 10_000_000)]
QUICK_SIZES = [(20_000, 100_000)]
RANKS = (8, 32)
STREAM_ELEMENTS = 20_000_000, 2_000_000
KERNELS = ("gather_entries", "gather_distances", "scatter_entries", "scatter_distances")
NOTES = (
    "Best of the repetitions, compiled beforehand; the plain version runs once, on one thread.",
    "'of triad' divides by the triad with as many threads, 'of row reads' by a loop that only "
    "reads the same rows; above 1 means that the kernel's prefetching is faster than that loop.",
    "'local' pairs are within 50 rows of each other, as after sorting a neighbour graph.",
)


@dataclass(frozen=True)
class Case:
    """Pairs over n points, random or near each other, and a factor of r columns."""

    pairs: str
    n: int
    rows: np.ndarray
    cols: np.ndarray
    pattern: cpu.Pattern
    w: np.ndarray
    factor: np.ndarray

    def call(self, kernel: str, compiled: bool) -> Callable[[], np.ndarray]:
        """The kernel on this case, with one factor on both sides."""
        function, L = getattr(cpu, kernel), self.factor
        if kernel.startswith("gather"):
            return lambda: function(L, L, self.rows, self.cols, compiled=compiled)
        return lambda: function(self.w, L, self.pattern, compiled=compiled)

    def traffic(self, kernel: str) -> int:
        """Bytes of a call."""
        p, row = self.rows.size, self.factor[:1].nbytes
        if kernel.startswith("gather"):
            return p * (8 + 8 + 2 * row)  # indices, value, two rows
        own_row = row if kernel == "scatter_distances" else 0
        return 2 * p * (4 + 4 + 8 + row) + self.n * (4 + row + own_row)


def run(ctx: Context) -> Report:
    """Measure everything and report it."""
    stream = measure_stream(ctx.pick(*STREAM_ELEMENTS), ctx.repeat)
    kernels = list(measure_kernels(ctx.pick(SIZES, QUICK_SIZES), stream, ctx.repeat))
    tables = [
        Table.of(caption, rows, {column: column for column in rows[0]})
        for caption, rows in (("Streaming bandwidth", stream), ("Kernels, float64", kernels))
    ]
    size = last_cache()
    cache = f"Last-level cache: {size / 2**20:.0f} MiB." if size else "Last-level cache: unknown."
    return ctx.report(tables, (*NOTES, cache))


def measure_stream(elements: int, repeat: int) -> list[dict[str, Any]]:
    """Copy a ← b with numpy, triad a ← b + 3c with numba."""
    a, b, c = np.zeros(elements), np.ones(elements), np.ones(elements)

    def row(name: str, threads: int, traffic: int, call: Callable[[], Any]) -> dict[str, Any]:
        return {"stream": name, "threads": threads, "GB/s": traffic / _best(call, repeat) / 1e9}

    rows = [row("numpy copy", 1, 2 * b.nbytes, lambda: np.copyto(a, b))]
    _triad(a, b, c)
    for threads in _thread_counts():
        numba.set_num_threads(threads)
        rows.append(row("numba triad", threads, 3 * b.nbytes, lambda: _triad(a, b, c)))
    return rows


def measure_kernels(
    sizes: list[tuple[int, int]], stream: list[dict[str, Any]], repeat: int
) -> Iterator[dict[str, Any]]:
    """One row per kernel, size, rank and number of threads."""
    triad = {row["threads"]: row["GB/s"] for row in stream if row["stream"] == "numba triad"}
    cache = last_cache()
    for (n, p), rank, local in product(sizes, RANKS, (False, True)):
        case = make_case(n, p, rank, local)
        reads = {threads: _read_rate(case, threads, repeat) for threads in _thread_counts()}
        for kernel in KERNELS:
            plain = _best(case.call(kernel, compiled=False), 1)
            for threads in _thread_counts():
                seconds = _compiled_seconds(case, kernel, threads, repeat)
                rate = case.traffic(kernel) / seconds / 1e9
                yield {
                    "kernel": kernel, "pairs": case.pairs, "n": n, "p": p, "r": rank,
                    "factor in cache": bool(cache and case.factor.nbytes < cache),
                    "threads": threads, "ms": seconds * 1e3, "GB/s": rate,
                    "of triad": rate / triad[threads], "of row reads": rate / reads[threads],
                    "plain ms": plain * 1e3, "speed-up": plain / seconds,
                }  # fmt: skip


def make_case(n: int, p: int, rank: int, local: bool) -> Case:
    """Pairs without locality, the hardest order for a cache, or those of a sorted graph."""
    rng = np.random.default_rng(0)
    rows, cols = rng.integers(0, n, p), rng.integers(0, n, p)
    if local:
        rows = np.sort(rows)
        cols = np.clip(rows + rng.integers(-50, 51, p), 0, n - 1)
    rows, cols = cpu.index_array(rows), cpu.index_array(cols)
    pattern = cpu.Pattern.from_pairs(rows, cols, n)
    w, factor = rng.standard_normal(p), rng.standard_normal((n, rank))
    return Case("local" if local else "random", n, rows, cols, pattern, w, factor)


def _read_rate(case: Case, threads: int, repeat: int) -> float:
    """GB/s of a loop that reads the two rows of every pair and adds them up."""
    numba.set_num_threads(threads)
    call = partial(_read_rows, case.factor, case.rows, case.cols)
    call()
    return case.rows.size * (8 + 2 * case.factor[:1].nbytes) / _best(call, repeat) / 1e9


@numba.njit(parallel=True, fastmath=True)
def _read_rows(U: np.ndarray, rows: np.ndarray, cols: np.ndarray) -> float:
    total = 0.0
    for e in numba.prange(rows.size):
        i, j = rows[e], cols[e]
        partial_sum = 0.0
        for c in range(U.shape[1]):
            partial_sum += U[i, c] + U[j, c]
        total += partial_sum
    return total


@numba.njit(parallel=True)
def _triad(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    for i in numba.prange(a.size):
        a[i] = b[i] + 3.0 * c[i]


def _compiled_seconds(case: Case, kernel: str, threads: int, repeat: int) -> float:
    default, parallel.cores = parallel.cores, lambda: threads
    parallel._pool.cache_clear()
    try:
        call = case.call(kernel, compiled=True)
        call()
        return _best(call, repeat)
    finally:
        parallel.cores = default


def _best(call: Callable[[], Any], repeat: int) -> float:
    return min(measure(call, repeat).all)


def _thread_counts() -> list[int]:
    return sorted({1, min(2, numba.config.NUMBA_NUM_THREADS), numba.config.NUMBA_NUM_THREADS})
