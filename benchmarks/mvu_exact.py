"""Maximum variance unfolding of few points: `MVU(max_edge_error=…)` against the exact SDP.

max tr M over M ⪰ 0 with M1 = 0 and d_M(e) = D_e for every edge e, by Clarabel in
centred coordinates; and `MVU`, which keeps its edges as constraints (`gramian.constrained`).
"""

import time
import warnings
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from sklearn.datasets import make_swiss_roll
from sklearn.exceptions import ConvergenceWarning

from benchmarks.harness.context import Context
from benchmarks.harness.report import Report, Table
from gramian.graph import Graph, neighbor_graph
from gramian.linalg.svec import smat, svec
from gramian.manifold import MVU
from gramian.methods.conic_backends import ConeBlock, ConicModel, load_backend

TITLE = "Maximum variance unfolding with exact edges: MVU against Clarabel"
PAPER = "No table of a paper: the equality-constrained MVU of Weinberger and Saul"

SIZES, SIZES_QUICK = (10, 20, 30, 40, 100, 300), (10, 20)
NEIGHBOURS = 4
ERRORS = (1e-3, 1e-4)
TOL, SECONDS = 1e-4, 60.0
"""The gap asked for, and the time of a fit."""
ACCURACY = 1e-9
"""What Clarabel is asked for."""
AGREE = 10.0
"""Variances agree where they differ by at most so many times the edge error allowed."""
LIMIT = 150.0
"""Seconds of a process: Clarabel's end there from 300 points on at the latest."""

NOTES = (
    "Clarabel solves it in a basis of the centred space, where M has order n − 1. Variance is "
    "tr M in units of the mean squared edge; the edge error is the largest |d_M(e) − D_e| / D_e.",
    "Edges that are off by the error allowed change the variance by about as much.",
    "Seconds are those of one call in a process with one thread; MVU's contain its graph. It asks "
    f"for a certified relative gap of {TOL:g}, within {SECONDS:g} s. Clarabel ends after "
    f"{LIMIT:g} s.",
    "Half pipe: a sheet bent to a half cylinder. Swiss roll: scikit-learn's. Cloud: normal in five "
    f"dimensions, which nothing unfolds. {NEIGHBOURS} neighbours each.",
)

Row = dict[str, Any]


def half_pipe(n: int) -> np.ndarray:
    """A sheet bent to a half cylinder."""
    rng = np.random.default_rng(0)
    along, across = rng.uniform(0, np.pi, n), rng.uniform(0, 1, n)
    return np.column_stack([np.cos(along), np.sin(along), across])


def roll(n: int) -> np.ndarray:
    """A Swiss roll."""
    return make_swiss_roll(n, random_state=0)[0]


def cloud(n: int) -> np.ndarray:
    """Points of five dimensions."""
    return np.random.default_rng(0).standard_normal((n, 5))


SETS = {"half pipe": half_pipe, "Swiss roll": roll, "cloud": cloud}


def run(ctx: Context) -> Report:
    """Both ways on every set and size."""
    columns = (
        "set", "n", "edges", "method", "variance", "relative to Clarabel's", "largest edge error",
        "rank", "its certified relative gap", "seconds", "agrees",
    )  # fmt: skip
    table = Table("Variance and edges", columns)
    cases = [
        (name, draw(n))
        for name, draw in SETS.items()
        for n in (SIZES_QUICK if ctx.quick else SIZES)
    ]
    for rows in ctx.at_once([partial(_compared, ctx, *case) for case in cases]):
        for row in rows:
            table.add(*row)
    return ctx.report([table], NOTES)


def _compared(ctx: Context, name: str, X: np.ndarray) -> list[tuple[Any, ...]]:
    """Clarabel's row of the table, and one for every edge error allowed."""
    graph = unit_graph(X)
    exact = _answer(ctx, "exact", X=X)
    start = (name, graph.n, len(graph.edges))
    rows = [(*start, "Clarabel", *_cells(exact, exact), None)]
    for error in ERRORS:
        row = _answer(ctx, "kept", X=X, error=error)
        cells = _cells(row, exact)
        off, error_left = cells[1], row.get("edge_error")
        agrees = None if off is None else bool(abs(off) <= AGREE * error and error_left <= error)
        rows.append((*start, f"MVU, max_edge_error={error:g}", *cells, agrees))
    return rows


def _answer(ctx: Context, function: str, **kwargs: Any) -> Row:
    answer = ctx.in_child(f"benchmarks.mvu_exact:{function}", kwargs, LIMIT, threads=1)
    return answer.value if answer.ok else {"error": answer.error}


def _cells(row: Row, exact: Row) -> tuple[Any, ...]:
    if "error" in row:
        return row["error"], *[None] * 5
    relative = row["variance"] / exact["variance"] - 1 if "variance" in exact else None
    rest = (row[key] for key in ("edge_error", "rank", "gap", "seconds"))
    return f"{row['variance']:.8g}", relative, *rest


# --- both ways, in a process of their own ---------------------------------------------


def unit_graph(X: np.ndarray) -> Graph:
    """The connected graph, with edges of mean square 1."""
    graph = neighbor_graph(X, NEIGHBOURS, connect="mst")
    return Graph(graph.n, graph.edges, graph.sq_distances / graph.sq_distances.mean())


def kept(X: np.ndarray, error: float) -> Row:
    """MVU with its edges as constraints."""
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        fitted = MVU(n_neighbors=NEIGHBOURS, max_edge_error=error, tol=TOL, time_limit=SECONDS).fit(
            X
        )
    seconds = time.perf_counter() - start
    return {
        "variance": float(np.sum(fitted.kernel_factor_**2) / fitted.graph_.sq_distances.mean()),
        "edge_error": fitted.edge_error_,
        "rank": fitted.kernel_factor_.shape[1],
        "gap": fitted.certificate_.relative_gap,
        "seconds": seconds,
    }


def exact(X: np.ndarray) -> Row:
    """The SDP by Clarabel: M = VNVᵀ, V a basis of the centred space, N ⪰ 0."""
    graph = unit_graph(X)
    start = time.perf_counter()
    V = scipy.linalg.null_space(np.ones((1, graph.n)))
    i, j = graph.edges.T
    gaps = V[i] - V[j]
    rows = sp.csr_array(np.array([svec(np.outer(gap, gap)) for gap in gaps]))
    size, order = rows.shape[1], graph.n - 1
    edges = ConeBlock("zero", rows, -graph.sq_distances)
    cone = ConeBlock("semidefinite", sp.csr_array(sp.eye_array(size)), np.zeros(size), order)
    model = ConicModel(sp.csc_array((size, size)), -svec(np.eye(order)), (edges, cone))
    answer = load_backend("clarabel")(model, ACCURACY, np.inf, True)
    values, vectors = np.linalg.eigh(smat(answer.x, order))
    N = (vectors * np.maximum(values, 0.0)) @ vectors.T
    found = np.einsum("ea,ab,eb->e", gaps, N, gaps)
    lengths = np.where(graph.sq_distances > 0, graph.sq_distances, 1.0)
    return {
        "variance": float(np.trace(N)),
        "edge_error": float(np.max(np.abs(found - graph.sq_distances) / lengths)),
        "rank": int(np.sum(values > 1e-6 * values[-1])),
        "gap": None,
        "seconds": time.perf_counter() - start,
    }
