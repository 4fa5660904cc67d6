"""SQLP thesis, Table 3.2: RegPCP's quadratic on USPS as SCSDP, as SQLP, as it stands, and by auto.

Σ_S ((QYQᵀ)_ij − t_ij)² over Y ⪰ 0, with the m smoothest eigenvectors Q of the normalised Laplacian
of the 20-NN graph of 2000 images, S their diagonal and 1100 links. Table 3.1 is the same for RegMVU
in `sqlp_table31`, with auto in `regmvu_auto`; the formulations are those listed there.
"""

import statistics
import time
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import eigsh

import gramian as gm
from benchmarks._models import random_pairs
from benchmarks.harness.context import Context
from benchmarks.harness.report import Report, Table, Versus
from benchmarks.sqlp_table31 import DIGITS, METHODS, Method
from gramian.constraints import nearest_others
from gramian.graph import neighbor_graph

TITLE = "QSDP as SCSDP, as SQLP, as a quadratic objective and by auto: RegPCP on USPS"
PAPER = "SQLP (Wu 2011), Table 3.2"
NEEDS_DATA = ("usps",)

PRINTED: dict[int, dict[str, tuple[float, int]]] = {
    # m: formulation -> (seconds, iterations), CSDP for SCSDP and SDPT3 for SQLP
    10: {"scsdp": (2.84, 21), "sqlp": (0.47, 16)},
    15: {"scsdp": (42.96, 22), "sqlp": (1.26, 17)},
    20: {"scsdp": (461.38, 27), "sqlp": (3.35, 17)},
    25: {"scsdp": (2572.72, 31), "sqlp": (5.97, 14)},
    30: {"scsdp": (10576.01, 30), "sqlp": (15.72, 19)},
    40: {"sqlp": (133.58, 20)},
    50: {"sqlp": (362.24, 16)},
    60: {"sqlp": (936.58, 19)},
    80: {"sqlp": (1784.12, 17)},
    100: {"sqlp": (2900.44, 17)},
}

OF_EACH, NEIGHBOURS, LINKS = 200, 20, 20
"""Images of each digit, and links of each class and of each two classes."""
SIZES, SIZES_QUICK = tuple(PRINTED), (10, 15, 20)
LIMIT, LIMIT_QUICK = 30.0, 15.0
STARTUP = 15.0
"""Seconds a child may spend beside its limit."""
TOL = 1e-8
REPEAT_BELOW = 5.0
"""Seconds: calls are repeated while they took less than this together."""

AUTO = Method("auto", "auto", {}, SIZES[-1])
FORMULATIONS = tuple(
    replace(method, largest=SIZES[-1])
    for method in METHODS
    if method.solver in ("scsdp", "sqlp", "conic") and method.options.get("compress", True)
)

NOTES = (
    f"The first {OF_EACH} training images of each digit; weights exp(−d²/2σ²) between {NEIGHBOURS} "
    f"nearest neighbours, σ the mean distance to the {NEIGHBOURS}th; {LINKS} must-links of each "
    f"class and {LINKS} cannot-links of each two classes at random, which with the diagonal makes "
    "3100 squares.",
    "Seconds are medians of whole calls of `minimize`: rows, their QR factorisation, the conic "
    "solver, the certificate. The basis Q is timed apart. One thread.",
    "SCSDP whole cone: a semidefinite cone of order m(m+1)/2 + 1, as in the thesis but for the QR "
    "factorisation (m² + 1 there). Decomposed: Clarabel splits the arrow into cones of order 2.",
    "The certified relative gap is that of gramian's certificate at the answer, not what a solver "
    "says of itself.",
    "A method that has failed or timed out is not tried at larger m. The paper's seconds are "
    "another machine's.",
)

Row = dict[str, Any]
Found = dict[Method, dict[int, Row]]


def run(ctx: Context) -> Report:
    """Every method at every m it reaches, each in a process of its own."""
    sizes = SIZES_QUICK if ctx.quick else SIZES
    limit = LIMIT_QUICK if ctx.quick else LIMIT
    X, y = _images(ctx)
    must, cannot = constraints(y)
    values, basis, seconds = smooth_basis(X, sizes[-1])
    given = {"basis": basis, "must": must, "cannot": cannot}
    found = {method: _series(ctx, method, sizes, limit, given) for method in (*FORMULATIONS, AUTO)}
    told = Table("The basis", ("m", "seconds of eigsh", "λ_1", "λ_m"))
    told.add(sizes[-1], seconds, float(values[0]), float(values[-1]))
    tables = [_verdicts(found, sizes), _seconds(found, sizes)]
    tables += [*(_table(found, m) for m in sizes), told]
    _curves(ctx, found)
    return ctx.report(tables, (*NOTES, f"Limit: {limit:g} s a call."))


# --- the problem ---------------------------------------------------------------------


def _images(ctx: Context) -> tuple[np.ndarray, np.ndarray]:
    data = ctx.load("usps")
    first = [np.flatnonzero(data.y == digit)[:OF_EACH] for digit in range(10)]
    rows = np.concatenate(first)
    return data.X[rows], data.y[rows]


