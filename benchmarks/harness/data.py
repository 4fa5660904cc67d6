"""Data sets: one npz file each, in a folder the user names."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

_HOW = "pass --data DIR or set GRAMIAN_DATA to the folder that holds the .npz files"


class DataMissingError(RuntimeError):
    """A data set is not where the user said the data are."""


@dataclass(frozen=True)
class Dataset:
    """Samples in rows, dense or CSR, float64; labels 0..c−1; a test part where one is standard."""

    name: str
    X: Any
    y: np.ndarray
    X_test: Any = None
    y_test: np.ndarray | None = None


def data_folder(option: str | None) -> Path | None:
    """The folder named by ``--data``, else by GRAMIAN_DATA, else None."""
    name = option or os.environ.get("GRAMIAN_DATA")
    return Path(name) if name else None


def find_set(name: str, folder: Path | None) -> Path:
    """The file of a set, or an error that says which set is missing and what to do."""
    if folder is None:
        raise DataMissingError(f"data set {name!r} is needed, but no data folder is given: {_HOW}")
    if not folder.is_dir():
        raise DataMissingError(f"data set {name!r} is needed, but {folder} is no folder: {_HOW}")
    path = folder / f"{name}.npz"
    if not path.exists():
        raise DataMissingError(f"data set {name!r} is not in {folder}: {_HOW}")
    return path


def load_arrays(name: str, folder: Path | None) -> dict[str, np.ndarray]:
    """Every array of a set as stored, for ratings and pairs; beware of small integer types."""
    with np.load(find_set(name, folder)) as arrays:
        return {key: arrays[key] for key in arrays}


def load_set(name: str, folder: Path | None) -> Dataset:
    """A labelled set, dense or CSR, in float64 (uint8 differences would wrap around)."""
    arrays = load_arrays(name, folder)
    if "y" not in arrays:
        raise ValueError(f"data set {name!r} has no labels; load its arrays instead")
    y_test = arrays.get("y_test")
    return Dataset(
        name,
        X=_matrix(arrays, dense="X", prefix=""),
        y=arrays["y"].astype(np.int64),
        X_test=None if y_test is None else _matrix(arrays, dense="X_test", prefix="test_"),
        y_test=None if y_test is None else y_test.astype(np.int64),
    )


def _matrix(arrays: dict[str, np.ndarray], dense: str, prefix: str) -> Any:
    if dense in arrays:
        return np.ascontiguousarray(arrays[dense], dtype=np.float64)
    values, indices, indptr = (arrays[prefix + key] for key in ("data", "indices", "indptr"))
    parts = (values.astype(np.float64), indices.astype(np.int32), indptr.astype(np.int32))
    return sp.csr_matrix(parts, shape=tuple(arrays[prefix + "shape"]))
