"""Kinds of input: samples, distances between all of them, or a graph with edge lengths.

Each kind validates the input, merges equal samples, builds the graph, and finds neighbours of new
samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from gramian.arrays.samples import ready
from gramian.common import clock
from gramian.common.storage import storable
from gramian.common.types import Array, Indices
from gramian.graph import Graph, connected, neighbor_graph
from gramian.neighbours import Neighbours, nearest
from gramian.reductions.merge import Merge

METRICS = ("euclidean", "precomputed")

ROWS = 64
"""Rows whose bits are summed at once, so that they stay in the cache."""

ALIKE = 1e-6
"""Relative tolerance of d(i, j) and d(j, i)."""


class Places:
    """Samples given by features, with Euclidean distances."""

    def checked(self, X: Any) -> Any:
        return X

    def copies(self, X: Any) -> Copies:
        return Copies.of(_groups(X))

    def part(self, X: Any, points: Indices) -> Any:
        return X[points]

    def graph(self, X: Any, k: int, connect: str, **options: Any) -> Graph:
        return neighbor_graph(X, k, connect=connect, **options)

    def near(self, known: Any, k: int, X: Any) -> Neighbours:
        return nearest(known, k, queries=X)

    def weights(self, X: Any, known: Any, near: Neighbours) -> Array:
        """Weights of the neighbours that reconstruct new samples."""
        return barycentric(dense(X), known, near.indices)

    def of_part(self, X: Any, points: Indices) -> Any:
        """New samples as input of a component of the fit."""
        return X


class Distances(Places):
    """A square array of distances between all samples; for new samples, to those of the fit."""

    def checked(self, X: Any) -> Any:
        _refuse_negative(X)
        for i in np.flatnonzero(np.diag(X))[:1]:
            raise ValueError(
                f"distances must be 0 from a sample to itself, but d({i}, {i}) = {X[i, i]:g}"
            )
        for i, j in np.argwhere(np.abs(X - X.T) > ALIKE * np.maximum(X, X.T))[:1]:
            raise ValueError(
                f"distances must be symmetric, but d({i}, {j}) = {X[i, j]:g} and "
                f"d({j}, {i}) = {X[j, i]:g}: pass (D + D.T) / 2 if that is intended"
            )
        return X

    def copies(self, X: Any) -> Copies:
        return Copies.of(connected_components(sp.csr_array(X == 0), directed=False)[1])

    def part(self, X: Any, points: Indices) -> Any:
        return np.ascontiguousarray(X[np.ix_(points, points)])

    def graph(self, X: Any, k: int, connect: str, **options: Any) -> Graph:
        others = X.copy()
        np.fill_diagonal(others, np.inf)

        def of_pairs(pairs: Indices) -> Graph:
            edges = np.unique(np.sort(pairs, axis=1), axis=0).astype(np.int64)
            return Graph(len(X), edges, X[tuple(edges.T)].astype(float) ** 2)

        def nearest_outside(asking: Indices, labels: Indices) -> tuple[Indices, Array]:
            away = np.where(labels[asking, None] == labels, np.inf, others[asking])
            return np.argmin(away, axis=1), np.min(away, axis=1)

        near = _smallest(others, k).indices.ravel()
        graph = of_pairs(np.column_stack([np.repeat(np.arange(len(X)), k), near]))
        return connected(graph, k, connect, of_pairs, nearest_outside)

    def near(self, known: Any, k: int, X: Any) -> Neighbours:
        _refuse_negative(X)
        return _smallest(X, k)

    def weights(self, X: Any, known: Any, near: Neighbours) -> Array:
        """From ⟨x_j − x, x_k − x⟩ = ½(d_j² + d_k² − d_jk²), without its negative part."""
        found, squares = near.indices, near.sq_distances
        between = known[found[:, :, None], found[:, None]] ** 2
        values, turn = np.linalg.eigh(0.5 * (squares[:, :, None] + squares[:, None] - between))
        grams = (turn * np.maximum(values, 0.0)[:, None]) @ turn.transpose(0, 2, 1)
        return _barycentric_weights(grams, squares)

    def of_part(self, X: Any, points: Indices) -> Any:
        return X[:, points]


class Links(Distances):
    """A sparse matrix of edge lengths, in one or both directions."""

    def checked(self, X: Any) -> Any:
        return ready(both_ways(X))

    def copies(self, X: Any) -> Copies:
        return Copies.of(np.arange(X.shape[0]))

    def part(self, X: Any, points: Indices) -> Any:
        return X[points][:, points]

    def graph(self, X: Any, k: int, connect: str, **options: Any) -> Graph:
        upper = sp.coo_array(sp.triu(X, k=1))
        graph = Graph(X.shape[0], np.column_stack(upper.coords).astype(np.int64), upper.data**2)
        if connect != "components" and graph.n_parts > 1:
            raise ValueError(
                f"the given graph falls into {graph.n_parts} components without distances between "
                'them: add edges, or pass connect="components" to treat each separately'
            )
        return graph

    def near(self, known: Any, k: int, X: Any) -> Neighbours:
        raise ValueError(
            "new samples cannot be embedded with a graph: fit to the distances between all samples "
            "(dense), or to the samples themselves"
        )


def space_of(metric: str, X: Any) -> Places:
    """The kind of the given input."""
    if metric == "euclidean":
        return Places()
    return Links() if sp.issparse(X) else Distances()


@storable
@dataclass(frozen=True)
class Copies:
    """Equal rows, which are one point: the first row of each group, and the group of each row.

    An edge of length 0 does not keep two points together: the derivative of its penalty is 0 there,
    and each such pair would separate in a new direction, hundreds of them for data with few
    distinct rows.
    """

    first: Indices
    kind: Indices

    @classmethod
    def of(cls, groups: Any) -> Copies:
        kind = np.asarray(groups, dtype=np.int64)
        return cls(np.unique(kind, return_index=True)[1], kind)

    @property
    def any(self) -> bool:
        return self.first.size < self.kind.size

    @property
    def merge(self) -> Merge:
        """The rows of a group as one point."""
        return Merge(self.kind)

    def summed(self, side: Array) -> Array:
        """Centred side information of the rows, summed over each group."""
        return self.merge.membership.T @ (side - side.mean(axis=0))

    def joined(self, graph: Graph) -> Graph:
        """The graph of all rows: that of the distinct ones, with edges of length 0 to copies."""
        if not self.any:
            return graph
        copies = np.flatnonzero(self.first[self.kind] != np.arange(self.kind.size))
        pairs = np.column_stack([self.first[self.kind[copies]], copies])
        edges = np.vstack([np.sort(self.first[graph.edges], axis=1), pairs])
        lengths = np.concatenate([graph.sq_distances, np.zeros(len(pairs))])
        order = np.lexsort((edges[:, 1], edges[:, 0]))
        return Graph(self.kind.size, edges[order], lengths[order], graph.recall)


def _groups(X: Any) -> Indices:
    """The group of each row, numbered by first appearance; equal rows are one group.

    Keys are computed only for rows whose sums of bits are equal (`_bit_sums`).
    """
    if sp.issparse(X):
        X = sp.csr_array(X, copy=True)
        X.sum_duplicates()
        X.eliminate_zeros()
    _, group, counts = np.unique(_bit_sums(X), return_inverse=True, return_counts=True)
    alike = np.flatnonzero(counts[group] > 1)
    seen: dict[bytes, int] = {}
    numbers = [seen.setdefault(key, len(seen)) for key in _keys(X[alike])]
    group[alike] = counts.size + np.array(numbers, dtype=group.dtype)
    _, first, group = np.unique(group, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[group]


def _bit_sums(X: Any) -> NDArray[np.uint64]:
    """The sums modulo 2⁶⁴ of the bits of each row's numbers times random odd numbers."""
    odd = 2 * np.random.default_rng(0).integers(2**63, size=X.shape[1], dtype=np.uint64) + 1
    if sp.issparse(X):
        totals = np.append(np.uint64(0), np.cumsum(_bits(X.data) * odd[X.indices]))
        return totals[X.indptr[1:]] - totals[X.indptr[:-1]]
    parts = (X[k : k + ROWS] for k in range(0, X.shape[0], ROWS))
    return np.concatenate([np.einsum("ij,j->i", _bits(part), odd) for part in parts])


