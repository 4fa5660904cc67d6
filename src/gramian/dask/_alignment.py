"""KTA and LinearSeparation for samples on a cluster, from the moments of the samples.

The moments are computed in one pass, for each block about its own mean. Blocks of m and n samples
with means a and b and centred second moments S_a and S_b are joined to S_a + S_b + mn/(m + n)
(a − b)(a − b)ᵀ (Chan, Golub and LeVeque 1983), which is accurate also if the mean is large. The
sums of the classes are shifted to the new mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian import metric as home
from gramian.common.types import Array, Indices
from gramian.constraints import plainly
from gramian.dask._base import OnWorkers
from gramian.dask._cluster import Cluster
from gramian.dask._collections import Sample, refuse_mixed, same_columns, samples
from gramian.metric._few_columns import starting_maps
from gramian.metric._selection import raw_keys, weigh
from gramian.objectives.matrices import DENSE_ORDER, Dense
from gramian.problems.metric import kta_from_moments, linear_separation_from_scatter
from gramian.problems.moments import Moments, class_sums, column_means, weighted_gram


@dataclass(frozen=True)
class Spread:
    """The moments of labelled samples, about their mean."""

    count: int
    mean: Array
    gram: Array
    """Σ (x − mean)(x − mean)ᵀ."""
    classes: NDArray[Any]
    counts: Array
    sums: Array
    """Σ (x − mean) over each class, a column each."""
    names: Any = None

    def __add__(self, other: Spread) -> Spread:
        if not (self.count and other.count):
            return self if self.count else other
        same_columns(self.names, other.names, self.mean.size, other.mean.size)
        refuse_mixed(self.classes, other.classes, "labels")
        n = self.count + other.count
        mean = self.mean + (other.count / n) * (other.mean - self.mean)
        apart = other.mean - self.mean
        gram = self.gram + other.gram
        gram += (self.count * (other.count / n)) * np.outer(apart, apart)
        classes = np.union1d(self.classes, other.classes)
        counts, sums = np.zeros(classes.size), np.zeros((mean.size, classes.size))
        for part in (self, other):
            at = np.searchsorted(classes, part.classes)
            counts[at] += part.counts
            sums[:, at] += part.sums + np.outer(part.mean - mean, part.counts)
        return Spread(n, mean, gram, classes, counts, sums, self.names)

    @property
    def like(self) -> Array:
        """An array with the shape of the samples, for functions that only use the shape."""
        return np.broadcast_to(np.zeros(1), (self.count, self.mean.size))

    def moments(self, *, center: bool) -> Moments:
        """XᵀX and XᵀY, of X minus its mean or of X itself."""
        gram, sums = self.gram, self.sums
        if not center:
            gram = gram + self.count * np.outer(self.mean, self.mean)
            sums = sums + np.outer(self.mean, self.counts)
        gram = 0.5 * (gram + gram.T)
        return Moments(Dense(gram, lower=0.0), sums, self.counts, float(np.trace(gram)))


def spread_of(block: Sample, device: Any = None) -> Spread:
    """A block about its own mean; products are computed on a device of the worker."""
    if block.y is None:
        raise ValueError("y is required: a Dask array, or the name of a column")
    n, d = block.X.shape
    if d > DENSE_ORDER:
        raise ValueError(
            f"{d} features need matrices of {d} × {d}: a cluster supports at most {DENSE_ORDER}; "
            "reduce the features first, or use gramian.metric without Dask"
        )
    classes, places = np.unique(block.y, return_inverse=True)
    mean = column_means(block.X) if n else np.zeros(d)
    X = about(block.X, mean)
    sums, counts = class_sums(X, places) if n else (np.zeros((d, 0)), np.zeros(0))
    return Spread(n, mean, weighted_gram(X, None, device), classes, counts, sums, block.names)


def about(X: Any, mean: Array) -> Array:
    """Samples minus a mean, as a dense array: a block is small."""
    dense = X.toarray() if sp.issparse(X) else X
    return np.asarray(dense, dtype=float) - mean


def weighted(block: Sample, mean: Array, classes: Any, weights: Array, device: Any) -> Array:
    """Σ w (x − mean)(x − mean)ᵀ with the weight of each sample's class."""
    return weighted_gram(about(block.X, mean), weights[np.searchsorted(classes, block.y)], device)


