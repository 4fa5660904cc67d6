"""Seconds by number of threads: whole fits, and the operations that they are made of.

    python -m benchmarks.threads --data DIR [--only kta_mnist eigh_784] [--threads 1 2 4 16]

Every measurement is a process of its own, with the number of threads in its environment, as a user
would set it; nothing else should run meanwhile. A line has the seconds of each number and their
ratio to the best of up to four threads.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parents[1]
FEW = 4
"""The best of up to this many threads is what more of them are compared with."""
VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
LIMIT = 120.0


def main(argv: Sequence[str] | None = None) -> int:
    """Measure what is asked for and print a line for each case."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.threads", description=__doc__)
    parser.add_argument("--data", help="the folder of data sets; GRAMIAN_DATA otherwise")
    parser.add_argument("--only", nargs="+", metavar="CASE", help="these cases alone")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2, 4, 16])
    parser.add_argument("--out", type=Path, help="a file for the figures, JSON")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.data:
        os.environ["GRAMIAN_DATA"] = options.data
    if options.one:
        print(json.dumps(_measured(options.one)))
        return 0
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    counts = [count for count in options.threads if count <= (cores or 1)]
    print("case".ljust(24), *(f"{count:>9d}" for count in counts), "  most/best of few")
    found = {}
    for case in options.only or [*OPERATIONS, *FITS]:
        found[case] = {count: _with_threads(case, count) for count in counts}
        _tell(case, found[case])
    if options.out:
        options.out.write_text(json.dumps(found, indent=1))
    return 0


def _tell(case: str, seconds: dict[int, float]) -> None:
    best = min(taken for count, taken in seconds.items() if count <= FEW)
    ratio = seconds[max(seconds)] / best
    print(
        case.ljust(24),
        *(f"{taken:9.4f}" for taken in seconds.values()),
        f"{ratio:8.2f}",
        flush=True,
    )


def _with_threads(case: str, count: int) -> float:
    environment = {**os.environ, **{name: str(count) for name in VARIABLES}}
    command = [sys.executable, "-m", "benchmarks.threads", "--one", case]
    done = subprocess.run(command, cwd=HERE, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{case} with {count} threads failed:\n{done.stderr}")
    return float(json.loads(done.stdout.splitlines()[-1]))


def _measured(case: str) -> float:
    import gramian as gm

    if case in OPERATIONS:
        return _repeated(OPERATIONS[case]())
    gm.minimize(gm.problems.top_eigen(np.eye(3)))  # imports are no part of a fit
    fit = FITS[case]()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        started = time.perf_counter()
        fit()
        return time.perf_counter() - started


def _repeated(act: Callable[[], Any], least: float = 0.3) -> float:
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
}


# --- fits ----------------------------------------------------------------------------


def _arrays(name: str) -> dict[str, np.ndarray]:
    from benchmarks.harness.data import data_folder, load_arrays

    return load_arrays(name, data_folder(None))


def _labelled(name: str, most: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    data = _arrays(name)
    return data["X"][:most].astype(float), data["y"][:most]


def _kta() -> Callable[[], Any]:
    from gramian.metric import KTA

    X, y = _labelled("mnist")
    return lambda: KTA().fit(X, y)


def _dml_eig() -> Callable[[], Any]:
    from gramian.metric import DMLEig

    X, y = _labelled("usps")
    return lambda: DMLEig(random_state=0, time_limit=LIMIT).fit(X, y)


def _lmnn() -> Callable[[], Any]:
    from gramian.metric import LMNN

    X, y = _labelled("waveform")
    return lambda: LMNN(random_state=0, time_limit=LIMIT).fit(X, y)


def _unfolding(n: int, tol: float) -> Callable[[], Any]:
    from gramian.manifold import MVU

    X = _arrays("mnist")["X"][:n].astype(float)
    return lambda: MVU(n_neighbors=6, tol=tol, time_limit=LIMIT, random_state=0).fit(X)


def _links(name: str) -> Callable[[], Any]:
    from benchmarks.harness.data import data_folder, load_set
    from gramian.kernel import NPKL

    data = load_set(name, data_folder(None))
    X, y = data.X, data.y
    rng = np.random.default_rng(0)
    known = np.full(len(y), -1)
    shown = rng.choice(len(y), 400, replace=False)
    known[shown] = (y[shown] > 0).astype(int)
    return lambda: NPKL(n_clusters=2, random_state=0, time_limit=LIMIT).fit(X, known)


def _completion(name: str) -> Callable[[], Any]:
    from gramian.completion import NuclearCompletion

    data = _arrays(name)
    ratings = (data["user"], data["item"], data["rating"].astype(float))
    return lambda: NuclearCompletion(tol=1e-3, time_limit=LIMIT, random_state=0).fit(ratings)


FITS: dict[str, Callable[[], Callable[[], Any]]] = {
    "kta_mnist": _kta,
    "dml_eig_usps": _dml_eig,
    "lmnn_waveform": _lmnn,
    "mvu_1000": lambda: _unfolding(1000, 1e-3),
    "mvu_3000": lambda: _unfolding(3000, 1e-3),
    "npkl_a5a": lambda: _links("a5a"),
    "completion_100k": lambda: _completion("movielens_100k"),
    "completion_1m": lambda: _completion("movielens_1m"),
}


if __name__ == "__main__":
    sys.exit(main())