def _bits(numbers: Array) -> NDArray[np.uint64]:
    """The bits of numbers, the high ones repeated: the low ones of integers are 0."""
    bits = (np.ascontiguousarray(numbers) + 0.0).view(f"u{numbers.itemsize}")  # -0.0 is 0.0
    bits = bits.astype(np.uint64, copy=False)
    bits ^= bits >> np.uint64(32)
    return bits


def _keys(X: Any) -> Any:
    """A key for each row, the same for equal rows."""
    if not sp.issparse(X):
        parts = (row.data for row in np.ascontiguousarray(X) + 0.0)  # -0.0 is 0.0
    else:
        indices = X.indices.astype(np.int64)
        parts = (indices[a:b].tobytes() + X.data[a:b].tobytes() for a, b in pairwise(X.indptr))
    return (blake2b(part, digest_size=16).digest() for part in parts)


def _refuse_negative(X: Array) -> None:
    """Raise ValueError for negative distances, naming the first."""
    for i, j in np.argwhere(X < 0)[:1]:
        raise ValueError(f"distances must be at least 0, but d({i}, {j}) = {X[i, j]:g}")


def both_ways(X: Any) -> sp.csr_array:
    """Lengths of edges stored in one direction or in both, as a symmetric matrix without loops."""
    stored = sp.coo_array(X)
    i, j = (axis.astype(np.int64) for axis in stored.coords)
    data = np.asarray(stored.data, dtype=float)
    for k in np.flatnonzero((data <= 0) & ((i != j) | (data < 0)))[:1]:
        raise ValueError(
            f"edges must have positive lengths, but ({i[k]}, {j[k]}) has {data[k]:g}: remove one "
            "of two equal samples"
        )
    ends = np.sort(np.column_stack([i, j])[i != j], axis=1)
    lengths = data[i != j]
    edges, first, of = np.unique(ends, axis=0, return_index=True, return_inverse=True)
    once = lengths[first]
    for k in np.flatnonzero(np.abs(lengths - once[of.ravel()]) > ALIKE * lengths)[:1]:
        raise ValueError(
            f"both directions of an edge must have the same length, but {ends[k, 0]} and "
            f"{ends[k, 1]} have {once[of.ravel()[k]]:g} and {lengths[k]:g}"
        )
    half = sp.coo_array((once, tuple(edges.T)), shape=stored.shape)
    return sp.csr_array(half + half.T)


