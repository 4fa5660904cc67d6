"""Approximate neighbours of very many samples by faiss, with the estimated recall.

The samples are projected to their principal directions, an inverted file of the projections
gives candidates, and the nearest of those by the full distances are taken. A sample of the queries
is also searched exactly: the fraction found is the recall.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.common.types import Array, Indices
from gramian.common.warnings import warn

APPROXIMATE_FROM = 50_000
"""Number of samples from which ``approximate=True`` has an effect: fewer are searched exactly."""

DIRECTIONS = 64
"""Number of principal directions."""

CANDIDATES_PER_NEIGHBOUR = 5
"""Candidates per neighbour."""

CELLS_PER_QUERY = 16
"""Cells of the inverted file searched per query, of 4√n."""

RECALL_QUERIES = 500
"""Number of queries that are also searched exactly."""


def search(
    X: Any, queries: Any, k: int, marks: tuple[Indices, Indices]
) -> tuple[Indices, Array, float]:
    """Near rows of X for each query, their squared distances, and the recall on a sample.

    Pairs of equal marks are excluded; each mark belongs to at most one sample.
    """
    index = _faiss()
    backend = import_module("gramian.arrays.neighbours")
    candidates = _candidates(index, X, queries, CANDIDATES_PER_NEIGHBOUR * k + 1)
    found, squares = backend.nearest_among(X, queries, candidates, k, marks)
    short = np.flatnonzero(found[:, -1] < 0)
    if short.size:
        found[short], squares[short] = _exactly(backend, X, queries, k, marks, short)
    recall = _recall(backend, X, queries, k, marks, found)
    if recall < 0.9:
        warn(
            f"the approximate search finds about {recall:.0%} of the nearest neighbours here: pass "
            "approximate=False to find all",
        )
    return found, squares, recall


def _candidates(faiss: Any, X: Any, queries: Any, count: int) -> Indices:
    """Candidates by an inverted file in the principal directions."""
    project = _projection(X)
    points = project(X)
    n, width = points.shape
    coarse = faiss.IndexFlatL2(width)
    index = faiss.IndexIVFFlat(coarse, width, int(4 * np.sqrt(n)))
    # Twice as many iterations and points take four times as long and find 0.2 % more.
    index.cp.niter, index.cp.seed = 4, 0
    index.cp.min_points_per_centroid, index.cp.max_points_per_centroid = 1, 32
    index.train(points)
    index.add(points)
    index.nprobe = CELLS_PER_QUERY
    asked = points if queries is X else project(queries)
    return index.search(asked, min(count, n))[1]


def _projection(X: Any) -> Any:
    """The map of rows to the leading principal directions of a sample of X, in float32."""
    rows = np.linspace(0, X.shape[0] - 1, min(X.shape[0], 10_000)).astype(np.intp)
    few = np.asarray(X[rows].toarray() if sp.issparse(X) else X[rows])
    mean = few.mean(axis=0, dtype=np.float64).astype(X.dtype)
    few = few - mean
    basis = np.ascontiguousarray(np.linalg.eigh(few.T @ few)[1][:, ::-1][:, :DIRECTIONS])
    offset = mean @ basis

    def project(rows: Any) -> NDArray[np.float32]:
        return np.ascontiguousarray(np.asarray(rows @ basis) - offset, dtype=np.float32)

    return project


def _recall(
    backend: Any, X: Any, queries: Any, k: int, marks: tuple[Indices, Indices], found: Indices
) -> float:
    """The fraction of the true neighbours that were found, on a sample of the queries."""
    n = queries.shape[0]
    some = np.unique(np.linspace(0, n - 1, min(n, RECALL_QUERIES)).astype(np.intp))
    true, _ = _exactly(backend, X, queries, k, marks, some)
    hits = (found[some][:, :, None] == true[:, None, :]).any(axis=2)
    return float(hits.mean())


def _exactly(
    backend: Any, X: Any, queries: Any, k: int, marks: tuple[Indices, Indices], some: Indices
) -> tuple[Indices, Array]:
    return backend.search(X, queries[some], k, (marks[0], marks[1][some]))


def _faiss() -> Any:
    try:
        return import_module("faiss")
    except ImportError as missing:
        raise ImportError(
            f"approximate=True from {APPROXIMATE_FROM:,} samples on needs faiss: pip install "
            "'gramian[neighbours]', or pass approximate=False for the exact search"
        ) from missing
