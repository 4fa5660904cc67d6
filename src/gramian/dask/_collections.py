"""Data of a cluster as shards: tasks that read one block each, and can be run again.

A shard is a node of a graph: a chunk of a Dask array, a partition of a Dask frame, or one Parquet
or NPZ file. Nothing is read before a round of tasks asks for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import dask.array as da
import fsspec
import numpy as np
import pandas as pd
import scipy.sparse as sp
from dask import delayed
from dask.base import is_dask_collection
from fsspec.core import has_magic, url_to_fs

from gramian._samples import check_size, refuse_masked, refuse_odd_labels
from gramian.dask._cluster import Cluster

ENDINGS = (".parquet", ".npz")


class Sample:
    """A block of samples: X dense or CSR, their labels where there are any, their columns."""

    def __init__(self, X: Any, y: Any = None, names: Any = None) -> None:
        self.X, self.y, self.names = X, y, names


def is_files(given: Any) -> bool:
    """Whether the data are named: a folder, a pattern, or a list of files."""
    if isinstance(given, (str, Path)):
        return True
    return isinstance(given, (list, tuple)) and bool(given) and all(
        isinstance(part, (str, Path)) for part in given
    )  # fmt: skip


def is_sharded(given: Any) -> bool:
    """Whether the data are a cluster's: a Dask collection or files."""
    return is_dask_collection(given) or is_files(given)


def files_of(given: Any) -> list[str]:
    """The Parquet and NPZ files of a folder, a pattern or a list, in the order of their names."""
    if not isinstance(given, (str, Path)):
        return [_known_ending(str(path)) for path in given]
    fs, path = url_to_fs(str(given))
    if fs.isdir(path):
        found = [p for ending in ENDINGS for p in fs.glob(f"{path.rstrip('/')}/*{ending}")]
    elif has_magic(path):
        found = fs.glob(path)
    else:
        found = [path] if fs.exists(path) else []
    if not found:
        raise ValueError(f"no Parquet or NPZ files are at {str(given)!r}: name a folder, a pattern "
                         "such as 'part-*.parquet', or a list of files")  # fmt: skip
    return [_known_ending(str(fs.unstrip_protocol(p))) for p in sorted(found)]


def _known_ending(path: str) -> str:
    if not path.endswith(ENDINGS):
        raise ValueError(f"{path} is neither a .parquet nor a .npz file, which are read here")
    return path


def read(path: str) -> Any:
    """A Parquet file as a frame, an NPZ file as a dict of arrays or as a sparse matrix."""
    with open_file(path) as file:
        if path.endswith(".parquet"):
            return pd.read_parquet(file)
        stored = np.load(file, allow_pickle=False)
        if "format" in stored.files and "indptr" in stored.files:
            return sp.csr_array(
                (stored["data"], stored["indices"], stored["indptr"]), shape=stored["shape"]
            )
        return {name: stored[name] for name in stored.files}


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
        return cluster.each("read", _sample, nodes, None, y)
    if isinstance(y, da.Array) and isinstance(X, da.Array) and _sized(X) and _sized(y):
        y = y.rechunk((X.chunks[0],))
    if is_dask_collection(y):
        labels = blocks(y, "y")
    else:
        labels = [*_split(np.asarray(y), _lengths(cluster, X, nodes))]
    if len(labels) != len(nodes):
        raise ValueError(
            f"X has {len(nodes)} partitions and y {len(labels)}: give y the partitions of X"
        )
    return cluster.each("read", _sample, nodes, labels, None)


def tuples(cluster: Cluster, given: Any, width: int, marks: Any = None) -> list[Any]:
    """Blocks (t, width, d) of pairs or triplets of vectors, with a mark for each pair."""
    nodes = blocks(given, "pairs" if width == 2 else "triplets")
    if marks is None:
        return cluster.each("read", _tuple_block, nodes, None, width)
    if is_dask_collection(marks):
        if isinstance(given, da.Array) and isinstance(marks, da.Array) and _sized(given):
            marks = marks.rechunk((given.chunks[0],))
        labels = blocks(marks, "same")
    else:
        labels = [*_split(np.asarray(marks), _lengths(cluster, given, nodes))]
    return cluster.each("read", _tuple_block, nodes, labels, width)


def ratings(cluster: Cluster, X: Any, columns: Any = None, weights: Any = None) -> list[Any]:
    """Blocks (rows, cols, values), and a weight for each where there are any, as they come."""
    if isinstance(X, tuple) and len(X) == 3 and all(is_dask_collection(part) for part in X):
        arrays = [*X, *([] if weights is None else [weights])]
        parts = [X[0], *(part.rechunk(X[0].chunks) for part in arrays[1:])]
        return cluster.each("read", _triple, *(blocks(part) for part in parts))
    return cluster.each("read", _rating_block, blocks(X), columns)


