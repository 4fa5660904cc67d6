"""Maximum variance unfolding of few points: `MVU(max_edge_error=…)` against the exact SDP.

max tr M over M ⪰ 0 with M1 = 0 and d_M(e) = D_e for every edge e, by Clarabel in centred
coordinates; and by `MVU` with its edges as constraints (`gramian.constrained`).
"""

import time
from functools import partial
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from sklearn.datasets import make_swiss_roll

from benchmarks.harness.context import Context
from benchmarks.harness.learn import fitted
from benchmarks.harness.report import Report, Table
from gramian.graph import Graph, neighbor_graph
from gramian.linalg.svec import smat, svec
from gramian.manifold import MVU
from gramian.methods.conic_backends import ConeBlock, ConicModel, load_backend

TITLE = "Maximum variance unfolding with exact edges: MVU against Clarabel"
PAPER = "Not from a paper: the equality-constrained MVU of Weinberger and Saul"

SIZES = (10, 20, 30, 40, 100, 300), (10,)
NEIGHBOURS, ERRORS = 4, (1e-3, 1e-4)
TOL, SECONDS, ACCURACY = 1e-4, 60.0, 1e-9
"""Gap and time limit of MVU; accuracy of Clarabel."""
AGREE = 10.0
"""Variances agree if they differ by at most this many times the allowed edge error."""
LIMIT = 150.0
"""Seconds of a process, which Clarabel exceeds from 300 points on."""

NOTES = (
    "Clarabel solves it in a basis of the centred space, where M has order n − 1. Variance is "
    "tr M in units of the mean squared edge; the edge error is the largest |d_M(e) − D_e| / D_e. "
    "Edge errors change the variance by about as much.",
    "Seconds: one call in a process with one thread; MVU's contain its graph, to a certified "
    f"relative gap of {TOL:g} within {SECONDS:g} s. Clarabel is stopped after {LIMIT:g} s.",
    "Half pipe: a sheet bent to a half cylinder. Swiss roll: scikit-learn's. Cloud: normal in five "
    f"dimensions, which nothing unfolds. {NEIGHBOURS} neighbours each.",
)

Row = dict[str, Any]


def half_pipe(n: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    along, across = rng.uniform(0, np.pi, n), rng.uniform(0, 1, n)
    return np.column_stack([np.cos(along), np.sin(along), across])


SETS = {
    "half pipe": half_pipe,
    "Swiss roll": lambda n: make_swiss_roll(n, random_state=0)[0],
    "cloud": lambda n: np.random.default_rng(0).standard_normal((n, 5)),
}


def run(ctx: Context) -> Report:
    """Both methods on every set and size."""
    columns = (
        "set", "n", "edges", "method", "variance", "relative to Clarabel's", "largest edge error",
        "rank", "its certified relative gap", "seconds", "agrees",
    )  # fmt: skip
    cases = [(name, draw(n)) for name, draw in SETS.items() for n in ctx.pick(*SIZES)]
    found = ctx.at_once([partial(_compared, ctx, *case) for case in cases])
    rows = [row for of_case in found for row in of_case]
    return ctx.report([Table("Variance and edges", columns, rows)], NOTES)


def _compared(ctx: Context, name: str, X: np.ndarray) -> list[tuple[Any, ...]]:
    """Clarabel's row of the table, and one for every allowed edge error."""
    graph = unit_graph(X)
    reference = _answer(ctx, exact, X=X)
    start = (name, graph.n, len(graph.edges))
    rows = [(*start, "Clarabel", *_cells(reference, reference), None)]
    for error in ERRORS:
        row = _answer(ctx, kept, X=X, error=error)
        cells = _cells(row, reference)
        agrees = None
        if cells[1] is not None:
            agrees = bool(abs(cells[1]) <= AGREE * error and row["edge_error"] <= error)
        rows.append((*start, f"MVU, max_edge_error={error:g}", *cells, agrees))
    return rows


def _answer(ctx: Context, function: Any, **kwargs: Any) -> Row:
    answer = ctx.child(function, LIMIT, **kwargs)
    return answer.value if answer.ok else {"error": answer.error}


def _cells(row: Row, reference: Row) -> tuple[Any, ...]:
    if "error" in row:
        return row["error"], *[None] * 5
    known = "variance" in reference
    relative = row["variance"] / reference["variance"] - 1 if known else None
    rest = (row[key] for key in ("edge_error", "rank", "gap", "seconds"))
    return f"{row['variance']:.8g}", relative, *rest


# --- in processes of their own --------------------------------------------------------


def unit_graph(X: np.ndarray) -> Graph:
    """The connected graph, with edges of mean square 1."""
    graph = neighbor_graph(X, NEIGHBOURS, connect="mst")
    return Graph(graph.n, graph.edges, graph.sq_distances / graph.sq_distances.mean())


def kept(X: np.ndarray, error: float) -> Row:
    """MVU with its edges as constraints."""
    options = {"n_neighbors": NEIGHBOURS, "tol": TOL, "time_limit": SECONDS}
    model, seconds = fitted(MVU(max_edge_error=error, **options), X)
    return {
        "variance": float(np.sum(model.kernel_factor_**2) / model.graph_.sq_distances.mean()),
        "edge_error": model.edge_error_,
        "rank": model.kernel_factor_.shape[1],
        "gap": model.certificate_.relative_gap,
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
