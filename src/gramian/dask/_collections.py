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

from gramian.arrays.samples import check_size, checked_samples, naming_text, refuse_odd_labels
from gramian.completion._reading import checked_values, checked_weights, refuse_missing
from gramian.dask._cluster import Cluster
from gramian.metric._input import marks as checked_marks

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
    with open_file(path) as file:
        try:
            return _parquet(file) if path.endswith(".parquet") else _npz(file)
        except (ValueError, KeyError, EOFError, BadZipFile) as reason:
            raise ValueError(f"{path} cannot be read: {reason}") from reason


def _parquet(file: Any) -> pd.DataFrame:
    """Read a Parquet file, and release the memory pool that it was decoded in."""
    frame = pd.read_parquet(file)
    pa.default_memory_pool().release_unused()
    return frame


def _npz(file: Any) -> Any:
    stored = np.load(file, allow_pickle=False)
    if "format" not in stored.files:
        return {name: stored[name] for name in stored.files}
    file.seek(0)
    return sp.csr_array(sp.load_npz(file))  # whatever format it was saved in


def open_file(path: str) -> Any:
    """Open a local or remote file for reading."""
    return fsspec.open(path, "rb")


NAMES = {2: "pairs", 3: "triplets"}
"""Array names in NPZ files, by the number of vectors in each tuple."""


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
    y = None if labels is None else np.asarray(labels)
    if y is not None:
        _check_labels(y, X.shape[0])
    return Sample(X, y, names)


def _check_labels(y: Any, count: int) -> None:
    refuse_odd_labels(y)
    if y.shape != (count,):
        raise ValueError(f"a block has {count} samples and labels of shape {y.shape}")
    if y.dtype.kind == "f":
        if np.any(np.isnan(y)):
            raise ValueError("y contains NaN: leave out the samples that have no label")
        if np.any(y != np.floor(y)):
            raise ValueError(
                "y has numbers with fractions, which are no classes: Unknown label type"
            )


def _named(raw: Any, column: str, names: list[Any]) -> Any:
    if column not in names:
        raise ValueError(f"there is no column {column!r}, only {_few(names)}")
    return raw[column]


def tuples_of(raw: Any, marks: Any, width: int) -> tuple[Any, Any]:
    if isinstance(raw, dict):
        marks = raw.get("same", marks)
        raw = _named(raw, NAMES[width], sorted(raw))
    table = np.asarray(raw, dtype=float)
    if table.ndim != 3 or table.shape[1] != width:
        raise ValueError(
            f"a block must have shape (t, {width}, n_features), vectors and no indices: "
            f"got {table.shape}"
        )
    if not np.all(np.isfinite(table)):
        raise ValueError("pairs and triplets must not contain NaN or infinity")
    if width == 3 and np.any(np.all(table[:, 0] == table[:, 2], axis=1)):
        raise ValueError(
            "a triplet has one vector as anchor and as other: no metric can tell them apart. "
            "Leave it out"
        )
    if marks is None:
        return table, None
    same = np.asarray(marks)
    checked_marks(same, len(table))
    return table, same


def triple_of(*arrays: Any) -> tuple[Any, ...]:
    return _checked_ratings(*(np.asarray(part) for part in arrays))


def ratings_of(raw: Any, columns: Any) -> tuple[Any, ...]:
    if isinstance(raw, dict):
        raw = pd.DataFrame(raw)
    if not isinstance(raw, pd.DataFrame):
        raise ValueError("ratings are a frame with a user, an item and a rating in each row")
    names = list(raw.columns)
    return _checked_ratings(*(_named(raw, column, names).to_numpy() for column in columns))


def _checked_ratings(rows: Any, cols: Any, values: Any, weights: Any = None) -> tuple[Any, ...]:
    if not rows.shape == cols.shape == values.shape or rows.ndim != 1:
        raise ValueError("users, items and ratings must be as many")
    refuse_missing(rows, "row")
    refuse_missing(cols, "column")
    numbers = checked_values(values)
    check_size(numbers, "the ratings", least=0.0)
    if weights is None:
        return rows, cols, numbers
    return rows, cols, numbers, checked_weights(weights, rows.size)


def in_partition(name: str, check: Any, *given: Any) -> Any:
    """The result of a check of a partition; errors name the partition."""
    try:
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
    """Blocks (rows, cols, values), with weights if given, in the order of the input."""
    if not is_triple(X):
        return _checked(cluster, ratings_of, X, blocks(X), columns)
    first = blocks(X[0], "rows")
    others = [(X[1], "cols"), (X[2], "values")]
    if weights is not None:
        others.append((weights, "sample_weight"))
    parts = [_beside(cluster, X[0], first, part, name, "rows") for part, name in others]
    return _checked(cluster, triple_of, X[0], first, *parts)


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


def _unique() -> str:
    return uuid4().hex
