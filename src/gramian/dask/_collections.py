"""Data of a cluster as shards: tasks that read one block each, and can be run again.

A shard is a node of a graph: a chunk of a Dask array, a partition of a Dask frame, or one Parquet
or NPZ file. Nothing is read before a round of tasks asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import uuid4

import dask.array as da
import numpy as np
from dask import delayed
from dask.base import is_dask_collection

from gramian.dask._checked import (
    NAMES,
    in_partition,
    ratings_of,
    sample_of,
    triple_of,
    tuples_of,
)
from gramian.dask._cluster import Cluster
from gramian.dask._files import files_of, is_files, read


def blocks(given: Any, name: str = "X") -> list[Any]:
    """One node for each chunk, partition or file."""
    if is_files(given):
        return [delayed(read, pure=False)(path, dask_key_name=f"gramian-read-{k}-{_unique()}")
                for k, path in enumerate(files_of(given))]  # fmt: skip
    if isinstance(given, da.Array):
        whole = given.rechunk({axis: -1 for axis in range(1, given.ndim)})
        return list(whole.to_delayed().ravel())
    if is_dask_collection(given) and hasattr(given, "to_delayed"):
        return list(given.to_delayed())
    raise TypeError(
        f"{name} must be a Dask array, a Dask frame, or files (a folder, a pattern, a list of "
        f".parquet and .npz); got {type(given).__name__}. What fits into memory is fitted by the "
        "estimator of the same name outside gramian.dask"
    )


def samples(cluster: Cluster, X: Any, y: Any = None) -> list[Any]:
    """Blocks of samples with their labels: y is a Dask collection, an array, or a column's name."""
    nodes = blocks(X)
    if y is None or isinstance(y, str):
        return _checked(cluster, sample_of, X, nodes, None, y)
    labels = _beside(cluster, X, nodes, y, "y", "X")
    return _checked(cluster, sample_of, X, nodes, labels, None)


def tuples(cluster: Cluster, given: Any, width: int, marks: Any = None) -> list[Any]:
    """Blocks (t, width, d) of pairs or triplets of vectors, with a mark for each pair."""
    nodes = blocks(given, NAMES[width])
    labels = None
    if marks is not None:
        labels = _beside(cluster, given, nodes, marks, "same", NAMES[width])
    return _checked(cluster, tuples_of, given, nodes, labels, width)


def ratings(cluster: Cluster, X: Any, columns: Any = None, weights: Any = None) -> list[Any]:
    """Blocks (rows, cols, values), and a weight for each where there are any, as they come."""
    if not is_triple(X):
        return _checked(cluster, ratings_of, X, blocks(X), columns)
    first = blocks(X[0], "rows")
    others = [(X[1], "cols"), (X[2], "values")]
    if weights is not None:
        others.append((weights, "sample_weight"))
    parts = [_beside(cluster, X[0], first, part, name, "rows") for part, name in others]
    return _checked(cluster, triple_of, X[0], first, *parts)


def _checked(cluster: Cluster, check: Any, given: Any, nodes: list[Any], *more: Any) -> list[Any]:
    """A node for each block that is read and checked; errors name the file or the partition."""
    counted = [f"partition {k}" for k in range(len(nodes))]
    names = files_of(given) if is_files(given) else counted
    return cluster.each("read", in_partition, names, check, nodes, *more)


def is_triple(X: Any) -> bool:
    """Whether ratings are three Dask arrays."""
    return isinstance(X, tuple) and len(X) == 3 and all(isinstance(part, da.Array) for part in X)


def filled(
    cluster: Cluster, shards: list[Any], rows: Callable[[Any], int], name: str
) -> tuple[list[Any], list[int]]:
    """The shards that hold anything, and how many rows each has: tasks need one at least."""
    sizes = cluster.gather(cluster.each("count", rows, shards))
    kept = [k for k, size in enumerate(sizes) if size]
    if not kept:
        raise ValueError(f"{name} has no rows: every partition is empty")
    return [shards[k] for k in kept], [sizes[k] for k in kept]


def _beside(
    cluster: Cluster, X: Any, nodes: list[Any], given: Any, name: str, beside: str
) -> list[Any]:
    """What belongs to the rows of each block of X, of a Dask collection or an array."""
    if not is_dask_collection(given):
        values = np.asarray(given)
        if values.ndim != 1:
            raise ValueError(f"{name} must have one entry for each row, got shape {values.shape}")
        return [*_split(values, _lengths(cluster, X, nodes), name, beside)]
    if isinstance(given, da.Array):
        given = _cut_alike(given, X, name, beside)
    found = blocks(given, name)
    if len(found) != len(nodes):
        raise ValueError(
            f"{beside} has {len(nodes)} partitions and {name} {len(found)}: give {name} the "
            f"partitions of {beside}"
        )
    return found


def _cut_alike(given: da.Array, X: Any, name: str, beside: str) -> da.Array:
    """The array in the chunks of X, where both know their sizes."""
    if given.ndim != 1:
        raise ValueError(f"{name} must have one entry for each row, got shape {given.shape}")
    if not (isinstance(X, da.Array) and _sized(X) and _sized(given)):
        return given
    if given.shape[0] != X.shape[0]:
        raise ValueError(
            f"{beside} has {X.shape[0]} rows, and {name} {given.shape[0]} entries: give as many"
        )
    return given.rechunk((X.chunks[0],))


def _sized(collection: da.Array) -> bool:
    return not np.any(np.isnan(np.asarray(collection.chunks[0], dtype=float)))


def _lengths(cluster: Cluster, X: Any, nodes: list[Any]) -> list[int]:
    if isinstance(X, da.Array) and _sized(X):
        return [int(size) for size in X.chunks[0]]
    return cluster.gather(cluster.each("count", _length, nodes))


def _length(raw: Any) -> int:
    if isinstance(raw, dict):
        raw = next(raw[name] for name in ("X", *NAMES.values(), *raw) if name in raw)
    return int(raw.shape[0])


def _split(values: Any, lengths: list[int], name: str, beside: str) -> Iterator[Any]:
    if values.size != sum(lengths):
        raise ValueError(
            f"{beside} has {sum(lengths)} rows, and {name} {values.size} entries: give as many"
        )
    ends = np.cumsum(lengths)
    for length, end in zip(lengths, ends, strict=True):
        yield values[end - length : end]


def _unique() -> str:
    return uuid4().hex
