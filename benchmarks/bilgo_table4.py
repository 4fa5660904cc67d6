"""BILGO, Table 4: Newton–CG and Newton–Lanczos against ARPACK for the leading eigenvector.

The paper says only that A is "generated randomly". Two readings are shown: symmetrised uniform
entries (MATLAB's ``rand``), whose leading eigenvalue d/2 is far above the rest, and symmetric
Gaussian entries, whose leading eigenvalue has no gap.
"""

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from benchmarks.harness.context import Context
from benchmarks.harness.report import Report, Table, Versus
from gramian.linalg import leading_eigenpair

TITLE = "Leading eigenvector: Newton–CG and Newton–Lanczos against ARPACK"
PAPER = "BILGO (Hao, Yuan, Ghanem 2013), Table 4"

PRINTED: dict[int, dict[str, tuple[float, float]]] = {
    d: dict(zip(("eigs", "newton-cg", "newton-lanczos"), row, strict=True))
    for d, row in {
        1000: ((0.0, 0.23), (2.17e-16, 0.72), (2.77e-16, 0.41)),
        2000: ((0.0, 1.35), (1.11e-15, 2.80), (1.55e-15, 1.30)),
        3000: ((1.58e-16, 3.91), (6.61e-15, 6.19), (0.0, 3.51)),
        4000: ((3.57e-15, 16.01), (0.0, 14.62), (3.16e-15, 11)),
        5000: ((1.71e-15, 9.82), (2.08e-14, 19.38), (0.0, 9.44)),
        6000: ((0.0, 17.35), (1.24e-14, 41.65), (1.67e-15, 12.72)),
        7000: ((4.13e-16, 37.31), (7.22e-15, 49.76), (0.0, 26.66)),
        8000: ((0.0, 39.42), (2.07e-14, 75.19), (8.87e-15, 27.03)),
        9000: ((3.82e-15, 65.56), (5.10e-15, 120.1), (0.0, 46.17)),
    }.items()
}
"""By d and method, accuracy and seconds."""
QUICK = 1000
TOL, TIGHT = 1e-6, 1e-8

NOTES = (
    "Accuracy is |1 − best / vᵀAv|, best being the largest Rayleigh quotient of any method.",
    "The paper stops at a relative change of f below 1e-12; here a tolerance bounds the residual "
    "relative to the norm. The 1e-8 rows reach the paper's accuracy and have its figures.",
    "Uniform: every method of ours ends within its six-step Lanczos probe (seven products), so no "
    "Newton step is taken; eigsh builds 20 vectors before its first test.",
    "Newton–Lanczos's step is exact over the whole Lanczos basis, Newton–CG's is the paper's line "
    "search. Products are reproducible; on a busy machine the seconds are not.",
)

Matrix = np.ndarray
Solver = Callable[[Matrix], tuple[np.ndarray, int]]
"""The unit vector that a method returns and the number of its products."""


def uniform(d: int) -> Matrix:
    a = np.random.default_rng(d).random((d, d))
    return (a + a.T) / 2


def gaussian(d: int) -> Matrix:
    a = np.random.default_rng(d).standard_normal((d, d))
    return (a + a.T) / 2


def arpack(tol: float, a: Matrix) -> tuple[np.ndarray, int]:
    """SciPy's eigsh at a tolerance; 0 is its default, machine precision."""
    products = 0

    def matvec(v: np.ndarray) -> np.ndarray:
        nonlocal products
        products += 1
        return a @ v

    operator = LinearOperator(a.shape, matvec=matvec, dtype=a.dtype)
    start = np.random.default_rng(1).random(len(a))
    _, vectors = eigsh(operator, k=1, which="LA", tol=tol, v0=start)
    return vectors[:, 0], products


def ours(method: str, tol: float, a: Matrix) -> tuple[np.ndarray, int]:
    """One of gramian's methods at a tolerance, from the paper's start rand(d, 1)."""
    v0 = np.random.default_rng(1).random(len(a))
    pair = leading_eigenpair(a, method=method, v0=v0, tol=tol, random_state=0)
    return pair.vector, pair.products


METHODS: dict[str, tuple[Solver, str | None]] = {
    "eigsh (default)": (partial(arpack, 0.0), "eigs"),
    "eigsh 1e-6": (partial(arpack, TOL), None),
    "newton-cg 1e-6": (partial(ours, "newton-cg", TOL), None),
    "newton-lanczos 1e-6": (partial(ours, "newton-lanczos", TOL), None),
    "krylov 1e-6": (partial(ours, "krylov", TOL), None),
    "newton-cg 1e-8": (partial(ours, "newton-cg", TIGHT), "newton-cg"),
    "newton-lanczos 1e-8": (partial(ours, "newton-lanczos", TIGHT), "newton-lanczos"),
}
"""Solver, and the paper's column for it."""


def run(ctx: Context) -> Report:
    """Every method on every size and kind of matrix."""
    sizes = [d for d in PRINTED if d <= QUICK or not ctx.quick]
    return ctx.report([_table(ctx, draw, sizes) for draw in (uniform, gaussian)], NOTES)


def _table(ctx: Context, draw: Callable[[int], Matrix], sizes: list[int]) -> Table:
    columns = (
        "d", "method", "accuracy", "seconds", "time / eigsh", "time / eigsh 1e-6", "products"
    )  # fmt: skip
    caption = f"{draw.__name__} random symmetric matrix (median of {ctx.repeat})"
    table = Table(caption, columns)
    for d in sizes:
        a = draw(d)
        timings = {label: ctx.measure(partial(solve, a)) for label, (solve, _) in METHODS.items()}
        values = {label: _rayleigh(a, t.result[0]) for label, t in timings.items()}
        best = max(values.values())
        default, loose = (timings[x].median for x in ("eigsh (default)", "eigsh 1e-6"))
        for label, (_, column) in METHODS.items():
            accuracy, seconds = PRINTED[d][column] if column else (None, None)
            median = timings[label].median
            table.add(
                d, label, Versus(abs(1 - best / values[label]), accuracy), Versus(median, seconds),
                Versus(median / default, seconds and seconds / PRINTED[d]["eigs"][1]),
                median / loose, timings[label].result[1],
            )  # fmt: skip
    return table


def _rayleigh(a: Matrix, v: np.ndarray) -> float:
    return float(v @ (a @ v) / (v @ v))
