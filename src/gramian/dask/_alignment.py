"""KTA and LinearSeparation of samples on a cluster: their moments are all that is needed."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian import metric as home
from gramian.dask._base import LazyTransform
from gramian.dask._cluster import Cluster
from gramian.dask._collections import Sample, samples
from gramian.dask._samples import Spread, about, spread, take, weighted
from gramian.estimators.path import EvidencePath
from gramian.metric._selection import raw_keys, weigh
from gramian.objectives.matrices import Dense
from gramian.problems.metric import (
    kta_from_moments,
    linear_separation_from_scatter,
)
from gramian.problems.moments import Moments

Array = NDArray[np.floating]
Indices = NDArray[np.integer]

FEW = 2000
"""Samples that come to the driver as they are where λ is chosen by folds."""


class KTA(LazyTransform, home.KTA):
    """`gramian.metric.KTA` of Dask collections, or of Parquet or NPZ files: one pass over them.

    Parameters, fitted attributes and certificate are those at home; `fit(X, y)` takes X as a Dask
    array (dense or CSR chunks), a Dask frame or files, and y as a Dask array, an array, or the
    name of a column. λ is chosen as at home, which takes two passes more.
    """

    def fit(self, X: Any, y: Any) -> KTA:  # type: ignore[override]
        """Learn the metric from labelled samples."""
        if self.kernel is not None:
            raise ValueError("kernels need all samples at once: fit gramian.metric.KTA at home")
        self._check_parameters()
        cluster = Cluster()
        with cluster.in_time("the moments of the samples"):
            shards = samples(cluster, X, y)
            found = spread(cluster, shards)
        take(self, found)
        data = found.moments(center=self.center)
        self.lam_ = self._by_path(cluster, shards, found, data)
        problem = kta_from_moments(data, self.lam_, regularizer=self.regularizer)
        self._solve(problem, data.gram, None)
        return self

    def _by_path(self, cluster: Cluster, shards: list[Any], found: Spread, data: Moments) -> float:
        """λ as it is given, or by `path_`."""
        self._forget("path_")
        if self.lam != "auto":
            return float(self.lam)
        self.path_ = chosen(
            cluster,
            shards,
            found,
            data,
            center=self.center,
            regularizer=self.regularizer,
            n_components=self.n_components,
            rank=self.rank,
        )
        return self.path_.value


class LinearSeparation(LazyTransform, home.LinearSeparation):
    """`gramian.metric.LinearSeparation` of Dask collections or files: two passes over them.

    The first finds the sizes of the classes, the second weighs every sample by that of its own.
    lam="auto" is 2/‖L_S‖ here: nothing is held out to choose it by.
    """

    def fit(self, X: Any, y: Any) -> LinearSeparation:  # type: ignore[override]
        """Learn the metric from labelled samples."""
        cluster = Cluster()
        with cluster.in_time("the moments of the samples"):
            shards = samples(cluster, X, y)
            found = spread(cluster, shards)
        take(self, found)
        self._check(found.count)
        rows = 2 * found.counts - found.count
        mean = cluster.shared("mean", found.mean)
        gram = cluster.sum("scatter", weighted, shards, mean, found.classes, rows)
        whole = found.sums.sum(axis=1)
        scatter = gram - 2 * found.sums @ found.sums.T + np.outer(whole, whole)
        scatter = Dense(0.5 * (scatter + scatter.T))
        self._forget("path_")
        self.lam_ = self._weight(self._unit(scatter))
        problem = linear_separation_from_scatter(scatter, self.lam_, regularizer=self.regularizer)
        self._solve(problem, found.moments(center=True).gram, None)
        return self


def chosen(
    cluster: Cluster,
    shards: list[Any],
    found: Spread,
    data: Moments,
    *,
    center: bool = True,
    size: float = 1.0,
    **limits: Any,
) -> EvidencePath:
    """λ by the errors of neighbours as at home: a key for each sample comes to the driver, then a
    few of them do. `data` are the moments of the samples over `size`.
    """
    mean = found.mean if center else np.zeros_like(found.mean)
    told = cluster.gather(cluster.each("keys", _keys, shards, data.spectrum[1][:, -1], mean))
    keys, labels = (np.concatenate(part) for part in zip(*told, strict=True))
    starts = np.concatenate([[0], np.cumsum([part[0].size for part in told])])
    whole = _rows(cluster, shards, starts, mean, None) if keys.size <= FEW else None

    def rows_of(rows: Indices) -> Array:
        if whole is not None:
            return whole[rows] / size
        return _rows(cluster, shards, starts, mean, rows) / size

    limits = {"regularizer": "identity", "n_components": None, "rank": None} | limits
    return weigh(data, np.searchsorted(found.classes, labels), keys, rows_of, **limits)


def _keys(block: Sample, along: Array, mean: Array) -> tuple[Array, Any]:
    return raw_keys(block.X, along, mean), block.y


def _rows(
    cluster: Cluster, shards: list[Any], starts: Indices, mean: Array, rows: Indices | None
) -> Array:
    """Some samples less the mean, in the order asked for; all of them where none are named."""
    if rows is None:
        return np.concatenate(cluster.gather(cluster.each("rows", _some, shards, None, mean)))
    owner = np.searchsorted(starts, rows, side="right") - 1
    chosen = [rows[owner == k] - starts[k] for k in range(len(shards))]
    parts = cluster.gather(cluster.each("rows", _some, shards, chosen, mean))
    found = np.empty((rows.size, mean.size))
    for k, part in enumerate(parts):
        found[owner == k] = part
    return found


def _some(block: Sample, rows: Indices | None, mean: Array) -> Array:
    return about(block.X if rows is None else block.X[rows], mean)
