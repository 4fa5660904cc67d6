"""A matrix of m + n rows whose blocks stay on the workers: those of users, and those of items.

Blocks are results of tasks. Functions of them are also tasks, one for each block, and only sums are
sent to the driver. If a worker is lost, the scheduler recomputes its blocks from their inputs.
To limit how far back this reaches, a matrix is copied every few sweeps (`replanted`), through the
driver or through files (`SharedFolder`).
"""

from __future__ import annotations

import os
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from operator import is_
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import numpy as np
from fsspec.core import url_to_fs
from numpy.typing import NDArray

from gramian.arrays.blocks import Blocks, rows_of, summed
from gramian.common.types import Array
from gramian.completion._stored import StoredRows, read_rows, write_rows
from gramian.dask._cluster import Cluster
from gramian.methods.alternating import MIXED_SWEEPS
from gramian.reductions.block_embedding import product_svd

if TYPE_CHECKING:
    from gramian.dask._ratings import ClusterRatings


SWEEPS = MIXED_SWEEPS
"""Number of sweeps after which a state is copied: at most this many are repeated after a loss."""


class RemoteRows(Blocks):
    """An array whose blocks are on workers: row-wise functions are tasks, a sum is a round."""

    xp = np

    def __init__(self, cluster: Cluster, parts: list[Any], sample: Array, length: int) -> None:
        self.cluster, self.blocks, self.length = cluster, parts, length
        self.sample = sample
        """An array without rows."""

    @property
    def library(self) -> Any:
        return type(self)

    def stored(self) -> RemoteRows:
        """The array with its blocks kept on the workers."""
        kept = self.cluster.keep(self.blocks)  # futures are returned unchanged
        return self if all(map(is_, kept, self.blocks)) else self.like(kept, self.sample)

    def gathered(self) -> Array:
        """The array on the driver."""
        return np.concatenate(self.cluster.gather(self.blocks))

    def like(self, parts: list[Any], sample: Array) -> RemoteRows:
        """Other blocks of the same rows."""
        return RemoteRows(self.cluster, parts, sample, self.length)

    def mapped(self, function: Callable[..., Any], arguments: Sequence[Any]) -> RemoteRows:
        """A task for each block; a list among the arguments has one element for each block."""
        given = map(self._by_block, arguments)
        made = self.cluster.each(_name(function), function, *given)
        firsts = (one[0] if isinstance(one, list) else one for one in arguments)
        return self.like(made, function(*(rows_of(one, self, None) for one in firsts)))

    def summed(self, function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
        """The sum of a function of the blocks, in their order: one round."""
        given = map(self._by_block, arguments)
        return self.cluster.sum(_name(function), function, *given)

    def __matmul__(self, other: Any) -> Any:
        """The inner product of two vectors."""
        return self.summed(np.vdot, (self, other))

    def _by_block(self, given: Any) -> Any:
        """The blocks of an array on the workers, anything else as it is."""
        return given.blocks if isinstance(given, RemoteRows) else given


@dataclass(eq=False)
class SpreadMatrix(RemoteRows):
    """The blocks of a matrix, and the files that they are computed from."""

    rated: ClusterRatings
    upper: list[Any]
    lower: list[Any]
    sample: Array
    """A matrix without rows, with its columns."""
    roots: frozenset[Any] = field(default_factory=frozenset)
    """The `Written` states of its blocks, deleted with the last matrix that uses them."""
    age: int = 0
    """Number of sweeps since it was copied."""

    def __post_init__(self) -> None:
        self.cluster, self.length = self.rated.cluster, sum(self.rated.shape)

    @property
    def columns(self) -> int:
        return int(self.sample.shape[1])

    @property
    def blocks(self) -> list[Any]:  # type: ignore[override]
        return [*self.upper, *self.lower]

    def copy(self) -> SpreadMatrix:
        """A matrix that changes independently of this one; blocks never change."""
        return replace(self, upper=list(self.upper), lower=list(self.lower))

    def like(self, parts: list[Any], sample: Array) -> SpreadMatrix:
        """Another matrix in these blocks, users before items; it is kept on the workers."""
        made, count = self.cluster.keep(parts), len(self.upper)
        return replace(self, upper=made[:count], lower=made[count:], sample=sample)

    def mapped(self, function: Callable[..., Any], arguments: Sequence[Any]) -> SpreadMatrix:
        found: Any = super().mapped(function, arguments)
        found.roots = frozenset().union(
            *(one.roots for one in arguments if isinstance(one, SpreadMatrix))
        )
        return found

    def normal(self, columns: int, rng: np.random.Generator, *, upper: bool = True) -> SpreadMatrix:
        """Random numbers for each row, with a seed for each block; 0 for users without `upper`."""
        seeds: list[Any] = [int(seed) for seed in rng.integers(2**63, size=len(self.blocks))]
        if not upper:
            seeds[: len(self.upper)] = [None] * len(self.upper)
        return self.mapped(_normal, (self, columns, seeds))

    def _by_block(self, given: Any) -> Any:
        """Also the part of each block of an array with as many rows."""
        if isinstance(given, np.ndarray) and given.ndim == 2 and len(given) == self.length:
            return self.pieces(given)
        return super()._by_block(given)

    def pieces(self, rows: NDArray[Any]) -> list[NDArray[Any]]:
        """The part of each block of an array with m + n rows on the driver."""
        m = self.rated.shape[0]
        return [*self.rated.users.pieces(rows[:m]), *self.rated.items.pieces(rows[m:])]

    def square(self) -> float:
        """The sum of the squares of all entries."""
        return float(summed(_square, self))


def spread(rated: ClusterRatings, rows: Array | SpreadMatrix) -> SpreadMatrix:
    """A matrix of the driver in blocks on the workers; one on the workers is returned unchanged."""
    if isinstance(rows, SpreadMatrix):
        return rows
    m = rated.shape[0]
    upper, lower = (
        rated.cluster.keep([rated.cluster.shared("factor", piece) for piece in side.pieces(part)])
        for part, side in ((rows[:m], rated.users), (rows[m:], rated.items))
    )
    return SpreadMatrix(rated, upper, lower, rows[:0])


class Driver:
    """Copies states through the memory of the driver (`factors=None`)."""

    def replanted(self, state: SpreadMatrix) -> SpreadMatrix:
        """The same state, computed from the copy."""
        return spread(state.rated, state.gathered())

    def stored(self, state: SpreadMatrix) -> Any:
        """The content of a checkpoint, or the final factor."""
        return state.gathered()

    kept = stored

    def restored(self, rated: ClusterRatings, stored: Any) -> SpreadMatrix:
        return spread(rated, np.array(stored))


class Written:
    """Files of one state, deleted when no object refers to them."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.unpin()

    def pin(self) -> None:
        """Keep the files: a checkpoint names them."""
        self._end.detach()

    def unpin(self) -> None:
        self._end = weakref.finalize(self, _removed, self.path)
        self._end.atexit = False


@dataclass
class SharedFolder:
    """Copies states through NumPy files in a folder that the driver and all workers reach.

    The path is on a shared disk, or an address (s3://…).
    """

    path: str
    _kept: list[Written] = field(default_factory=list)
    """The states of the last two checkpoints: a new one is written before it replaces another."""

    def __post_init__(self) -> None:
        if "://" not in self.path:
            self.path = os.path.abspath(self.path)

    def replanted(self, state: SpreadMatrix) -> SpreadMatrix:
        return self._read(state.rated, self._written(state), state.columns)

    def stored(self, state: SpreadMatrix) -> Any:
        """The name of files that stay until later checkpoints are written."""
        written = self._written(state)
        self._keep(written)
        return {"folder": written.path, "columns": state.columns}

    def restored(self, rated: ClusterRatings, stored: Any) -> SpreadMatrix:
        written = Written(stored["folder"])
        self._keep(written)
        return self._read(rated, written, int(stored["columns"]))

    def kept(self, factor: SpreadMatrix) -> StoredRows:
        """The factor in files that stay."""
        rated, path = factor.rated, f"{self.path}/factor-{uuid4().hex[:12]}"
        self._write(factor, path)
        cuts = np.concatenate([rated.users.cuts[:-1], rated.shape[0] + rated.items.cuts])
        return StoredRows(_files(rated, path), cuts, factor.columns)

    def _keep(self, written: Written) -> None:
        written.pin()
        for old in self._kept[:-1]:
            old.unpin()
        self._kept = [*self._kept[-1:], written]

    def _written(self, state: SpreadMatrix) -> Written:
        written = Written(f"{self.path}/state-{uuid4().hex[:12]}")
        self._write(state, written.path)
        return written

    def _write(self, matrix: SpreadMatrix, path: str) -> None:
        cluster, paths = matrix.cluster, _files(matrix.rated, path)
        cluster.gather(cluster.each("write", _written, paths, matrix.blocks))
        fs, place = url_to_fs(path)
        fs.invalidate_cache()
        found = fs.ls(place, detail=False) if fs.exists(place) else []
        if sum(str(name).endswith(".npy") for name in found) != len(paths):
            raise ValueError(
                f"the driver does not find the files that workers have written to {path}: name a "
                "folder that all of them share"
            )

    def _read(self, rated: ClusterRatings, written: Written, columns: int) -> SpreadMatrix:
        cluster, count = rated.cluster, len(rated.users.blocks)
        made = cluster.keep(cluster.each("load", _whole, _files(rated, written.path)))
        none = np.zeros((0, columns))
        return SpreadMatrix(rated, made[:count], made[count:], none, frozenset({written}))


def parts_of(factor: StoredRows, scales: tuple[Array, Array]) -> tuple[StoredRows, StoredRows]:
    """The rows of users and those of items, each divided by the root of its scale."""
    at, (rows, cols) = int(np.searchsorted(factor.cuts, scales[0].size)), map(np.sqrt, scales)
    return (
        StoredRows(factor.paths[:at], factor.cuts[: at + 1], factor.columns, rows),
        StoredRows(factor.paths[at:], factor.cuts[at:], factor.columns, cols),
    )


def balanced(factor: SpreadMatrix) -> SpreadMatrix:
    """The same product PQᵀ with the least trace, P and Q with orthogonal, decreasing columns.

    With P = XS and Q = YT, S and T triangular, and STᵀ = UΣVᵀ, the halves are XUΣ^½ = P TᵀVΣ^-½ and
    YVΣ^½ = Q SᵀUΣ^-½: only r × r matrices are sent to the driver.
    """
    cluster = factor.cluster
    S, T = (
        cluster.sum("triangle", _triangle, side, join=_triangle_of_both)
        for side in (factor.upper, factor.lower)
    )
    U, values, V = product_svd(S, T)
    roots = np.sqrt(np.maximum(values, 1e-300))
    upper, lower = (
        cluster.keep(cluster.each("balance", _turned, side, turn / roots))
        for side, turn in ((factor.upper, T.T @ V), (factor.lower, S.T @ U))
    )
    return replace(factor, upper=upper, lower=lower, sample=np.zeros((0, values.size)))


def _files(rated: ClusterRatings, path: str) -> list[str]:
    """A file for each block."""
    sides = (rated.users, "users"), (rated.items, "items")
    return [f"{path}/{name}-{k:05d}.npy" for side, name in sides for k in range(len(side.blocks))]


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", "rows")).strip("_")


def _removed(path: str) -> None:
    fs, place = url_to_fs(path)
    if fs.exists(place):
        fs.rm(place, recursive=True)


# --- tasks -------------------------------------------------------------------------------


def _normal(rows: Array, columns: int, seed: int | None) -> Array:
    if seed is None:
        return np.zeros((rows.shape[0], columns), dtype=np.float32)
    noise = np.random.default_rng(seed)
    return noise.standard_normal((rows.shape[0], columns), dtype=np.float32)


def _square(rows: Array) -> float:
    return float(np.sum(np.square(rows), dtype=float))


def _written(path: str, rows: Array) -> int:
    write_rows(path, rows)
    return int(rows.nbytes)


def _whole(path: str) -> Array:
    return np.array(read_rows(path))


def _triangle(rows: Array) -> Array:
    """R of a QR decomposition, with as many rows as columns."""
    columns = rows.shape[1]
    lacking = max(0, columns - rows.shape[0])
    found: Any = np.linalg.qr(np.vstack([rows, np.zeros((lacking, columns))]), mode="r")
    return np.asarray(found)


def _triangle_of_both(a: Array, b: Array) -> Array:
    return _triangle(np.vstack([a, b]))


def _turned(rows: Array, turn: Array) -> Array:
    return np.ascontiguousarray(rows @ turn)
