"""Seconds by number of threads: whole fits, and their operations.

    python -m benchmarks.threads --data DIR [--only kta_mnist eigh_784] [--threads 1 2 4 16]

Every measurement has a process of its own, with the number of threads in its environment; nothing
else should run meanwhile.
"""

import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import _fits
from benchmarks.harness import cases
from benchmarks.harness.context import Context
from benchmarks.harness.data import data_folder
from benchmarks.harness.machine import cores
from benchmarks.harness.report import Report, Table
from benchmarks.harness.timing import in_child

TITLE = "Seconds by number of threads"
PAPER = "Not from a paper"

COUNTS = tuple(count for count in (1, 2, 4, 8, 16) if count <= cores())
FEW = 4
"""Larger numbers of threads are compared with the best of up to this many."""
QUICK = ("product_300x300x30", "eigh_100", "ratings_rank_16")


def run(ctx: Context) -> Report:
    """All cases with 1, 2, 4 … threads, up to the number of cores."""
    table = Table("Seconds", columns(COUNTS))
    for case in ctx.pick(CASES, QUICK):
        table.add(*row(case, ctx.data_folder))
    return ctx.report([table], [f"{cores()} cores."])


def columns(threads: Sequence[int]) -> list[str]:
    """The header for these numbers of threads."""
    return ["case", *(f"{k} threads" for k in threads), "most / best of few"]


def row(case: str, folder: Path | None, threads: Sequence[int] = COUNTS) -> list[Any]:
    """Seconds for each number of threads, and the ratio of the last to the best of the first."""
    given = {"case": case, "data": None if folder is None else str(folder)}
    taken = {k: in_child("benchmarks.threads:seconds", given, threads=k).value for k in threads}
    few = min(seconds for k, seconds in taken.items() if k <= FEW)
    return [case, *taken.values(), taken[threads[-1]] / few]


def seconds(case: str, data: str | None) -> float:
    """The time of an operation or of a fit in this process."""
    import gramian as gm

    if case in OPERATIONS:
        make, *sizes = OPERATIONS[case]
        return repeated(make(*sizes))
    gm.minimize(gm.problems.top_eigen(np.eye(3)))  # imports are not part of a fit
    given, options = FITS[case]
    fit = given(data_folder(data))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.perf_counter()
        fit(**options)
        return time.perf_counter() - started


def repeated(call: Callable[[], Any], least: float = 0.3) -> float:
    """The shortest of the calls made in `least` seconds, three at least."""
    call()
    seconds: list[float] = []
    while len(seconds) < 3 or sum(seconds) < least:
        started = time.perf_counter()
        call()
        seconds.append(time.perf_counter() - started)
    return min(seconds)


# --- operations ----------------------------------------------------------------------


def _matrix(rows: int, columns: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((rows, columns))


def _product(m: int, k: int, n: int) -> Callable[[], Any]:
    P, Q = _matrix(m, k), _matrix(k, n)
    return lambda: P @ Q


def _eigh(n: int) -> Callable[[], Any]:
    A = _matrix(n, n)
    return lambda: np.linalg.eigh(A + A.T)


def _cholesky(n: int) -> Callable[[], Any]:
    import scipy.linalg

    A = _matrix(n, n)
    A = A @ A.T + n * np.eye(n)
    return lambda: scipy.linalg.cholesky(A)


def _qr(n: int, k: int) -> Callable[[], Any]:
    import scipy.linalg

    A = _matrix(n, k)
    return lambda: scipy.linalg.qr(A, mode="economic")


def _ratings(rank: int) -> Callable[[], Any]:
    """Residual and gradient of both sides, a million ratings."""
    from gramian.maps import BlockEntries

    rng, shape = np.random.default_rng(0), (6040, 3706)
    rows, cols = np.sort(rng.integers(0, shape[0], 10**6)), rng.integers(0, shape[1], 10**6)
    map, L = BlockEntries(rows, cols, shape), _matrix(sum(shape), rank)
    return lambda: map.adjoint(map.bilinear(L, L), L)


def _neighbours(n: int, d: int) -> Callable[[], Any]:
    from gramian.neighbours import nearest

    X = _matrix(n, d)
    return lambda: nearest(X, 10)


def _impostors(n: int, d: int) -> Callable[[], Any]:
    """All violated triplets of normal samples of ten classes, three targets each."""
    from gramian.constraints import same_class_neighbors
    from gramian.metric._impostors import Impostors

    X, y = _matrix(n, d), np.arange(n) % 10
    near = same_class_neighbors(X, y, 3)
    return lambda: Impostors(0.3 * X, y, near, np.arange(n)).blocks()


OPERATIONS: dict[str, tuple[Any, ...]] = {
    "product_300x300x30": (_product, 300, 300, 30),
    "product_1000x1000x30": (_product, 1000, 1000, 30),
    "product_784x784x784": (_product, 784, 784, 784),
    "product_784x60000x784": (_product, 784, 60_000, 784),
    "product_20000x20": (_product, 20, 20_000, 20),
    **{f"eigh_{n}": (_eigh, n) for n in (100, 300, 784, 1500)},
    **{f"cholesky_{n}": (_cholesky, n) for n in (300, 1500, 3000)},
    "qr_3000x20": (_qr, 3000, 20),
    "qr_10000x100": (_qr, 10_000, 100),
    "ratings_rank_16": (_ratings, 16),
    "ratings_rank_64": (_ratings, 64),
    "neighbours_20000x100": (_neighbours, 20_000, 100),
    "impostors_20000x50": (_impostors, 20_000, 50),
}

FITS: dict[str, tuple[_fits.Given, dict[str, Any]]] = {
    "kta_mnist": (_fits.metric("KTA", "mnist"), {}),
    "dml_eig_usps": (_fits.metric("DMLEig", "usps"), {}),
    "lmnn_waveform": (_fits.metric("LMNN", "waveform"), {}),
    "mvu_1000": (_fits.unfolding(1000, 6), {"tol": 1e-3}),
    "mvu_3000": (_fits.unfolding(3000, 6), {"tol": 1e-3}),
    "npkl_a5a": (_fits.kernel("a5a"), {}),
    "npkl_a9a": (_fits.kernel("a9a"), {}),
    "completion_100k": (_fits.completion("movielens_100k"), {"tol": 1e-3}),
    "completion_1m": (_fits.completion("movielens_1m"), {"tol": 1e-3}),
}

CASES = (*OPERATIONS, *FITS)


if __name__ == "__main__":
    raise SystemExit(cases.main("threads", __doc__, columns, CASES, row, threads=COUNTS))