def constraints(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """20 random pairs of each class, and 20 of each two classes."""
    rng = np.random.default_rng(0)
    classes = [np.flatnonzero(y == label) for label in np.unique(y)]
    must = [members[random_pairs(y[members], True, LINKS, rng)] for members in classes]
    both = [np.concatenate(two) for two in combinations(classes, 2)]
    cannot = [members[random_pairs(y[members], False, LINKS, rng)] for members in both]
    return np.vstack(must), np.vstack(cannot)


def smooth_basis(X: np.ndarray, m: int) -> tuple[np.ndarray, np.ndarray, float]:
    """The m smallest eigenvalues of the normalised Laplacian, their vectors, and the seconds."""
    graph = neighbor_graph(X, NEIGHBOURS, connect="components")
    last = nearest_others(X, NEIGHBOURS, False)[:, -1]
    sigma = float(np.mean(np.linalg.norm(X - X[last], axis=1)))
    laplacian = graph.laplacian(graph.weights(np.sqrt(2.0) * sigma), normalized=True)
    start = time.perf_counter()
    v0 = np.cos(np.arange(len(X)))
    values, vectors = eigsh(sp.csc_array(laplacian), k=m, sigma=-1e-6, v0=v0)
    order = np.argsort(values)
    return values[order], vectors[:, order], time.perf_counter() - start


# --- one method at one m, in a process of its own ------------------------------------


def solve(
    basis: np.ndarray,
    must: np.ndarray,
    cannot: np.ndarray,
    solver: str,
    options: dict[str, Any],
    repeat: int,
) -> Row:
    """Median seconds of `minimize`, and what is proved of its last answer."""
    problem = gm.problems.reg_pcp(basis, must, cannot)
    seconds: list[float] = []
    while len(seconds) < repeat and sum(seconds) < REPEAT_BELOW:
        result = gm.minimize(problem, solver, tol=TOL, **options)
        seconds.append(result.seconds)
    inner = "conic_iterations" in result.history.columns
    return {
        "seconds": statistics.median(seconds),
        "iterations": int(result.history["conic_iterations"][-1]) if inner else result.iterations,
        "value": result.value,
        "relative_gap": result.certificate.relative_gap,
        "rank": result.rank,
        "status": result.status.name,
    }


def _series(
    ctx: Context, method: Method, sizes: tuple[int, ...], limit: float, given: dict[str, Any]
) -> dict[int, Row]:
    options = {**method.options, "time_limit": limit} if method is AUTO else method.options
    found: dict[int, Row] = {}
    for m in sizes:
        kwargs = {**given, "basis": given["basis"][:, :m], "solver": method.solver,
                  "options": options, "repeat": ctx.repeat}  # fmt: skip
        timeout = limit + STARTUP
        answer = ctx.in_child("benchmarks.sqlp_table32:solve", kwargs, timeout, threads=1)
        found[m] = answer.value if answer.ok else {"status": answer.error}
        if not answer.ok or found[m]["seconds"] > limit:
            break
    return found


# --- tables --------------------------------------------------------------------------


def _verdicts(found: Found, sizes: tuple[int, ...]) -> Table:
    """What the figures say, computed from them."""
    columns = (
        "m", "methods that ended", "their F agree to", "8 digits", "auto's certified gap",
        f"≤ {TOL:g}", "auto's seconds", "SQLP by Clarabel ÷ auto", "fastest certified",
    )  # fmt: skip
    table = Table("Verdicts", columns)
    by_label = {method.label: series for method, series in found.items()}
    for m in sizes:
        ended = {label: rows[m] for label, rows in by_label.items() if "value" in rows.get(m, {})}
        auto, sqlp = (ended.get(label, {}) for label in ("auto", "SQLP, Clarabel"))
        values = [row["value"] for row in ended.values()]
        spread = (max(values) - min(values)) / abs(min(values)) if len(values) > 1 else None
        gap = auto.get("relative_gap")
        ratio = sqlp["seconds"] / auto["seconds"] if auto and sqlp else None
        table.add(
            m,
            len(ended),
            spread,
            None if spread is None else bool(spread <= DIGITS),
            gap,
            gap is not None and gap <= TOL,
            auto.get("seconds"),
            ratio,
            _fastest(ended),
        )
    return table


def _fastest(rows: dict[str, Row]) -> str | None:
    """Of those with a certified gap as asked for."""
    proved = {
        label: row["seconds"]
        for label, row in rows.items()
        if row["relative_gap"] is not None and row["relative_gap"] <= TOL
    }
    return min(proved, key=proved.__getitem__, default=None)


def _seconds(found: Found, sizes: tuple[int, ...]) -> Table:
    table = Table("Seconds", ("method", *(f"m = {m}" for m in sizes)))
    for method, series in found.items():
        table.add(method.label, *(series.get(m, {}).get("seconds") for m in sizes))
    return table


def _table(found: Found, m: int) -> Table:
    columns = (
        "method", "seconds", "iterations", "F", "(F − best) / F", "rank",
        "certified relative gap", f"≤ {TOL:g}", "status",
    )  # fmt: skip
    table = Table(f"m = {m}", columns)
    ended = [row[m]["value"] for row in found.values() if "value" in row.get(m, {})]
    best = min(ended, default=np.nan)
    for method, series in found.items():
        if m not in series:
            continue
        row = series[m]
        value, gap = row.get("value"), row.get("relative_gap")
        seconds, iterations = _printed(method, m)
        table.add(
            method.label,
            Versus(row.get("seconds"), seconds),
            Versus(row.get("iterations"), iterations),
            None if value is None else f"{value:.10g}",
            None if value is None else (value - best) / abs(best),
            row.get("rank"),
            gap,
            gap is not None and gap <= TOL,
            row["status"],
        )
    return table


def _printed(method: Method, m: int) -> tuple[float | None, int | None]:
    """Seconds and iterations of the thesis for the formulation."""
    return PRINTED[m].get(method.printed, (None, None))


def _curves(ctx: Context, found: Found) -> None:
    """Seconds against m, the thesis' Figure 3.3."""
    curves = {}
    for method, series in found.items():
        times = {m: row["seconds"] for m, row in series.items() if "seconds" in row}
        if times:
            curves[method.label] = (list(times), list(times.values()))
    caption = "Seconds of a call against m"
    ctx.plot("seconds", curves, "m", "seconds", logx=True, logy=True, caption=caption)
