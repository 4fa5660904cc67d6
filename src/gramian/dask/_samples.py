"""Labelled samples, pairs and triplets of a cluster, and their moments in one pass.

Each block is about its own mean. Two blocks about their means a and b, of m and n samples, are one
about the mean of all with Σ xxᵀ = S_a + S_b + mn/(m + n) (a − b)(a − b)ᵀ (Chan, Golub and LeVeque
1983): the result does not lose digits if the mean is large. Sums by class move with the mean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.constraints import check_class_sizes, plainly
from gramian.dask._base import check_plain
from gramian.dask._cluster import Cluster
from gramian.dask._collections import (
    NAMES,
    Sample,
    filled,
    refuse_mixed,
    same_columns,
    samples,
    tuples,
)
from gramian.metric._weak_input import row_keys
from gramian.objectives.matrices import DENSE_ORDER, Dense
from gramian.problems.moments import Moments, class_sums, column_means, weighted_gram
from gramian.reductions.scatter_whitening import scatter_whitening

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


def labelled(model: Any, cluster: Cluster, X: Any, y: Any) -> tuple[list[Any], Spread]:
    """The samples, kept on the workers, and their moments; sets what a fit keeps of them."""
    check_plain(model)
    with cluster.in_time("the samples of the cluster"):
        shards = cluster.keep(samples(cluster, X, y))
        found = spread(cluster, shards)
    take(model, found)
    shards = filled(cluster, shards, rows_of, "X")[0]
    places = np.repeat(np.arange(found.classes.size), found.counts.astype(int))
    check_class_sizes(places, found.classes, model.n_neighbors)
    outside = found.count - int(found.counts.max())
    if outside < model.n_neighbors:
        raise ValueError(f"only {outside} samples are outside the largest class, fewer than "
                         f"n_neighbors = {model.n_neighbors}: lower it")  # fmt: skip
    return shards, found


def take(model: Any, found: Spread) -> None:
    """Set what a fit keeps of the samples, and refuse what cannot be learned from."""
    if getattr(model, "class_weight", None) is not None:
        raise ValueError("class_weight is not taken on a cluster: fit gramian.metric at home")
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


def tupled(
    model: Any, cluster: Cluster, given: Any, width: int, marks: Any = None
) -> tuple[list[Any], Spread]:
    """Pairs or triplets, kept on the workers, and the moments of their vectors; sets what a fit
    keeps of them.
    """
    check_plain(model)
    shards = cluster.keep(tuples(cluster, given, width, marks))
    shards = filled(cluster, shards, _tuples_of, NAMES[width])[0]
    _refuse_contradictions(cluster, shards, width)
    found: Spread = cluster.sum("moments", _vector_spread, shards)
    keys = np.unique(np.concatenate(cluster.gather(cluster.each("keys", _vector_keys, shards))))
    model._forget("classes_", "threshold_", "same_values_", "feature_names_in_")
    model.n_features_in_ = found.mean.size
    own = Spread(
        int(keys.size), found.mean, found.gram, found.classes, found.counts, found.sums
    )  # fmt: skip
    model._check_sizes(own.count)
    return shards, own


def _refuse_contradictions(cluster: Cluster, shards: list[Any], width: int) -> None:
    """Refuse pairs of one kind only, and pairs or triplets that are there both ways."""
    told = cluster.gather(cluster.each("keys", _oriented, shards))
    keys, forth = (np.concatenate(part) for part in zip(*told, strict=True))
    if width == 2 and (forth.all() or not forth.any()):
        kind, other = ("similar", "dissimilar") if forth.all() else ("dissimilar", "similar")
        raise ValueError(
            f"all {forth.size} pairs are {kind}: a metric is learned from the difference between "
            f"similar and dissimilar pairs, so add {other} ones"
        )
    both = np.intersect1d(keys[forth], keys[~forth])
    if both.size:
        how = "are marked the same and not the same" if width == 2 else "are there both ways round"
        raise ValueError(f"contradictory {NAMES[width]}: {both.size} of them {how}")


def refuse_indices(X: Any) -> None:
    """Pairs and triplets of a cluster are vectors."""
    if X is not None:
        raise ValueError(
            "X is for indices, and on a cluster pairs and triplets are vectors: pass X[pairs]"
        )


def shaped(n: int, d: int) -> Array:
    """What stands for so many samples of so many features where only that counts."""
    return np.broadcast_to(np.zeros(1), (n, d))


def whitening_of(scatter: Array, ridge: float) -> Array:
    """R of the whitening by a sum of scatters."""
    return scatter_whitening(0.5 * (scatter + scatter.T), ridge).matrix


# --- what tasks do -----------------------------------------------------------------------


def _vector_spread(block: tuple[Array, Any]) -> Spread:
    rows = block[0].reshape(-1, block[0].shape[2])
    return spread_of(Sample(rows, np.zeros(len(rows), dtype=int)))


def _tuples_of(block: tuple[Array, Any]) -> int:
    return len(block[0])


def _oriented(block: tuple[Array, Any]) -> tuple[Any, Any]:
    """A key for each pair, or each triplet, whichever way round, and whether it goes forth."""
    table, same = block
    hashes = [
        pd.util.hash_pandas_object(pd.DataFrame(table[:, k] + 0.0), index=False).to_numpy()
        for k in range(table.shape[1])
    ]
    if len(hashes) == 2:
        if same is None:
            raise ValueError("same is needed: one mark for each pair, True or 1 where it is")
        return hashes[0] + hashes[1], np.asarray(same) == 1
    anchor, near, far = hashes
    return anchor * np.uint64(0x9E3779B97F4A7C15) + (near + far), near < far


def _vector_keys(block: tuple[Array, Any]) -> Array:
    return np.unique(row_keys(block[0].reshape(-1, block[0].shape[2])))


def rows_of(block: Sample) -> int:
    return int(block.X.shape[0])
