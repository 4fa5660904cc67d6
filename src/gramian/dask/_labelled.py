"""Labelled samples, pairs and triplets of a cluster as metric learners need them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gramian.constraints import check_class_sizes
from gramian.dask._alignment import take
from gramian.dask._base import check_plain
from gramian.dask._checked import NAMES, Sample
from gramian.dask._cluster import Cluster
from gramian.dask._collections import filled, samples, tuples
from gramian.dask._moments import Spread, spread, spread_of
from gramian.metric._input import row_keys
from gramian.reductions.scatter_whitening import scatter_whitening

Array = NDArray[np.floating]


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
