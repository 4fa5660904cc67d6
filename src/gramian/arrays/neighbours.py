"""Exact nearest rows by tiles of float32 products and a compiled selection, in threads.

The samples are shifted and scaled to reduce float32 rounding and multiplied tile by tile. The
kernels keep for every query the samples that may be among its k nearest and recompute their
distances in float64 from the differences (`_neighbour_kernels` explains why the result is exact).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from gramian.arrays import _neighbour_kernels as kernels
from gramian.arrays._cache import is_compiled
from gramian.arrays.samples import BLOCK, row_squares
from gramian.arrays.threads import PARTS_PER_THREAD, blas_threads_for, cores
from gramian.common import clock

Array = NDArray[np.floating[Any]]
Indices = NDArray[np.integer[Any]]

FLOAT32 = np.finfo(np.float32)
ROUNDING, UNDERFLOW = float(FLOAT32.eps) / 2, 64 * float(FLOAT32.tiny)

MAX_EXACT_SQUARE = 0.25 / ROUNDING
"""Squared norm up to which integers are exact in float32: sums of four of them are below 2²⁴."""

TILE_SIDE = 496
"""Rows and columns of a tile: 1 MB of float32."""

SPARE_CANDIDATES = 32
"""Size of a pool in addition to three candidates for each neighbour."""

MAX_SHARING_THREADS = 4
"""Threads up to which every product is used for both samples. With more threads, rounds of short
blocks cause waiting, and each thread processes its own queries against all samples."""

Span = tuple[int, int]
Tiles = Callable[[int, int], Array]


# --- queries and references ------------------------------------------------------------


@dataclass(frozen=True)
class ProductCoordinates:
    """The origin and the power of two by which samples are shifted and scaled for products."""

    origin: Array
    scale: float
    terms: float
    """Number of products in a score; 0 if nothing is rounded."""

    @classmethod
    def of(cls, X: Any, others: Any) -> ProductCoordinates:
        """The frame of the rows of X, also suitable for those of `others`."""
        both = (X,) if others is X else (X, others)
        if all(_whole_and_small(rows) for rows in both):
            return cls(np.zeros(X.shape[1]), 1.0, 0.0)
        origin = np.zeros(X.shape[1])
        if not sparse.issparse(X):
            origin = np.asarray(np.mean(X, axis=0, dtype=np.float64))
        size = max(_largest(rows) for rows in both) + _largest(origin)
        return cls(origin, 2.0 ** -np.ceil(np.log2(size)) if size > 0 else 1.0, float(X.shape[1]))

    def put(self, X: Any) -> Any:
        """Rows prepared for products, in float32."""
        if sparse.issparse(X):
            return sparse.csr_array((X * self.scale).astype(np.float32))
        moved = np.empty(X.shape, dtype=np.float32)
        for start in range(0, X.shape[0], BLOCK):
            rows = slice(start, start + BLOCK)
            moved[rows] = self.scale * (X[rows] - self.origin)
        return moved

    def asking(self, squares: Array) -> tuple[Array, Array, Array]:
        """Data of queries for the kernels: ‖x̂‖², and b and a of the error bound.

        A score is within a(x) + b(x)‖ŷ‖ + c(y) of the squared distance, in total

            1.01u [2γ‖x̂‖‖ŷ‖ + 2‖ŷ‖² + 2‖x̂‖‖ŷ‖ + 2(‖x̂‖ + ‖ŷ‖)²],   u = 2⁻²⁴, γ = p/(1 − pu):

        p products summed in any order, the last two operations, and the rounding of both rows to
        float32; the factor 1.01 covers the float64 comparisons.
        """
        if self.terms == 0:
            return squares, np.zeros(squares.size), np.zeros(squares.size)
        gamma = self.terms / (1.0 - self.terms * ROUNDING)
        unit = 1.01 * ROUNDING
        own = 2.0 * unit * squares + self.terms * UNDERFLOW
        return squares, (2.0 * gamma + 6.0) * unit * np.sqrt(squares), own

    def offered(self, squares: Array) -> tuple[Array, Array, Array]:
        """Data of references for the kernels: ‖ŷ‖² in float32, ‖ŷ‖ and c."""
        unit = 1.01 * ROUNDING if self.terms else 0.0
        return squares.astype(np.float32), np.sqrt(squares), 4.0 * unit * squares


@dataclass(frozen=True, eq=False)
class SearchSide:
    """Queries or references: original rows, rows prepared for products, and marks."""

    rows: tuple[Any, ...]
    moved: Any
    marks: Indices

    @classmethod
    def of(cls, X: Any, frame: ProductCoordinates, marks: Indices, names: Indices) -> SearchSide:
        """Rows with their marks and the indices that break ties."""
        return cls(rows_of(X, names), frame.put(X), marks)

    @property
    def n(self) -> int:
        return int(self.marks.size)

    @cached_property
    def squares(self) -> Array:
        """Squared norms of the prepared rows."""
        return row_squares(self.moved)

    def only_mark(self, start: int, stop: int) -> int | None:
        """The common mark of a range of rows, None if they differ."""
        part = self.marks[start:stop]
        return int(part[0]) if part[0] == part[-1] and np.all(part == part[0]) else None


def rows_of(X: Any, names: Indices) -> tuple[Any, ...]:
    """The arguments of kernels: (dense, indptr, indices, data, names), one format empty."""
    if sparse.issparse(X):
        return np.empty((0, 0)), X.indptr, X.indices, X.data, names
    none = np.empty(0, dtype=np.int32)
    return np.ascontiguousarray(X), none, none, np.empty(0), names


def _whole_and_small(X: Any) -> bool:
    """Whether all values are integers with squared norms small enough for float32."""
    blocks = (X[start : start + BLOCK] for start in range(0, X.shape[0], BLOCK))
    return all(
        np.array_equal(_entries(rows), np.rint(_entries(rows)))
        and float(row_squares(rows).max()) < MAX_EXACT_SQUARE
        for rows in blocks
    )


def _largest(X: Any) -> float:
    entries = _entries(X)
    return max(float(entries.max(initial=0.0)), -float(entries.min(initial=0.0)))


def _entries(X: Any) -> Array:
    return np.asarray(X.data if sparse.issparse(X) else X)


# --- the search ------------------------------------------------------------------------


def search(
    X: Any, queries: Any, k: int, marks: tuple[Indices, Indices], *, threads: int | None = None
) -> tuple[Indices, Array]:
    """The k rows of X nearest to each query, by (distance, index), and their squared distances.

    X and the queries are both dense or both CSR with sorted indices. If the queries are X itself,
    with the marks of X, each product is computed once. Pairs of equal marks are excluded; at least
    k others must remain.
    """
    threads = threads or cores()
    frame = ProductCoordinates.of(X, queries)
    if queries is X and marks[0] is marks[1]:
        order = np.argsort(marks[0], kind="stable")  # so that whole tiles can be skipped
        inverse = np.empty_like(order)
        inverse[order] = np.arange(order.size)
        moved = X if np.array_equal(order, inverse) else X[order]
        side = SearchSide.of(moved, frame, marks[0][order], order)
        with blas_threads_for(1):
            task = _Search(side, side, frame, k)
            if threads > MAX_SHARING_THREADS and side.n < TILE_SIDE * PARTS_PER_THREAD * threads:
                task.beside_references(threads)
            else:
                task.beside_themselves(threads)
        return order[task.found][inverse], task.distances[inverse]
    left = SearchSide.of(queries, frame, marks[1], np.arange(queries.shape[0]))
    right = SearchSide.of(X, frame, marks[0], np.arange(X.shape[0]))
    with blas_threads_for(1):
        task = _Search(left, right, frame, k)
        task.beside_references(threads)
    return task.found, task.distances


def nearest_among(
    X: Any,
    queries: Any,
    candidates: Indices,
    k: int,
    marks: tuple[Indices, Indices],
    *,
    threads: int | None = None,
) -> tuple[Indices, Array]:
    """The k nearest of the candidates of each query, and their squared distances.

    Missing candidates have index −1 and infinite distance.
    """
    n, threads = queries.shape[0], threads or cores()
    left, right = rows_of(queries, np.arange(n)), rows_of(X, np.arange(X.shape[0]))
    found, distances = np.full((n, k), -1, dtype=np.int32), np.full((n, k), np.inf)
    given = (candidates, left, right, (marks[1], marks[0]), found, distances)
    _run(lambda *span: kernels.nearest_among(*span, *given), list(_cut(0, n, TILE_SIDE)), threads)
    return found, distances


def ready() -> bool:
    """Whether dense samples can be searched without compilation."""
    return is_compiled(kernels.sweep)


class _Search:
    """The state of every query, and its tiles."""

    def __init__(
        self, left: SearchSide, right: SearchSide, frame: ProductCoordinates, k: int
    ) -> None:
        self.left, self.right = left, right
        pool = 3 * k + SPARE_CANDIDATES
        states = (
            np.full((left.n, k), np.inf),
            np.empty((left.n, pool), dtype=np.int32),
            np.empty((left.n, pool)),
            np.zeros((left.n, 2), dtype=np.int32),
        )
        self.states, self.heaps = states, states[0]
        self.sides, self.square = (left.rows, right.rows), frame.scale**2
        self.known = (frame.asking(left.squares), frame.offered(right.squares))
        self.marks = (left.marks, right.marks)
        self.found = np.empty((left.n, k), dtype=np.int32)
        self.distances = np.empty((left.n, k))

    def beside_themselves(self, threads: int) -> None:
        """Each tile once: blocks in rounds, in each of which no two threads share a block."""
        n = self.left.n
        count = min(-(-n // TILE_SIDE), PARTS_PER_THREAD * threads)
        length = TILE_SIDE * -(-n // (TILE_SIDE * count))
        blocks = list(_cut(0, n, length))
        _run(self._inside, [(block,) for block in blocks], threads)
        for pairs in _rounds(len(blocks)):
            _run(self._between, [(blocks[a], blocks[b]) for a, b in pairs], threads)
        _run(self._finish, [(block,) for block in blocks], threads)

    def beside_references(self, threads: int) -> None:
        """One block of queries at a time, against all references."""
        _run(self._across, [(block,) for block in _cut(0, self.left.n, TILE_SIDE)], threads)

    def _inside(self, block: Span) -> None:
        for query in _cut(*block, TILE_SIDE):
            self._visit(query, [query], both=False)
            self._visit(query, _cut(query[1], block[1], TILE_SIDE), both=True)

    def _between(self, first: Span, second: Span) -> None:
        for query in _cut(*first, TILE_SIDE):
            self._visit(query, _cut(*second, TILE_SIDE), both=True)

    def _across(self, query: Span) -> None:
        self._visit(query, _cut(0, self.right.n, TILE_SIDE), both=False)
        self._finish(query)

    def _visit(self, query: Span, tiles: Iterable[Span], *, both: bool) -> None:
        """Pass the tiles of some queries to the kernels."""
        clock.check()
        mark = self.left.only_mark(*query)
        met = [tile for tile in tiles if mark is None or mark != self.right.only_mark(*tile)]
        if not met:
            return
        rest = (*self.sides, self.square, self.states, *self.known, self.marks)
        if not sparse.issparse(self.left.moved):
            rows = slice(*query)
            places = np.array(met, dtype=np.int64)
            kernels.sweep(places, query[0], both, self.right.moved, self.left.moved[rows], *rest)
            return
        hits = np.empty((TILE_SIDE * -(-TILE_SIDE // kernels.SCORES_PER_CHUNK), 2), dtype=np.int32)
        products = _products(self.right.moved, self.left.moved, query)
        for first, stop in met:
            scores = products(first, stop)
            for rows_ask in (False, True)[: 1 + both]:
                below = kernels.rows_below if rows_ask else kernels.columns_below
                at = (scores, first, query[0])
                count = below(*at, self.heaps, *self.known, hits)
                kernels.offer(*at, rows_ask, hits, count, *rest)

    def _finish(self, block: Span) -> None:
        kernels.finish(*block, *self.sides, self.square, self.states, self.found, self.distances)


def _products(references: Any, queries: Any, span: Span) -> Tiles:
    """A function that multiplies sparse references (rows) with a span of queries (columns)."""
    start, stop = span
    room = np.empty(TILE_SIDE * (stop - start), dtype=np.float32)
    local = np.full(queries.shape[1], -1, dtype=np.int32)
    few = queries[start:stop]
    packed = np.empty((np.unique(few.indices).size, stop - start), dtype=np.float32)
    kernels.pack(few.indptr, few.indices, few.data, local, packed)
    rows = (references.indptr, references.indices, references.data)

    def sparse_tile(first: int, last: int) -> Array:
        scores = room[: (last - first) * (stop - start)].reshape(last - first, stop - start)
        kernels.sparse_scores(first, *rows, local, packed, scores)
        return scores

    return sparse_tile


def _cut(start: int, stop: int, length: int) -> Iterator[Span]:
    return ((at, min(at + length, stop)) for at in range(start, stop, length))


def _rounds(count: int) -> Iterator[list[Span]]:
    """Every pair of blocks once, in rounds where each has at most one partner (a tournament)."""
    seats = count + count % 2
    ring = list(range(1, seats))
    for _ in ring:
        circle = [0, *ring]
        pairs = zip(circle[: seats // 2], reversed(circle[seats // 2 :]), strict=True)
        yield [(min(pair), max(pair)) for pair in pairs if max(pair) < count]
        ring = ring[1:] + ring[:1]


def _run(work: Callable[..., None], calls: list[tuple[Any, ...]], threads: int) -> None:
    if threads == 1 or len(calls) <= 1:
        for arguments in calls:
            work(*arguments)
        return
    with ThreadPoolExecutor(min(threads, len(calls))) as pool:
        contexts = [copy_context() for _ in calls]  # each thread needs the deadline
        for _ in pool.map(lambda to, given: to.run(work, *given), contexts, calls):
            pass
