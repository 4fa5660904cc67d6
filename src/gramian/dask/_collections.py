"""Data of a cluster as shards: repeatable tasks that each read and check one block.

A shard is a node of a graph: a chunk of a Dask array, a partition of a Dask frame, or one Parquet
or NPZ file. Nothing is read before a round of tasks needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4
from zipfile import BadZipFile

import dask.array as da
import fsspec
import numpy as np
import pandas as pd
import pyarrow as pa
import scipy.sparse as sp
from dask import delayed
from dask.base import is_dask_collection
from fsspec.core import has_magic, url_to_fs
from numpy.typing import NDArray
from sklearn.utils import assert_all_finite

from gramian.arrays.samples import (
    check_size,
    checked_samples,
    naming_text,
    ready,
    refuse_odd_labels,
)
from gramian.completion._reading import checked_values, checked_weights, refuse_missing
from gramian.dask._cluster import Cluster, announced
from gramian.metric._input import NAMES, marks, refuse_continuous, vectors

ENDINGS = (".parquet", ".npz")


def is_files(given: Any) -> bool:
    """Whether the data are given as files: a folder, a pattern, or a list of files."""
    if isinstance(given, (str, Path)):
        return True
    return isinstance(given, (list, tuple)) and bool(given) and all(
        isinstance(part, (str, Path)) for part in given
    )  # fmt: skip


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
    with fsspec.open(path, "rb") as file:
        try:
            if path.endswith(".parquet"):
                frame = pd.read_parquet(file)
                pa.default_memory_pool().release_unused()  # that it was decoded in
                return frame
            stored = np.load(file, allow_pickle=False)
            if "format" not in stored.files:
                return {name: stored[name] for name in stored.files}
            file.seek(0)
            return sp.csr_array(sp.load_npz(file))  # whatever format it was saved in
        except (ValueError, KeyError, EOFError, BadZipFile) as reason:
            raise ValueError(f"{path} cannot be read: {reason}") from reason


def announced_read(path: str) -> Any:
    """`read` on a worker."""
    with announced(path):
        return read(path)


class Sample:
    """A block of samples: dense or CSR X, optional labels, and the names of the columns."""

    def __init__(self, X: Any, y: Any = None, names: Any = None) -> None:
        self.X, self.y, self.names = X, y, names


def sample_of(raw: Any, labels: Any, column: str | None) -> Sample:
    """A validated numeric block."""
    names = None
    if isinstance(raw, dict):
        if "X" not in raw:
            raise ValueError(f"an NPZ file of samples has an array X, got {sorted(raw)}")
        labels = _named(raw, column, sorted(raw)) if column is not None else labels
        raw = raw["X"]
    elif isinstance(raw, pd.DataFrame):
        if column is not None:
            labels = _named(raw, column, list(raw.columns)).to_numpy()
            raw = raw.drop(columns=column)
        names = np.asarray(raw.columns, dtype=object)
    elif column is not None:
        raise ValueError(f"y={column!r} names a column, and X has none: pass y as a Dask array")
    with naming_text(raw):
        X = checked_samples(raw, ensure_min_samples=0, input_name="X")
    return Sample(X, None if labels is None else _checked_labels(labels, X.shape[0]), names)


def _checked_labels(given: Any, count: int) -> NDArray[Any]:
    """The classes of a block, with the errors of an estimator outside `gramian.dask`."""
    y = np.asarray(given)
    refuse_odd_labels(y)
    if y.shape != (count,):
        raise ValueError(f"a block has {count} samples and labels of shape {y.shape}")
    if count:
        assert_all_finite(y, input_name="y")
        refuse_continuous(y)
    return y


def _named(raw: Any, column: str, names: list[Any]) -> Any:
    if column not in names:
        raise ValueError(f"there is no column {column!r}, only {_few(names)}")
    return raw[column]


def tuples_of(raw: Any, same: Any, width: int) -> tuple[Any, Any]:
    """Validated (t, width, d) vectors in float64, and the marks of pairs."""
    if isinstance(raw, dict):
        same = raw.get("same", same)
        raw = _named(raw, NAMES[width], sorted(raw))
    if np.ndim(raw) != 3 or len(raw):  # an empty partition is valid
        raw = ready(vectors(raw, width), NAMES[width])
    if same is not None:
        same = np.asarray(same)
        marks(same, len(raw))
    return np.asarray(raw, dtype=float), same


def ratings_of(raw: Any, columns: Any) -> tuple[Any, ...]:
    """The columns of user, item, rating and perhaps weight of a frame or an NPZ file."""
    if not isinstance(raw, (dict, pd.DataFrame)):
        raise ValueError("ratings are a frame with a user, an item and a rating in each row")
    return checked_ratings(*(_named(raw, column, list(raw)) for column in columns))


def checked_ratings(*given: Any) -> tuple[Any, ...]:
    """Validated rows, columns, values and weights, if there are any."""
    rows, cols, values = arrays = tuple(np.asarray(part) for part in given[:3])
    if len({part.shape for part in arrays}) > 1 or rows.ndim != 1:
        raise ValueError("users, items and ratings must be as many")
    refuse_missing(rows, "row")
    refuse_missing(cols, "column")
    numbers = checked_values(values)
    check_size(numbers, "the ratings", least=0.0)
    return rows, cols, numbers, *(checked_weights(part, rows.size) for part in given[3:])


def in_partition(name: str, check: Any, *given: Any) -> Any:
    """The result of a check of a partition; errors name the partition."""
    try:
        with announced(name):
            return check(*given)
    except ValueError as reason:
        raise ValueError(f"{name}: {reason}") from reason


def refuse_mixed(a: Any, b: Any, name: str) -> None:
    """Raise ValueError if some of the sorted names are text and others are numbers."""
    if a.size and b.size and isinstance(a[0], str) != isinstance(b[0], str):
        raise ValueError(
            f"{name} are text in some partitions and numbers in others ({a[0]!s} and {b[0]!s}): "
            "make them of one kind"
        )


def same_columns(a: Any, b: Any, width: int, other: int) -> None:
    """Raise ValueError if the names or the numbers of columns of two partitions differ."""
    if a is not None and b is not None and not np.array_equal(a, b):
        raise ValueError(
            f"partitions have the columns {_few(a)} and {_few(b)}: give all the same ones, in the "
            "same order"
        )
    if width != other:
        raise ValueError(f"blocks have {width} and {other} features: give all the same")


def _few(names: Any) -> str:
    """At most eight names, formatted for a message."""
    shown = [str(name) for name in names]
    return f"{shown[:8]}" + (f" and {len(shown) - 8} more" if len(shown) > 8 else "")


def blocks(given: Any, name: str = "X") -> list[Any]:
    """One node for each chunk, partition or file."""
    if is_files(given):
        reading = delayed(announced_read, pure=False)
        return [reading(path, dask_key_name=f"gramian-read-{k}-{uuid4().hex}")
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
    nodes, column = blocks(X), y if isinstance(y, str) else None
    labels = None if y is None or column else _beside(cluster, X, nodes, y, "y", "X")
    return _checked(cluster, sample_of, X, nodes, labels, column)


def tuples(cluster: Cluster, given: Any, width: int, same: Any = None) -> list[Any]:
    """Blocks (t, width, d) of pairs or triplets of vectors, with a mark for each pair."""
    nodes, name = blocks(given, NAMES[width]), NAMES[width]
    same = None if same is None else _beside(cluster, given, nodes, same, "same", name)
    return _checked(cluster, tuples_of, given, nodes, same, width)


def ratings(cluster: Cluster, X: Any, columns: Any = None, weights: Any = None) -> list[Any]:
    """Blocks (rows, cols, values), with weights if given, in the order of the input."""
    if not is_triple(X):
        return _checked(cluster, ratings_of, X, blocks(X), columns)
    first, others = blocks(X[0], "rows"), {"cols": X[1], "values": X[2], "sample_weight": weights}
    parts = [
        _beside(cluster, X[0], first, part, name, "rows")
        for name, part in others.items()
        if part is not None
    ]
    return _checked(cluster, checked_ratings, X[0], first, *parts)


def _checked(cluster: Cluster, check: Any, given: Any, nodes: list[Any], *more: Any) -> list[Any]:
    """A node for each block, which is read and checked; errors name the file or the partition."""
    counted = [f"partition {k}" for k in range(len(nodes))]
    names = files_of(given) if is_files(given) else counted
    return cluster.each("read", in_partition, names, check, nodes, *more)


def is_triple(X: Any) -> bool:
    """Whether ratings are three Dask arrays."""
    return isinstance(X, tuple) and len(X) == 3 and all(isinstance(part, da.Array) for part in X)


def filled(
    cluster: Cluster, shards: list[Any], rows: Callable[[Any], int], name: str
) -> tuple[list[Any], list[int]]:
    """The nonempty shards and their numbers of rows: tasks need at least one row."""
    sizes = cluster.gather(cluster.each("count", rows, shards))
    kept = [k for k, size in enumerate(sizes) if size]
    if not kept:
        raise ValueError(f"{name} has no rows: every partition is empty")
    return [shards[k] for k in kept], [sizes[k] for k in kept]


def _beside(
    cluster: Cluster, X: Any, nodes: list[Any], given: Any, name: str, beside: str
) -> list[Any]:
    """The values of a Dask collection or array that belong to the rows of each block of X."""
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
    """The array rechunked like X, if the sizes of both are known."""
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