def _smallest(D: Array, k: int) -> Neighbours:
    """The k smallest distances of each row, smallest first."""
    clock.phase(f"the neighbours of {len(D):,} samples")
    found = np.argpartition(D, k - 1, axis=1)[:, :k]
    near = np.take_along_axis(D, found, axis=1)
    order = np.lexsort((found, near), axis=1)
    found = np.take_along_axis(found, order, axis=1)
    return Neighbours(found, np.take_along_axis(D, found, axis=1).astype(float) ** 2)


def barycentric(X: Array, reference: Any, near: Indices) -> Array:
    """Weights with sum 1 that reconstruct each row of X from its neighbours, with a ridge.

    As in locally linear embedding.
    """
    k = near.shape[1]
    weights = np.empty(near.shape)
    step = max(1, 4_000_000 // (k * X.shape[1]))
    for start in range(0, len(X), step):
        rows = slice(start, start + step)
        around = dense(reference[near[rows].ravel()]).reshape(-1, k, X.shape[1])
        gaps = around - X[rows][:, None]
        squares = np.sum(gaps * gaps, axis=2)
        weights[rows] = _barycentric_weights(gaps @ gaps.transpose(0, 2, 1), squares)
    return weights


def _barycentric_weights(grams: Array, squares: Array) -> Array:
    """The weights for inner products of the neighbours relative to each point, and distances.

    A point that equals one of its neighbours gets the weight 1 for it.
    """
    k = squares.shape[1]
    traces = np.trace(grams, axis1=1, axis2=2)
    ridge = 1e-3 * np.where(traces > 0, traces, 1.0) / k
    grams = grams + ridge[:, None, None] * np.eye(k)
    found = np.linalg.solve(grams, np.ones((len(grams), k, 1)))[:, :, 0]
    found = found / found.sum(axis=1, keepdims=True)
    known = squares.min(axis=1) == 0
    found[known] = np.eye(k)[np.argmin(squares[known], axis=1)]
    return found


def dense(X: Any) -> Array:
    """Samples as an array of floats."""
    return np.asarray(X.toarray() if hasattr(X, "toarray") else X, dtype=float)