def spread(model: Any, X: Any, y: Any) -> tuple[Cluster, list[Any], Spread]:
    """The blocks of samples and their moments, in one pass; sets the attributes that describe them.

    Raises ValueError for invalid samples.
    """
    if model.class_weight is not None:
        raise ValueError("class_weight is not supported on a cluster: use gramian.metric instead")
    model._check_parameters()
    cluster = Cluster()
    with cluster.in_time("the moments of the samples"):
        shards = samples(cluster, X, y)
        found: Spread = cluster.sum("moments", spread_of, shards, model.device)
    if not found.count:
        raise ValueError("X has no rows: every partition is empty")
    if found.classes.size < 2:
        only = plainly(found.classes[0]) if found.classes.size else None
        raise ValueError(
            f"y has one class only ({only!r}); a metric is learned from the difference between at "
            "least two classes"
        )
    model._forget("threshold_", "same_values_", "feature_names_in_")
    model.classes_, model.n_features_in_ = found.classes, found.mean.size
    if found.names is not None and all(isinstance(name, str) for name in found.names):
        model.feature_names_in_ = found.names
    model._check_sizes(found.count)
    return cluster, shards, found


class KTA(OnWorkers, home.KTA):
    """`gramian.metric.KTA` for Dask collections, or Parquet or NPZ files: one pass over the data.

    Parameters, fitted attributes and certificate are those of `gramian.metric.KTA`. `fit(X, y)`
    accepts X as a Dask array (dense or CSR chunks), a Dask frame or files, and y as a Dask array,
    an array, or the name of a column. The selection of λ takes two more passes.
    """

    def fit(self, X: Any, y: Any) -> KTA:  # type: ignore[override]
        """Learn the metric from labelled samples."""
        if self.kernel is not None:
            raise ValueError("kernels need all samples in memory: use gramian.metric.KTA instead")
        cluster, shards, found = spread(self, X, y)
        data = found.moments(center=self.center)
        self.lam_ = self._by_path(cluster, shards, found, data)
        problem = kta_from_moments(data, self.lam_, regularizer=self.regularizer)
        self._solve(problem, data.gram, None, maps=lambda k: starting_maps(data, k))
        return self

    def _by_path(self, cluster: Cluster, shards: list[Any], found: Spread, data: Moments) -> float:
        """The given λ, or λ selected by the errors of held-out neighbours (`path_`).

        One number for each sample is copied to the driver, which selects samples by these numbers
        and requests them.
        """
        self._forget("path_")
        if self.lam != "auto":
            return float(self.lam)
        mean = found.mean if self.center else np.zeros_like(found.mean)
        answers = cluster.gather(cluster.each("keys", _keys, shards, data.spectrum[1][:, -1], mean))
        keys, labels = (np.concatenate(part) for part in zip(*answers, strict=True))
        starts = np.concatenate([[0], np.cumsum([part[0].size for part in answers])])

        def rows_of(rows: Indices) -> Array:
            owner = np.searchsorted(starts, rows, side="right") - 1
            asked = [rows[owner == k] - starts[k] for k in range(len(shards))]
            chosen = np.empty((rows.size, mean.size))
            for k, part in enumerate(cluster.gather(cluster.each("rows", _some, shards, asked))):
                chosen[owner == k] = part - mean
            return chosen

        self.path_ = weigh(
            data, np.searchsorted(found.classes, labels), keys, rows_of,
            regularizer=self.regularizer, n_components=self.n_components,
            rank=self._limit(data.order),
        )  # fmt: skip
        return self.path_.value


class LinearSeparation(OnWorkers, home.LinearSeparation):
    """`gramian.metric.LinearSeparation` for Dask collections or files: two passes over the data.

    The first pass computes the sizes of the classes, the second weights each sample by the size of
    its class. lam="auto" is 2/‖L_S‖ here, because no samples are held out.
    """

    def fit(self, X: Any, y: Any) -> LinearSeparation:  # type: ignore[override]
        """Learn the metric from labelled samples."""
        cluster, shards, found = spread(self, X, y)
        rows = 2 * found.counts - found.count
        mean = cluster.shared("mean", found.mean)
        gram = cluster.sum("scatter", weighted, shards, mean, found.classes, rows, self.device)
        whole = found.sums.sum(axis=1)
        scatter = gram - 2 * found.sums @ found.sums.T + np.outer(whole, whole)
        scatter = Dense(0.5 * (scatter + scatter.T))
        self._forget("path_")
        self.lam_ = self._unit(scatter) if self.lam == "auto" else float(self.lam)
        problem = linear_separation_from_scatter(scatter, self.lam_, regularizer=self.regularizer)
        self._solve(problem, found.moments(center=True).gram, None)
        return self


def _keys(block: Sample, along: Array, mean: Array) -> tuple[Array, Any]:
    return raw_keys(block.X, along, mean), block.y


def _some(block: Sample, rows: Indices) -> Array:
    return about(block.X[rows], np.zeros(block.X.shape[1]))