def open_file(path: str) -> Any:
    """A file to read, wherever it is."""
    return fsspec.open(path, "rb")


# --- what tasks do -----------------------------------------------------------------------


def _sample(raw: Any, labels: Any, column: str | None) -> Sample:
    """A block as numbers, checked."""
    names = None
    if isinstance(raw, dict):
        if "X" not in raw:
            raise ValueError(f"an NPZ file of samples has an array X, got {sorted(raw)}")
        labels = raw[column] if column is not None else labels
        raw = raw["X"]
    elif isinstance(raw, pd.DataFrame):
        if column is not None:
            if column not in raw.columns:
                raise ValueError(f"there is no column {column!r}, only {list(raw.columns)}")
            labels, raw = raw[column].to_numpy(), raw.drop(columns=column)
        names = np.asarray(raw.columns, dtype=object)
        raw = raw.to_numpy()
    X = sp.csr_array(raw) if sp.issparse(raw) else np.asarray(raw)
    refuse_masked(raw, "X")
    if X.ndim != 2 or X.dtype.kind not in "iufb":
        raise ValueError(f"samples must be a table of numbers, got shape {X.shape} of {X.dtype}")
    X = X if X.dtype in (np.float32, np.float64) else X.astype(float)
    entries = X.data if sp.issparse(X) else X
    if not np.all(np.isfinite(entries)):
        raise ValueError("X contains NaN or infinity")
    check_size(X, "X")
    y = None if labels is None else np.asarray(labels)
    if y is not None:
        refuse_odd_labels(y)
        if y.shape != X.shape[:1]:
            raise ValueError(f"a block has {X.shape[0]} samples and labels of shape {y.shape}")
    return Sample(X, y, names)


def _tuple_block(raw: Any, marks: Any, width: int) -> tuple[Any, Any]:
    if isinstance(raw, dict):
        marks = raw.get("same", marks)
        raw = raw["pairs" if width == 2 else "triplets"]
    table = np.asarray(raw, dtype=float)
    if table.ndim != 3 or table.shape[1] != width:
        raise ValueError(
            f"a block must have shape (t, {width}, n_features), vectors and no indices: "
            f"got {table.shape}"
        )
    if not np.all(np.isfinite(table)):
        raise ValueError("pairs and triplets must not contain NaN or infinity")
    if marks is None:
        return table, None
    same = np.asarray(marks)
    if same.shape != table.shape[:1]:
        raise ValueError(f"a block has {len(table)} pairs and {same.shape} marks")
    return table, same


def _triple(*arrays: Any) -> tuple[Any, ...]:
    return _checked_ratings(*(np.asarray(part) for part in arrays))


def _rating_block(raw: Any, columns: Any) -> tuple[Any, ...]:
    if isinstance(raw, dict):
        raw = pd.DataFrame(raw)
    if not isinstance(raw, pd.DataFrame):
        raise ValueError("ratings are a frame with a user, an item and a rating in each row")
    return _checked_ratings(*(raw[column].to_numpy() for column in columns))


def _checked_ratings(rows: Any, cols: Any, values: Any, weights: Any = None) -> tuple[Any, ...]:
    if not rows.shape == cols.shape == values.shape or rows.ndim != 1:
        raise ValueError("users, items and ratings must be as many")
    numbers = np.asarray(values, dtype=float)
    bad = np.flatnonzero(~np.isfinite(numbers))
    if bad.size:
        raise ValueError(f"the rating of user {rows[bad[0]]!r} and item {cols[bad[0]]!r} is "
                         f"{values[bad[0]]!r}: leave out what is not known")  # fmt: skip
    check_size(numbers, "the ratings", least=0.0)
    if weights is None:
        return rows, cols, numbers
    omega = np.asarray(weights, dtype=float)
    if omega.shape != rows.shape or not np.all(np.isfinite(omega) & (omega >= 0)):
        raise ValueError("weights must be as many as the ratings, finite and at least 0")
    return rows, cols, numbers, omega


def _sized(collection: da.Array) -> bool:
    return not np.any(np.isnan(np.asarray(collection.chunks[0], dtype=float)))


def _lengths(cluster: Cluster, X: Any, nodes: list[Any]) -> list[int]:
    if isinstance(X, da.Array) and _sized(X):
        return [int(size) for size in X.chunks[0]]
    return cluster.gather(cluster.each("count", _length, nodes))


def _length(raw: Any) -> int:
    return int(raw["X"].shape[0]) if isinstance(raw, dict) else int(raw.shape[0])


def _split(values: Any, lengths: list[int]) -> Iterator[Any]:
    if values.shape[:1] != (sum(lengths),):
        raise ValueError(f"X has {sum(lengths)} samples, and the labels shape {values.shape}")
    ends = np.cumsum(lengths)
    for length, end in zip(lengths, ends, strict=True):
        yield values[end - length : end]


def _unique() -> str:
    return uuid4().hex
