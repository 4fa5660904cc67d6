"""A folder that the driver and all workers reach: states are planted from it, and factors kept.

Every block is a file of NumPy, written and read by tasks.
"""

from __future__ import annotations

import os
import weakref
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import numpy as np
from fsspec.core import url_to_fs
from numpy.typing import NDArray

from gramian.completion._stored import StoredRows, read_rows, write_rows
from gramian.dask._cluster import Cluster
from gramian.dask._ratings import Rated
from gramian.dask._spread import Spread

Array = NDArray[np.floating]


class Written:
    """Files of one state; they go when nothing that is made of them is there any more."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.unpin()

    def pin(self) -> None:
        """Keep the files whatever happens here: a checkpoint names them."""
        self._end.detach()

    def unpin(self) -> None:
        self._end = weakref.finalize(self, _removed, self.path)
        self._end.atexit = False


@dataclass
class Folder:
    """Where blocks are written: a path on a disk that all share, or an address (s3://…)."""

    path: str
    _kept: list[Written] = field(default_factory=list)
    """The state that the last checkpoint names, and the one before: the next is written after it
    is told."""

    def __post_init__(self) -> None:
        if "://" not in self.path:
            self.path = os.path.abspath(self.path)

    def replanted(self, state: Spread) -> Spread:
        """The same state, read again from files."""
        return self._read(state.rated, self._written(state), state.columns)

    def stored(self, state: Spread) -> Any:
        """The name of files that stay until later checkpoints are written."""
        written = self._written(state)
        self._keep(written)
        return {"folder": written.path, "columns": state.columns}

    def restored(self, rated: Rated, stored: Any) -> Spread:
        written = Written(stored["folder"])
        self._keep(written)
        return self._read(rated, written, int(stored["columns"]))

    def _keep(self, written: Written) -> None:
        written.pin()
        for old in self._kept[:-1]:
            old.unpin()
        self._kept = [*self._kept[-1:], written]

    def _written(self, state: Spread) -> Written:
        written = Written(f"{self.path}/state-{uuid4().hex[:12]}")
        self._write(state, written.path)
        return written

    def kept(self, factor: Spread) -> StoredRows:
        """The factor in files that stay."""
        rated, path = factor.rated, f"{self.path}/factor-{uuid4().hex[:12]}"
        self._write(factor, path)
        sides = (rated.users, "users"), (rated.items, "items")
        paths = [file for side, name in sides for file in _files(path, name, len(side.blocks))]
        cuts = np.concatenate([rated.users.cuts[:-1], rated.shape[0] + rated.items.cuts])
        return StoredRows(paths, cuts, factor.columns)

    def _write(self, matrix: Spread, path: str) -> None:
        cluster = matrix.cluster
        upper = _files(path, "users", len(matrix.upper))
        lower = _files(path, "items", len(matrix.lower))
        cluster.gather(cluster.each("write", _written, [*upper, *lower], matrix.blocks))
        if not _all_there(path, len(matrix.blocks)):
            raise ValueError(
                f"the driver does not find what workers have written to {path}: name a folder that "
                "all of them share"
            )

    def _read(self, rated: Rated, written: Written, columns: int) -> Spread:
        made = [
            _taken(rated.cluster, _files(written.path, name, len(side.blocks)))
            for side, name in ((rated.users, "users"), (rated.items, "items"))
        ]
        return Spread(rated, made[0], made[1], columns, roots=frozenset({written}))


def parts_of(factor: StoredRows, scales: tuple[Array, Array]) -> tuple[StoredRows, StoredRows]:
    """The rows of users and those of items, each over the root of its scale."""
    at, (rows, cols) = int(np.searchsorted(factor.cuts, scales[0].size)), map(np.sqrt, scales)
    return (
        StoredRows(factor.paths[:at], factor.cuts[: at + 1], factor.columns, rows),
        StoredRows(factor.paths[at:], factor.cuts[at:], factor.columns, cols),
    )


def _files(path: str, name: str, count: int) -> list[str]:
    return [f"{path}/{name}-{k:05d}.npy" for k in range(count)]


def _taken(cluster: Cluster, paths: list[str]) -> list[Any]:
    return cluster.keep(cluster.each("read", _whole, paths))


def _all_there(path: str, count: int) -> bool:
    fs, place = url_to_fs(path)
    fs.invalidate_cache()
    found = fs.ls(place, detail=False) if fs.exists(place) else []
    return sum(str(name).endswith(".npy") for name in found) == count


def _removed(path: str) -> None:
    fs, place = url_to_fs(path)
    if fs.exists(place):
        fs.rm(place, recursive=True)


# --- what tasks do -----------------------------------------------------------------------


def _written(path: str, rows: Array) -> int:
    write_rows(path, rows)
    return int(rows.nbytes)


def _whole(path: str) -> Array:
    return np.array(read_rows(path))
