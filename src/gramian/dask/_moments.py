"""The moments of labelled samples in one pass: each block about its own mean, joined in a tree.

Two blocks about their means a and b, of m and n samples, are one about the mean of all with
Σ xxᵀ = S_a + S_b + mn/(m + n) (a − b)(a − b)ᵀ (Chan, Golub and LeVeque 1983): digits are kept
wherever the samples lie, and sums by class move with the mean likewise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.dask._checked import Sample, refuse_mixed, same_columns
from gramian.dask._cluster import Cluster
from gramian.objectives.matrices import DENSE_ORDER, Dense
from gramian.problems.moments import Moments, class_sums, column_means, weighted_gram

Array = NDArray[np.floating]


@dataclass(frozen=True)
class Spread:
    """What a pass over labelled samples finds, about their mean."""

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

    def moments(self, *, center: bool) -> Moments:
        """XᵀX and XᵀY, of X less its mean or of X itself."""
        gram, sums = self.gram, self.sums
        if not center:
            gram = gram + self.count * np.outer(self.mean, self.mean)
            sums = sums + np.outer(self.mean, self.counts)
        gram = 0.5 * (gram + gram.T)
        return Moments(Dense(gram, lower=0.0), sums, self.counts, float(np.trace(gram)))


def spread(cluster: Cluster, shards: list[Any]) -> Spread:
    """One pass over the samples."""
    found: Spread = cluster.sum("moments", spread_of, shards)
    return found


def spread_of(block: Sample) -> Spread:
    """A block about its own mean."""
    if block.y is None:
        raise ValueError("y is needed: a Dask array, or the name of a column")
    n, d = block.X.shape
    if d > DENSE_ORDER:
        raise ValueError(
            f"{d} features make matrices of {d} × {d}: more than {DENSE_ORDER} are fitted at home "
            "only, or reduce them first"
        )
    classes, places = np.unique(block.y, return_inverse=True)
    mean = column_means(block.X) if n else np.zeros(d)
    X = about(block.X, mean)
    sums, counts = class_sums(X, places) if n else (np.zeros((d, 0)), np.zeros(0))
    return Spread(n, mean, weighted_gram(X), classes, counts, sums, block.names)


def about(X: Any, mean: Array) -> Array:
    """Samples less a mean, dense: a block is small."""
    dense = X.toarray() if sp.issparse(X) else X
    return np.asarray(dense, dtype=float) - mean


def weighted(block: Sample, mean: Array, classes: Any, weights: Array) -> Array:
    """Σ w (x − mean)(x − mean)ᵀ with the weight of each sample's class."""
    return weighted_gram(about(block.X, mean), weights[np.searchsorted(classes, block.y)])
