"""The named arrays of a data set: reading and writing npz files, and fingerprints."""

from __future__ import annotations

import hashlib
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from gramian.common.storage import checked_csr, overwriting, replacing

Arrays = dict[str, NDArray[Any]]

SPARSE = ("data", "indices", "indptr", "shape")
"""The parts of a CSR matrix."""

UNREADABLE = (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error)


def read(path: Path) -> Arrays:
    """All arrays of a file; pickled objects raise an error."""
    try:
        with path.open("rb") as file:
            arrays = np.load(file, allow_pickle=False)
            if not isinstance(arrays, np.lib.npyio.NpzFile):
                raise ValueError("it holds a single array")
            return {key: arrays[key] for key in arrays}
    except UNREADABLE as error:
        raise ValueError(
            f"{path} is not a readable npz file of plain arrays ({error}): replace or remove it"
        ) from error


def write(path: Path, arrays: Arrays) -> None:
    """Write the arrays to a file; an existing file is only replaced by a complete one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with overwriting(), replacing(path) as file:
        np.savez_compressed(file, **arrays)  # type: ignore[arg-type]


def matrix(arrays: Arrays, part: str = "") -> Any:
    """X, or X_test if part is "test": a dense array or CSR, with the stored dtype."""
    dense, prefix = ("X_test", "test_") if part else ("X", "")
    if dense in arrays:
        X = arrays[dense]
        if X.ndim != 2 or X.dtype.kind not in "fiub":
            raise ValueError(f"{dense} must be a table of numbers, got {X.dtype} of {X.shape}")
        return X
    missing = [prefix + key for key in SPARSE if prefix + key not in arrays]
    if missing:
        raise ValueError(f"there is neither {dense} nor {', '.join(missing)}")
    values, indices, indptr, shape = (arrays[prefix + key] for key in SPARSE)
    parts = [values, indices.astype(np.int32), indptr.astype(np.int32)]
    return checked_csr(parts, shape.tolist())


def fingerprint(arrays: Arrays) -> str:
    """The SHA-256 of the content of a data set, independent of number types and storage of X.

    For ratings it is that of the sorted triples (user, item, rating) and (user, time, rating),
    because the order of simultaneous equal ratings of a user in MovieLens 1M is not unique.
    """
    digest = hashlib.sha256()
    for name, values in _ratings(arrays) if "user" in arrays else _labelled(arrays):
        kind = "<f8" if values.dtype.kind == "f" else "<i8"
        digest.update(f"{name} {kind} {values.shape};".encode())
        digest.update(np.ascontiguousarray(values, dtype=kind).data)
    return digest.hexdigest()


def _labelled(arrays: Arrays) -> Iterator[tuple[str, NDArray[Any]]]:
    for part in ("", "test"):
        labels = arrays.get("y_test" if part else "y")
        if labels is None:
            continue
        X = sp.csr_matrix(matrix(arrays, part), copy=True)
        X.sum_duplicates()
        X.eliminate_zeros()
        yield from (
            ("shape", np.array(X.shape)),
            ("data", X.data.astype(np.float64)),
            ("indices", X.indices),
            ("indptr", X.indptr),
            ("y", labels),
        )


def _ratings(arrays: Arrays) -> Iterator[tuple[str, NDArray[Any]]]:
    user, item, rating, time = (arrays[key] for key in ("user", "item", "rating", "timestamp"))
    by_item = np.lexsort((item, user))
    by_time = np.lexsort((rating, time, user))
    yield from (
        ("user", user[by_item]),
        ("item", item[by_item]),
        ("rating", rating[by_item].astype(np.float64)),
        ("timestamp", time[by_time]),
        ("rating", rating[by_time].astype(np.float64)),
    )
    if "movie_id" in arrays:
        yield "movie_id", arrays["movie_id"]
