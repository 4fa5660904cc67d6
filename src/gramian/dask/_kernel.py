"""NPKL on a cluster: neighbours are sought on the workers, and the kernel is learned on the driver.

Neighbours are sought block against block; the edges come to the driver, for the median that
affinities are measured by and because a fitted kernel keeps its Laplacian. Samples stay where they
are. With the Laplacian and the factor on the driver no round of tasks pays: for 100,000 samples and
12 columns value and slope take 0.04 s there, and with the edges on two workers the driver alone
takes 0.3 s to send and receive the factor (processor seconds).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from dask.base import is_dask_collection
from numpy.typing import ArrayLike, NDArray

from gramian import kernel as home
from gramian.common.parameters import whole_number
from gramian.dask._base import LazyTransform
from gramian.dask._checked import Sample, same_columns
from gramian.dask._cluster import Cluster
from gramian.dask._collections import filled, samples
from gramian.graph import Graph
from gramian.kernel._links import gather
from gramian.neighbours import nearest
from gramian.problem import Problem
from gramian.result import Result

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

AT_HOME = 100_000_000
"""Numbers of the samples up to which they come home with the model, for new ones: 0.8 GB."""


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

    def transform(self, X: Any, **options: Any) -> Any:
        """Rows of the factor for samples; see `gramian.kernel.NPKL.transform`."""
        if hasattr(self, "kernel_factor_") and not hasattr(self, "X_fit_"):
            raise ValueError(
                "the samples of this fit stayed on the cluster, and new ones are placed by their "
                "neighbours among them: the rows of the fit itself are in kernel_factor_"
            )
        return super().transform(X, **options)

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
        result = super()._minimize(problem, init)
        if not hasattr(self, "_workers"):  # links added to a fitted kernel
            return result
        return replace(result, route=("kernel on the driver", *result.route))


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
