"""NPKL on a cluster: the edges of the graph and the links are sharded by rows.

Neighbours are sought block against block; the edges come home, for the median that affinities are
measured by and because a fitted kernel keeps its Laplacian. Samples stay where they are. The
diagonal, n numbers, is a part of the sum on the driver: dual points are shifted along it as at
home, so that certificates are as tight.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp
from dask.base import is_dask_collection
from numpy.typing import ArrayLike, NDArray

from gramian import kernel as home
from gramian.common.parameters import whole_number
from gramian.dask._base import LazyTransform, bar_for, refuse_device
from gramian.dask._checked import Sample, same_columns
from gramian.dask._cluster import Cluster
from gramian.dask._collections import filled, samples
from gramian.dask._objective import Sharded
from gramian.estimators.fitting import AUTO
from gramian.graph import Graph
from gramian.kernel._links import gather
from gramian.losses import Squared
from gramian.maps import Entries
from gramian.neighbours import nearest
from gramian.objectives import Composite, Linear, Objective, Sum
from gramian.problem import Problem
from gramian.problems.kernel import _SparseLaplacian
from gramian.result import Result
from gramian.run import minimize

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

AT_HOME = 100_000_000
"""Numbers of the samples up to which they come home with the model, for new ones: 0.8 GB."""


ENTRIES, SHARDS = 250_000, (4, 64)
"""Entries of the Laplacian that make a shard, and how many there are: by the data alone, so that
sums do not depend on the workers that are there."""


class NPKL(LazyTransform, home.NPKL):
    """`gramian.kernel.NPKL` of samples in a Dask collection or in files."""

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        must_link: ArrayLike | None = None,
        cannot_link: ArrayLike | None = None,
        links: Any = None,
        targets: ArrayLike | None = None,
        weights: ArrayLike | None = None,
    ) -> NPKL:
        """Learn the kernel of the samples; labels and links as at home, y a Dask array too."""
        self._check_parameters()
        refuse_device(self)
        if self.affinity != "nearest_neighbors":
            raise ValueError("affinities that are given are learned from at home: gramian.kernel")
        if all(part is None for part in (y, must_link, cannot_link, links)):
            raise ValueError("labels (-1 where unknown), must_link, cannot_link or links say what "
                             "the kernel is to keep")  # fmt: skip
        self._workers = Cluster()
        try:
            column = y if isinstance(y, str) else None
            shards = self._workers.keep(samples(self._workers, X, column))
            shards, sizes = filled(self._workers, shards, _rows_of, "X")
            n, d = sum(sizes), self._take_columns(shards)
            labels = self._labels_of(shards, y)
            self.links_ = gather(n, labels, must_link, cannot_link, links, targets, weights)
            self.n_clusters_ = self._number_of_clusters(labels, n)
            with self._workers.in_time(f"the neighbours of {n:,} samples"):
                self._set_graph(shards, sizes)
            self.__dict__.pop("X_fit_", None)
            if n * d <= AT_HOME:
                self.X_fit_ = _stacked(
                    self._workers.gather(self._workers.each("rows", _rows, shards))
                )
            self._learn_from(None)
        finally:
            del self._workers
        return self

    def _take_columns(self, shards: list[Any]) -> int:
        """Set what a fit keeps of the features, the same in all blocks; how many they are."""
        told = self._workers.gather(self._workers.each("count", _columns, shards))
        width, names = told[0]
        for other, others in told[1:]:
            same_columns(names, others)
            if other != width:
                raise ValueError(f"blocks have {width} and {other} features: give all the same")
        self.n_features_in_ = width
        self.__dict__.pop("feature_names_in_", None)
        if names is not None and all(isinstance(name, str) for name in names):
            self.feature_names_in_ = names
        return int(width)

    def _labels_of(self, shards: list[Any], y: Any) -> Any:
        if isinstance(y, str):
            return np.concatenate(self._workers.gather(self._workers.each("rows", _y, shards)))
        return np.asarray(y.compute()) if is_dask_collection(y) else y

    def transform(self, X: Any) -> Any:
        """Rows of the factor for samples; see `gramian.kernel.NPKL.transform`."""
        if hasattr(self, "kernel_factor_") and not hasattr(self, "X_fit_"):
            raise ValueError(
                "the samples of this fit stayed on the cluster, and new ones are placed by their "
                "neighbours among them: the rows of the fit itself are in kernel_factor_"
            )
        return super().transform(X)

    def _set_graph(self, shards: list[Any], sizes: list[int]) -> None:
        """The Laplacian of the neighbours, sought block against block."""
        cluster, n = self._workers, sum(sizes)
        k = min(whole_number(self.n_neighbors, "n_neighbors"), n - 1)
        starts = [int(start) for start in np.cumsum([0, *sizes[:-1]])]
        nodes = []
        for a, block in enumerate(shards):
            found = cluster.each(
                "neighbours", _near, [block] * len(shards), shards, starts,
                [a == b for b in range(len(shards))], k,
            )  # fmt: skip
            nodes.append(cluster.tree("neighbours", found, _nearer))
        told = cluster.gather(nodes)
        squares, places = (np.concatenate(part) for part in zip(*told, strict=True))
        i, j = np.repeat(np.arange(n), k), places.ravel()
        low, high = np.minimum(i, j), np.maximum(i, j)
        _, first = np.unique(low.astype(np.int64) * n + high, return_index=True)
        edges = np.column_stack([low, high])[first]
        graph = Graph(n, edges, squares.ravel()[first])
        self.neighbor_recall_ = 1.0
        self._square = graph.square_bandwidth(self.bandwidth)
        self.laplacian_ = graph.laplacian(graph.weights(self.bandwidth), normalized=True)

    def _minimize(self, problem: Problem, init: Array | None) -> Result:
        """The same problem with its edges and links on the workers."""
        cluster = getattr(self, "_workers", None)
        if cluster is None:  # more links to a kernel that is there: at home
            return super()._minimize(problem, init)
        spread = Problem(
            sharded(cluster, problem.objective),
            name=problem.name,
            formula=problem.formula,
            variable=problem.variable,
        )
        bar = bar_for(self, cluster, problem.name)
        try:
            return minimize(
                spread, self.solver, init=init, rank=self.rank,
                tol=AUTO if self.tol == "auto" else self.tol, max_iter=self.max_iter,
                time_limit=self.time_limit, random_state=self.random_state, callback=bar,
            )  # fmt: skip
        finally:
            if bar is not None:
                bar.close()


def sharded(cluster: Cluster, objective: Any) -> Sum:
    """Σ ω (Z_e − T_e)² + tr(ZL) with links and edges by rows on workers, the diagonal here."""
    i, j = objective.map.rows, objective.map.cols
    loss, n = objective.loss, objective.order
    weight = np.broadcast_to(np.asarray(loss.weight, dtype=float), i.shape)
    centre = np.broadcast_to(np.asarray(loss.centre, dtype=float), i.shape)
    own = i == j
    diagonal = Composite(
        Entries(np.column_stack([i[own], j[own]]), n), Squared(centre[own], weight=weight[own])
    )
    upper = sp.csr_array(sp.triu(objective.C.matrix, format="csr"))
    count = int(np.clip(upper.nnz // ENTRIES, *SHARDS))
    cuts = np.unique(np.searchsorted(upper.indptr, np.linspace(0, upper.nnz, count + 1)))
    cuts[0], cuts[-1] = 0, n
    pieces = []
    for a, b in pairwise(cuts):
        mine = ~own & (np.minimum(i, j) >= a) & (np.minimum(i, j) < b)
        pieces.append((upper[a:b], int(a), i[mine], j[mine], centre[mine], weight[mine]))
    nodes = [cluster.shared("edges", piece) for piece in pieces]
    parts = cluster.keep(cluster.each("part", _part, nodes, n))
    return Sum([Sharded(cluster, parts), diagonal])


def _part(piece: tuple[Any, ...], n: int) -> Objective:
    """Σ ω (Z_e − T_e)² over some links, and tr(ZL) over some edges."""
    rows, first, i, j, targets, weights = piece
    coo = sp.coo_array(rows)
    half = sp.csr_array((coo.data, (coo.row + first, coo.col)), shape=(n, n))
    C = _SparseLaplacian(half + half.T - sp.diags_array(half.diagonal()))
    if not i.size:
        return Linear(C)
    return Composite(Entries(np.column_stack([i, j]), n), Squared(targets, weight=weights), C)


def _near(block: Sample, other: Sample, start: int, own: bool, k: int) -> tuple[Array, Indices]:
    """The k nearest samples of another block for each of one: squared distances and places."""
    n = block.X.shape[0]
    count = min(k + own, other.X.shape[0])
    squares, places = np.full((n, k), np.inf), np.zeros((n, k), dtype=np.int64)
    found = nearest(other.X, count, queries=block.X)
    far, near = np.array(found.sq_distances, dtype=float), np.asarray(found.indices)
    if own:
        far[near == np.arange(n)[:, None]] = np.inf
        order = np.argsort(far, axis=1, kind="stable")[:, :k]
        far, near = (np.take_along_axis(part, order, axis=1) for part in (far, near))
    squares[:, : far.shape[1]], places[:, : far.shape[1]] = far, near + start
    return squares, places


def _nearer(a: tuple[Array, Indices], b: tuple[Array, Indices]) -> tuple[Array, Indices]:
    k = a[0].shape[1]
    squares, places = np.hstack([a[0], b[0]]), np.hstack([a[1], b[1]])
    order = np.argsort(squares, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(squares, order, axis=1), np.take_along_axis(places, order, axis=1)


def _rows_of(block: Sample) -> int:
    return int(block.X.shape[0])


def _columns(block: Sample) -> tuple[int, Any]:
    return block.X.shape[1], block.names


def _y(block: Sample) -> Any:
    return block.y


def _rows(block: Sample) -> Any:
    return block.X


def _stacked(blocks: list[Any]) -> Any:
    return sp.csr_array(sp.vstack(blocks)) if sp.issparse(blocks[0]) else np.concatenate(blocks)
