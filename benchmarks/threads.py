"""Seconds by number of threads: whole fits, and the operations that they are made of.

    python -m benchmarks.threads --data DIR [--only kta_mnist eigh_784] [--threads 1 2 4 16]

Every measurement is a process of its own, with the number of threads in its environment, as a user
would set it; nothing else should run meanwhile. A line has the seconds of each number, and how the
most threads compare with the best of up to four.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness.context import Context
from benchmarks.harness.data import data_folder, load_arrays, load_set
from benchmarks.harness.machine import cores
from benchmarks.harness.report import Report, Table
from benchmarks.harness.timing import in_child

TITLE = "Seconds by number of threads"
PAPER = "No table of a paper"

COUNTS = (1, 2, 4, 8, 16)
FEW = 4
"""The best of up to this many threads is what more of them are compared with."""
LIMIT = 120.0
QUICK = ("product_300x300x30", "eigh_100", "ratings_rank_16")


def run(ctx: Context) -> Report:
    """All cases with 1, 2, 4 … threads, as many as there are cores."""
    cases = QUICK if ctx.quick else (*OPERATIONS, *FITS)
    counts = [count for count in COUNTS if count <= cores()]
    table = Table("Seconds", ["case", *(f"{k} threads" for k in counts), "most / best of few"])
    for case in cases:
        seconds = _by_threads(case, counts, ctx.data_folder)
        table.add(case, *seconds, _ratio(seconds, counts))
    return ctx.report([table], [f"{cores()} cores."])


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what is asked for and print a line for each case."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.threads", description=__doc__)
    parser.add_argument("--data", help="the folder of data sets; GRAMIAN_DATA otherwise")
    parser.add_argument("--only", nargs="+", metavar="CASE", help="these cases alone")
    parser.add_argument("--threads", nargs="+", type=int, default=list(COUNTS))
    options = parser.parse_args(argv)
    counts = [count for count in options.threads if count <= cores()]
    print("case".ljust(24), *(f"{count:>9d}" for count in counts), "  most/best of few")
    for case in options.only or (*OPERATIONS, *FITS):
        seconds = _by_threads(case, counts, data_folder(options.data))
        ratio = _ratio(seconds, counts)
        print(case.ljust(24), *(f"{t:9.4f}" for t in seconds), f"{ratio:8.2f}", flush=True)
    return 0


def _by_threads(case: str, counts: Sequence[int], data: Path | None) -> list[float]:
    told = {"case": case, "data": None if data is None else str(data)}
    return [float(in_child("benchmarks.threads:seconds", told, threads=k).value) for k in counts]


def _ratio(seconds: Sequence[float], counts: Sequence[int]) -> float:
    few = [taken for taken, count in zip(seconds, counts, strict=True) if count <= FEW]
    return seconds[-1] / min(few)


def seconds(case: str, data: str | None) -> float:
    """Those of an operation, or of a fit, in this process."""
    import gramian as gm

    if case in OPERATIONS:
        return repeated(OPERATIONS[case]())
    gm.minimize(gm.problems.top_eigen(np.eye(3)))  # imports are no part of a fit
    fit = FITS[case](data_folder(data))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.perf_counter()
        fit()
        return time.perf_counter() - started


def repeated(act: Callable[[], Any], least: float = 0.3) -> float:
    """The shortest of the calls made in `least` seconds, three at least."""
    act()
    seconds: list[float] = []
    begun = time.perf_counter()
    while len(seconds) < 3 or time.perf_counter() - begun < least:
        started = time.perf_counter()
        act()
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


def _ratings_pass(rank: int) -> Callable[[], Any]:
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


OPERATIONS: dict[str, Callable[[], Callable[[], Any]]] = {
    "product_300x300x30": lambda: _product(300, 300, 30),
    "product_1000x1000x30": lambda: _product(1000, 1000, 30),
    "product_784x784x784": lambda: _product(784, 784, 784),
    "product_784x60000x784": lambda: _product(784, 60000, 784),
    "product_20000x20": lambda: _product(20, 20000, 20),
    "eigh_100": lambda: _eigh(100),
    "eigh_300": lambda: _eigh(300),
    "eigh_784": lambda: _eigh(784),
    "eigh_1500": lambda: _eigh(1500),
    "cholesky_300": lambda: _cholesky(300),
    "cholesky_1500": lambda: _cholesky(1500),
    "cholesky_3000": lambda: _cholesky(3000),
    "qr_3000x20": lambda: _qr(3000, 20),
    "qr_10000x100": lambda: _qr(10000, 100),
    "ratings_rank_16": lambda: _ratings_pass(16),
    "ratings_rank_64": lambda: _ratings_pass(64),
    "neighbours_20000x100": lambda: _neighbours(20_000, 100),
    "impostors_20000x50": lambda: _impostors(20_000, 50),
}


# --- fits ----------------------------------------------------------------------------


def _labelled(name: str, folder: Path | None) -> tuple[np.ndarray, np.ndarray]:
    data = load_arrays(name, folder)
    return data["X"].astype(float), data["y"]


def _kta(folder: Path | None) -> Callable[[], Any]:
    from gramian.metric import KTA

    X, y = _labelled("mnist", folder)
    return lambda: KTA().fit(X, y)


def _dml_eig(folder: Path | None) -> Callable[[], Any]:
    from gramian.metric import DMLEig

    X, y = _labelled("usps", folder)
    return lambda: DMLEig(random_state=0, time_limit=LIMIT).fit(X, y)


def _lmnn(folder: Path | None) -> Callable[[], Any]:
    from gramian.metric import LMNN

    X, y = _labelled("waveform", folder)
    return lambda: LMNN(random_state=0, time_limit=LIMIT).fit(X, y)


def _unfolding(folder: Path | None, n: int, tol: float) -> Callable[[], Any]:
    from gramian.manifold import MVU

    X = load_arrays("mnist", folder)["X"][:n].astype(float)
    return lambda: MVU(n_neighbors=6, tol=tol, time_limit=LIMIT, random_state=0).fit(X)


def _links(folder: Path | None, name: str) -> Callable[[], Any]:
    from gramian.kernel import NPKL

    data = load_set(name, folder)
    X, y = data.X, data.y
    rng = np.random.default_rng(0)
    known = np.full(len(y), -1)
    shown = rng.choice(len(y), 400, replace=False)
    known[shown] = (y[shown] > 0).astype(int)
    return lambda: NPKL(n_clusters=2, random_state=0, time_limit=LIMIT).fit(X, known)


def _completion(folder: Path | None, name: str) -> Callable[[], Any]:
    from gramian.completion import NuclearCompletion

    data = load_arrays(name, folder)
    ratings = (data["user"], data["item"], data["rating"].astype(float))
    return lambda: NuclearCompletion(tol=1e-3, time_limit=LIMIT, random_state=0).fit(ratings)


FITS: dict[str, Callable[[Path | None], Callable[[], Any]]] = {
    "kta_mnist": _kta,
    "dml_eig_usps": _dml_eig,
    "lmnn_waveform": _lmnn,
    "mvu_1000": lambda folder: _unfolding(folder, 1000, 1e-3),
    "mvu_3000": lambda folder: _unfolding(folder, 3000, 1e-3),
    "npkl_a5a": lambda folder: _links(folder, "a5a"),
    "npkl_a9a": lambda folder: _links(folder, "a9a"),
    "completion_100k": lambda folder: _completion(folder, "movielens_100k"),
    "completion_1m": lambda folder: _completion(folder, "movielens_1m"),
}


if __name__ == "__main__":
    sys.exit(main())
