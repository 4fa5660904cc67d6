"""Factors in files, one block of rows each, for fits on a cluster too large for one machine."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gramian.common.storage import replacing, storable
from gramian.common.types import Array


@storable
@dataclass(frozen=True, eq=False)
class StoredRows:
    """A matrix whose rows are stored in NumPy files and read on access.

    `rows[index]` is an array of those rows; one file at a time is in memory besides. NumPy's
    functions and `.T` read the whole matrix, as `np.asarray(rows)` does.
    """

    paths: list[str]
    cuts: NDArray[np.int64]
    """The index of the first row of each file, and the end of the last."""
    columns: int
    scale: Array | None = None
    """The divisor of each row."""

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.cuts[-1] - self.cuts[0]), self.columns

    @property
    def dtype(self) -> Any:
        return np.dtype(float)

    @property
    def ndim(self) -> int:
        return 2

    @property
    def nbytes(self) -> int:
        return 8 * self.shape[0] * self.columns

    @property
    def T(self) -> Array:
        return np.asarray(self).T

    def __len__(self) -> int:
        return self.shape[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self[np.arange(len(self))].astype(dtype or float, copy=False)

    def __getitem__(self, index: Any) -> Array:
        asked = np.arange(len(self))[index]
        places = np.atleast_1d(asked)
        found = np.empty((places.size, self.columns))
        block = np.searchsorted(self.cuts - self.cuts[0], places, side="right") - 1
        for k in np.unique(block):
            here = np.flatnonzero(block == k)
            begin = self.cuts[k] - self.cuts[0]
            found[here] = read_rows(self.paths[k])[places[here] - begin]
        if self.scale is not None:
            found /= self.scale[places][:, None]
        return found if np.ndim(asked) else found[0]


def write_rows(path: str, rows: Array) -> None:
    """Write an array to a file, atomically on local disks."""
    if "://" in path:
        with _remote(path, "wb") as file:
            np.save(file, rows)
        return
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with replacing(Path(path)) as file:
        np.save(file, rows)


def read_rows(path: str) -> Array:
    """The array of a file; local files are mapped into memory."""
    if "://" in path:
        with _remote(path, "rb") as file:
            return np.asarray(np.load(file, allow_pickle=False))
    return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))


def _remote(path: str, mode: str) -> Any:
    return import_module("fsspec").open(path, mode)
